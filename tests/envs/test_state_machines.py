"""Any sequence of resets and steps of a vector environment against a model of a few lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("hypothesis")

from hypothesis import strategies as draw
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.pkg.machines import LENGTHS, run_machine

import doorstep
from doorstep.envs import EscapeRoomVectorEnv

ENVS, LENGTH = 3, 5


class Environments(RuleBasedStateMachine):
    """Episodes of LENGTH steps, begun again in the step after their last; what was handed out is never changed."""

    @initialize(seed=draw.integers(0, 9))
    def make(self, seed: int) -> None:
        self.env: Any = EscapeRoomVectorEnv(ENVS, episode_length=LENGTH, num_threads=1)
        self.left = [LENGTH] * ENVS
        self.kept: list[tuple[Any, Any]] = []
        self._keep(self.env.reset(seed=seed)[0])

    def _keep(self, observations: Any) -> None:
        assert observations in self.env.observation_space
        self.kept = [*self.kept[-5:], (observations, observations.copy())]

    @rule(action=draw.integers(0, 1))
    def step(self, action: int) -> None:
        actions = self.env.action_space.sample() * 0 + action
        observations, _, terminations, truncations, _ = self.env.step(actions)
        self.left = [LENGTH if left == 0 else left - 1 for left in self.left]
        assert truncations.tolist() == [left == 0 for left in self.left]
        assert not terminations.any()
        self._keep(observations)

    @rule(mask=draw.lists(draw.booleans(), min_size=ENVS, max_size=ENVS).filter(any))
    def reset_some(self, mask: list[bool]) -> None:
        self._keep(self.env.reset(options={"reset_mask": np.array(mask)})[0])
        self.left = [LENGTH if begins else left for begins, left in zip(mask, self.left, strict=True)]

    @rule(seed=draw.integers(0, 9))
    def reset(self, seed: int) -> None:
        first, again = (self.env.reset(seed=seed)[0] for _ in range(2))
        assert (first == again).all()
        self.left = [LENGTH] * ENVS
        self._keep(again)

    @rule(shape=draw.sampled_from([(ENVS,), (ENVS + 1, 8), (1, 8), ()]))
    def step_wrongly(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(doorstep.ArgumentError):
            self.env.step(np.zeros(shape, np.int64))

    def teardown(self) -> None:
        if hasattr(self, "env"):
            assert all((kept == copy).all() for kept, copy in self.kept)
            self.env.close()


@pytest.mark.parametrize("length", LENGTHS)
def test_any_sequence_of_calls_agrees_with_the_model(length: Any) -> None:
    run_machine(Environments, length)
