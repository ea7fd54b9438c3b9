"""The curated levels are solved in the simulator: recordings of how, which replay exactly on every device, and the
built-in policies.

Where results, levels or the scripted policy have changed on purpose, record anew:
python -m tests.update_curated_solutions
"""

import numpy as np
import pytest
from tests.cuda.on_stand_in import on_stand_in
from tests.pkg.levels.test_curated import CURATED, FOR_ONE
from tests.update_curated_solutions import BY_ONE, BY_TWO

import doorstep
from doorstep import levels
from doorstep.cli import main
from doorstep.planner import ScriptedPolicy
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording import Recording, Replay

BOTH = {solutions.path.name: solutions for solutions in (BY_TWO, BY_ONE)}
BASELINES = ("random", "scripted")


def assert_solved(solutions, **options):
    """Replays a recording, compares all worlds after each step, and looks whether each has reached its goal; until then
    the scripted policy plays as it did when they were recorded."""
    with Recording(solutions.path) as recording:
        with doorstep.Simulator.from_config(recording.config.replace(strict=True, **options)) as sim:
            play, policy = Replay(recording, sim), ScriptedPolicy()
            assert list(sim.levels) == solutions.levels
            assert sim.level_indices.copy_to_host().ravel().tolist() == list(range(len(solutions.names)))
            reached, ended = (np.zeros(sim.num_worlds, np.bool_) for _ in range(2))
            while play.position < recording.num_steps:
                planned, recorded = policy(sim), recording.actions(play.position)
                assert np.array_equal(planned[~reached], recorded[~reached]), play.position
                play.step()
                reached |= ~ended & sim.terminations.copy_to_host().all(axis=(1, 2))
                ended |= sim.dones.copy_to_host().all(axis=(1, 2))
        assert play.comparisons == recording.num_steps + 1  # at the beginning and after each step
    assert [name for name, solved in zip(solutions.names, reached, strict=True) if not solved] == []


def test_there_are_solutions_of_all_levels():
    assert BY_TWO.names == tuple(CURATED)
    assert sorted(BY_ONE.names) == sorted(FOR_ONE)
    for solutions in BOTH.values():
        with Recording(solutions.path) as recording:
            assert recording.config.num_agents == solutions.num_agents
            assert recording.config.num_worlds == len(solutions.names)
            assert recording.hashed_steps == tuple(range(recording.num_steps + 1))
            assert not recording.same_version_only


@pytest.mark.parametrize(("file", "num_threads"), [*zip(BOTH, (1, 3), strict=True)])
def test_every_level_is_solved(file, num_threads):
    assert_solved(BOTH[file], num_threads=num_threads)


@pytest.mark.nightly
@pytest.mark.parametrize("file", BOTH)
@on_stand_in()
def test_every_level_is_solved_on_a_gpu(file):
    assert_solved(BOTH[file], device="cuda")


# ---- The built-in policies: one acts at random, one plans, which is never worse


def play_each_level(policy, table, worlds, **options):
    """Of each level, the mean return of the agents' first episodes, and the share that the goal ended."""
    count = worlds * len(table)
    with doorstep.Simulator(count, max_levels=len(table), auto_reset=False, **options) as sim:
        sim.set_levels(list(table))
        sim.level_weights[...] = np.repeat(np.eye(len(table), dtype=np.float32), worlds, axis=0)
        sim.reset()
        act = Player(load_policy(policy), sim).act
        summed, solved, ended = np.zeros(count), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        while not ended.all():
            act()
            sim.step()
            summed += np.where(ended, 0, sim.rewards.to_numpy().mean(axis=(1, 2)))
            solved |= ~ended & sim.terminations.to_numpy().all(axis=(1, 2))
            ended |= sim.dones.to_numpy().all(axis=(1, 2))
    return [values.reshape(-1, worlds).mean(axis=1) for values in (summed, solved)]


@pytest.mark.nightly
def test_the_scripted_policy_is_better_than_random_actions():
    found = [play_each_level(policy, CURATED.values(), 2, seed=4) for policy in BASELINES]
    (random_returns, random_shares), (scripted_returns, scripted_shares) = found
    worse = (scripted_shares < random_shares) | (scripted_returns <= random_returns) | (scripted_shares == 0)
    assert [name for name, is_worse in zip(CURATED, worse, strict=True) if is_worse] == []


@pytest.mark.nightly
def test_the_curated_levels_are_recorded_under_both(tmp_path):
    collection, path = tmp_path / "curated.json", tmp_path / "run.rec"
    levels.save_levels(collection, list(CURATED.values()))
    for policy in BASELINES:
        options = ["--levels", str(collection), "--policy", policy, "--worlds", "40", "--steps", "30", "--seed", "3"]
        assert main(["record", *options, "--output", str(path)]) == 0
        with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
            recording.replay(sim)
            assert sim.levels == tuple(CURATED.values())
            assert len(set(sim.level_indices.to_numpy().ravel().tolist())) > 10
