"""Saves: bytes that `Simulator.restore()` and requests that go on from a state take.

Most changed saves get a right checksum: it protects from accidents, and the checks behind it from all else.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

from tests.fuzz.mutations import EDGES, FLOATS, change_bytes

import doorstep
from doorstep._native.calls import check
from doorstep._native.handle import new_handle
from doorstep._native.library import load
from doorstep.levels import reference

HEADER_BYTES, CHECKSUM_AT = 96, 88  # as native/src/api/save.h has them
WORD = 2**64
MULTIPLIERS = (0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1)


class Saves:
    def __init__(self) -> None:
        self._sims = (
            doorstep.Simulator(2, num_agents=1, num_threads=1, episode_length=8),
            doorstep.Simulator(1, num_threads=1, levels=[reference()]),
        )

    def inputs(self) -> Sequence[bytes]:
        found = []
        for sim in self._sims:
            found += [sim.save(), sim.save([0])]
            sim.step()
            found.append(sim.save([0]))
        return found

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        if chance.random() < 0.1 or len(data) < 2 * HEADER_BYTES:
            return change_bytes(data, chance, others)
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 4, 40))):
            end = len(changed) // 4 if chance.random() < 0.95 else HEADER_BYTES // 4
            struct.pack_into("<4s", changed, 4 * chance.randrange(end), _word(chance))
        struct.pack_into("<Q", changed, CHECKSUM_AT, checksum_of(changed))
        return bytes(changed)

    def run(self, data: bytes) -> str:
        errors = [error for sim in self._sims if (error := _refusal(sim, data)) is not None]
        try:
            state = new_handle(load().ds_saved_state_create, data, len(data))
            check(load().ds_saved_state_release(state))
        except doorstep.StateError as error:
            errors.append(error)
        if len(errors) > len(self._sims):
            raise errors[0]
        return "restored"

    def close(self) -> None:
        for sim in self._sims:
            sim.close()


def _refusal(sim: doorstep.Simulator, data: bytes) -> doorstep.StateError | None:
    before = sim.hash()
    try:
        sim.restore(data)
    except doorstep.StateError as error:
        assert sim.hash() == before
        return error
    for _ in range(3):
        sim.step()
    sim.save()
    sim.reset()
    sim.step()
    return None


def _word(chance: random.Random) -> bytes:
    how = chance.random()
    if how < 0.4:
        return struct.pack("<I", chance.choice((*EDGES[:13], chance.randrange(64), 2**32 - 1 - chance.randrange(64))))
    if how < 0.8:
        number = chance.choice((*(one for one in FLOATS if abs(one) < 3e38 or one != one), chance.uniform(-50, 50)))
        return struct.pack("<f", number)
    return struct.pack("<I", chance.randrange(2**32))


# ---- The checksum, as native/src/runtime/hash.h describes it


def checksum_of(save: bytes | bytearray) -> int:
    header = bytes(save[:CHECKSUM_AT]) + bytes(8)
    return (_hash(header) + _hash(bytes(save[HEADER_BYTES:]))) % WORD


def _hash(data: bytes) -> int:
    lanes = list(reversed(MULTIPLIERS))
    whole = len(data) // 32 * 32
    for words in struct.iter_unpack("<4Q", data[:whole]):
        lanes = [
            (_fold(lane ^ word, multiplier) + word) % WORD
            for lane, word, multiplier in zip(lanes, words, MULTIPLIERS, strict=True)
        ]
    tail = struct.unpack("<4Q", data[whole:].ljust(32, b"\0"))
    found = len(data) * MULTIPLIERS[0] % WORD
    for i in range(4):
        lane = (_fold(lanes[i] ^ tail[i], MULTIPLIERS[i]) + tail[i]) % WORD
        found = (_fold(found ^ lane, MULTIPLIERS[(i + 1) % 4]) + lane) % WORD
    return _fold(found ^ MULTIPLIERS[2], MULTIPLIERS[1])


def _fold(one: int, other: int) -> int:
    product = one * other
    return (product ^ product >> 64) % WORD
