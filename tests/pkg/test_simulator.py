"""The simulator object: what it is made with, stepping, resetting, profiling, closing."""

import pickle
import re
from typing import Any

import numpy as np
import pytest

import doorstep

GOOD_ARGUMENTS: list[dict[str, Any]] = [
    {"num_worlds": np.int64(3)},
    {"num_worlds": 1, "seed": 2**32 - 1},
    {"num_worlds": np.uint8(2), "seed": np.uint32(5), "world_offset": 2**32 - 2},
    {"num_worlds": 2, "device": "cpu"},
    {"num_worlds": 2, "num_agents": 1},
    {"num_worlds": 2, "num_agents": 8, "strict": np.True_},
    {"num_worlds": 2, "episode_length": 1},
    {"num_worlds": 2, "episode_length": 1_000_000, "auto_reset": False},
    {"num_worlds": 2, "num_threads": 3, "action_check": "off", "strict": True},
]


@pytest.mark.parametrize("arguments", GOOD_ARGUMENTS, ids=repr)
def test_simulator_is_what_it_was_asked_to_be(arguments: dict[str, Any]) -> None:
    with doorstep.Simulator(**arguments) as sim:
        assert sim.num_worlds == arguments["num_worlds"]
        assert sim.seed == arguments.get("seed", 0)
        assert sim.num_agents == arguments.get("num_agents", 2)
        assert sim.episode_length == arguments.get("episode_length", 200)
        assert sim.world_offset == arguments.get("world_offset", 0)
        assert sim.device == "cpu"
        assert sim.num_threads == arguments.get("num_threads", sim.num_threads)
        assert sim.allocated_bytes > 0
        sim.step()
        assert sim.step_count == 1


def test_the_automatic_device_is_one_that_works() -> None:
    with doorstep.Simulator(2, device="auto") as sim:
        sim.step()
        assert re.fullmatch(r"cpu|cuda:\d", sim.device)


def test_repr_tells_worlds_agents_seed_device_and_whether_it_is_closed() -> None:
    sim = doorstep.Simulator(3, num_agents=4, seed=7)
    assert repr(sim) == "Simulator(3 worlds, 4 agents, seed 7, cpu)"
    sim.close()
    assert repr(sim) == "Simulator(3 worlds, 4 agents, seed 7, cpu, closed)"


def test_first_visible_state_has_no_reward_and_no_done() -> None:
    with doorstep.Simulator(4) as sim:
        assert not sim.rewards.to_numpy().any()
        assert not sim.dones.to_numpy().any()
        assert (sim.steps_remaining.to_numpy() == 200).all()
        assert (sim.actions.to_numpy() == (0, 0, 2, 0)).all()
        assert (sim.state.episode_index.to_numpy() == 1).all()


def test_step_counts_the_episode_down_and_ends_it() -> None:
    with doorstep.Simulator(2, episode_length=3) as sim:
        remaining, dones = sim.steps_remaining.to_numpy(), sim.dones.to_numpy()
        seen = []
        for _ in range(4):
            sim.step()
            seen.append((int(remaining[0, 0, 0]), int(dones[0, 0, 0])))
        assert seen == [(2, 0), (1, 0), (3, 1), (2, 0)]
        assert (sim.truncations.to_numpy() == 0).all()
        assert (sim.episode_lengths.to_numpy() == 3).all()


def test_the_steps_that_follow_the_same_seed_are_the_same() -> None:
    with doorstep.Simulator(8, seed=3) as one, doorstep.Simulator(8, seed=3, num_threads=2) as other:
        actions = np.random.default_rng(0).integers(0, doorstep.ACTIONS, size=(20, 8, 2, 4), dtype=np.int32)
        for step_actions in actions:
            for sim in (one, other):
                sim.actions[:] = step_actions
                sim.step()
        assert one.hash() == other.hash()


def test_two_simulators_do_not_touch_each_other() -> None:
    with doorstep.Simulator(4, seed=1) as one, doorstep.Simulator(4, seed=2) as other:
        before = other.hash()
        one.step()
        assert other.hash() == before
        assert one.hash() != before


def test_reset_of_all_worlds_begins_new_episodes() -> None:
    with doorstep.Simulator(3) as sim:
        sim.step()
        sim.reset()
        assert (sim.state.episode_index.to_numpy() == 2).all()
        assert (sim.steps_remaining.to_numpy() == 200).all()


@pytest.mark.parametrize(
    "worlds",
    [
        [1, 3],
        (3, 1),
        np.array([1, 3], dtype=np.uint8),
        np.array([1, 9, 3, 9])[::2],
        [False, True, False, True],
        np.array([False, True, False, True]),
    ],
    ids=repr,
)
def test_reset_of_some_worlds_leaves_the_others_alone(worlds: Any) -> None:
    with doorstep.Simulator(4) as sim:
        before = sim.world_hashes()
        sim.reset(worlds)
        assert (sim.state.episode_index.to_numpy() == [1, 2, 1, 2]).all()
        assert ((sim.world_hashes() == before) == [True, False, True, False]).all()


@pytest.mark.parametrize("worlds", [[], np.array([], dtype=np.int32), np.zeros(4, dtype=bool)], ids=repr)
def test_reset_of_no_world_changes_nothing(worlds: Any) -> None:
    with doorstep.Simulator(4) as sim:
        before = sim.hash()
        sim.reset(worlds)
        assert sim.hash() == before


def test_writing_resets_regenerates_a_world_in_the_step() -> None:
    with doorstep.Simulator(3) as sim:
        sim.resets.to_numpy()[1] = 1
        sim.step()
        assert (sim.state.episode_index.to_numpy() == [1, 2, 1]).all()
        assert not sim.resets.to_numpy().any()


def test_hash_of_worlds_is_the_sum_of_their_hashes() -> None:
    with doorstep.Simulator(5) as sim:
        hashes = sim.world_hashes()
        assert hashes.shape == (5,)
        assert hashes.dtype == np.uint64
        assert sim.hash() == sum(map(int, hashes)) % 2**64
        assert sim.hash([0, 3]) == (int(hashes[0]) + int(hashes[3])) % 2**64
        assert sim.hash(np.arange(5) == 2) == int(hashes[2])


def test_shards_are_the_whole() -> None:
    with doorstep.Simulator(6) as whole, doorstep.Simulator(4) as left, doorstep.Simulator(2, world_offset=4) as right:
        for sim in (whole, left, right):
            sim.step()
        assert (left.hash() + right.hash()) % 2**64 == whole.hash()


def test_out_of_range_actions_are_clamped_and_counted() -> None:
    with doorstep.Simulator(2) as sim:
        assert sim.health.clamped_actions == 0
        sim.actions.to_numpy()[0, 1] = (9, -1, 2, 0)
        sim.step()
        assert sim.health.clamped_actions == 2


def test_out_of_range_actions_raise_when_asked_to_and_nothing_is_stepped() -> None:
    with doorstep.Simulator(2, action_check="raise") as sim:
        sim.actions.to_numpy()[1, 0, 2] = 5
        before = sim.hash()
        with pytest.raises(doorstep.ArgumentError, match="5") as caught:
            sim.step()
        assert caught.value.argument == "actions"
        assert (sim.hash(), sim.step_count) == (before, 0)
        sim.actions.to_numpy()[1, 0, 2] = 4
        sim.step()
        assert sim.step_count == 1


def test_profile_counts_ticks_per_stage() -> None:
    with doorstep.Simulator(64) as sim:
        sim.start_profile()
        sim.step()
        profile = sim.stop_profile()
        assert len(profile) > 3
        assert sum(profile.values()) > 0
        sim.step()
        sim.start_profile()
        assert sum(sim.stop_profile().values()) == 0


def test_a_state_cannot_be_pickled_and_names_save() -> None:
    with doorstep.Simulator(1) as sim, pytest.raises(TypeError, match="save"):
        pickle.dumps(sim.state)


CALLS = {
    "step": lambda sim: sim.step(),
    "step_async": lambda sim: sim.step_async(),
    "wait": lambda sim: sim.wait(),
    "reset": lambda sim: sim.reset(),
    "reset ids": lambda sim: sim.reset([0]),
    "reset mask": lambda sim: sim.reset([True, False]),
    "refresh": lambda sim: sim.refresh(),
    "save": lambda sim: sim.save(),
    "restore": lambda sim: sim.restore(b"x"),
    "hash": lambda sim: sim.hash(),
    "world_hashes": lambda sim: sim.world_hashes(),
    "health": lambda sim: sim.health,
    "tensors": lambda sim: sim.tensors,
    "actions": lambda sim: sim.actions,
    "observations": lambda sim: sim.observations,
    "state": lambda sim: sim.state,
    "num_threads": lambda sim: sim.num_threads,
    "start_profile": lambda sim: sim.start_profile(),
    "with": lambda sim: sim.__enter__(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_call_after_close_raises_closed_error(call: Any) -> None:
    sim = doorstep.Simulator(2)
    sim.close()
    with pytest.raises(doorstep.ClosedError):
        call(sim)


def test_a_state_taken_before_close_raises_closed_error_after_it() -> None:
    sim = doorstep.Simulator(2)
    state = sim.state
    sim.close()
    with pytest.raises(doorstep.ClosedError):
        _ = state.body_positions


def test_close_can_be_called_again() -> None:
    sim = doorstep.Simulator(2)
    assert not sim.closed
    for _ in range(2):
        sim.close()
        assert sim.closed
    assert sim.num_worlds == 2


def test_close_gives_the_memory_back_while_the_closed_simulator_is_still_held() -> None:
    before = doorstep.live_counts()
    with doorstep.Simulator(2) as sim:
        sim.rewards.to_numpy()
        sim.state.body_positions.to_numpy()
    assert sim.closed
    assert doorstep.live_counts() == before


def test_close_leaves_the_tensors_that_were_taken() -> None:
    sim = doorstep.Simulator(2)
    remaining, positions = sim.steps_remaining, sim.state.body_positions
    sim.close()
    assert (remaining.to_numpy() == 200).all()
    assert (positions.to_numpy()[:, :, 1] > 0).all()


def test_context_manager_closes_also_when_its_body_raises() -> None:
    with pytest.raises(ZeroDivisionError), doorstep.Simulator(2) as sim:
        raise ZeroDivisionError
    assert sim.closed
