"""The curated levels say what they are, and recordings that replay exactly show how they are solved.

Where results, levels or the scripted policy have changed on purpose, record anew:
python -m tests.update_curated_solutions
"""

import re

import numpy as np
import pytest
from tests.docs.pages import DOCS
from tests.update_curated_solutions import BY_ONE, BY_TWO

import doorstep
from doorstep import levels
from doorstep.planner import ScriptedPolicy
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording import Recording, Replay

CURATED = levels.curated()


def test_the_gallery_shows_them_in_their_order():
    page = (DOCS / "reference/curated_levels.md").read_text("utf-8")
    shown = re.findall(r"^## (.*)\n\n!\[.*\]\(\.\./(.*)\)\n\n(.*) Agents: (\d)\.$", page, re.MULTILINE)
    assert [(name, text, int(agents)) for name, _, text, agents in shown] == [
        (name, level.description, 1 if name in BY_ONE.names else 2) for name, level in CURATED.items()
    ]
    assert all((DOCS / picture).is_file() for _, picture, _, _ in shown)


def test_a_name_that_is_misspelt_is_answered_with_the_one_that_was_meant():
    with pytest.raises(KeyError, match="'onedoor' is not a curated level; did you mean 'one door'"):
        CURATED["onedoor"]
    assert CURATED.get("onedoor") is None


@pytest.mark.parametrize(("solutions", "num_threads"), [(BY_TWO, 1), (BY_ONE, 3)])
def test_every_level_is_solved(solutions, num_threads):
    """Replays a recording, compares all worlds after each step, and looks whether each has reached its goal; until then
    the scripted policy plays as it did when they were recorded."""
    with Recording(solutions.path) as recording:
        assert recording.config.num_agents == solutions.num_agents
        with doorstep.Simulator.from_config(recording.config.replace(strict=True, num_threads=num_threads)) as sim:
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
