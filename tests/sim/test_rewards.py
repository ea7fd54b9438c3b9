"""Rewards: 0.05 per metre of new progress, a quarter more with all other agents close, -0.005 otherwise."""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference import rules
from tests.scenes import FORWARD, STRAIGHT, Scene, random_actions


def teleport(scene: Scene, *heights: float) -> None:
    """Places the agents at these y, side by side and far from all other bodies, and scores them in one idle step."""
    for agent, y in enumerate(heights):
        scene.place(agent, 100.0 + 5.0 * agent, y)
    scene.act()
    scene.step()


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
@pytest.mark.parametrize("room", [0, 1])
def test_rewards_and_progress_follow_the_rules_along_an_episode(num_agents: int, room: int) -> None:
    scene = Scene(128, seed=31, num_agents=num_agents)
    scene.start_in_room(room)
    for actions in random_actions(40, 100, 128, num_agents):
        scene.actions[:] = actions
        before = scene.agent_max_y.astype(np.float64)
        scene.step()
        rewards, after = rules.score(scene.body_positions[:, scene.agents, 1], before)
        close_call = (np.abs(np.abs(after[:, :, None] - after[:, None, :]) - c.BONUS_DISTANCE) < 1e-5).any(axis=(1, 2))
        np.testing.assert_allclose(scene.agent_max_y, after, atol=1e-6)
        np.testing.assert_allclose(scene.rewards[~close_call, :, 0], rewards[~close_call], atol=1e-6)
    assert (scene.agent_max_y > scene.body_positions[:, scene.agents, 1]).any()


def test_progress_is_rewarded_per_metre_with_a_bonus_when_the_partner_is_close() -> None:
    scene = Scene()
    teleport(scene, 10.0, 10.5)
    teleport(scene, 11.0, 10.5)
    assert scene.rewards[0, :, 0] == pytest.approx([0.05 * 1.25, -0.005])


@pytest.mark.parametrize(("partner", "bonus"), [(12.99, True), (13.01, False), (9.01, True), (8.99, False)])
def test_close_means_within_two_metres_of_progress(partner: float, bonus: bool) -> None:
    scene = Scene()
    teleport(scene, 10.0, partner)
    teleport(scene, 11.0, 2.0)
    assert scene.rewards[0, 0, 0] == pytest.approx(0.0625 if bonus else 0.05, rel=1e-4)


def test_the_bonus_compares_progress_not_positions() -> None:
    """The partner was here and moved back: it still counts as close."""
    scene = Scene()
    teleport(scene, 10.0, 10.0)
    teleport(scene, 11.0, 2.0)
    assert scene.rewards[0, 0, 0] == pytest.approx(0.0625, rel=1e-4)


def test_both_agents_are_scored_before_the_bonus() -> None:
    """Both move from far apart to close in one step: both get the bonus, independent of their index."""
    scene = Scene()
    teleport(scene, 10.0, 16.0)
    teleport(scene, 17.0, 16.5)
    assert scene.rewards[0, :, 0] == pytest.approx([7 * 0.0625, 0.5 * 0.0625], rel=1e-4)


def test_three_agents_need_all_others_close() -> None:
    scene = Scene(num_agents=3)
    teleport(scene, 10.0, 11.0, 20.0)
    teleport(scene, 11.0, 12.0, 21.0)
    assert scene.rewards[0, :, 0] == pytest.approx([0.05, 0.05, 0.05], rel=1e-4)
    teleport(scene, 20.5, 20.5, 22.0)
    assert scene.rewards[0, :, 0] == pytest.approx([9.5 * 0.0625, 8.5 * 0.0625, 0.0625], rel=1e-4)


def test_an_agent_alone_gets_no_bonus() -> None:
    scene = Scene(num_agents=1)
    teleport(scene, 10.0)
    teleport(scene, 11.0)
    assert scene.rewards[0, 0, 0] == pytest.approx(0.05, rel=1e-4)


def test_repeated_progress_is_not_rewarded() -> None:
    scene = Scene()
    teleport(scene, 10.0, 10.0)
    for y in (5.0, 9.0, 10.0):
        teleport(scene, y, y)
        assert (scene.rewards == np.float32(-0.005)).all()
    assert scene.agent_max_y[0] == pytest.approx([10.0, 10.0])


def test_progress_ends_at_80() -> None:
    scene = Scene()
    teleport(scene, 79.0, 60.0)
    teleport(scene, 85.0, 60.0)
    assert scene.rewards[0, 0, 0] == pytest.approx(0.05, rel=1e-4)
    assert scene.agent_max_y[0, 0] == 80
    assert scene.self_observations[0, 0, 5] == 2
    teleport(scene, 95.0, 60.0)
    assert scene.rewards[0, 0, 0] == np.float32(-0.005)


def test_progress_starts_at_the_spawn() -> None:
    scene = Scene(64, seed=1)
    spawn = scene.body_positions[:, :2, 1].astype(np.float64)
    scene.act(3, FORWARD, STRAIGHT, 0)
    scene.step()
    gained = scene.body_positions[:, :2, 1] - spawn
    assert (gained > 0.5).all()
    factor = scene.rewards[:, :, 0] / gained
    np.testing.assert_allclose(factor, 0.0625, rtol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("agent", [0, 1])
def test_a_position_that_is_not_finite_is_no_progress(value: float, agent: int) -> None:
    scene = Scene()
    teleport(scene, 10.0, 10.5)
    largest = scene.agent_max_y.copy()
    scene.body_positions[0, agent, 1] = value
    scene.act()
    scene.step()
    assert scene.rewards[0, :, 0] == pytest.approx(c.SLACK_REWARD)
    np.testing.assert_array_equal(scene.agent_max_y, largest)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_largest_y_that_is_not_finite_is_not_rewarded(value: float) -> None:
    scene = Scene()
    teleport(scene, 10.0, 10.5)
    scene.agent_max_y[0, 0] = value
    teleport(scene, 11.0, 11.0)
    assert scene.rewards[0, 0, 0] == pytest.approx(c.SLACK_REWARD)
    assert scene.rewards[0, 1, 0] == pytest.approx(0.05 * 0.5)
