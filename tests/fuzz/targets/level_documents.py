"""Levels as JSON: of one level, of several, and as text maps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.mutations import change_bytes, change_json
from tests.fuzz.running import corpus

import doorstep
from doorstep import levels


class LevelDocuments:
    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        self._path = Path(self._folder.name) / "levels.json"

    def inputs(self) -> Sequence[bytes]:
        return corpus("levels")

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        return change_json(data, chance, others) if data[:1] == b"{" else change_bytes(data, chance, others)

    def run(self, data: bytes) -> str:
        if data[:1] == b"#":
            found: Sequence[levels.files.AnyLevel] = [levels.Level.from_ascii(data.decode(errors="surrogateescape"))]
        else:
            self._path.write_bytes(data)
            found = levels.load_levels(self._path)
        again = [type(level).from_json(level.to_json()) for level in found]
        assert again == list(found)
        if len(found) > 64:
            return "many levels"
        with doorstep.Simulator(1, num_threads=1, levels=found, num_agents=1) as sim:
            sim.step()
            sim.reset()
            sim.step()
        return "played"

    def close(self) -> None:
        self._folder.cleanup()
