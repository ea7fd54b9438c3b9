"""The curated levels are solved in the simulator: recordings of how, which replay exactly on every device.

Where results or levels have changed on purpose, record anew: python -m tests.update_curated_solutions
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.cuda.on_stand_in import on_stand_in
from tests.pkg.levels.test_curated import CURATED, FOR_ONE
from tests.update_curated_solutions import BY_ONE, BY_TWO, Solutions

import doorstep
from doorstep.recording import Recording, Replay

BOTH = {solutions.file: solutions for solutions in (BY_TWO, BY_ONE)}


def assert_solved(solutions: Solutions, **options: object) -> None:
    """Replays a recording, compares all worlds after each step, and looks whether each has reached its goal."""
    with Recording(solutions.path) as recording:
        config = recording.config.replace(strict=True, **options)
        with doorstep.Simulator.from_config(config) as sim:
            play = Replay(recording, sim)
            assert list(sim.levels) == solutions.levels
            assert sim.level_indices.copy_to_host().ravel().tolist() == list(range(len(solutions.names)))
            reached, ended = (np.zeros(sim.num_worlds, np.bool_) for _ in range(2))
            while play.position < recording.num_steps:
                play.step()
                reached |= ~ended & sim.terminations.copy_to_host().all(axis=(1, 2))
                ended |= sim.dones.copy_to_host().all(axis=(1, 2))
        assert play.comparisons == recording.num_steps + 1  # at the beginning and after each step
    assert [name for name, solved in zip(solutions.names, reached, strict=True) if not solved] == []


def test_there_are_solutions_of_all_levels() -> None:
    assert BY_TWO.names == tuple(CURATED)
    assert sorted(BY_ONE.names) == sorted(FOR_ONE)
    for solutions in BOTH.values():
        with Recording(solutions.path) as recording:
            assert recording.config.num_agents == solutions.num_agents
            assert recording.config.num_worlds == len(solutions.names)
            assert recording.hashed_steps == tuple(range(recording.num_steps + 1))
            assert not recording.same_version_only


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("file", BOTH)
def test_every_level_is_solved(file: str, num_threads: int) -> None:
    assert_solved(BOTH[file], num_threads=num_threads)


@pytest.mark.slow
@pytest.mark.parametrize("file", BOTH)
@on_stand_in()
def test_every_level_is_solved_on_a_gpu(file: str) -> None:
    assert_solved(BOTH[file], device="cuda")
