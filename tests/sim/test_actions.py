"""Actions move agents as in the reference environment: position control, egocentric, at most 1 unit per step."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference.boxes import yaw_of
from tests.scenes import FORWARD, HARD_LEFT, STRAIGHT, Array, Scene, random_actions

import doorstep

DATA = Path(__file__).resolve().parents[1] / "data"


def kinematics() -> Array:
    """The measured table, one row per (move amount, move angle, turn)."""
    with open(DATA / "kinematics.csv") as file:
        lines = [line for line in file if not line.startswith("#")]
    return np.array(list(csv.reader(lines))[1:], dtype=np.float64)


def columns() -> list[str]:
    with open(DATA / "kinematics.csv") as file:
        return next(line for line in file if not line.startswith("#")).strip().split(",")


@pytest.fixture(scope="module")
def measured() -> dict[str, Array]:
    """A world per row of the table: 40 steps of a constant action on an open floor."""
    table = kinematics()
    assert table.shape[0] == 160
    scene = Scene(len(table))
    scene.open_floor()
    scene.actions[:, 0, :3] = table[:, :3].astype(np.int32)
    places, yaws = [scene.body_positions[:, 0].copy()], [yaw_of(scene.body_rotations[:, 0])]
    for _ in range(40):
        scene.step()
        places.append(scene.body_positions[:, 0].copy())
        yaws.append(yaw_of(scene.body_rotations[:, 0]))
    result = dict(zip(columns(), table.T, strict=True))
    result["places"] = np.stack(places, axis=1)
    result["turns"] = np.angle(np.exp(1j * np.diff(np.stack(yaws, axis=1), axis=1)))
    return result


@pytest.mark.parametrize("step", [1, 5, 10, 20, 40])
def test_distance_moved_in_a_step_is_the_measured_one(measured: dict[str, Array], step: int) -> None:
    moved = np.linalg.norm(measured["places"][:, step] - measured["places"][:, step - 1], axis=-1)
    np.testing.assert_allclose(moved, 0.04 * measured[f"speed_step{step}"], atol=1e-3)


def test_first_step_has_the_measured_displacement(measured: dict[str, Array]) -> None:
    first = measured["places"][:, 1] - measured["places"][:, 0]
    np.testing.assert_allclose(first[:, 0], measured["first_dx"], atol=1e-3)
    np.testing.assert_allclose(first[:, 1], measured["first_dy"], atol=1e-3)
    np.testing.assert_allclose(first[:, 2], 0.0, atol=1e-3)


def test_turn_of_every_step_is_the_measured_one(measured: dict[str, Array]) -> None:
    np.testing.assert_allclose(measured["turns"][:, 0], measured["turn_rate_rad_step1"], atol=1e-3)
    np.testing.assert_allclose(
        measured["turns"], np.broadcast_to(measured["turn_rate_rad_mean"][:, None], (160, 40)), atol=1e-3
    )


def test_forty_steps_lead_to_the_measured_position(measured: dict[str, Array]) -> None:
    """Tolerance: 1e-3 per step, summed."""
    for column, axis in (("x40", 0), ("y40", 1), ("z40", 2)):
        np.testing.assert_allclose(measured["places"][:, 40, axis], measured[column], atol=0.04)


def test_move_angle_turns_with_the_agent() -> None:
    scene = Scene(8)
    scene.open_floor()
    yaws = np.linspace(-3.0, 3.0, 8)
    scene.place(0, 0.0, 0.0, yaw=yaws)
    scene.actions[:, 0] = [[3, angle, 2, 0] for angle in range(8)]
    scene.step()
    heading = yaws - np.arange(8) * np.pi / 4  # angles count clockwise from forward, yaw counter-clockwise
    expected = 0.999 * np.stack([-np.sin(heading), np.cos(heading)], axis=-1)
    np.testing.assert_allclose(scene.body_positions[:, 0, :2], expected, atol=2e-3)


def test_agents_stop_at_the_end_of_every_step() -> None:
    scene = Scene(16, seed=2)
    for actions in random_actions(1, 20, 16):
        scene.actions[:] = actions
        scene.step()
        velocity = scene.body_linear_velocities[:, scene.agents]
        assert not velocity[..., :2].any()
        assert (velocity[..., 2] <= 0).all()
        assert not scene.body_angular_velocities[:, scene.agents].any()


def test_an_idle_agent_stays() -> None:
    scene = Scene(32, seed=4)
    scene.body_positions[:, :2, 1] += 0.5  # a turned agent may start with a corner in the wall behind it
    before = scene.body_positions[:, :2].copy()
    scene.step(50)
    np.testing.assert_allclose(scene.body_positions[:, :2], before, atol=1e-4)


def test_actions_stay_until_they_are_written_again() -> None:
    scene = Scene()
    scene.open_floor()
    scene.act(1, FORWARD, STRAIGHT, 0)
    scene.step(3)
    assert scene.body_positions[0, 0, 1] == pytest.approx(3 * 0.3329, abs=3e-3)
    assert scene.actions[0, 0].tolist() == [1, FORWARD, STRAIGHT, 0]


OUT_OF_RANGE = [
    (0, -1, 0), (0, 4, 3), (0, 10**9, 3), (1, -5, 0), (1, 8, 7), (2, -(2**31), 0), (2, 5, 4), (3, -1, 0), (3, 2, 1),
]  # fmt: skip


@pytest.mark.parametrize(("component", "value", "legal"), OUT_OF_RANGE)
def test_clamp_moves_a_value_to_the_nearest_legal_one_and_counts_it(component: int, value: int, legal: int) -> None:
    scenes = []
    for given in (value, legal):
        scene = Scene(seed=5, action_check="clamp")
        scene.open_floor()
        scene.act(2, FORWARD, 3, 0, agents=0)
        scene.actions[0, 0, component] = given
        scene.step()
        scenes.append(scene)
    np.testing.assert_array_equal(scenes[0].body_positions, scenes[1].body_positions)
    np.testing.assert_array_equal(scenes[0].body_rotations, scenes[1].body_rotations)
    assert scenes[0].sim.health.clamped_actions == 1
    assert scenes[1].sim.health.clamped_actions == 0


@pytest.mark.parametrize(("component", "value", "legal"), OUT_OF_RANGE)
def test_raise_steps_nothing_and_names_the_culprit(component: int, value: int, legal: int) -> None:
    scene = Scene(3, action_check="raise")
    scene.act(3, FORWARD, HARD_LEFT, 0)
    scene.step()
    scene.actions[1, 1, component] = value
    before = scene.sim.hash()
    places = scene.body_positions.copy()
    with pytest.raises(doorstep.ArgumentError, match=str(value)) as caught:
        scene.step()
    assert caught.value.argument == "actions"
    assert scene.sim.hash() == before
    np.testing.assert_array_equal(scene.body_positions, places)
    scene.actions[1, 1, component] = legal
    scene.step()


def test_off_follows_the_formulas_for_any_value() -> None:
    """Per unit: force 1000/3 N, angle 45 degrees, torque 160 Nm around 2; distance and turn grow in proportion."""
    scene = Scene(5, action_check="off")
    scene.open_floor()
    scene.actions[:, 0] = [[4, 0, 2, 0], [-3, 0, 2, 0], [3, 10, 2, 0], [0, 0, 6, 0], [3, -2, 2, 0]]
    scene.step()
    place = scene.body_positions[:, 0, :2]
    np.testing.assert_allclose(place[0], [0, 4 / 3], atol=2e-3)
    np.testing.assert_allclose(place[1], [0, -1], atol=2e-3)
    np.testing.assert_allclose(place[2], [1, 0], atol=2e-3)
    np.testing.assert_allclose(place[4], [-1, 0], atol=2e-3)
    assert yaw_of(scene.body_rotations[3, 0]) == pytest.approx(2 * 0.48, abs=0.02)
    assert scene.sim.health.clamped_actions == 0


def test_off_bounds_absurd_values_and_stays_finite() -> None:
    scene = Scene(2, action_check="off")
    scene.actions[0] = 2**31 - 1
    scene.actions[1] = -(2**31)
    scene.step()
    assert np.isfinite(scene.body_positions).all()
    assert np.isfinite(scene.self_observations).all()


def test_default_is_clamp() -> None:
    scene = Scene()
    scene.act(4, FORWARD, STRAIGHT, 0)
    scene.step()
    assert scene.sim.health.clamped_actions == 2
    assert c.IDLE == (0, 0, 2, 0)
