"""The binary interface of the C API as plain data, and whether another one only adds to it.

native/abi.json has it as of the last `make docs`. A program that was compiled against the headers of one DS_ABI_VERSION
works with every later library of that number, so under one number the interface only grows.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

from header_parser import HEADER_PATH, Field, Header, Struct, header_source

ABI_PATH = HEADER_PATH.parents[1] / "abi.json"
Abi = dict[str, Any]

POINTER = 8  # bytes; also of a pointer to a function
SIZES = {"char": 1, "uint8_t": 1, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "float": 4} | dict.fromkeys(
    ("int64_t", "uint64_t", "double"), 8
)
# They say which version it is and are no part of it.
VERSIONS = ("DS_ABI_VERSION", "DS_VERSION_STRING", "DS_SAVE_FORMAT_VERSION")


def abi_of(header: Header) -> Abi:
    """Functions with the types of their parameters, structs with sizes and offsets in bytes, numbers by name."""
    return {
        "abi_version": header.constants["DS_ABI_VERSION"],
        "functions": {function.name: _signature(function.result, function.parameters) for function in header.functions},
        "callbacks": _callbacks(),
        "structs": _structs(header),
        "enumerations": dict(_enumerations(header)),
        "constants": {name: value for name, value in header.constants.items() if name not in VERSIONS},
    }


def abi_text(header: Header) -> str:
    """The contents of native/abi.json.

    Raises:
        ValueError: the interface breaks the committed one, which has the same DS_ABI_VERSION.
    """
    abi = abi_of(header)
    if ABI_PATH.exists():
        committed = json.loads(ABI_PATH.read_text(encoding="utf-8"))
        if committed["abi_version"] == abi["abi_version"] and (found := list(breaks(committed, abi))):
            raise ValueError("; ".join([*found, "raise DS_ABI_VERSION, or leave it as it was"]))
    return json.dumps(abi, indent=1) + "\n"


def breaks(old: Abi, new: Abi) -> Iterator[str]:
    """What a program compiled against the old interface would find wrong in the new one; nothing if that only grew."""
    for part in ("functions", "callbacks", "constants"):
        yield from _changes(part, old[part], new[part])
    for name, members in old["enumerations"].items():
        yield from _changes(name, members, new["enumerations"].get(name, {}))
    for name, struct in old["structs"].items():
        yield from _struct_breaks(name, struct, new["structs"].get(name))


def _changes(where: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for name, value in old.items():
        if name not in new:
            yield f"{where}: {name} is gone"
        elif new[name] != value:
            yield f"{where}: {name} is {new[name]}, and was {value}"


def _struct_breaks(name: str, old: Abi, new: Abi | None) -> Iterator[str]:
    if new is None:
        yield f"{name} is gone"
        return
    yield from _changes(name, old["fields"], new["fields"])
    grown = [field for field in new["fields"] if field not in old["fields"]]
    if (grown or new["size"] != old["size"]) and "struct_size" not in old["fields"]:
        yield f"{name} has no struct_size and must not grow"
    for field in grown:
        offset = int(new["fields"][field].split()[0])
        if offset < old["size"]:  # within what an older program says that it has filled in
            yield f"{name}: {field} is at {offset}; new fields begin at {old['size']}"


# ---- The parts


def _signature(result: str, parameters: tuple[Field, ...]) -> str:
    return f"{result} ({', '.join(field.type for field in parameters) or 'void'})"


@functools.cache
def _callbacks() -> dict[str, str]:
    """The types of functions that callers pass."""
    found = re.findall(r"^typedef (\w+) \(\*(\w+)\)\(([^)]*)\);", header_source(), flags=re.MULTILINE)
    types = {name: [re.sub(r"\s*\w+$", "", part) for part in list_.split(", ")] for _, name, list_ in found}
    return {name: f"{result} ({', '.join(types[name])})" for result, name, _ in found}


def _structs(header: Header) -> dict[str, Abi]:
    layouts: dict[str, tuple[int, int]] = {}  # size and alignment, of the structs before
    structs: dict[str, Abi] = {}
    for struct in header.structs:
        structs[struct.name], layouts[struct.name] = _layout(struct, header, layouts)
    return structs


def _layout(struct: Struct, header: Header, known: dict[str, tuple[int, int]]) -> tuple[Abi, tuple[int, int]]:
    """As compilers for x86-64 lay it out: every field at the next multiple of its alignment."""
    fields, end, widest = {}, 0, 1
    for field in struct.fields:
        size, alignment = _size_of(field.type, header, known)
        offset = -(-end // alignment) * alignment
        fields[field.name] = f"{offset} {field.type}" + (f"[{field.length}]" if field.length else "")
        end, widest = offset + size * max(field.length, 1), max(widest, alignment)
    size = -(-end // widest) * widest
    return {"size": size, "fields": fields}, (size, widest)


def _size_of(type_: str, header: Header, known: dict[str, tuple[int, int]]) -> tuple[int, int]:
    if type_ in known:
        return known[type_]
    if type_.endswith("*") or type_ in header.handles or type_ in _callbacks():
        return POINTER, POINTER
    return SIZES[type_], SIZES[type_]


def _enumerations(header: Header) -> Iterator[tuple[str, dict[str, int]]]:
    """Those that list their members, and those that are made from tables, whose rows are numbered in order."""
    limits: dict[str, int] = {}
    for item in header.enumerations:
        members = {name: number for name, number in item.members if not name.endswith("_COUNT")}
        if item.name:
            yield item.name, members
        else:
            limits.update(members)
    yield "ds_status", {f"DS_STATUS_{row.name}": row.number for row in header.statuses}
    yield "ds_action_component", _in_order("DS_ACTION_", [row.name for row in header.actions])
    yield "ds_tensor_id", _in_order("DS_TENSOR_", [row.name for row in header.tensors])
    yield "ds_observation_part", _in_order("DS_OBSERVATION_PART_", [row.name for row in header.observation_parts])
    yield "ds_state_id", _in_order("DS_STATE_", [row.name for row in header.state_fields])
    yield "limits", limits


def _in_order(prefix: str, names: list[str]) -> dict[str, int]:
    return {f"{prefix}{name}": number for number, name in enumerate(names)}
