"""Episodes: all that can be observed along them agrees with the reference; counters, ends, resets by the caller."""

import numpy as np
import pytest
from tests.scenes import FLAGS, OBSERVATIONS, Scene, play, played, random_actions, steps
from tests.sim.agreement import FIELDS, Followed, assert_same

from doorstep import levels
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Physics, Rewards, Room, Spawn, Wall

LENGTH = 7
HALL = Level(
    walls=[Wall(x, 20, 1, 50) for x in (-11, 11)]
    + [Wall(x, y, 8, 1) for x, y in ((6, 14), (-6, 14), (-7, 27))]
    + [Wall(0, -5, 22, 1), Wall(0, 44, 22, 1), Wall(3, 27, 4, 1)],
    doors=[Door(0, 14, 4, height=3.0), Door(-1, 27, 4, persistent=False), Door(8, 27, 5, persistent=False)],
    buttons=[Button(-3, 5, 0), Button(5, 17, 1), Button(-6, 20, 1), Button(0, 20, 2)],
    cubes=[Cube(-8, 8), Cube(4, 10, yaw=0.4), Cube(-2, 23), Cube(7, 33)],
    spawns=[Spawn((-8, -4), (-2, 2), (-1, 1)), Spawn(4, (-1, 1)), Spawn(9, 2)],
    rooms=[Room(-3, 14.5, 0), Room(14.5, 27.5, 1), Room(27.5, 44)],
    goal=Goal(-10, 10, 29, 40, agents="any"),
    rewards=Rewards(progress=0.1, idle=-0.1, room=0.5, exit=1.5, goal=4, cube_approach=0.25),
    physics=Physics((5, 20), (0.5, 1.5), (600, 1200), (200, 400), (5, 30)),
    episode_length=(12, 20),
)
LEVELS = [
    HALL,
    levels.reference(),
    HALL.replace(goal=Goal(-10, 10, 12, 40, agents="all"), episode_length=25),
    GeneratedLevel(rewards=Rewards(room=2), goal=Goal.all_out(20), episode_length=9),
]
OTHER_REWARDS = Rewards(0.3, -0.01, 2.5, 5, room=1, exit=2, cube_approach=0.5, max_y=30)
PARTS = ("agent_index", ("lidar", 0.5), "physics", "steps_remaining", ("self_observations", 3), "door_observations")
ALWAYS = ("progressed", "pressed", "ended", "reset")
OFTEN = (*ALWAYS, "grabbed", "released", "opened", "entered a room", "left the last room")
# Worlds, steps, arguments, and what must happen.
SITUATIONS = {
    "two agents": (20, 60, {}, (*OFTEN, "closed")),
    "as they are played": (24, 60, {"scatter": False, "world_offset": 7}, ALWAYS),
    "a lone agent": (20, 60, {"num_agents": 1, "seed": 2**32 - 1}, OFTEN),
    "three agents, other parts": (12, 60, {"num_agents": 3, "observations": PARTS}, OFTEN),
    "eight agents": (6, 60, {"num_agents": 8, "world_offset": 2**32 - 6}, OFTEN),
    "other rewards": (16, 60, {"reward": OTHER_REWARDS}, OFTEN[:-1]),
    "episodes of one step": (8, 8, {"episode_length": 1}, ("ended",)),
    "levels": (16, 60, {"levels": LEVELS}, (*OFTEN, "closed", "reached a goal")),
    "levels of three agents": (8, 50, {"levels": LEVELS, "num_agents": 3, "observations": PARTS}, OFTEN),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_all_that_can_be_observed_along_episodes_agrees_with_the_reference(name):
    worlds, times, options, events = SITUATIONS[name]
    followed = Followed(worlds, **options)
    steps(times, followed)
    assert followed.doubtful <= 0.02 * followed.decided
    assert all(followed.seen[event] for event in events), followed.seen


def test_without_auto_reset_an_ended_episode_is_stepped_but_no_longer_counted():
    scene = Scene(3, episode_length=LENGTH, auto_reset=False)
    total = np.zeros((3, 2))
    for step, _ in enumerate(played(random_actions(8, 3 * LENGTH, 3), scene), start=1):
        assert (scene.steps_remaining == max(LENGTH - step, 0)).all()
        assert (scene.dones == (step >= LENGTH)).all()
        assert (scene.truncations == (step == LENGTH)).all()
        assert not scene.terminations.any()
        if step == LENGTH:
            last = scene.body_positions.copy()
        total += scene.rewards[..., 0] * (step <= LENGTH)
    assert (np.abs(scene.body_positions - last).max(axis=(1, 2)) > 0.5).all()
    assert (scene.episode_index == 1).all()
    scene.resets[1] = 1
    scene.step()
    assert scene.steps_remaining[:, 0, 0].tolist() == [0, LENGTH, 0]
    assert scene.episode_lengths[1, 0] == LENGTH
    np.testing.assert_allclose(scene.episode_returns[1, :, 0], total[1], atol=1e-6)
    scene.step()
    assert (scene.dones[:, 0, 0].tolist(), scene.steps_remaining[1, 0, 0]) == ([1, 0, 1], LENGTH - 1)


def test_reset_takes_ids_or_a_mask():
    """Of any worlds: the masks differ from tile to tile."""
    mask = np.random.default_rng(2).random(150) < 0.3
    ids = ([1, 149, 70], (3, 1), np.array([1, 9, 3, 9])[::2], np.array([1, 149], np.uint8), [], np.array([], np.int32))
    for worlds in (*ids, mask, mask.tolist(), np.repeat(mask, 2)[::2], [True] * 150, None):
        scene = Scene(150, seed=4)
        play(random_actions(11, 3, 150), scene)
        before, hashes = scene.snapshot(*OBSERVATIONS, "rewards", "actions"), scene.sim.world_hashes()
        scene.sim.reset(worlds)
        chosen = np.zeros(150, dtype=bool)
        chosen[slice(None) if worlds is None else np.array(worlds, dtype=bool if len(worlds) == 150 else int)] = True
        fresh = Scene(150, seed=4)
        fresh.sim.reset()
        np.testing.assert_array_equal(scene.episode_index, 1 + chosen)
        np.testing.assert_array_equal(scene.sim.world_hashes() != hashes, chosen)
        assert not any(getattr(scene, flag)[chosen].any() for flag in FLAGS)
        for name, values in before.items():
            np.testing.assert_array_equal(getattr(scene, name)[~chosen], values[~chosen])
            np.testing.assert_array_equal(getattr(scene, name)[chosen], getattr(fresh, name)[chosen])
        assert (scene.steps_remaining[:, 0, 0] == np.where(chosen, 200, 197)).all()


def test_a_reset_restores_all_that_an_episode_can_change():
    """Doors, buttons, cubes, edited walls, grabs: a reset regenerates the whole level."""
    scene, fresh = Scene(4, seed=6), Scene(4, seed=6)
    scene.static_positions[:] += 1
    scene.static_sizes[:] *= 2
    scene.static_kinds[:, 0] = 0
    scene.button_positions[:] -= 1
    for field in (scene.button_pressed, scene.door_open, scene.button_doors, scene.door_persistent):
        field[:] = 1
    scene.door_static[:] = 3
    scene.agent_grabs[:, 1] = 2
    scene.body_positions[:] += 3
    scene.body_linear_velocities[:] = scene.body_angular_velocities[:] = 1
    scene.agent_max_y[:] = 50
    scene.step(2)
    for one in (scene, fresh):
        one.sim.reset()
    assert_same(scene, fresh, FIELDS)
