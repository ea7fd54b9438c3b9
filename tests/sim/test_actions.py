"""Actions move agents as in the reference environment: position control, egocentric, at most 1 unit per step."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.reference.boxes import yaw_of
from tests.scenes import FORWARD, HARD_LEFT, STRAIGHT, Scene, played, random_actions, steps

import doorstep

DATA = Path(__file__).resolve().parents[1] / "data"


def test_motion_is_the_measured_one():
    """A world per row of the table: 40 steps of a constant action on an open floor. Tolerance: 1e-3 per step."""
    lines = (DATA / "kinematics.csv").read_text().splitlines()
    columns, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    table = np.array(rows, dtype=np.float64)  # a row per (move amount, move angle, turn)
    assert table.shape[0] == 160
    measured, scene = dict(zip(columns, table.T, strict=True)), Scene(len(table)).open_floor()
    scene.actions[:, 0, :3] = table[:, :3].astype(np.int32)
    places, yaws = [scene.body_positions[:, 0].copy()], [yaw_of(scene.body_rotations[:, 0])]
    for _ in range(40):
        scene.step()
        places.append(scene.body_positions[:, 0].copy())
        yaws.append(yaw_of(scene.body_rotations[:, 0]))
    moved = np.diff(np.stack(places, axis=1), axis=1)
    turns = np.angle(np.exp(1j * np.diff(np.stack(yaws, axis=1), axis=1)))
    for step in (1, 5, 10, 20, 40):
        speed = np.linalg.norm(moved[:, step - 1], axis=-1)
        np.testing.assert_allclose(speed, 0.04 * measured[f"speed_step{step}"], atol=1e-3)
    first = np.stack([measured["first_dx"], measured["first_dy"], 0 * measured["first_dx"]], axis=-1)
    np.testing.assert_allclose(moved[:, 0], first, atol=1e-3)
    np.testing.assert_allclose(turns[:, 0], measured["turn_rate_rad_step1"], atol=1e-3)
    np.testing.assert_allclose(turns, np.broadcast_to(measured["turn_rate_rad_mean"][:, None], (160, 40)), atol=1e-3)
    end = np.stack([measured[column] for column in ("x40", "y40", "z40")], axis=-1)
    np.testing.assert_allclose(places[-1], end, atol=0.04)


def test_agents_stop_at_the_end_of_every_step():
    scene = Scene(16, seed=2)
    for _ in played(random_actions(1, 20, 16), scene):
        velocity = scene.body_linear_velocities[:, scene.agents]
        assert not velocity[..., :2].any()
        assert (velocity[..., 2] <= 0).all()
        assert not scene.body_angular_velocities[:, scene.agents].any()


def test_actions_stay_until_they_are_written_again():
    scene = Scene().open_floor()
    scene.act(1, FORWARD, STRAIGHT, 0).step(3)
    assert scene.body_positions[0, 0, 1] == pytest.approx(3 * 0.3329, abs=3e-3)
    assert scene.actions[0, 0].tolist() == [1, FORWARD, STRAIGHT, 0]


OUT_OF_RANGE = [
    (0, -1, 0), (0, 4, 3), (0, 10**9, 3), (1, -5, 0), (1, 8, 7), (2, -(2**31), 0), (2, 5, 4), (3, -1, 0), (3, 2, 1),
]  # fmt: skip


def test_clamp_moves_values_to_the_nearest_legal_ones_and_counts_each():
    """By default, for both agents and any number of components."""
    wrong, right = (Scene(len(OUT_OF_RANGE) + 1, seed=5) for _ in range(2))
    for scene in (wrong, right):
        scene.open_floor()
        scene.act(2, FORWARD, 3, 0, agents=0)
    for world, (component, value, legal) in enumerate(OUT_OF_RANGE):
        agent = world % 2
        wrong.actions[world, agent, component], right.actions[world, agent, component] = value, legal
    wrong.actions[-1], right.actions[-1] = (4, 8, 5, 2), (3, 7, 4, 1)
    steps(1, wrong, right)
    np.testing.assert_array_equal(wrong.body_positions, right.body_positions)
    np.testing.assert_array_equal(wrong.body_rotations, right.body_rotations)
    assert wrong.sim.health.clamped_actions == len(OUT_OF_RANGE) + 2 * 4
    assert right.sim.health.clamped_actions == 0


def test_raise_steps_nothing_and_names_the_culprit():
    for component, value, legal in OUT_OF_RANGE:
        scene = Scene(3, action_check="raise")
        scene.act(3, FORWARD, HARD_LEFT, 0).step()
        scene.actions[1, 1, component] = value
        before, places = scene.sim.hash(), scene.body_positions.copy()
        for step in (scene.step, scene.sim.step_async):
            message = rf"actions\[1, 1, {component}\] is {value}; it must"
            with pytest.raises(doorstep.ArgumentError, match=message) as caught:
                step()
            assert caught.value.argument == "actions"
        assert scene.sim.hash() == before
        np.testing.assert_array_equal(scene.body_positions, places)
        scene.actions[1, 1, component] = legal
        scene.step()


def test_off_follows_the_formulas_for_any_value():
    """Per unit: force 1000/3 N, angle 45 degrees, torque 160 Nm around 2; distance and turn grow in proportion."""
    scene = Scene(5, action_check="off").open_floor()
    scene.actions[:, 0] = [[4, 0, 2, 0], [-3, 0, 2, 0], [3, 10, 2, 0], [0, 0, 6, 0], [3, -2, 2, 0]]
    scene.step()
    places = scene.body_positions[[0, 1, 2, 4], 0, :2]
    np.testing.assert_allclose(places, [[0, 4 / 3], [0, -1], [1, 0], [-1, 0]], atol=2e-3)
    assert yaw_of(scene.body_rotations[3, 0]) == pytest.approx(2 * 0.48, abs=0.02)
    assert scene.sim.health.clamped_actions == 0


def test_off_bounds_absurd_values_and_stays_finite():
    scene = Scene(2, action_check="off")
    scene.actions[:] = np.array([2**31 - 1, -(2**31)])[:, None, None]
    scene.step()
    assert np.isfinite(scene.body_positions).all()
    assert np.isfinite(scene.self_observations).all()
