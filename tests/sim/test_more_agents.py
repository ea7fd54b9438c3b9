"""Any number of agents from 1 to 8: their bodies and start positions; two agents equal the reference."""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference.boxes import overlap_depth
from tests.reference.levels import generate, num_cubes
from tests.scenes import Scene, play, random_actions
from tests.sim.agreement import ROUNDING, assert_levels_equal


@pytest.mark.parametrize("num_agents", range(1, 9))
def test_levels_equal_the_reference_implementation(num_agents):
    """Draws in index order, even agents right, odd agents left, later rows where they would overlap. Bodies are agents,
    then cubes. No agent starts inside anything, except for a corner in an outer wall, which the reference's draws
    allow: with cos + sin of pi/8 as half extent 0.207 m behind and 0.057 m at the sides."""
    scene = Scene(256, seed=5, num_agents=num_agents)
    kinds = [c.AGENT] * num_agents + [c.CUBE] * num_cubes(num_agents)
    assert (scene.body_kinds == kinds + [0] * (scene.body_kinds.shape[1] - len(kinds))).all()
    for episode in (1, 2):
        assert_levels_equal(scene, generate(5, np.arange(256), episode, num_agents))
        boxes = scene.boxes()
        solid = np.flatnonzero(boxes.kinds[0] > 0)
        allowed = np.full(len(solid), ROUNDING)
        allowed[np.abs(boxes.centres[0, solid, 0]) == 10.5] = 0.057
        allowed[boxes.centres[0, solid, 1] == -0.5] = 0.207
        for agent in range(num_agents):
            others = solid[solid != agent]
            depth = overlap_depth(
                boxes.centres[:, [agent]], boxes.rotations[:, [agent]], boxes.sizes[:, [agent]],
                boxes.centres[:, others], boxes.rotations[:, others], boxes.sizes[:, others],
            )  # fmt: skip
            assert (depth <= allowed[solid != agent]).all()
        scene.sim.reset()


def test_a_lone_agent_has_a_cube_in_the_first_room_and_opens_the_first_door_with_it():
    scene = Scene(1024, seed=1, num_agents=1)
    assert (np.round(scene.room_entity_observations[:, 0, :, 2] * 6) == [c.BUTTON, c.BUTTON, c.CUBE, 0, 0, 0]).all()
    places = np.unique(scene.body_positions[:, 1 + 5], axis=0)
    np.testing.assert_allclose(places, [[-8.0, 1.6, 1.5], [-3.5, 1.6, 1.5]], atol=1e-6)
    scene.step()
    assert not scene.button_pressed[:, 0].any()
    scene.place_cube(5, *scene.button_positions[:, 0, :2].T)
    scene.place(0, *scene.button_positions[:, 1, :2].T)
    scene.step()
    assert (scene.door_open == [1, 0, 0]).all()


def test_worlds_with_any_number_of_agents_step_soundly():
    for num_agents in range(4, 8):  # others are followed in test_episodes.py
        scene = Scene(32, seed=7, num_agents=num_agents, strict=True, episode_length=50)
        play(random_actions(num_agents, 60, 32, num_agents), scene)
        assert np.isfinite(scene.body_positions).all()
        assert np.isfinite(scene.lidar).all()
        assert (scene.episode_lengths == 50).all()
