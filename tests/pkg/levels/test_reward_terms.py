"""Rewards as a field of a configuration: in JSON and as text of an option."""

from __future__ import annotations

import pytest

from doorstep.errors import ArgumentError
from doorstep.evaluation.config import EvaluationConfig
from doorstep.levels import Rewards
from doorstep.levels.reward_terms import RewardTerms

TEXTS = ["goal=2,cube_approach=0.25", " goal=2, cube_approach=0.25", '{"goal": 2, "cube_approach": 0.25}']


@pytest.mark.parametrize("text", TEXTS)
def test_terms_are_read_from_an_option(text: str) -> None:
    rule = RewardTerms()
    assert rule.from_plain("reward", rule.from_text(text)) == Rewards(goal=2, cube_approach=0.25)


def test_what_is_written_is_read() -> None:
    rewards = Rewards(progress=1 / 3, idle=-1e-7, exit=5)
    rule = RewardTerms()
    assert rule.from_plain("reward", rule.from_text(rule.to_text(rule.to_plain(rewards)))) == rewards
    config = EvaluationConfig(reward=rewards)
    assert EvaluationConfig.from_json(config.to_json()).reward == rewards
    assert EvaluationConfig.from_json(EvaluationConfig().to_json()).reward is None


@pytest.mark.parametrize(
    ("reward", "named"),
    [({"gaol": 2}, "reward.gaol"), ({"goal": "x"}, "reward.goal"), (3, "reward"), ("goal", "reward")],
)
def test_terms_that_are_wrong_are_refused_by_name(reward: object, named: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        EvaluationConfig.from_dict({"reward": reward})
    assert caught.value.argument == named
