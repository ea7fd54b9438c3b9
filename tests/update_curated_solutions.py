"""Records anew how the curated levels are solved: by two agents, and by one agent where that is possible.

Run from the root of the project after a change of the levels or of results: python -m tests.update_curated_solutions
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

import doorstep
from doorstep import levels
from doorstep.levels.files import AnyLevel
from doorstep.planner import ScriptedPolicy
from doorstep.recording import RecordingWriter

IDLE = (0, 0, 2, 0)


class Solutions(NamedTuple):
    """A recording with a world for each level, which has the hashes of every step."""

    file: str
    num_agents: int
    names: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The file of the recording."""
        return Path(__file__).parent / "data" / self.file

    @property
    def levels(self) -> list[AnyLevel]:
        """The levels, in the order of the worlds."""
        curated = levels.curated()
        return [curated[name] for name in self.names]


BY_TWO = Solutions("curated_solutions.rec", 2, tuple(levels.curated()))
BY_ONE = Solutions(
    "curated_solutions_of_one_agent.rec",
    1,
    (
        *("one door", "far button", "two rooms", "slalom", "one cube", "two cubes"),
        *("blocked door", "spiral", "carry", "cube in a cell"),
    ),
)


def record(solutions: Solutions) -> int:
    """Lets the scripted policy play until every world has reached its goal; how many steps that took."""
    table = solutions.levels
    worlds = len(table)
    with (
        doorstep.Simulator(
            worlds, num_agents=solutions.num_agents, max_levels=worlds, auto_reset=False, strict=True
        ) as sim,
        RecordingWriter(solutions.path, sim, hash_interval=1) as writer,
    ):
        sim.set_levels(table)
        sim.level_weights[...] = np.eye(worlds, dtype=np.float32)
        writer.reset()
        policy = ScriptedPolicy()
        solved = np.zeros(worlds, np.bool_)
        while not solved.all():
            actions = policy(sim)
            actions[solved] = IDLE  # takes no room in the file
            sim.actions = actions
            writer.step()
            solved |= sim.terminations.to_numpy().all(axis=(1, 2))
            failed = sim.dones.to_numpy().all(axis=(1, 2)) & ~solved
            if failed.any():
                raise SystemExit(f"not solved: {[solutions.names[world] for world in np.flatnonzero(failed)]}")
        return writer.num_steps


def main() -> None:
    for solutions in (BY_TWO, BY_ONE):
        print(f"{solutions.path}: {record(solutions)} steps")


if __name__ == "__main__":
    main()
