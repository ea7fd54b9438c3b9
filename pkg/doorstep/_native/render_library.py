"""Loads libdoorstep_render.so on first use: checked like the library of the simulators, whose functions it is given."""

from __future__ import annotations

import functools
import os

from doorstep._native._generated import VERSION_STRING
from doorstep._native._render_generated import STRUCTURES, Functions
from doorstep._native.c_api import function_table
from doorstep._native.library import LIBRARY_PATH, PACKAGE_PATH, REINSTALL, check_layout, load, open_library
from doorstep.errors import LibraryError

RENDER_LIBRARY_PATH = os.path.join(os.path.dirname(LIBRARY_PATH), "libdoorstep_render.so")


@functools.cache
def load_render() -> Functions:
    """The functions of the library that draws, loaded and checked once.

    Raises:
        LibraryError: the file, or a library that it needs, is missing, damaged, or of another version.
        DeviceError: this CPU lacks an instruction set the library needs.
    """
    load()
    library = open_library(RENDER_LIBRARY_PATH)
    try:
        functions = Functions(library)
    except AttributeError as error:
        raise LibraryError(f"{RENDER_LIBRARY_PATH} is stale: {error}", hint=REINSTALL) from error
    if functions.ds_render_open(function_table(), VERSION_STRING.encode()):
        raise LibraryError(
            f"{RENDER_LIBRARY_PATH} is stale: it is not of version {VERSION_STRING}, as {PACKAGE_PATH} is",
            hint=REINSTALL,
        )
    check_layout(RENDER_LIBRARY_PATH, functions.ds_render_layout, STRUCTURES)
    return functions
