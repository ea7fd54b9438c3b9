"""Episodes: counters, ends, automatic and manual resets, and the tensors of an episode's last step."""

from typing import Any

import numpy as np
import pytest
from tests.reference import constants as c
from tests.scenes import FINAL_OBSERVATIONS, FLAGS, OBSERVATIONS, Array, Scene, random_actions

LENGTH = 7


def play(scene: Scene, actions: Array) -> None:
    scene.actions[:] = actions
    scene.step()


def level(scene: Scene) -> tuple[Array, Array]:
    return scene.button_positions.copy(), scene.doors[:, :, 0].copy()


def test_counter_runs_from_length_to_one_and_starts_again() -> None:
    scene = Scene(4, episode_length=LENGTH)
    seen = []
    for _ in range(2 * LENGTH + 1):
        scene.step()
        seen.append(int(scene.steps_remaining[0, 0, 0]))
        assert (scene.steps_remaining == seen[-1]).all()
    assert seen == [6, 5, 4, 3, 2, 1, 7, 6, 5, 4, 3, 2, 1, 7, 6]


def test_default_episode_has_200_steps() -> None:
    scene = Scene(2)
    dones = []
    for _ in range(401):
        scene.step()
        dones.append(int(scene.dones[0, 0, 0]))
    assert [step + 1 for step, done in enumerate(dones) if done] == [200, 400]


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_episodes_end_on_time(length: int) -> None:
    scene = Scene(2, episode_length=length)
    dones = []
    for _ in range(12):
        scene.step()
        dones.append(int(scene.dones[0, 0, 0]))
    assert dones == [int(step % length == 0) for step in range(1, 13)]
    assert (scene.episode_index == 1 + 12 // length).all()


def test_an_episode_that_runs_out_is_done_and_truncated_but_not_terminated() -> None:
    scene = Scene(3, episode_length=LENGTH)
    for step in range(1, 3 * LENGTH + 1):
        scene.step()
        ended = step % LENGTH == 0
        assert (scene.dones == ended).all()
        assert (scene.truncations == ended).all()
        assert not scene.terminations.any()


def test_an_automatic_reset_shows_the_next_level_in_the_step_that_ends_the_episode() -> None:
    scene = Scene(8, seed=5, episode_length=LENGTH)
    fresh = Scene(8, seed=5, episode_length=LENGTH)
    for actions in random_actions(1, LENGTH, 8):
        play(scene, actions)
    fresh.sim.reset()
    assert (scene.episode_index == 2).all()
    np.testing.assert_array_equal(scene.body_positions, fresh.body_positions)
    np.testing.assert_array_equal(scene.static_positions, fresh.static_positions)
    for name in OBSERVATIONS:
        np.testing.assert_array_equal(getattr(scene, name), getattr(fresh, name))
    assert (scene.actions == c.IDLE).all()
    np.testing.assert_array_equal(scene.agent_max_y, scene.body_positions[:, :2, 1])


def test_without_auto_reset_the_counter_stays_at_zero_and_done_at_one() -> None:
    scene = Scene(2, episode_length=LENGTH, auto_reset=False)
    for step in range(1, 3 * LENGTH):
        scene.step()
        assert (scene.steps_remaining == max(LENGTH - step, 0)).all()
        assert (scene.dones == (step >= LENGTH)).all()
        assert (scene.truncations == (step == LENGTH)).all()
    assert (scene.episode_index == 1).all()


def test_a_manual_reset_simulates_the_step_first_and_raises_no_done() -> None:
    scene, twin = Scene(4, seed=2), Scene(4, seed=2)
    for actions in random_actions(2, 5, 4):
        play(scene, actions)
        play(twin, actions)
    actions = random_actions(3, 1, 4)[0]
    scene.resets[1] = 1
    scene.resets[3] = -7
    play(scene, actions)
    play(twin, actions)
    chosen = np.array([False, True, False, True])
    assert not scene.resets.any()
    assert not scene.dones.any()
    assert not scene.truncations.any()
    np.testing.assert_array_equal(scene.rewards, twin.rewards)
    assert scene.episode_index.tolist() == [1, 2, 1, 2]
    assert (scene.steps_remaining[chosen] == 200).all()
    assert (scene.steps_remaining[~chosen] == 194).all()
    assert (scene.actions[chosen] == c.IDLE).all()
    np.testing.assert_array_equal(scene.actions[~chosen], actions[~chosen])
    for name in FINAL_OBSERVATIONS:
        np.testing.assert_array_equal(getattr(scene, f"final_{name}")[chosen], getattr(twin, name)[chosen])
        np.testing.assert_array_equal(getattr(scene, name)[~chosen], getattr(twin, name)[~chosen])


def test_done_returns_to_zero_with_the_first_step_after_a_manual_reset() -> None:
    scene = Scene(2, episode_length=3, auto_reset=False)
    scene.step(3)
    assert scene.dones.all()
    scene.resets[:] = 1
    scene.step()
    assert (scene.steps_remaining == 3).all()
    scene.step()
    assert not scene.dones.any()
    assert (scene.steps_remaining == 2).all()


@pytest.mark.parametrize("num_agents", [1, 2, 4])
def test_final_tensors_are_what_a_twin_that_never_resets_shows(num_agents: int) -> None:
    options: dict[str, Any] = {"seed": 3, "num_agents": num_agents, "episode_length": LENGTH}
    scene = Scene(16, **options)
    twin = Scene(16, auto_reset=False, **options)
    for actions in random_actions(4, LENGTH, 16, num_agents):
        play(scene, actions)
        play(twin, actions)
    assert scene.dones.all()
    for name in (*FINAL_OBSERVATIONS, "observations"):
        np.testing.assert_array_equal(getattr(scene, f"final_{name}"), getattr(twin, name), err_msg=name)
    for name in FLAGS:
        np.testing.assert_array_equal(getattr(scene, name), getattr(twin, name), err_msg=name)
    assert (scene.final_steps_remaining == 0).all()


def test_final_tensors_keep_their_value_until_the_next_end() -> None:
    scene = Scene(4, episode_length=LENGTH)
    for actions in random_actions(5, LENGTH, 4):
        play(scene, actions)
    names = [f"final_{name}" for name in FINAL_OBSERVATIONS]
    final = scene.snapshot(*names, "episode_returns", "episode_lengths")
    for actions in random_actions(6, LENGTH - 1, 4):
        play(scene, actions)
        for name, value in final.items():
            np.testing.assert_array_equal(getattr(scene, name), value, err_msg=name)
    play(scene, random_actions(7, 1, 4)[0])
    assert (scene.final_self_observations != final["final_self_observations"]).any()


def test_returns_and_lengths_belong_to_the_latest_ended_episode() -> None:
    scene = Scene(8, episode_length=LENGTH)
    assert not scene.episode_lengths.any()
    total = np.zeros((8, 2, 1))
    for step, actions in enumerate(random_actions(8, 3 * LENGTH, 8), start=1):
        play(scene, actions)
        total += scene.rewards
        if step % LENGTH == 0:
            np.testing.assert_allclose(scene.episode_returns, total, atol=1e-5)
            assert (scene.episode_lengths == LENGTH).all()
            total[:] = 0


def test_a_manual_reset_ends_an_episode_with_its_own_length_and_return() -> None:
    scene = Scene(2)
    total = np.zeros((2, 2, 1))
    for step, actions in enumerate(random_actions(9, 5, 2), start=1):
        scene.resets[1] = step == 5
        play(scene, actions)
        total += scene.rewards
    assert scene.episode_lengths[:, 0].tolist() == [0, 5]
    np.testing.assert_allclose(scene.episode_returns[1], total[1], atol=1e-6)
    assert not scene.episode_returns[0].any()


def test_reset_regenerates_at_once_and_advances_the_episode_index() -> None:
    scene = Scene(6, seed=4)
    for actions in random_actions(10, 5, 6):
        play(scene, actions)
    fresh = Scene(6, seed=4)
    fresh.sim.reset()
    before = level(scene)
    scene.sim.reset()
    assert (scene.episode_index == 2).all()
    assert (scene.steps_remaining == 200).all()
    assert (scene.actions == c.IDLE).all()
    assert not any(getattr(scene, flag).any() for flag in FLAGS)
    assert all((now != then).any() for now, then in zip(level(scene), before, strict=True))
    for name in OBSERVATIONS:
        np.testing.assert_array_equal(getattr(scene, name), getattr(fresh, name))


@pytest.mark.parametrize("worlds", [[1, 3], np.array([3, 1]), [False, True, False, True, False], [True] * 5, []])
def test_reset_takes_ids_or_a_mask(worlds: Any) -> None:
    scene = Scene(5, seed=4)
    for actions in random_actions(11, 3, 5):
        play(scene, actions)
    before, hashes = scene.snapshot(*OBSERVATIONS, "rewards"), scene.sim.world_hashes()
    scene.sim.reset(worlds)
    chosen = np.zeros(5, dtype=bool)
    chosen[worlds] = True
    np.testing.assert_array_equal(scene.episode_index, 1 + chosen)
    np.testing.assert_array_equal(scene.sim.world_hashes() != hashes, chosen)
    assert not scene.rewards[chosen].any()
    for name, values in before.items():
        np.testing.assert_array_equal(getattr(scene, name)[~chosen], values[~chosen])


def test_a_reset_restores_all_that_an_episode_can_change() -> None:
    """Doors, buttons, cubes, edited walls, grabs: a reset regenerates the whole level."""
    scene, fresh = Scene(4, seed=6), Scene(4, seed=6)
    scene.static_positions[:] += 1
    scene.static_sizes[:] *= 2
    scene.button_positions[:] -= 1
    scene.button_pressed[:] = 1
    scene.door_open[:] = 1
    scene.body_positions[:] += 3
    scene.agent_max_y[:] = 50
    scene.step(2)
    for one in (scene, fresh):
        one.sim.reset()
    for name in ("body_positions", "body_rotations", "body_linear_velocities", "body_angular_velocities",
                 "static_positions", "static_sizes", "static_kinds", "button_positions", "button_pressed",
                 "button_doors", "door_open", "door_static", "agent_grabs", "agent_max_y"):  # fmt: skip
        np.testing.assert_array_equal(getattr(scene, name), getattr(fresh, name), err_msg=name)


def test_worlds_end_their_episodes_independently() -> None:
    scene = Scene(3, episode_length=10)
    scene.step(4)
    scene.sim.reset([1])
    ends: list[list[int]] = []
    for _ in range(12):
        scene.step()
        ends.append(scene.dones[:, 0, 0].tolist())
    assert [step + 5 for step, dones in enumerate(ends) if dones == [1, 0, 1]] == [10]
    assert [step + 5 for step, dones in enumerate(ends) if dones == [0, 1, 0]] == [14]
