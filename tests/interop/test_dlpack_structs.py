"""What is declared of DLPack, in C++ and in ctypes, is laid out as in DLPack's own header."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from doorstep._native import dlpack
from doorstep._native.dlpack import EXCHANGE_MAJOR
from doorstep._native.foreign_tensor import DEVICE_NAMES, DTYPE_NAMES

tvm_ffi: Any = pytest.importorskip("tvm_ffi")

THEIRS = Path(tvm_ffi.__file__).parent / "include" / "dlpack" / "dlpack.h"
INTEROP = Path(__file__).resolve().parents[2] / "native" / "src" / "interop"
OURS = (INTEROP / "dlpack.h", INTEROP / "dlpack_exchange.h")

POINTER = 8
SIZES = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "int32_t": 4, "uint64_t": 8, "int64_t": 8, "DLDeviceType": 4}
THEIR_NAMES = {"manager": "manager_ctx"}  # where ours are shorter


class Word(NamedTuple):
    """A field that is no struct, at its place in the struct that it is part of in the end."""

    name: str
    offset: int
    size: int


def strip(text: str) -> str:
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    return re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.MULTILINE | re.DOTALL)


def bodies_of(text: str) -> dict[str, str]:
    c = re.findall(r"typedef struct(?: \w+)? \{([^{}]*)\} (\w+);", text)
    cpp = re.findall(r"^struct (\w+) \{\n([^{}]*)\n\};", text, flags=re.MULTILINE)
    return {**{name: body for body, name in c}, **dict(cpp)}


def words_of(name: str, bodies: dict[str, str]) -> tuple[list[Word], int, int]:
    """The words of a struct, its size and its alignment."""
    words: list[Word] = []
    end, largest = 0, 1
    for declaration in filter(None, (" ".join(part.split()) for part in bodies[name].split(";"))):
        function = re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration)
        match = re.fullmatch(r"(?:struct )?(.*?)\s*((?:\w+)(?:, \w+)*)", declaration)
        assert function or match, declaration
        kind, names = ("*", [function[1]]) if function else (match[1], match[2].split(", "))  # type: ignore[index]
        for field in names:
            if kind in bodies:
                inner, size, alignment = words_of(kind, bodies)
            else:
                size = SIZES.get(kind, POINTER)  # everything else is the address of something
                inner, alignment = [Word(field, 0, size)], size
            begin = -(-end // alignment) * alignment
            words += [Word(word.name, begin + word.offset, word.size) for word in inner]
            end, largest = begin + size, max(largest, alignment)
    return words, -(-end // largest) * largest, largest


THEIR_TEXT = strip(THEIRS.read_text())
THEIR_BODIES = bodies_of(THEIR_TEXT)
OUR_BODIES = bodies_of("\n".join(strip(path.read_text()) for path in OURS))


def test_nothing_is_left_out() -> None:
    assert OUR_BODIES.keys() == {
        "DLDevice",
        "DLDataType",
        "DLTensor",
        "DLManagedTensor",
        "DLManagedTensorVersioned",
        "DLPackVersion",
        "DLPackExchangeAPIHeader",
        "DLPackExchangeAPI",
    }
    assert words_of("DLTensor", THEIR_BODIES)[1] == 48
    assert len(words_of("DLPackExchangeAPI", THEIR_BODIES)[0]) == 8


@pytest.mark.parametrize("name", OUR_BODIES)
def test_our_structs_are_dlpacks(name: str) -> None:
    ours, our_size, _ = words_of(name, OUR_BODIES)
    theirs, their_size, _ = words_of(name, THEIR_BODIES)
    assert [word._replace(name=THEIR_NAMES.get(word.name, word.name)) for word in ours] == theirs
    assert our_size == their_size


@pytest.mark.parametrize(
    ("structure", "name"),
    [
        (dlpack._Tensor, "DLTensor"),
        (dlpack._Managed, "DLManagedTensor"),
        (dlpack._ManagedVersioned, "DLManagedTensorVersioned"),
    ],
)
def test_our_ctypes_are_dlpacks(structure: type[ctypes.Structure], name: str) -> None:
    def flat(part: Any, base: int = 0) -> list[tuple[int, int]]:
        rows: list[tuple[int, int]] = []
        for field, kind in part._fields_:
            place = getattr(part, field)
            is_struct = issubclass(kind, ctypes.Structure)
            rows += flat(kind, base + place.offset) if is_struct else [(base + place.offset, place.size)]
        return rows

    words, size, _ = words_of(name, THEIR_BODIES)
    assert flat(structure) == [(word.offset, word.size) for word in words]
    assert ctypes.sizeof(structure) == size


def enumerators_of(name: str) -> dict[int, str]:
    """Names in lower case by their numbers."""
    match = re.search(rf"\{{([^{{}}]*)\}} {name};", THEIR_TEXT)
    assert match is not None
    return {int(number): word.lower() for word, number in re.findall(r"kDL(\w+) = (\d+)U?", match[1])}


def test_our_numbers_are_dlpacks() -> None:
    codes, devices = enumerators_of("DLDataTypeCode"), enumerators_of("DLDeviceType")
    for (code, bits), name in DTYPE_NAMES.items():
        assert name in (codes[code], f"{codes[code]}{bits}")
    for number, name in DEVICE_NAMES.items():
        assert name.replace("_", "") == devices[number]
    source = THEIRS.read_text()
    flags = re.findall(r"#define DLPACK_FLAG_BITMASK_(READ_ONLY|IS_COPIED) \(1UL << (\d)UL\)", source)
    assert {name: 1 << int(bit) for name, bit in flags} == {
        "READ_ONLY": dlpack.READ_ONLY,
        "IS_COPIED": dlpack.IS_COPIED,
    }
    major = re.search(r"#define DLPACK_MAJOR_VERSION (\d+)", source)
    assert major is not None
    assert int(major[1]) == EXCHANGE_MAJOR
