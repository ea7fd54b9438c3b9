"""Recordings: changed anywhere, or within chunks whose checksums are right again."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.mutations import change_bytes, change_json
from tests.fuzz.running import corpus
from tests.pkg.recording_files import Chunk, build, parse

import doorstep
from doorstep.recording import Recording

MOST_REPLAYED = 200  # steps of worlds


class Recordings:
    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        self._path = Path(self._folder.name) / "run.rec"

    def inputs(self) -> Sequence[bytes]:
        return corpus("recordings")

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        chunks = _chunks_of(data)
        if chance.random() < 0.1 or not chunks:
            return change_bytes(data, chance, others)
        for _ in range(chance.choice((1, 1, 2, 4))):
            at = chance.randrange(len(chunks))
            how = chance.random()
            if how < 0.1 and len(chunks) > 1:
                del chunks[at]
            elif how < 0.2:
                chunks.insert(chance.randrange(len(chunks) + 1), chunks[at])
            elif how < 0.3:
                chunks[at] = chunks[at]._replace(position=chance.choice((0, 1, 2, 7, 2**31, 2**63, 2**64 - 1)))
            else:
                chunks[at] = chunks[at]._replace(payload=_other_payload(chunks[at], chance))
        if chunks[-1].kind == "END " and chance.random() < 0.8:
            position = chunks[-2].position if len(chunks) > 1 else 0
            chunks[-1] = Chunk("END ", position, struct.pack("<Q", len(chunks) - 1))
        return build(chunks)

    def run(self, data: bytes) -> str:
        self._path.write_bytes(data)
        try:
            whole = self._read(incomplete=False)
        except doorstep.StateError as error:
            if "truncated" not in str(error):
                raise
            return f"truncated, {self._read(incomplete=True)}"
        return whole

    def _read(self, *, incomplete: bool) -> str:
        with Recording(self._path, incomplete=incomplete) as recording:
            for step in {0, recording.num_steps // 2, recording.num_steps - 1} - {-1}:
                if recording.config.num_worlds <= MOST_REPLAYED:
                    recording.actions(step)
                    recording.resets(step)
            for step in recording.hashed_steps[:3]:
                recording.hashes(step)
            if recording.config.num_worlds * max(recording.num_steps, 1) > MOST_REPLAYED:
                return "read"
            recording.replay(num_threads=1)
        return "replayed"

    def close(self) -> None:
        self._folder.cleanup()


def _chunks_of(data: bytes) -> list[Chunk]:
    try:
        return parse(data)
    except (AssertionError, struct.error, ValueError):
        return []


def _other_payload(chunk: Chunk, chance: random.Random) -> bytes:
    if chunk.kind == "CONF":
        return change_json(chunk.payload, chance)
    if chunk.kind == "STEP" and chance.random() < 0.7:  # what is compressed
        try:
            inner = zlib.decompress(chunk.payload[8:])
        except zlib.error:
            return change_bytes(chunk.payload, chance)
        return chunk.payload[:8] + zlib.compress(change_bytes(inner, chance))
    return change_bytes(chunk.payload, chance)
