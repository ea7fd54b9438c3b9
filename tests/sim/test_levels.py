"""Levels are the reference environment's: same seed, same world, same episode, same layout to float32 rounding.

The test vectors come from the reference environment itself; all other results are compared with tests/reference.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference.boxes import overlap_depth, yaw_of
from tests.reference.levels import generate, num_cubes
from tests.reference.threefry import base_key, episode_key, threefry, uniforms, words
from tests.scenes import Scene, play, random_actions
from tests.sim.agreement import ROUNDING, assert_levels_equal

DATA = Path(__file__).resolve().parents[1] / "data"
PUBLISHED = 6e-5  # metres: the published layout has four decimals


def test_reference_cipher_and_keys_give_the_known_answers():
    zero = (words(0), words(0))
    assert [int(word[0]) for word in threefry(zero, zero)] == [0x6B200159, 0x99BA4EFE]
    assert [int(word[0]) for word in base_key(5)] == [0x5338D363, 0x12D488DB]


KNOWN = [
    (0, 1, (0x7D8E95BB, 0xB7262F39), (0.5718668, 0.6285263, 0.2606, 0.4617733, 0.6288021, 0.534851)),
    (1, 1, (0x43617DCC, 0xDC289441), (0.6351095, 0.4104136, 0.1144406, 0.3791966, 0.4619786, 0.0428531)),
    (0, 2, (0xDB485B7D, 0x39C4B5F8), (0.8659334, 0.4691768, 0.1581352, 0.2167074, 0.5091144, 0.8286371)),
]


def test_spawn_follows_from_the_known_uniforms():
    for world, episode, key, draws in KNOWN:
        derived = episode_key(5, world, episode)
        assert [int(word[0]) for word in derived] == list(key)
        np.testing.assert_allclose(uniforms(derived, 6)[0], draws, atol=6e-8)

        scene = Scene(1, seed=5, world_offset=world)
        for _ in range(1, episode):
            scene.sim.reset()
        u = np.array(draws).reshape(2, 3)
        np.testing.assert_allclose(scene.body_positions[0, :2, 0], u[:, 0] * 7.5 - 3.75 + [5, -5], atol=1e-5)
        np.testing.assert_allclose(scene.body_positions[0, :2, 1], u[:, 1] * 0.9 + 1.1, atol=1e-5)
        np.testing.assert_allclose(yaw_of(scene.body_rotations[0, :2]), (u[:, 2] - 0.5) * np.pi / 4, atol=1e-6)


def test_first_level_of_seed_5_is_the_published_one():
    scene = Scene(1, seed=5)
    np.testing.assert_allclose(scene.body_positions[0, :2, :2], [[5.5390, 1.6657], [-5.2867, 1.6659]], atol=PUBLISHED)
    np.testing.assert_allclose(yaw_of(scene.body_rotations[0, :2]), [-0.1880, 0.0274], atol=PUBLISHED)
    things = np.concatenate([scene.doors[0], scene.button_positions[0], scene.body_positions[0, 2:]])[:, :2]
    published = [
        [0.9603, 12.8333], [0.5727, 26.1667], [3.8600, 39.5], [-6.0178, 10.9746], [3.6705, 10.1850],
        [-8.4441, 20.4134], [6.6898, 16.3407], [-8.6964, 33.8848], [6.8666, 34.7346],
        [-2.4273, 24.1667], [0.5727, 24.1667], [3.5727, 24.1667], [-4.1449, 30.2988], [3.7120, 33.7070],
    ]  # fmt: skip
    np.testing.assert_allclose(things, published, atol=PUBLISHED)


def test_levels_follow_from_seed_world_and_episode():
    for seed in (0, 1, 2**31, 2**32 - 1):
        for offset, count in ((0, 7), (1, 32), (2**32 - 33, 33)):
            scene = Scene(count, seed=seed, world_offset=offset)
            worlds, episodes = offset + np.arange(count, dtype=np.uint64), np.ones(count, dtype=np.int64)
            for divisor in (1, 2, 3):
                assert_levels_equal(scene, generate(seed, worlds, episodes))
                scene.sim.reset(np.arange(count) % divisor == 0)
                episodes += np.arange(count) % divisor == 0
            assert (scene.episode_index == episodes).all()


def test_construction_shows_episode_one_closed_unpressed_at_rest_without_reward_or_done():
    scene = Scene(64, seed=3)
    assert (scene.episode_index == 1).all()
    assert (scene.steps_remaining == 200).all()
    nothing = ("rewards", "dones", "terminations", "truncations", "resets", "door_open", "button_pressed")
    for name in (*nothing, "body_linear_velocities", "body_angular_velocities", "episode_returns", "episode_lengths"):
        assert not getattr(scene, name).any(), name
    assert (scene.actions == c.IDLE).all()
    np.testing.assert_array_equal(scene.agent_max_y, scene.body_positions[:, :2, 1])
    assert (scene.doors[:, :, 2] == 0).all()
    assert (scene.agent_grabs == -1).all()
    assert (scene.body_rotations[:, 2:] == [1, 0, 0, 0]).all()


def test_kinds_and_sizes_are_those_of_the_reference():
    scene = Scene(4)
    assert (scene.body_kinds == [c.AGENT] * 2 + [c.CUBE] * 5).all()
    assert (scene.body_sizes[:, :2] == c.AGENT_SIDE).all()
    assert (scene.body_sizes[:, 2:] == c.CUBE_SIDE).all()
    assert (np.sort(scene.static_kinds, axis=1) == [c.WALL] * 9 + [c.DOOR] * 3).all()
    doors = np.take_along_axis(scene.static_sizes, scene.door_static[..., None], axis=1)
    np.testing.assert_allclose(doors, np.broadcast_to([c.DOOR_WIDTH, 1.0, c.END_WALL_HEIGHT], doors.shape), rtol=1e-6)
    assert (scene.button_doors == [0, 0, 1, 1, 2, 2]).all()


LEVELS = 5120


def test_everything_lies_as_often_everywhere_as_measured():
    scene = Scene(LEVELS, seed=11)
    cubes, buttons, doors = scene.body_positions[:, 2:], scene.button_positions, scene.doors
    # Ten equal bins over the room, as measured on 2,560 levels: each within 4.5 standard errors of the difference
    with open(DATA / "level_hist.csv", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert len(rows) == 25
    for row in rows:
        room, entity = int(row["room"]), int(row["entity"])
        if row["type"] == "Door":
            place = doors[:, room]
        elif row["type"] == "Button":
            place = buttons[:, 2 * room + entity]
        else:
            place = cubes[:, (0 if room == 1 else 3) + entity - 2]
        values = place[:, 0] if row["coord"] == "x" else place[:, 1] - room * c.ROOM_LENGTH
        span = (-10.0, 10.0) if row["coord"] == "x" else (0.0, c.ROOM_LENGTH)
        ours = np.histogram(values, bins=10, range=span)[0] / LEVELS
        theirs = np.array([float(row[f"bin{i}"]) for i in range(10)])
        pooled = (ours * LEVELS + theirs * 2560) / (LEVELS + 2560)
        error = np.sqrt(pooled * (1 - pooled) * (1 / LEVELS + 1 / 2560))
        assert (np.abs(ours - theirs) <= 4.5 * error + 1e-3).all(), row


# ---- Any number of agents


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
