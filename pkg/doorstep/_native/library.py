"""Checks and loads libdoorstep.so. Nothing is loaded before the first use, so that `import doorstep` always works.

The file is checked before it is mapped, because mapping a truncated library ends in SIGBUS, which Python cannot catch.
Then the handshake is the first call; after it every function is declared and every struct compared with the library's.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
from collections.abc import Iterable
from typing import Any

from doorstep._native._generated import ABI_VERSION, STRUCTURES, VERSION_STRING, Functions, LayoutEntry
from doorstep.errors import DeviceError, LibraryError, Status

LIBRARY_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libdoorstep.so")
PACKAGE_PATH = os.path.dirname(os.path.dirname(LIBRARY_PATH))
REINSTALL = "install the same wheel of doorstep again, with: pip install --force-reinstall"

# An own handle: other packages change the argument types of functions on the shared ctypes.pythonapi.
PYTHON = ctypes.PyDLL(None)


@functools.cache
def load() -> Functions:
    """The functions of the library, loaded and checked once.

    Raises:
        LibraryError: the file is missing, damaged, foreign, or of another version than this package.
        DeviceError: this CPU lacks an instruction set the library needs.
    """
    library = open_library()
    shake_hands(library)
    try:
        functions = Functions(library)
    except AttributeError as error:
        raise LibraryError(f"{LIBRARY_PATH} is stale: {error}", hint=REINSTALL) from error
    check_layout(LIBRARY_PATH, functions.ds_layout, STRUCTURES)
    return functions


def open_library(path: str = LIBRARY_PATH) -> ctypes.CDLL:
    """A library, mapped but not checked further."""
    check_file(path)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError(f"{path} cannot be loaded: {error}", hint=_load_remedy(str(error))) from error


def check_file(path: str) -> None:
    """Raises unless path is a shared library for this machine with everything that its ELF header announces."""
    try:
        with open(path, "rb") as file:
            header = file.read(64)
            size = os.fstat(file.fileno()).st_size
            if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", header, 16) != (3, 62):
                raise LibraryError(f"{path} is not a shared library for x86-64 Linux", hint=REINSTALL)
            segments_at, sections_at = struct.unpack_from("<QQ", header, 32)
            segment_size, segment_count, section_size, section_count = struct.unpack_from("<4H", header, 54)
            file.seek(segments_at)
            segments = file.read(segment_size * segment_count)
    except OSError as error:
        _refuse_archive(path)
        raise LibraryError(f"{path} cannot be read: {error.strerror}", hint=_read_remedy(error.errno)) from error
    end = max(sections_at + section_size * section_count, segments_at + segment_size * segment_count)
    for i in range(min(segment_count, len(segments) // 56)):
        offset, _, _, length = struct.unpack_from("<4Q", segments, i * segment_size + 8)
        end = max(end, offset + length)
    if end > size:
        raise LibraryError(f"{path} is truncated: it has {size} of {end} bytes", hint=REINSTALL)


def _refuse_archive(path: str) -> None:
    """Python can import modules from a zip file, where no path below the file itself exists."""
    archive = os.path.dirname(path)
    while not os.path.exists(archive):
        archive = os.path.dirname(archive)
    if os.path.isfile(archive):
        raise LibraryError(
            f"doorstep is imported from the archive {archive}, but the operating system loads shared libraries only "
            "from files of their own",
            hint="install the wheel with pip, or unpack the archive and put the folder on sys.path",
        )


def _read_remedy(number: int | None) -> str:
    if number in (errno.EMFILE, errno.ENFILE):
        return "close files, or raise the number that may be open at once, with: ulimit -n"
    if number == errno.EACCES:
        return "give this user the permission to read the file"
    return REINSTALL


def _load_remedy(reason: str) -> str:
    """dlopen() has no error numbers, only texts."""
    if os.strerror(errno.EMFILE) in reason:
        return _read_remedy(errno.EMFILE)
    if "failed to map segment" in reason or os.strerror(errno.ENOMEM) in reason:
        return "free memory, raise the limit of the address space (ulimit -v), or mount the folder without noexec"
    return REINSTALL


def shake_hands(library: ctypes.CDLL) -> None:
    """The first call: library and package must be of the same version, and the CPU must have what the code needs."""
    try:
        check_version, version = library.ds_check_version, library.ds_version
    except AttributeError as error:
        raise LibraryError(f"{LIBRARY_PATH} is not doorstep's library: {error}", hint=REINSTALL) from error
    check_version.restype = ctypes.c_int
    check_version.argtypes = (ctypes.c_uint32, ctypes.c_char_p)
    version.restype = ctypes.c_char_p
    version.argtypes = ()
    status = check_version(ABI_VERSION, VERSION_STRING.encode())
    if status == Status.DEVICE:
        library.ds_cpu_features.restype = ctypes.c_char_p
        features = library.ds_cpu_features().decode()
        raise DeviceError(
            f"this CPU lacks instructions that doorstep is compiled for; all of these must be 1: {features}",
            argument="device",
            hint="use a CPU of 2013 (Intel Haswell), 2017 (AMD Zen) or later",
        )
    if status:
        raise LibraryError(
            f"{LIBRARY_PATH} is stale: it is version {(version() or b'?').decode()}, "
            f"but the Python files in {PACKAGE_PATH} are version {VERSION_STRING}",
            hint=REINSTALL,
        )


def check_layout(path: str, layout: Any, structures: Iterable[tuple[str, type[ctypes.Structure]]]) -> None:
    """Compares every struct with the offsets and sizes that a library's own function tells."""
    entries = ctypes.POINTER(LayoutEntry)()
    count = ctypes.c_uint64()
    layout(ctypes.byref(entries), ctypes.byref(count))
    theirs = {(entry.struct_name, entry.field_name): (entry.offset, entry.size) for entry in entries[: count.value]}
    ours = {}
    for name, structure in structures:
        ours[name.encode(), b""] = (0, ctypes.sizeof(structure))
        for field_name, *_ in structure._fields_:
            field = getattr(structure, field_name)
            ours[name.encode(), field_name.encode()] = (field.offset, field.size)
    keys = sorted(key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key))
    different = [b".".join(filter(None, key)).decode() for key in keys]
    if different:
        raise LibraryError(
            f"{path} is stale: it lays out {', '.join(different)} differently from {PACKAGE_PATH}",
            hint=REINSTALL,
        )
