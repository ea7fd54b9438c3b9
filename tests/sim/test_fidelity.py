"""Behaviour agrees in distribution with the reference environment (tests/data/behaviour.json).

Both are samples of the same size: 512 worlds x 4 episodes of uniform random actions. The standard error of doorstep's
sample comes from a bootstrap over worlds (worlds are independent, steps are not); the reference's is assumed equal, so
the difference has sqrt(2) times that error. With about 50 figures compared, four of those errors are the tolerance.
Among cubes, where a few worlds make most of the figure, doorstep's sample is many times larger: the difference then has
little more than the error of the reference's.

Two figures differ for known reasons:
- The reference's broad phase misses an agent that moves more than 0.16 m in a step, which then stands in a wall until
  the next step. So 5% of its agents get more than 0.17 m into the first end wall (largest y beyond 11.5), and its
  95th percentile is larger than the 11.33 at which a wall stops an agent here.
- The reference pushes agents forward that spawn with a corner in the wall behind them; here they are moved out of it.
  Its reward of the first step is therefore larger, and not compared.
"""

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.reference import constants as c
from tests.scenes import Scene, played, random_actions

REFERENCE = json.loads((Path(__file__).resolve().parents[1] / "data" / "behaviour.json").read_text())
SIGMAS = 4.0
RESAMPLES = 200


@pytest.fixture(scope="module")
def sample():
    """Recorded values; the first axis of every array is the world."""
    worlds, episodes, length = 512, 4, 200
    scene = Scene(worlds, seed=5)
    rewards, pressed, opened, lidar = [], [], [], [scene.lidar.copy()]
    max_y, returns, last_y = [], [], []
    for step, _ in enumerate(played(random_actions(77, episodes * length, worlds), scene), start=1):
        rewards.append(scene.rewards[..., 0].copy())
        pressed.append(scene.button_pressed.copy())
        opened.append(scene.door_open.copy())
        if step % 10 == 8:  # the phase at which the reference was sampled
            lidar.append(scene.lidar.copy())
        if step % length == 0:
            max_y.append(scene.final_self_observations[..., 5] * c.WORLD_LENGTH)
            last_y.append(scene.final_self_observations[..., 3] * c.WORLD_LENGTH)
            returns.append(scene.episode_returns[..., 0].copy())
    rays = np.stack(lidar, axis=1).reshape(worlds, len(lidar), 60, 2)
    shape = (worlds, episodes, length, -1)
    return SimpleNamespace(
        rewards=np.stack(rewards, axis=1),  # [N, 800, 2]
        max_y=np.concatenate(max_y, axis=1),  # [N, 4 * 2] at the end of the episodes, as the two below
        returns=np.concatenate(returns, axis=1),
        last_y=np.concatenate(last_y, axis=1),
        pressed=np.stack(pressed, axis=1).reshape(shape)[:, :, :-1],  # [N, 4, 199, 6]
        open=np.stack(opened, axis=1).reshape(shape)[:, :, :-1],  # [N, 4, 199, 3]
        lidar_kinds=np.round(rays[..., 1] * 6).astype(int),  # [N, 81, 60]
        lidar_depths=rays[..., 0] * c.WORLD_LENGTH,
    )


def assert_agrees(name, values, statistic, expected, least_error=1e-6, size=1.0):
    """Bootstraps statistic(values[worlds]) over worlds and compares it with the reference's value.

    `size`: of this sample, as a multiple of the reference's.
    """
    generator, worlds = np.random.default_rng(0), len(values)
    resampled = [statistic(values[generator.integers(0, worlds, worlds)]) for _ in range(RESAMPLES)]
    error, ours = float(np.std(resampled)) + least_error, float(statistic(values))
    sigmas = (ours - expected) / (np.sqrt(1 + size) * error)
    print(f"{name:42s} reference {expected:10.5f}  ours {ours:10.5f} +- {error:.5f}  difference {sigmas:+.1f} sigma")
    assert abs(sigmas) <= SIGMAS, name


def per_world(values):
    """Means over all axes but worlds; exact for statistics that are means."""
    return values.reshape(len(values), -1).mean(axis=1, dtype=np.float64)


def test_rewards_agree(sample):
    figures = REFERENCE["random_actions"]
    moments = np.stack([per_world(sample.rewards), per_world(sample.rewards.astype(np.float64) ** 2)], axis=1)
    assert_agrees("reward mean", moments[:, 0], np.mean, figures["reward_mean"])
    deviation = lambda m: np.sqrt(m[:, 1].mean() - m[:, 0].mean() ** 2)  # noqa: E731
    assert_agrees("reward standard deviation", moments, deviation, figures["reward_std"])
    slack = per_world(np.equal(sample.rewards, np.float32(c.SLACK_REWARD)))
    assert_agrees("fraction of steps without progress", slack, np.mean, figures["reward_fraction_slack"])


def test_rewards_by_step_of_the_episode_agree(sample):
    for step in (1, 2, 5, 10, 20, 50, 100, 150, 199):
        expected = REFERENCE["random_actions"]["reward_by_step"][str(step)]
        assert_agrees(f"reward in step {step}", per_world(sample.rewards[:, step::200]), np.mean, expected)


def test_returns_and_progress_agree(sample):
    for quantity, values in (("episode_return", sample.returns), ("max_y", sample.max_y)):
        figures = REFERENCE["random_actions"][quantity]
        assert_agrees(f"{quantity} mean", values, np.mean, figures["mean"])
        assert_agrees(f"{quantity} standard deviation", values, np.std, figures["std"])
        for percent, expected in zip((5, 50, 95), figures["p5_50_95"], strict=True):
            if (quantity, percent) != ("max_y", 95):
                assert_agrees(f"{quantity} {percent}%", values, lambda v, p=percent: np.percentile(v, p), expected)
    assert_agrees("y at the end", sample.last_y, np.mean, REFERENCE["random_actions"]["y_mean_end"])


def test_the_first_end_wall_stops_agents_at_its_face(sample):
    """The wall's face is 1 m before the end of the room, and an agent's side is 1 m from its centre."""
    stopped, percentile = c.ROOM_LENGTH - 2.0, float(np.percentile(sample.max_y, 95))
    print(f"max_y 95%: {percentile:.4f}, the wall at {stopped:.4f}, the reference at 11.5058")
    assert percentile == pytest.approx(stopped, abs=0.03)
    assert percentile < REFERENCE["random_actions"]["max_y"]["p5_50_95"][2]


def test_buttons_are_pressed_and_doors_are_open_as_often(sample):
    figures = REFERENCE["random_actions"]
    for button, expected in enumerate(figures["button_pressed_fraction"]):
        assert_agrees(f"button {button} pressed", per_world(sample.pressed[..., button]), np.mean, expected)
    assert_agrees("first door open", per_world(sample.open[..., 0]), np.mean, figures["door_open_fraction"][0])
    opened = per_world(sample.open[..., 0].any(axis=2))
    assert_agrees("first door opened in an episode", opened, np.mean, figures["door_opened_in_episode"][0])
    assert not sample.open[..., 2].any()


def test_lidar_sees_as_much_of_everything(sample):
    """With the same seed the first levels are the same: their figures agree to rounding, not in distribution."""
    figures, first = REFERENCE["random_actions"], sample.lidar_kinds[:, 0]
    for kind, code in (("Cube", c.CUBE), ("Wall", c.WALL), ("Agent", c.AGENT), ("Door", c.DOOR)):
        seen = sample.lidar_kinds == code
        assert_agrees(f"lidar fraction {kind}", per_world(seen), np.mean, figures["lidar_type_fraction"][kind])
        depths = (sample.lidar_depths * seen).sum(axis=(1, 2), dtype=np.float64)
        totals, expected = np.stack([depths, seen.sum(axis=(1, 2))], axis=1), figures["lidar_depth_mean"][kind]
        assert_agrees(f"lidar depth {kind}", totals, lambda t: t[:, 0].sum() / t[:, 1].sum(), expected)
        assert np.mean(first == code) == pytest.approx(figures["first_lidar_type_fraction"][kind], abs=2e-4)
    assert sample.lidar_depths[:, 0].mean() == pytest.approx(figures["first_lidar_depth_mean"], rel=2e-4)


SEQUENCES = 8  # of actions, per room


def play_room(room, sequence):
    """Episodes of agents that start among the cubes of a room, by worlds, as in the reference's measurement, of seed
    11: excludes worlds whose shifted spawn overlaps a cube."""
    scene = Scene(256, seed=11)
    scene.start_in_room(room)
    cubes = slice(2, 5) if room == 1 else slice(5, 7)
    start = scene.body_positions[:, cubes].copy()
    gap = np.abs(scene.body_positions[:, :2, None, :2] - start[:, None, :, :2]).max(axis=-1)
    keep = (gap > 1.3066 + c.CUBE_SIDE / 2).all(axis=(1, 2))
    seen = {"grabbing": [], "pressed": [], "open": [], "heights": []}
    for _ in played(random_actions(500 + 10 * sequence + room, 199, 256), scene):
        seen["grabbing"].append(scene.agent_grabs >= 0)
        seen["pressed"].append(scene.button_pressed[:, 2 * room : 2 * room + 2].copy())
        seen["open"].append(scene.door_open[:, room].copy())
        seen["heights"].append(scene.body_positions[:, cubes, 2].copy())
    moved = np.linalg.norm(scene.body_positions[:, cubes] - start, axis=-1)
    return {"moved": moved[keep], **{name: np.stack(part, axis=1)[keep] for name, part in seen.items()}}


@pytest.fixture(scope="module")
def rooms():
    samples = {}
    for room in (1, 2):
        parts = [play_room(room, sequence) for sequence in range(SEQUENCES)]
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        samples[room] = SimpleNamespace(**joined)
    return samples


@pytest.mark.parametrize(("room", "key"), [(1, "start_in_second_room"), (2, "start_in_third_room")])
def test_agents_among_cubes_behave_alike(rooms, room, key):
    figures, seen = REFERENCE[key], rooms[room]
    agrees = partial(assert_agrees, size=len(seen.open) / figures["worlds"])
    agrees(f"{key}: grabbing", per_world(seen.grabbing), np.mean, figures["grab_frac"])
    agrees(f"{key}: ever grabbed", seen.grabbing.any(axis=1), np.mean, figures["ever"])
    for button in range(2):
        agrees(f"{key}: button {button}", per_world(seen.pressed[..., button]), np.mean, figures["btn"][button])
    agrees(f"{key}: door open", per_world(seen.open), np.mean, figures["door"])
    agrees(f"{key}: door opened", seen.open.any(axis=1), np.mean, figures["door_world"])
    agrees(f"{key}: cubes moved, mean", seen.moved, np.mean, figures["dispmean"])
    agrees(f"{key}: cubes moved, 95%", seen.moved, lambda m: np.percentile(m, 95), figures["p95"])


def test_agents_move_the_cubes_of_the_second_room_as_far(rooms):
    figures, moved = REFERENCE["start_in_second_room_512"], rooms[1].moved
    agrees = partial(assert_agrees, size=len(moved) / figures["worlds"])
    agrees("cubes moved, mean", moved, np.mean, figures["dispmean"])
    agrees("cubes moved by more than 0.5 m", moved > 0.5, np.mean, figures["over_half_metre"])


def test_agents_do_not_throw_cubes_into_the_air(rooms):
    for seen in rooms.values():
        assert seen.heights.max() < 4.0
        assert seen.heights.min() > 1.3
