"""The installed library compiles its kernels for newer GPUs, on a machine without one, and keeps the result."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.forks import server

import doorstep
import kernel_images
from doorstep import _native
from kernel_image_file import cubin_architecture

HEADER_BYTES = 24  # of a cached file, before the machine code
COMPILE = """
import json, pathlib
import doorstep
from doorstep import _native
doorstep.Simulator(2).step()
_native.cuda_architectures()
info = _native.cuda_compile("sm_103", 1)
assert 'libcuda' not in pathlib.Path('/proc/self/maps').read_text()
print(json.dumps({"from_cache": info.from_cache, "bytes": info.image_bytes, "path": info.cache_path.decode()}))
"""


def compiled(**environment):
    """The result of compiling for sm_103 in a process with only this environment."""
    done = server().run(COMPILE, environment=environment, timeout=280)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def kept_file(tmp_path_factory):
    """A file that the library has cached; tests copy it."""
    result = compiled(XDG_CACHE_HOME=str(tmp_path_factory.mktemp("cache")))
    assert not result["from_cache"]
    return Path(result["path"])


@pytest.fixture
def cache(kept_file, tmp_path):
    """The cached file in the test's own cache."""
    copy = tmp_path / "doorstep" / kept_file.name
    copy.parent.mkdir()
    copy.write_bytes(kept_file.read_bytes())
    return copy


def test_a_newer_architecture_is_compiled_for_without_a_driver_cached_and_found_again(kept_file, cache):
    original = cache.read_bytes()
    assert (kept_file.parent.name, cubin_architecture(original[HEADER_BYTES:])) == ("doorstep", 103)
    result = compiled(XDG_CACHE_HOME=str(cache.parent.parent))
    assert result == {"from_cache": 1, "bytes": len(original) - HEADER_BYTES, "path": str(cache)}
    assert cache.read_bytes() == original


@pytest.mark.nightly
@pytest.mark.parametrize("damage", ["flipped", "cut", "folder"])
def test_a_damaged_file_is_compiled_again(cache, damage):
    original = cache.read_bytes()
    if damage == "folder":
        cache.unlink()
        (cache / "inside").mkdir(parents=True)
    else:
        cache.write_bytes(original[:-1] + (bytes([original[-1] ^ 1]) if damage == "flipped" else b""))
    result = compiled(XDG_CACHE_HOME=str(cache.parent.parent))
    path = "" if damage == "folder" else str(cache)
    assert result == {"from_cache": 0, "bytes": len(original) - HEADER_BYTES, "path": path}
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]
    assert damage == "folder" or cache.read_bytes() == original


@pytest.mark.nightly
def test_the_cache_is_below_the_home_folder_by_default_and_one_that_cannot_be_written_is_no_failure(cache):
    home = cache.parent.parent / "home"
    expected = home / ".cache" / "doorstep" / cache.name
    assert compiled(HOME=str(home), XDG_CACHE_HOME="relative/folder")["path"] == str(expected)
    assert expected.read_bytes() == cache.read_bytes()
    for other in ("relative", "/dev/null", "/" + 600 * "h"):
        size = cache.stat().st_size - HEADER_BYTES
        assert compiled(HOME=other) == {"from_cache": 0, "bytes": size, "path": ""}


@pytest.mark.nightly
def test_processes_that_compile_the_same_at_once_all_succeed(kept_file, tmp_path):
    environment, command = {"XDG_CACHE_HOME": str(tmp_path)}, [sys.executable, "-c", COMPILE]
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    results = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert {result["path"] for result in results} == {str(tmp_path / "doorstep" / kept_file.name)}
    assert [path.read_bytes() for path in (tmp_path / "doorstep").iterdir()] == [kept_file.read_bytes()]


def test_embedded_architectures_are_named_and_others_refused():
    assert _native.cuda_architectures() == [f"sm_{number}" for number in kernel_images.chosen_architectures()]
    unknown, no_names = ("sm_70", "sm_999", "sm_999999"), ("", "103", "sm_", "sm_103a", "sm_ 103", "sm_-1", "sm_0")
    for name, num_agents, says in (
        *((name, 1, rf"architecture is {name}; the compiler supports sm_75, .*sm_103") for name in unknown),
        *((name, 1, "must be sm_ and a number") for name in (*no_names, "SM_103", "sm_9999999")),
        *(("sm_103", number, "num_agents") for number in (0, 9, -1)),
    ):
        with pytest.raises(doorstep.ArgumentError, match=says):
            _native.cuda_compile(name, num_agents)
