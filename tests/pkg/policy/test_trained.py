"""The policies that come with doorstep pass the doors, and need nothing but numpy."""

from __future__ import annotations

import subprocess
import sys

import pytest

import doorstep
from doorstep.evaluation.config import EvaluationConfig
from doorstep.evaluation.run import evaluate_config
from doorstep.policy import load_policy

SEED = 2026  # of episodes in levels that were not trained on


def test_both_agents_leave_levels_that_they_have_never_seen() -> None:
    score = doorstep.evaluate(["trained"], episodes=128, seed=SEED, num_threads=1).score("trained")
    first, second, third = score.rooms
    assert first.all.value > 0.97
    assert second.all.value > 0.97
    assert third.one.value > 0.9
    assert third.all.value > 0.9


def test_the_general_one_leaves_rooms_of_every_type() -> None:
    evaluation = doorstep.evaluate(
        ["general"], levels=["room_types", "reference"], episodes=64, seed=SEED, num_threads=1
    )
    out = {score.level: score.rooms[2].all.value for score in evaluation.scores}
    least = {"single_button": 0.95, "double_button": 0.95, "cube_blocking": 0.9, "cube_buttons": 0.55, "reference": 0.8}
    assert out.keys() == least.keys()
    assert all(out[level] > share for level, share in least.items()), out


@pytest.mark.parametrize("name", ["trained", "general"])
def test_they_have_names(name: str) -> None:
    policy = load_policy(name)
    assert isinstance(policy, doorstep.Policy)
    assert policy.num_inputs == 94


def test_a_config_can_name_it() -> None:
    config = EvaluationConfig.from_dict({"policies": ["trained"], "episodes": 2, "simulator": {"num_worlds": 2}})
    assert evaluate_config(config).policies == ("trained",)


def test_it_needs_no_pytorch() -> None:
    code = """
import sys
sys.modules["torch"] = None
import doorstep
with doorstep.Simulator(2) as sim:
    print(doorstep.load_policy("trained").act(sim.observations).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(2, 2, 4)\n"
