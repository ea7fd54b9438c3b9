"""Arrays of other libraries: what DLPack's capsules and the array interfaces say of memory.

An input is a struct of what is said, of a memory of MEMORY_BYTES that is there. A description that reaches beyond this
memory is not read from: no reader can know.
"""

from __future__ import annotations

import ctypes
import math
import random
import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from tests.fuzz.mutations import change_bytes
from tests.interop.exchange_producer import Producer

import doorstep
from doorstep import interop
from doorstep._tensors.checks import ReadRules
from doorstep._tensors.reader import read_memory

MEMORY_BYTES = 4096
MOST_RANK = 20
EXTENTS = (0, 1, 2, 3, 4, 8, 94, 1024, 2**31, 2**63 - 1, -1, -(2**63))
WAYS = ("exchange", "dlpack", "cuda", "array")
TYPES = ("<f4", "<i4", "|u1", "<f8", ">i4", "|V4", "|O", "zz", "", "<f2", "|b1", "<M8[s]", "<i4,<f4", None, 7, b"<f4")
NEW_CAPSULE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
# Way, rank, code, bits, lanes, type, device, flags, offset of the data, offset in bytes
HEAD = struct.Struct("<BBBBHBbBbq")
SIZE = HEAD.size + 16 * MOST_RANK


class Arrays:
    def __init__(self) -> None:
        self._sim = doorstep.Simulator(2, num_threads=1)
        self._memory = np.zeros(MEMORY_BYTES, np.uint8)
        self._producer = Producer()

    def inputs(self) -> Sequence[bytes]:
        shapes = [
            ((2, 2, 4), (8, 4, 1), (0, 32, 1), 1),
            ((2, 2, 1), (2, 1, 1), (2, 32, 1), 0),
            ((16,), (1,), (0, 32, 1), 1),
        ]
        return [
            HEAD.pack(way, len(shape), *dtype, kind, 1, 0, 0, 0) + _numbers(shape) + _numbers(strides)
            for way in range(len(WAYS))
            for shape, strides, dtype, kind in shapes
        ]

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        data = data.ljust(SIZE, b"\0")
        if chance.random() < 0.4:
            at = HEAD.size + 8 * chance.randrange(2 * MOST_RANK if chance.random() < 0.2 else 4)
            data = data[:at] + struct.pack("<q", chance.choice(EXTENTS)) + data[at + 8 :]
        head = change_bytes(data[: HEAD.size], chance).ljust(HEAD.size, b"\0")[: HEAD.size]
        return (head if chance.random() < 0.6 else data[: HEAD.size]) + data[HEAD.size :]

    def run(self, data: bytes) -> str:
        value, fits = self._described(data.ljust(SIZE, b"\0")[:SIZE])
        try:
            if hasattr(value, "__dlpack__"):
                interop.describe(value)
                interop.signature(value)
            else:
                read_memory(value, ReadRules())
            return self._use(value, fits)
        finally:
            self._producer._alive.clear()  # capsules without a destructor keep theirs

    def _use(self, value: Any, fits: bool) -> str:
        if not fits:
            return "described"
        self._sim.actions = value
        self._sim.bind(actions=value)
        self._sim.step()
        self._sim.bind(actions=None)
        return "bound"

    def _described(self, data: bytes) -> tuple[Any, bool]:
        """An object that says so, and whether its elements are within the memory."""
        way, rank, code, bits, lanes, kind, device, flags, at, offset = HEAD.unpack_from(data)
        rank %= MOST_RANK
        shape = struct.unpack_from(f"<{rank}q", data, HEAD.size)
        strides = struct.unpack_from(f"<{rank}q", data, HEAD.size + 8 * rank)
        itemsize = max(1, (bits * lanes + 7) // 8)
        pointer = 0 if at == 1 else self._memory.ctypes.data + at % 64
        fits = pointer != 0 and not offset and _reach(shape, strides, itemsize) <= MEMORY_BYTES - 64
        match WAYS[way % len(WAYS)]:
            case "exchange":
                return self._tensor(pointer, shape, strides, (code, bits, lanes), device, flags, offset), False
            case "dlpack":
                tensor = self._tensor(pointer, shape, strides, (code, bits, lanes), device, flags, offset)
                return _OnlyDlpack(self._producer.managed(tensor), device), fits
        typestr = TYPES[kind % len(TYPES)]
        described = {"version": 3, "typestr": typestr, "shape": shape, "data": (pointer, bool(flags & 1))}
        if flags & 2:
            described["strides"] = tuple(strides)
        if WAYS[way % len(WAYS)] == "cuda":
            return SimpleNamespace(__cuda_array_interface__=described, device=device), False
        return _OnlyInterface(described), fits and _reach(shape, strides, 16) <= MEMORY_BYTES - 64

    def _tensor(
        self, pointer: int, shape: Any, strides: Any, dtype: Any, device: int, flags: int, offset: int
    ) -> Any:
        return self._producer.tensor(
            pointer, shape, strides, dtype=dtype, device=(device, 0), flags=flags, byte_offset=offset % 2**63
        )

    def close(self) -> None:
        self._sim.close()


class _OnlyDlpack:
    """Without the exchange API."""

    def __init__(self, managed: int, device: int) -> None:
        self._managed, self._device = managed, device

    def __dlpack__(self, **_: Any) -> Any:
        return NEW_CAPSULE(self._managed, b"dltensor_versioned", None)

    def __dlpack_device__(self) -> Any:
        return self._device, 0


class _OnlyInterface:
    def __init__(self, described: Any) -> None:
        self.__array_interface__ = described


def _numbers(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _reach(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> float:
    """Bytes from the first element to the end of the farthest; infinite where some lie before the first."""
    if any(extent < 0 for extent in shape) or any(stride < 0 for stride in strides):
        return math.inf
    if 0 in shape:
        return 0
    packed = math.prod(shape)
    return max(packed, 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))) * itemsize
