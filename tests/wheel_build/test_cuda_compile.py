"""The installed library compiles its kernels for newer GPUs, on a machine without one, and keeps the result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import RunPython
from tests.forks import server

import doorstep
import kernel_images
from doorstep import _native
from kernel_image_file import cubin_architecture

HEADER_BYTES = 24  # of a cached file, before the machine code
COMPILE = """
import json
from doorstep import _native
info = _native.cuda_compile("sm_103", 1)
print(json.dumps({"from_cache": info.from_cache, "bytes": info.image_bytes, "path": info.cache_path.decode()}))
"""


def compile_in(run_python: RunPython, **environment: str) -> dict[str, Any]:
    """The result of compiling for sm_103 in a process with only this environment."""
    result: dict[str, Any] = json.loads(run_python(COMPILE, **environment))
    return result


@pytest.fixture(scope="module")
def kept_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that the library has cached; tests copy it."""
    cache = tmp_path_factory.mktemp("cache")
    done = server().run(COMPILE, environment={"XDG_CACHE_HOME": str(cache)}, timeout=300)
    result = json.loads(done.stdout)
    assert not result["from_cache"]
    return Path(result["path"])


@pytest.fixture
def cache(kept_file: Path, tmp_path: Path) -> Path:
    """The cached file in the test's own cache."""
    copy = tmp_path / "doorstep" / kept_file.name
    copy.parent.mkdir()
    copy.write_bytes(kept_file.read_bytes())
    return copy


def test_a_newer_architecture_is_compiled_for(kept_file: Path) -> None:
    assert kept_file.parent.name == "doorstep"
    assert cubin_architecture(kept_file.read_bytes()[HEADER_BYTES:]) == 103


def test_compiled_images_are_cached_and_found_again(run_python: RunPython, cache: Path) -> None:
    before = cache.read_bytes()
    result = compile_in(run_python, XDG_CACHE_HOME=str(cache.parent.parent))
    assert result == {"from_cache": 1, "bytes": len(before) - HEADER_BYTES, "path": str(cache)}
    assert cache.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["flipped", "cut", "folder"])
def test_a_damaged_file_is_compiled_again(run_python: RunPython, cache: Path, damage: str) -> None:
    original = cache.read_bytes()
    spoiled = {"flipped": original[:-1] + bytes([original[-1] ^ 1]), "cut": original[:-1]}
    if damage == "folder":
        cache.unlink()
        (cache / "inside").mkdir(parents=True)
    else:
        cache.write_bytes(spoiled[damage])
    result = compile_in(run_python, XDG_CACHE_HOME=str(cache.parent.parent))
    assert result["from_cache"] == 0
    assert result["bytes"] == len(original) - HEADER_BYTES
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]
    if damage == "folder":
        assert result["path"] == ""
    else:
        assert cache.read_bytes() == original


@pytest.mark.slow
def test_the_cache_is_below_the_home_folder_by_default(run_python: RunPython, cache: Path) -> None:
    home = cache.parent.parent / "home"
    expected = home / ".cache" / "doorstep" / cache.name
    assert compile_in(run_python, HOME=str(home), XDG_CACHE_HOME="relative/folder")["path"] == str(expected)
    assert expected.read_bytes() == cache.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("home", ["relative", "/dev/null", "/" + 600 * "h"])
def test_a_home_that_cannot_be_written_is_no_failure(run_python: RunPython, cache: Path, home: str) -> None:
    result = compile_in(run_python, HOME=home)
    assert result == {"from_cache": 0, "bytes": cache.stat().st_size - HEADER_BYTES, "path": ""}


@pytest.mark.slow
def test_processes_that_compile_the_same_at_once_all_succeed(kept_file: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMPILE]
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    results = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert {result["path"] for result in results} == {str(tmp_path / "doorstep" / kept_file.name)}
    assert [path.read_bytes() for path in (tmp_path / "doorstep").iterdir()] == [kept_file.read_bytes()]


def test_embedded_architectures_are_named() -> None:
    assert _native.cuda_architectures() == [f"sm_{number}" for number in kernel_images.chosen_architectures()]


@pytest.mark.parametrize("name", ["sm_70", "sm_999", "sm_999999"])
def test_an_architecture_that_the_compiler_does_not_support_is_refused(name: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=rf"architecture is {name}; the compiler supports sm_75, .*sm_103"):
        _native.cuda_compile(name, 1)


@pytest.mark.parametrize("name", ["", "103", "sm_", "sm_103a", "sm_ 103", "sm_-1", "sm_0", "SM_103", "sm_9999999"])
def test_a_name_that_is_no_architecture_is_refused(name: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"must be sm_ and a number"):
        _native.cuda_compile(name, 1)


@pytest.mark.parametrize("num_agents", [0, 9, -1])
def test_a_number_of_agents_without_kernels_is_refused(num_agents: int) -> None:
    with pytest.raises(doorstep.ArgumentError, match="num_agents"):
        _native.cuda_compile("sm_103", num_agents)


def test_neither_import_nor_steps_nor_compiling_load_the_driver(run_python: RunPython, cache: Path) -> None:
    code = (
        "import pathlib\nimport doorstep\nfrom doorstep import _native\ndoorstep.Simulator(2).step()\n"
        "_native.cuda_architectures()\n_native.cuda_compile('sm_103', 1)\n"
        "print('libcuda' in pathlib.Path('/proc/self/maps').read_text())"
    )
    assert run_python(code, XDG_CACHE_HOME=str(cache.parent.parent)) == "False\n"
