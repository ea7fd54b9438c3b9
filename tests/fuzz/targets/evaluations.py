"""Evaluations as JSON, which are compared, shown as tables and drawn. Needs matplotlib."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.mutations import change_json

import doorstep
from doorstep.evaluation import Evaluation
from doorstep.levels.files import AnyLevel
from doorstep.plots import plot_evaluation

DRAWN = 32  # one of so many inputs: a picture takes a thousand times as long as reading
MOST_DRAWN = 8  # policies or levels of a picture


class Evaluations:
    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        self._path = Path(self._folder.name)

    def inputs(self) -> Sequence[bytes]:
        levels: list[AnyLevel] = [doorstep.levels.curated()["one door"], doorstep.levels.reference()]
        one, several = (
            doorstep.evaluate(["random", "idle"], levels=played, episodes=2, episode_length=10, num_threads=1)
            for played in (levels[:1], levels)
        )
        plot_evaluation(several, self._path / "table.svg")  # opens the files of fonts, which stay open
        return [one.to_json().encode(), several.to_json().encode()]

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        return change_json(data, chance, others)

    def run(self, data: bytes) -> str:
        (self._path / "evaluation.json").write_bytes(data)
        evaluation = Evaluation.load(self._path / "evaluation.json")
        assert Evaluation.from_json(evaluation.to_json()) == evaluation
        assert str(evaluation)
        for arena in evaluation.levels:
            for policy in evaluation.policies:
                evaluation.score(policy, arena.name)
        if zlib.crc32(data) % DRAWN or max(len(evaluation.policies), len(evaluation.levels)) > MOST_DRAWN:
            return "read"
        plot_evaluation(evaluation, self._path / "table.svg")
        return "drawn"

    def close(self) -> None:
        self._folder.cleanup()
