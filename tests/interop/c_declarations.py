"""Declarations of C headers, read as text: what they say of the layout of structs."""

from __future__ import annotations

import re
from typing import NamedTuple

POINTER = 8
SIZES = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8, "int32_t": 4, "int64_t": 8}
SIZES |= {"int": 4, "unsigned int": 4, "DLDeviceType": 4}


class Word(NamedTuple):
    """A field that is no struct, at its place in the struct that it is part of in the end."""

    name: str
    offset: int
    size: int


def strip(text: str) -> str:
    """Without comments and directives."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    return re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.MULTILINE | re.DOTALL)


def bodies_of(text: str) -> dict[str, str]:
    """What stands between the braces of each struct."""
    c = re.findall(r"typedef struct(?: \w+)? ?\{([^{}]*)\} (\w+);", text)
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
