"""Changes of inputs, as the random numbers say: of bytes, and of documents, which stay documents."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

# Numbers at the edges of types, and what the formats count with.
EDGES = (0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63)
FLOATS = (0.0, -0.0, 1e-45, 1e-7, 0.5, 1.0, 40.0, 1e6, 3.4e38, 1e300, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "x", "none", "null", "1", "1e5", "nan", "\0", "\ud800", "é", "../x", "x" * 300, "[", "{", "a.b", "-1", "=")
CONSTANTS: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"type": "x"}, 10**400, -1, "cuda:0")
PIECES = (b"\0", b"\xff", b"{", b"[" * 999, b'"', b"9" * 50, b"\r\n", b"\\ud800", b"NaN", b"1e999")
MOST_BYTES = 1 << 16  # that bytes grow to


# ---- Bytes


def change_bytes(data: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """A copy with one to eight changes. others: inputs to take pieces from."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        chance.choice(_BYTE_CHANGES)(changed, chance)
        if others and chance.random() < 0.1:
            other = chance.choice(others)
            at, begin = _place(changed, chance), _place(other, chance)
            changed[at : at + chance.randrange(64)] = other[begin : begin + chance.randrange(64)]
    return bytes(changed[:MOST_BYTES])


def _place(data: Sequence[Any], chance: random.Random) -> int:
    """Likelier near the beginning, where headers are."""
    end = min(len(data), 64) if chance.random() < 0.3 else len(data)
    return chance.randrange(end) if end else 0


def _flip(data: bytearray, chance: random.Random) -> None:
    if data:
        data[_place(data, chance)] ^= 1 << chance.randrange(8)


def _replace(data: bytearray, chance: random.Random) -> None:
    if data:
        data[_place(data, chance)] = chance.randrange(256)


def _put_number(data: bytearray, chance: random.Random) -> None:
    size, at = chance.choice((1, 2, 4, 8)), _place(data, chance)
    number = chance.choice(EDGES) * chance.choice((1, 1, -1)) + chance.choice((0, 0, 1, -1))
    data[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, chance.choice(("little", "little", "big")))


def _remove(data: bytearray, chance: random.Random) -> None:
    at = _place(data, chance)
    del data[at : at + chance.choice((1, 1, 4, 16, 1 << 12))]


def _double(data: bytearray, chance: random.Random) -> None:
    at = _place(data, chance)
    data[at:at] = data[at : at + chance.choice((1, 4, 16, 64))] * chance.choice((1, 1, 9))


def _insert(data: bytearray, chance: random.Random) -> None:
    at = _place(data, chance)
    data[at:at] = chance.choice(PIECES)


_BYTE_CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    *(_flip, _replace, _put_number, _put_number, _remove, _double, _insert),
)


# ---- Documents


def change_document(document: Any, chance: random.Random, others: Sequence[Any] = ()) -> Any:
    """A copy of what JSON holds, with one to four changes. others: documents to take parts from."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        document = _changed(document, chance, others)
    return document


def _changed(value: Any, chance: random.Random, others: Sequence[Any]) -> Any:
    if not isinstance(value, (dict, list)) or not value or chance.random() < 0.1:
        return _other_value(value, chance, others)
    items = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    key = chance.choice(list(items))
    how = chance.random()
    if how < 0.08:
        del items[key]
    elif how < 0.14 and isinstance(value, list):
        return [*value, *[value[key]] * chance.choice((1, 2, 40))]
    elif how < 0.18:
        items = {(chance.choice(TEXTS) if name == key else name): one for name, one in items.items()}
    elif how < 0.22:
        items[chance.choice(TEXTS)] = _other_value(None, chance, others)
    else:
        items[key] = _changed(items[key], chance, others)
    return items if isinstance(value, dict) else list(items.values())


def _other_value(value: Any, chance: random.Random, others: Sequence[Any]) -> Any:
    how = chance.random()
    if how < 0.5 and isinstance(value, (int, float)) and not isinstance(value, bool):
        return chance.choice((-value, value + 1, value / 2 if abs(value) < 2**53 else 0, value * 1000, 0.0))
    if how < 0.6 and isinstance(value, str):
        return chance.choice((value[1:], value + value, value.upper(), value + "\0", value[:1]))
    if how < 0.7 and others:
        return _part_of(chance.choice(others), chance)
    return chance.choice((chance.choice(CONSTANTS), chance.choice(EDGES), chance.choice(FLOATS), chance.choice(TEXTS)))


def _part_of(document: Any, chance: random.Random) -> Any:
    while isinstance(document, (dict, list)) and document and chance.random() < 0.7:
        document = chance.choice([*document.values()] if isinstance(document, dict) else document)
    return document


def change_json(data: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Mostly another document in JSON; else other bytes."""
    documents = [parsed for parsed in map(_parsed, others) if parsed is not None]
    document = _parsed(data)
    if document is None or chance.random() < 0.15:
        return change_bytes(data, chance, others)
    text = json.dumps(change_document(document, chance, documents[:16]))
    return text.encode("utf-16" if chance.random() < 0.01 else "utf-8")[:MOST_BYTES]


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
