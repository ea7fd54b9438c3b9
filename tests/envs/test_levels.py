"""Environments play levels: what ends in a goal is terminated and not truncated, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from doorstep.levels import Goal, Level, Rewards, Room, Spawn

gymnasium: Any = pytest.importorskip("gymnasium")

from doorstep.envs import EscapeRoomVectorEnv  # noqa: E402

# Two agents that walk ahead are in the goal after two steps; the episode may take five
NEAR = Level(
    spawns=(Spawn(-5, 0), Spawn(5, 0)),
    rooms=(Room(0, 9),),
    goal=Goal(min_x=-20, max_x=20, min_y=1.5, max_y=9),
    rewards=Rewards.sparse(),
    episode_length=5,
)
AHEAD, STAY = (3, 0, 2, 0), (0, 0, 2, 0)


def walk(env: Any, action: tuple[int, ...], steps: int) -> list[tuple[float, bool, bool]]:
    """Reward, terminated and truncated of the first row in each step."""
    seen = []
    for _ in range(steps):
        _, rewards, terminations, truncations, _ = env.step(np.full((env.num_envs, 4), action))
        seen.append((float(rewards[0]), bool(terminations[0]), bool(truncations[0])))
    return seen


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_a_goal_terminates_and_the_step_limit_truncates(mode: str) -> None:
    env = EscapeRoomVectorEnv(6, agents="rows", levels=NEAR, autoreset_mode=mode)
    env.reset(seed=1)
    assert walk(env, AHEAD, 2) == [(0.0, False, False), (1.0, True, False)]
    if mode == "next_step":
        assert walk(env, AHEAD, 1) == [(0.0, False, False)]
    elif mode == "disabled":
        env.reset(options={"reset_mask": np.ones(6, bool)})
    assert walk(env, STAY, 5) == [(0.0, False, False)] * 4 + [(0.0, False, True)]
    env.close()


def test_worlds_of_a_vector_play_different_levels() -> None:
    far = NEAR.replace(goal=None)
    env = EscapeRoomVectorEnv(8, agents="rows", levels=[NEAR, far], level_weights=(1, 0))
    assert env.simulator.level_weights.to_numpy().tolist() == [[1, 0]] * 4
    env.simulator.level_weights[:] = ((1, 0), (0, 1), (1, 0), (0, 1))
    env.reset(seed=1)
    env.step(np.full((8, 4), AHEAD))
    *_, terminations, _, info = env.step(np.full((8, 4), AHEAD))
    assert terminations.tolist() == [True, True, False, False] * 2
    assert info["episode_lengths"][terminations].tolist() == [2] * 4
    env.close()
