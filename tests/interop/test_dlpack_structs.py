"""What is retyped of DLPack's header, in C++ and in ctypes, is what that header declares."""

import ctypes
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from doorstep._native import dlpack
from doorstep._native.foreign_tensor import DEVICE_NAMES, DTYPE_NAMES

SOURCES = Path(__file__).resolve().parents[2] / "native" / "src"
POINTER = 8
SIZES = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8, "int32_t": 4, "int64_t": 8}
SIZES |= {"int": 4, "unsigned int": 4, "DLDeviceType": 4}


class Word(NamedTuple):
    """A field that is no struct, at its place in the struct that it is part of in the end."""

    name: str
    offset: int
    size: int


def strip(text):
    """Without comments and directives."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    return re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.MULTILINE | re.DOTALL)


def bodies_of(text):
    """What stands between the braces of each struct."""
    c = re.findall(r"typedef struct(?: \w+)? ?\{([^{}]*)\} (\w+);", text)
    return {name: body for body, name in c} | dict(re.findall(r"^struct (\w+) \{\n([^{}]*)\n\};", text, re.MULTILINE))


def words_of(name, bodies):
    """The words of a struct, its size and its alignment."""
    words, end, largest = [], 0, 1
    for declaration in filter(None, (" ".join(part.split()) for part in bodies[name].split(";"))):
        function = re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration)
        match = re.fullmatch(r"(?:struct )?(.*?)\s*((?:\w+)(?:, \w+)*)", declaration)
        kind, names = ("*", [function[1]]) if function else (match[1], match[2].split(", "))
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


def enumerators_of(name, text):
    """Names in lower case by their numbers."""
    body = re.search(rf"\{{([^{{}}]*)\}} {name};", text)[1]
    return {int(number): word.lower() for word, number in re.findall(r"kDL(\w+) = (\d+)U?", body)}


def flat(structure, base=0):
    """Places of all fields of a ctypes struct."""
    for field, kind in structure._fields_:
        place, is_struct = getattr(structure, field), issubclass(kind, ctypes.Structure)
        yield from flat(kind, base + place.offset) if is_struct else [(base + place.offset, place.size)]


def test_ours_are_dlpacks():
    source = (Path(pytest.importorskip("tvm_ffi").__file__).parent / "include" / "dlpack" / "dlpack.h").read_text()
    our_source, text = (SOURCES / "runtime" / "dlpack.h").read_text(), strip(source)
    bodies = bodies_of(text)
    expected = {"DLDevice", "DLDataType", "DLTensor", "DLManagedTensor", "DLManagedTensorVersioned", "DLPackVersion"}
    ours = bodies_of(strip(our_source))
    assert ours.keys() == expected | {"DLPackExchangeAPIHeader", "DLPackExchangeAPI"}
    assert (words_of("DLTensor", bodies)[1], len(words_of("DLPackExchangeAPI", bodies)[0])) == (48, 8)
    for name in ours:
        words, *size = words_of(name, ours)
        renamed = [word._replace(name="manager_ctx") if word.name == "manager" else word for word in words]
        assert (renamed, *size) == words_of(name, bodies)
    for structure, name in (
        (dlpack._Tensor, "DLTensor"),
        (dlpack._Managed, "DLManagedTensor"),
        (dlpack._ManagedVersioned, "DLManagedTensorVersioned"),
    ):
        words, size, _ = words_of(name, bodies)
        assert (list(flat(structure)), ctypes.sizeof(structure)) == ([(w.offset, w.size) for w in words], size)

    codes, devices = enumerators_of("DLDataTypeCode", text), enumerators_of("DLDeviceType", text)
    for (code, bits), name in DTYPE_NAMES.items():
        assert name in (codes[code], f"{codes[code]}{bits}")
    for number, name in DEVICE_NAMES.items():
        assert name.replace("_", "") == devices[number]
    flags = dict(re.findall(r"#define DLPACK_FLAG_BITMASK_(READ_ONLY|IS_COPIED) \(1UL << (\d)UL\)", source))
    flags = {name: 1 << int(bit) for name, bit in flags.items()}
    assert flags == {"READ_ONLY": dlpack.READ_ONLY, "IS_COPIED": dlpack.IS_COPIED}
    assert f"#define DLPACK_MAJOR_VERSION {dlpack.EXCHANGE_MAJOR}" in source
    numbers = {f"kDL{name}".lower(): number for names in (codes, devices) for number, name in names.items()}
    numbers |= {"kdlpackreadonly": flags["READ_ONLY"], "kdlpackiscopied": flags["IS_COPIED"]}
    ours = {name.lower(): int(number) for name, number in re.findall(r"\b(kDL\w+) = (\d+)", our_source)}
    assert len(ours) == 11
    assert ours == {name: numbers[name] for name in ours}
