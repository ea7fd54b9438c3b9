"""The file of a shard as bytes: its head, and where its arrays are. docs/reference/shard_format.md describes it.

All sizes follow from the five counts of the head, and must give exactly the size of the file: no offset in a file is
believed, and nothing is allocated before.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native import ACTIONS, MAX_AGENTS
from doorstep.errors import StateError

FORMAT_VERSION = 1
SUFFIX = ".shard"
MOST_TEXT_BYTES = 16 << 20

_MAGIC = b"\x89DSSHD\r\n"  # damaged by transfers that cut the eighth bit or convert line ends
# magic, format version, A, F, bytes and CRC-32 of the text, zero, E, T, CRC-32 of the index, zero
_HEAD = struct.Struct("<8s6IQQ3I")
_CHECKSUM = struct.Struct("<I")  # CRC-32 of all before
HEAD_BYTES = 64
_ALIGNMENT = 64


def index_dtype(num_agents: int) -> np.dtype[Any]:
    """An episode of the index."""
    return np.dtype([
        ("first_step", "<u8"),  # of the shard
        ("id", "<u8"),
        ("tag", "<u8"),
        ("state_hash", "<u8"),
        ("queued_seconds", "<f8"),
        ("played_seconds", "<f8"),
        ("seed", "<u4"),
        ("length", "<u4"),
        ("max_steps", "<u4"),  # 0: None
        ("level", "<i4"),  # of the text's list; -1: None
        ("reason", "<u4"),
        ("replica", "<i4"),
        ("checksum", "<u4"),  # CRC-32 of its rows of the other arrays, in their order
        ("zero", "<u4"),
        ("returns", "<f4", (num_agents,)),
        ("max_y", "<f4", (num_agents,)),
    ])  # fmt: skip


@final
@dataclass(frozen=True)
class Layout:
    """The counts of a shard, and where its parts are.

    Attributes:
        num_agents: A.
        num_inputs: F.
        text_bytes: of the JSON behind the head.
        num_episodes: E.
        num_steps: T, of all episodes.
    """

    num_agents: int
    num_inputs: int
    text_bytes: int
    num_episodes: int
    num_steps: int

    def parts(self) -> dict[str, Part]:
        """The arrays, in the order of the file."""
        episodes, steps, agents, inputs = self.num_episodes, self.num_steps, self.num_agents, self.num_inputs
        arrays: list[tuple[str, np.dtype[Any], tuple[int, ...]]] = [
            ("index", index_dtype(agents), (episodes,)),
            ("observations", np.dtype("<f4"), (steps, agents, inputs)),
            ("actions", np.dtype("<i4"), (steps, agents, len(ACTIONS))),
            ("rewards", np.dtype("<f4"), (steps, agents)),
            ("last_observations", np.dtype("<f4"), (episodes, agents, inputs)),
        ]
        parts, end = {}, HEAD_BYTES + self.text_bytes
        for name, element, shape in arrays:
            parts[name] = Part(element, shape, -(-end // _ALIGNMENT) * _ALIGNMENT)
            end = parts[name].end
        return parts

    @property
    def num_bytes(self) -> int:
        """Of the file."""
        return self.parts()["last_observations"].end

    def head(self, text: bytes, index: bytes) -> bytes:
        packed = _HEAD.pack(
            *(_MAGIC, FORMAT_VERSION, self.num_agents, self.num_inputs, self.text_bytes, zlib.crc32(text), 0),
            *(self.num_episodes, self.num_steps, zlib.crc32(index), 0, 0),
        )
        return packed + _CHECKSUM.pack(zlib.crc32(packed))


@final
class Part(NamedTuple):
    """An array in the file."""

    element: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int  # bytes

    @property
    def end(self) -> int:
        return self.offset + self.element.itemsize * math.prod(self.shape)


def damaged(path: str, what: str) -> NoReturn:
    """Raises the error of a file that is not as it was written."""
    raise StateError(f"{path} is damaged: {what}.", argument="directory", hint="Copy the shard again, or remove it.")


def read_head(path: str, head: bytes, file_bytes: int) -> tuple[Layout, int, int]:
    """What a head says, and the checksums of text and index.

    Raises:
        StateError: it is not the head of a shard of this version with so many bytes.
    """
    if head[: len(_MAGIC)] != _MAGIC:
        what = "begins with other bytes" if head else "is empty"
        raise StateError(f"{path} is not a shard of doorstep: it {what}.", argument="directory")
    if len(head) < HEAD_BYTES:
        damaged(path, f"it ends within its first {HEAD_BYTES} bytes")
    fields = _HEAD.unpack(head[: _HEAD.size])
    _, version, agents, inputs, text, text_sum, zero, episodes, steps, index_sum, *zeros = fields
    if zlib.crc32(head[: _HEAD.size]) != _CHECKSUM.unpack(head[_HEAD.size :])[0]:
        damaged(path, f"the checksum of its first {HEAD_BYTES} bytes is wrong")
    if version != FORMAT_VERSION:
        raise StateError(
            f"{path} has version {version} of the format; this doorstep reads version {FORMAT_VERSION}.",
            argument="directory",
            hint="Read it with a newer doorstep.",
        )
    layout = Layout(agents, inputs, text, episodes, steps)
    if zero or any(zeros) or not (1 <= agents <= MAX_AGENTS and inputs and 1 <= episodes <= steps):
        damaged(path, "its first bytes have counts that no shard has")
    if layout.num_bytes != file_bytes:
        damaged(path, f"it has {file_bytes} bytes, and must have {layout.num_bytes}")
    if text > MOST_TEXT_BYTES:
        damaged(path, f"its text has {text} bytes, more than any shard's")
    return layout, text_sum, index_sum


def checksum(arrays: Sequence[NDArray[Any]]) -> int:
    """CRC-32 of one array after the other."""
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data, value)
    return value
