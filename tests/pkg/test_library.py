"""A library that is missing, damaged, foreign or stale is a LibraryError that says which file and what to do."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import doorstep
from doorstep import _native
from doorstep._native._generated import ABI_VERSION

PACKAGE = Path(doorstep.__file__).parent
CODE = """
import doorstep
try:
    doorstep.Simulator(2).step()
except doorstep.LibraryError as error:
    print(error)
"""


def outcome(folder: Path) -> str:
    """What the copy of the package in a folder says when it is used."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{CODE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the installed package, to be spoiled."""
    folder = tmp_path / "site" / "doorstep"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_an_unspoiled_copy_works(package: Path) -> None:
    assert outcome(package.parent) == ""


def truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def another_machine(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[18] = 183  # AArch64
    path.write_bytes(data)


SPOILED_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "No such file"),
    "a folder": (replace_by_folder, "Is a directory"),
    "empty": (lambda path: truncate(path, 0), "not a shared library"),
    "text": (lambda path: path.write_text("hello" * 100), "not a shared library"),
    "another machine": (another_machine, "not a shared library"),
    "header only": (lambda path: truncate(path, 64), "truncated"),
    "half": (lambda path: truncate(path, path.stat().st_size // 2), "truncated"),
    "a byte short": (lambda path: truncate(path, path.stat().st_size - 1), "truncated"),
}


@pytest.mark.parametrize(("spoil", "reason"), SPOILED_FILES.values(), ids=SPOILED_FILES)
def test_a_spoiled_file_is_named_with_the_reason_and_the_remedy(
    spoil: Callable[[Path], object], reason: str, package: Path
) -> None:
    library = package / "_native" / "libdoorstep.so"
    spoil(library)
    message = outcome(package.parent)
    assert message.startswith(str(library))
    assert reason in message
    assert "pip install --force-reinstall" in message


def test_a_package_in_a_zip_file_says_why_it_cannot_be_used(package: Path) -> None:
    (package / "_native" / "libdoorstep.so").unlink()  # zipimport takes the Python files; the library could not be used
    archive = shutil.make_archive(str(package.parent / "package"), "zip", package.parent, "doorstep")
    message = outcome(Path(archive))
    assert message.startswith(f"doorstep is imported from the archive {archive}, ")
    assert "(install the wheel with pip, or unpack the archive" in message


def test_too_many_open_files_are_named_and_not_the_installation(run_python: Callable[..., str]) -> None:
    code = """
import contextlib, os, resource
import doorstep
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
files = []
with contextlib.suppress(OSError):
    while True:
        files.append(os.open("/dev/null", os.O_RDONLY))
try:
    doorstep.Simulator(1)
except doorstep.LibraryError as error:
    print(error)
os.close(files.pop())
doorstep.Simulator(1).step()
"""
    message = run_python(code)
    assert "libdoorstep.so cannot be read: Too many open files (close files, or raise" in message
    assert "install" not in message.partition(" cannot ")[2]


def test_a_process_without_address_space_is_named_and_not_the_installation(run_python: Callable[..., str]) -> None:
    code = """
import resource
import doorstep
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20), resource.RLIM_INFINITY))
try:
    doorstep.Simulator(1)
except doorstep.LibraryError as error:
    print(error)
"""
    message = run_python(code)
    assert "libdoorstep.so cannot be loaded: " in message
    assert "(free memory, raise the limit of the address space (ulimit -v)" in message


def test_a_foreign_library_is_refused(package: Path) -> None:
    maps = Path("/proc/self/maps").read_text().splitlines()
    (foreign,) = {line.split()[-1] for line in maps if "/libm." in line or "/libm-" in line}
    shutil.copy(foreign, package / "_native" / "libdoorstep.so")
    assert "is not doorstep's library" in outcome(package.parent)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (f'VERSION_STRING = "{doorstep.__version__}"', 'VERSION_STRING = "99.0.0"', "but the Python files in"),
        (f"ABI_VERSION = {ABI_VERSION}", "ABI_VERSION = 99", "but the Python files in"),
        ('("ds_version", ctypes.c_char_p, ())', '("ds_future", ctypes.c_char_p, ())', "ds_future"),
        ('("culprit_body", ctypes.c_int32)', '("culprit_body", ctypes.c_int64)', "ds_health.culprit_body"),
        ('("culprit_body", ctypes.c_int32)', '("other_name", ctypes.c_int32)', "ds_health.other_name"),
    ],
    ids=["version", "abi", "missing function", "other size", "other field"],
)
def test_a_stale_library_is_named(old: str, new: str, reason: str, package: Path) -> None:
    replace_text(package / "_native" / "_generated.py", old, new)
    message = outcome(package.parent)
    assert message.startswith(f"{package / '_native' / 'libdoorstep.so'} is stale")
    assert reason in message


def test_import_and_features_work_without_a_usable_library(package: Path) -> None:
    (package / "_native" / "libdoorstep.so").unlink()
    code = f"import sys; sys.path.insert(0, {str(package.parent)!r}); import doorstep; print(doorstep.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{doorstep.__version__}\n", "")


def test_cpu_features_are_those_the_library_needs() -> None:
    features = _native.cpu_features()
    assert {"avx2", "fma", "bmi2"} <= set(features)
    assert all(features.values())


def test_stages_have_distinct_names() -> None:
    names = _native.stage_names()
    assert len(set(names)) == len(names) > 3


def test_default_thread_count_is_positive() -> None:
    assert 1 <= _native.default_thread_count() <= 1024
