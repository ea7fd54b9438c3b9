"""Levels as tables: the structs that the C API takes, every word of which may be anything."""

from __future__ import annotations

import ctypes
import random
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.fuzz.mutations import EDGES

import doorstep
from doorstep import levels
from doorstep._native import _generated as native
from doorstep._native.calls import check
from doorstep._native.library import load
from doorstep.levels.native import to_native

SIZE = ctypes.sizeof(native.Level)
NUMBERS = (0.0, -0.0, 0.01, 0.5, 1.0, 2.0, 3.0, 10.0, 40.0, 79.0, 1e4, -1.0, -20.0, 1e30, float("inf"), float("nan"))


class LevelTables:
    def __init__(self) -> None:
        self._sim = doorstep.Simulator(2, num_threads=1, levels=[levels.reference()] * 2)

    def inputs(self) -> Sequence[bytes]:
        chosen: list[Any] = [levels.reference(), *[*levels.curated().values()][:12]]
        return [bytes(to_native(level)) for level in chosen]

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 3, 8))):
            at = 4 * chance.randrange(SIZE // 4 if chance.random() < 0.6 else 60)
            how = chance.random()
            if how < 0.35:
                struct.pack_into("<i", changed, at, chance.choice((*range(-2, 9), 12, 13, 24, 25, 32, 33, 2**31 - 1)))
            elif how < 0.8:
                struct.pack_into("<f", changed, at, chance.choice((*NUMBERS, chance.uniform(-40, 90))))
            elif how < 0.9:
                struct.pack_into("<I", changed, at, chance.choice(EDGES) % 2**32)
            else:
                other = chance.choice(others)
                changed[at : at + 64] = other[at : at + 64]
        return bytes(changed[:SIZE])

    def run(self, data: bytes) -> str:
        table = (native.Level * 2).from_buffer_copy(data.ljust(SIZE, b"\0")[:SIZE] * 2)
        weights = np.ones(2, np.float32)
        check(load().ds_simulator_set_levels(self._sim.handle, table, 2, weights.ctypes.data))
        starts = native.EpisodeStart(world=1, seed=3, level=ctypes.addressof(table[1]))
        check(load().ds_simulator_begin(self._sim.handle, ctypes.byref(starts), 1))
        self._sim.step()
        self._sim.reset()
        for _ in range(3):
            self._sim.step()
        return "played" if np.isfinite(self._sim.observations.to_numpy()).all() else "not finite"

    def close(self) -> None:
        self._sim.close()
