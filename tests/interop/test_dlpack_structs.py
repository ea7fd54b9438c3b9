"""What is declared of DLPack, in C++ and in ctypes, is laid out as in DLPack's own header."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest
from tests.interop.c_declarations import bodies_of, strip, words_of

from doorstep._native import dlpack
from doorstep._native.dlpack import EXCHANGE_MAJOR
from doorstep._native.foreign_tensor import DEVICE_NAMES, DTYPE_NAMES

tvm_ffi: Any = pytest.importorskip("tvm_ffi")

THEIRS = Path(tvm_ffi.__file__).parent / "include" / "dlpack" / "dlpack.h"
OURS = Path(__file__).resolve().parents[2] / "native" / "src" / "runtime" / "dlpack.h"

THEIR_NAMES = {"manager": "manager_ctx"}  # where ours are shorter

THEIR_TEXT = strip(THEIRS.read_text())
THEIR_BODIES = bodies_of(THEIR_TEXT)
OUR_BODIES = bodies_of(strip(OURS.read_text()))


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


FLAGS = {"READ_ONLY": "kDLPackReadOnly", "IS_COPIED": "kDLPackIsCopied"}


def test_our_numbers_are_dlpacks() -> None:
    codes, devices = enumerators_of("DLDataTypeCode"), enumerators_of("DLDeviceType")
    for (code, bits), name in DTYPE_NAMES.items():
        assert name in (codes[code], f"{codes[code]}{bits}")
    for number, name in DEVICE_NAMES.items():
        assert name.replace("_", "") == devices[number]
    source = THEIRS.read_text()
    found = re.findall(r"#define DLPACK_FLAG_BITMASK_(READ_ONLY|IS_COPIED) \(1UL << (\d)UL\)", source)
    flags = {name: 1 << int(bit) for name, bit in found}
    assert flags == {"READ_ONLY": dlpack.READ_ONLY, "IS_COPIED": dlpack.IS_COPIED}
    major = re.search(r"#define DLPACK_MAJOR_VERSION (\d+)", source)
    assert major is not None
    assert int(major[1]) == EXCHANGE_MAJOR
    theirs = {f"kdl{name}": number for names in (codes, devices) for number, name in names.items()}
    ours = {name: int(number) for name, number in re.findall(r"\b(kDL\w+) = (\d+)", OURS.read_text())}
    assert {ours.pop(FLAGS[name]): name for name in flags} == {flag: name for name, flag in flags.items()}
    assert len(ours) == 9
    assert ours == {name: theirs[name.lower()] for name in ours}
