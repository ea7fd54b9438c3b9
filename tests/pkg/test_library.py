"""A library that is missing, damaged, foreign or stale is a LibraryError that says which file and what to do."""

import json
import os
import shutil
from pathlib import Path

import doorstep
from doorstep._native._generated import ABI_VERSION

PACKAGE = Path(doorstep.__file__).parent
LIBRARY, DRAWING, GENERATED = (
    Path("doorstep/_native", name) for name in ("libdoorstep.so", "libdoorstep_render.so", "_generated.py")
)

# Says of the package in each folder what it says when it is used, each in a child of its own.
USE_EACH = """
import os, sys, json, numpy
for folder in {folders!r}:
    if os.fork() == 0:
        sys.path.insert(0, folder)
        import doorstep
        said = [doorstep.__version__]
        try:
            doorstep.Simulator(2).step()
            doorstep.Simulator(2, cameras=doorstep.Cameras(width=8, height=8))
        except doorstep.LibraryError as error:
            said.append(str(error))
        print(json.dumps(said), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


def another_library(path):
    maps = Path("/proc/self/maps").read_text().splitlines()
    (foreign,) = {line.split()[-1] for line in maps if "/libm." in line or "/libm-" in line}
    shutil.copy(foreign, path)


def replaced(old, new):
    def replace(path):
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")

    return replace


SIZE, BODY = (PACKAGE / "_native/libdoorstep.so").stat().st_size, '("culprit_body", ctypes.c_int32)'
# What is done to a file, and what the message says.
SPOILED = [
    (LIBRARY, Path.unlink, "No such file"),
    (LIBRARY, lambda path: os.truncate(path, 0), "not a shared library"),
    (LIBRARY, lambda path: os.truncate(path, SIZE - 1), "truncated"),
    (LIBRARY, another_library, "is not doorstep's library"),
    (DRAWING, Path.unlink, "No such file"),
    (GENERATED, replaced(f'ION_STRING = "{doorstep.__version__}"', 'ION_STRING = "99.0.0"'), "but the Python files in"),
    (GENERATED, replaced(f"ABI_VERSION = {ABI_VERSION}", "ABI_VERSION = 99"), "but the Python files in"),
    (GENERATED, replaced('("ds_version", ctypes.c_char_p, ())', '("ds_future", ctypes.c_char_p, ())'), "ds_future"),
    (GENERATED, replaced(BODY, BODY.replace("int32", "int64")), "ds_health.culprit_body"),
]


def link_package(folder):
    """A package of links to the files of the installed one, beside its libraries."""
    (folder / "doorstep" / "_native").mkdir(parents=True)
    (folder / "doorstep.libs").symlink_to(PACKAGE.parent / "doorstep.libs")
    for entry in (*PACKAGE.iterdir(), *(PACKAGE / "_native").iterdir()):
        if entry.name != "_native":
            (folder / "doorstep" / entry.relative_to(PACKAGE)).symlink_to(entry)


def test_a_spoiled_or_stale_file_is_named_with_the_reason_and_the_remedy(tmp_path, run_new_python):
    folders = [tmp_path / str(number) for number in range(len(SPOILED) + 2)]
    for folder, (path, spoil, _) in zip(folders, SPOILED, strict=False):
        link_package(folder)
        own = (folder / path).read_bytes()
        (folder / path).unlink()
        (folder / path).write_bytes(own)
        spoil(folder / path)
    link_package(folders[-2])
    # zipimport takes the Python files; the library could not be used
    archived = shutil.copytree(PACKAGE, tmp_path / "whole" / "doorstep", ignore=shutil.ignore_patterns("*.so"))
    folders[-1] = Path(shutil.make_archive(str(tmp_path / "package"), "zip", archived.parent, "doorstep"))
    code = USE_EACH.format(folders=list(map(str, folders)))
    said = [json.loads(line) for line in run_new_python(code, "-B", "-W", "ignore").splitlines()]
    *of_spoiled, of_copy, of_archive = said
    assert of_copy == [doorstep.__version__]
    assert of_archive[1].startswith(f"doorstep is imported from the archive {folders[-1]}, ")
    assert "(install the wheel with pip, or unpack the archive" in of_archive[1]
    for folder, (path, _, reason), (version, message) in zip(folders, SPOILED, of_spoiled, strict=False):
        assert message.startswith(str(folder / LIBRARY) + " is stale" if path == GENERATED else str(folder / path))
        assert reason in message
        if path != GENERATED:
            assert version == doorstep.__version__  # an import needs no library
            assert "pip install --force-reinstall" in message


LIMITS = """
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


def test_a_process_without_files_is_named_and_not_the_installation(run_python):
    said = run_python(LIMITS)
    assert "libdoorstep.so cannot be read: Too many open files (close files, or raise" in said
    assert "install" not in said.partition(" cannot ")[2]
