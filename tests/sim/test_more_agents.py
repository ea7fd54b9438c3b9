"""Any number of agents from 1 to 8: their bodies and start positions; two agents equal the reference."""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference.boxes import overlap_depth, yaw_of
from tests.reference.levels import cubes_of_room, generate, num_cubes
from tests.scenes import Scene, random_actions

COUNTS = range(1, 9)
ROUNDING = 2e-5


@pytest.mark.parametrize("num_agents", COUNTS)
def test_bodies_are_agents_then_cubes(num_agents: int) -> None:
    scene = Scene(2, num_agents=num_agents)
    cubes = num_cubes(num_agents)
    kinds = scene.body_kinds[0]
    assert kinds[: num_agents + cubes].tolist() == [c.AGENT] * num_agents + [c.CUBE] * cubes
    assert not kinds[num_agents + cubes :].any()


@pytest.mark.parametrize("num_agents", COUNTS)
@pytest.mark.parametrize("seed", [0, 5])
def test_levels_equal_the_reference_implementation(num_agents: int, seed: int) -> None:
    """Draws in index order, even agents right, odd agents left, later rows where they would overlap."""
    scene = Scene(256, seed=seed, num_agents=num_agents)
    for episode in (1, 2):
        expected = generate(seed, np.arange(256), episode, num_agents)
        sure = ~expected.undecided
        assert sure.mean() > 0.99
        for measured, wanted in (
            (scene.body_positions[:, scene.agents], expected.agent_positions),
            (scene.body_positions[:, scene.cubes], expected.cube_positions),
            (scene.button_positions, expected.button_positions),
            (scene.doors, expected.door_positions),
        ):
            np.testing.assert_allclose(measured[sure], wanted[sure], atol=ROUNDING)
        np.testing.assert_allclose(yaw_of(scene.body_rotations[:, scene.agents]), expected.agent_yaws, atol=1e-6)
        scene.sim.reset()


@pytest.mark.parametrize("num_agents", COUNTS)
def test_no_agent_starts_inside_anything(num_agents: int) -> None:
    """Except for a corner in an outer wall, which the reference's draws allow: with cos + sin of pi/8 as half extent
    0.207 m behind and 0.057 m at the sides."""
    scene = Scene(512, seed=3, num_agents=num_agents)
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


def test_a_lone_agent_has_a_cube_in_the_first_room() -> None:
    scene = Scene(2048, seed=1, num_agents=1)
    kinds = np.round(scene.room_entity_observations[:, 0, :, 2] * 6)
    assert (kinds == [c.BUTTON, c.BUTTON, c.CUBE, 0, 0, 0]).all()
    places = np.unique(scene.body_positions[:, 1 + 5], axis=0)
    np.testing.assert_allclose(places, [[-8.0, 1.6, 1.5], [-3.5, 1.6, 1.5]], atol=1e-6)
    assert not scene.button_pressed.any()
    scene.step()
    assert not scene.button_pressed[:, 0].any()


def test_a_lone_agent_can_open_the_first_door() -> None:
    scene = Scene(1, seed=1, num_agents=1)
    x, y = scene.button_positions[0, 0, :2]
    scene.place_cube(5, x, y)
    scene.place(0, scene.button_positions[0, 1, 0], scene.button_positions[0, 1, 1])
    scene.step()
    assert scene.door_open[0, 0] == 1


@pytest.mark.parametrize("num_agents", COUNTS)
def test_cubes_of_each_room_are_seen_from_it(num_agents: int) -> None:
    scene = Scene(2, num_agents=num_agents)
    for room in range(c.ROOMS):
        cubes = len(cubes_of_room(num_agents, room))
        for agent in range(num_agents):
            scene.place(agent, 0.0, room * c.ROOM_LENGTH + 3)
        scene.sim.refresh()
        kinds = np.round(scene.room_entity_observations[..., 2] * 6)
        assert (kinds == [c.BUTTON] * 2 + [c.CUBE] * cubes + [0] * (4 - cubes)).all()


def test_partners_are_listed_in_index_order_without_oneself() -> None:
    scene = Scene(num_agents=4)
    scene.remove_statics()
    for agent in range(4):
        scene.place(agent, 100.0 + 10.0 * agent, 5.0)
    scene.sim.refresh()
    distances = np.round(scene.partner_observations[0, :, :, 0] * 4).astype(int)
    assert distances.tolist() == [[1, 2, 3], [1, 1, 2], [2, 1, 1], [3, 2, 1]]


@pytest.mark.parametrize("num_agents", COUNTS)
def test_worlds_with_any_number_of_agents_step_soundly(num_agents: int) -> None:
    scene = Scene(64, seed=7, num_agents=num_agents, strict=True)
    for actions in random_actions(num_agents, 220, 64, num_agents):
        scene.actions[:] = actions
        scene.step()
    assert np.isfinite(scene.body_positions).all()
    assert np.isfinite(scene.lidar).all()
    assert (scene.episode_lengths == 200).all()
