"""Rewards: 0.05 per metre of new progress, a quarter more with all other agents close, -0.005 otherwise.

Those of whole episodes are in test_episodes.py.
"""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.scenes import FORWARD, STRAIGHT, Scene


def teleport(scene, *heights):
    """Places the agents at these y, side by side and far from all other bodies, and scores them in one idle step."""
    for agent, y in enumerate(heights):
        scene.place(agent, 100.0 + 5.0 * agent, y)
    scene.act().step()


BONUS, NONE = 0.0625, -0.005
# Where the agents have been, where they are now, and their rewards.
MOVES = [
    ((10.0, 10.5), (11.0, 10.5), (BONUS, NONE)),
    ((10.0, 12.99), (11.0, 2.0), (BONUS, NONE)),
    ((10.0, 13.01), (11.0, 2.0), (0.05, NONE)),
    ((10.0, 9.01), (11.0, 2.0), (BONUS, NONE)),
    ((10.0, 8.99), (11.0, 2.0), (0.05, NONE)),
    ((10.0, 16.0), (17.0, 16.5), (7 * BONUS, 0.5 * BONUS)),  # far apart before, close after: both have it
    ((10.0, 11.0, 20.0), (11.0, 12.0, 21.0), (0.05, 0.05, 0.05)),
    ((11.0, 12.0, 21.0), (20.5, 20.5, 22.0), (9.5 * BONUS, 8.5 * BONUS, BONUS)),
    ((10.0,), (11.0,), (0.05,)),
    ((79.0, 60.0), (85.0, 60.0), (0.05, NONE)),  # progress ends at 80
]


@pytest.mark.parametrize(("before", "after", "rewards"), MOVES)
def test_progress_is_rewarded_per_metre_and_more_if_all_others_have_got_as_far(before, after, rewards):
    scene = Scene(num_agents=len(before))
    teleport(scene, *before)
    teleport(scene, *after)
    assert scene.rewards[0, :, 0] == pytest.approx(rewards, rel=1e-4)
    reached = np.minimum(np.maximum(before, after), 80)
    assert scene.agent_max_y[0] == pytest.approx(reached)
    assert scene.self_observations[0, :, 5] == pytest.approx(reached / 40)
    for y in (5.0, 9.0, 1000.0):  # what was reached before is not rewarded again
        teleport(scene, *np.minimum(y, reached))
        assert (scene.rewards[0, :, 0] == np.float32(NONE)).all()
    assert scene.agent_max_y[0] == pytest.approx(reached)


def test_progress_starts_at_the_spawn():
    scene = Scene(64, seed=1)
    spawn = scene.body_positions[:, :2, 1].astype(np.float64)
    scene.act(3, FORWARD, STRAIGHT, 0).step()
    gained = scene.body_positions[:, :2, 1] - spawn
    assert (gained > 0.5).all()
    np.testing.assert_allclose(scene.rewards[:, :, 0] / gained, BONUS, rtol=1e-4)


def test_what_is_not_finite_is_no_progress():
    for value in (np.nan, np.inf, -np.inf):
        for agent in range(2):
            scene = Scene()
            teleport(scene, 10.0, 10.5)
            largest = scene.agent_max_y.copy()
            scene.body_positions[0, agent, 1] = value
            scene.act().step()
            assert scene.rewards[0, :, 0] == pytest.approx(c.SLACK_REWARD)
            np.testing.assert_array_equal(scene.agent_max_y, largest)
        scene = Scene()
        teleport(scene, 10.0, 10.5)
        scene.agent_max_y[0, 0] = value
        teleport(scene, 11.0, 11.0)
        assert scene.rewards[0, :, 0] == pytest.approx([c.SLACK_REWARD, 0.05 * 0.5])
