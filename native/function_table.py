"""Writes native/include/doorstep_api.h: the functions of the C API as a table. New functions are appended."""

from __future__ import annotations

import re
import textwrap

from header_parser import HEADER_PATH, Function, Header

TABLE_PATH = HEADER_PATH.with_name("doorstep_api.h")
LINE_LENGTH = 118  # without the backslash that continues a line

TEXT = """/*
 * The functions of doorstep.h as a table of pointers, for native libraries that do not link doorstep:
 *
 *     ds_status (*get_api)(uint32_t, const ds_api**) = dlsym(library, "ds_get_api");
 *     const ds_api* api;
 *     if (get_api(DS_ABI_VERSION, &api) == DS_STATUS_OK) ...
 *
 * and for extension modules of Python, from doorstep.capi():
 *
 *     const ds_api* api = PyCapsule_GetPointer(capsule, DS_API_CAPSULE);
 *     if (api && api->abi_version == DS_ABI_VERSION) ...
 *
 * {notice}
 */
#ifndef DOORSTEP_API_H
#define DOORSTEP_API_H

#include "doorstep.h"

/* Name of the capsule that doorstep.capi() returns. */
#define DS_API_CAPSULE "doorstep.ds_api"

/* X(result, name, parameters): the function ds_<name>. As long as DS_ABI_VERSION is {abi_version}, rows keep their
   places and new ones come last. */
#define DS_API_TABLE(X) \\
{rows}

typedef struct ds_api {{
    uint32_t abi_version; /* DS_ABI_VERSION */
    uint32_t struct_size; /* of the library's table */
#define DS_API_POINTER(result, name, parameters) result(*name) parameters;
    DS_API_TABLE(DS_API_POINTER)
#undef DS_API_POINTER
}} ds_api;

#endif
"""


def function_table(header: Header, notice: str) -> str:
    """The text of the file. Rows of the committed file keep their places."""
    functions = {function.name: function for function in header.functions}
    abi_version = header.constants["DS_ABI_VERSION"]
    committed = TABLE_PATH.read_text(encoding="utf-8") if TABLE_PATH.exists() else ""
    kept = row_names(committed) if f"DS_ABI_VERSION is {abi_version}," in committed else []
    if gone := [name for name in kept if name not in functions]:
        raise ValueError(f"{', '.join(gone)}: functions may be removed only when DS_ABI_VERSION is raised")
    order = [*kept, *(name for name in functions if name not in kept)]
    rows = " \\\n".join(row(functions[name]) for name in order)
    return TEXT.format(notice=notice, abi_version=abi_version, rows=rows)


def row_names(text: str) -> list[str]:
    """The functions of a table, in order."""
    return [f"ds_{name}" for name in re.findall(r"^ {4}X\([^,]*, (\w+),", text, flags=re.MULTILINE)]


def row(function: Function) -> str:
    parameters = ", ".join(f"{field.type} {field.name}" for field in function.parameters) or "void"
    text = f"X({function.result}, {function.name.removeprefix('ds_')}, ({parameters}))"
    lines = textwrap.wrap(text, LINE_LENGTH, initial_indent=" " * 4, subsequent_indent=" " * 6)
    return " \\\n".join(lines)
