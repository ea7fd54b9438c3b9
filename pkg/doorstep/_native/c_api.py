"""The C API for native code of other packages: its header files, and its functions as a table in a capsule."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import TYPE_CHECKING

from doorstep._native._generated import ABI_VERSION
from doorstep._native.calls import read_value
from doorstep._native.library import PACKAGE_PATH, REINSTALL, load
from doorstep._native.memory import capsule_maker, permanent
from doorstep.errors import LibraryError

if TYPE_CHECKING:
    from typing_extensions import CapsuleType  # known to type checkers; not needed to run

CAPSULE_NAME = b"doorstep.ds_api"  # DS_API_CAPSULE in doorstep_api.h


def get_include() -> str:
    """The folder with the headers, which are C11 and C++.

    `doorstep.h` is the C API, its chapters are in the folder `doorstep`. `doorstep_api.h` has its functions as a table,
    `doorstep_render.h` is the C API of rendering.

    >>> import doorstep, os
    >>> sorted(os.listdir(doorstep.get_include()))
    ['doorstep', 'doorstep.h', 'doorstep_api.h', 'doorstep_render.h']

    Raises:
        LibraryError: this installation of doorstep has no headers.
    """
    path = os.path.join(PACKAGE_PATH, "include")
    if not os.path.isdir(path):
        raise LibraryError(f"{path} is missing", hint=REINSTALL)
    return path


def capi() -> CapsuleType:
    """The functions of the C API in a PyCapsule, for extension modules that do not link doorstep.

    The capsule's name is DS_API_CAPSULE, its pointer a `const ds_api*`, both of doorstep_api.h. The table is valid
    until the process ends; compare its abi_version with the DS_ABI_VERSION that you compiled against.

    >>> import doorstep
    >>> doorstep.capi()  # doctest: +ELLIPSIS
    <capsule object "doorstep.ds_api" at 0x...>

    Raises:
        LibraryError: the native library is missing or of another version.
    """
    return _capsule()


@functools.cache
def _capsule() -> CapsuleType:
    capsule: CapsuleType = capsule_maker()(function_table(), permanent(CAPSULE_NAME), None)
    return capsule


def function_table() -> int:
    """The address of the `ds_api`."""
    return read_value(load().ds_get_api, ctypes.c_void_p, ABI_VERSION) or 0
