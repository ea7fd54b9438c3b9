"""Binding moves tensors to memory of the caller, which steps then read and write, and nothing else: the same worlds."""

import ctypes
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.interop.places import WORLDS, make, places_of
from tests.refuses import refuses
from tests.scenes import random_actions

from doorstep import ArgumentError


def places_side_by_side(sim):
    """Memory for every tensor in one buffer, without a byte between them; worlds and agents are one dimension."""
    tensors = sorted(sim.tensors.items(), key=lambda item: -item[1].dtype.itemsize)
    memory = np.zeros(sum(tensor.nbytes for _, tensor in tensors) + 8, np.uint8)
    places, begin = {}, 4
    for name, tensor in tensors:
        shape = tensor.shape if len(tensor.shape) == 2 else (-1, *tensor.shape[2:])
        place = memory[begin : begin + tensor.nbytes].view(bool if tensor.dtype == np.uint8 else tensor.dtype)
        places[name] = place.reshape(shape) if tensor.size else np.zeros(tensor.shape, tensor.dtype)
        begin += tensor.nbytes
    return places, memory


RULES = [{"num_threads": 3}, {"num_agents": 5, "max_levels": 2}, {"num_agents": 1}]


@pytest.mark.parametrize("options", RULES, ids=["two agents", "five agents and levels", "one agent"])
def test_binding_changes_no_bit_over_many_episodes(options):
    with make(episode_length=17, **options) as sim, make(episode_length=17, **options) as plain:
        places, memory = places_side_by_side(sim)
        own, before, saved = dict(sim.tensors), {}, {}
        for step, actions in enumerate(random_actions(2, 100, WORLDS, sim.num_agents)):
            if step % 40 == 10:
                sim.bind(**places)
                before = {name: tensor.copy_to_host().tobytes() for name, tensor in own.items()}
            if step % 40 == 30:
                sim.bind(**dict.fromkeys(places))
            is_bound = step % 40 in range(10, 30)
            for one in (sim, plain):
                one.actions = actions
                if step % 25 == 7:
                    one.resets = np.arange(WORLDS, dtype=np.int32) % 2
                if step % 50 == 20:
                    one.reset([4, 1])
                if step % 30 == 11:
                    saved[one] = one.save()
                if step % 30 == 21:
                    one.restore(saved[one])
                    one.refresh()
                if step % 2:
                    one.step_async().wait()
                else:
                    one.step()
            for name, tensor in plain.tensors.items():
                expected = tensor.copy_to_host().tobytes()
                assert sim.tensors[name].copy_to_host().tobytes() == expected, (step, name)
                assert not is_bound or places[name].tobytes() == expected, (step, name)
                assert not is_bound or own[name].copy_to_host().tobytes() == before[name]  # no longer written
        assert (sim.hash(), sim.health, sim.save()) == (plain.hash(), plain.health, plain.save())
        assert not memory[:4].any()
        assert not memory[-4:].any()


def test_bound_actions_are_checked_and_written_by_copies():
    with make(action_check="raise") as sim:
        places = places_of(sim)
        sim.bind(**places)
        places["actions"][3, 1, 2] = 5
        refuses(r"actions\[3, 1, 2\] is 5", sim.step)
        sim.actions.copy_from_host(np.ones((WORLDS, 2, 4), np.int32))
        assert (places["actions"] == 1).all()


def test_elements_move_from_memory_to_memory_and_back():
    shared, foreign = bytearray(WORLDS * 32), (ctypes.c_int32 * (WORLDS * 8))()
    with make() as sim, make() as other:
        sim.actions = random_actions(3, 1, WORLDS)[0]
        expected = sim.actions.copy_to_host()
        rows = memoryview(foreign).cast("B").cast("i", (WORLDS * 2, 4))
        for place in (np.frombuffer(shared, np.int32).reshape(-1, 2, 4), rows):
            sim.bind(actions=place)
            assert (np.asarray(place).ravel() == expected.ravel()).all()
            sim.actions[...] += 1
            expected += 1
        sim.bind(actions=other.actions)  # the memory of another simulator
        assert (np.asarray(other.actions) == expected).all()
        other.actions[:] = 1
        sim.bind(actions=None)
        other.actions[:] = 0
        assert (sim.actions == 1).all()


def test_tensors_share_no_memory_however_they_lie():
    count = WORLDS * 2
    places = np.zeros(4 * count, np.float32)
    for shift in (-count, -count + 1, -1, 0, 1, count - 1, count):  # elements from one tensor to the other
        given = {"rewards": places[count : 2 * count], "episode_returns": places[count + shift : 2 * count + shift]}
        for together in ([given], [{name: place} for name, place in given.items()]):
            with make() as sim:
                for tensors in together[:-1]:
                    sim.bind(**tensors)
                if abs(shift) == count:  # side by side
                    sim.bind(**together[-1])
                    sim.step()
                    continue
                refuses(r"memory that overlaps that of (rewards|episode_returns)", sim.bind, **together[-1])
                assert np.shares_memory(sim.rewards.to_numpy(), places) is (len(together) == 2)
    with make() as sim:
        sim.bind(rewards=places[:count])
        refuses("rewards is bound to memory that overlaps that of rewards", sim.bind, rewards=places[1 : count + 1])
        for own in (sim.actions.to_numpy(), sim.actions.to_numpy()[1:]):
            with pytest.raises(ArgumentError, match="overlaps that of the simulator itself"):
                sim.bind(episode_returns=own.view(np.float32).ravel()[:count])


def test_what_is_no_tensor_of_this_simulator_is_named():
    with make(observations="by_name") as sim:
        for name in ("acitons", "state", "_session", ""):
            refuses(r"this simulator has resets, actions, ", sim.bind, **{name: None}, argument="tensors")
        refuses("observations is 'by_name'", sim.bind, observations=np.zeros((WORLDS * 2, 94), np.float32))
        refuses("max_levels is 0", sim.bind, level_weights=None)


def test_threads_that_bind_and_step_take_turns_and_lose_no_binding():
    stop, before = threading.Event(), sys.getswitchinterval()

    def play():
        steps = 0
        while not stop.is_set():
            sim.step()
            steps += 1
        return steps

    def rebind(name):
        for _ in range(60):
            sim.bind(**{name: None})
            sim.bind(**{name: places[name]})

    with make(num_threads=2) as sim, ThreadPoolExecutor(8) as pool:
        places = {name: place for name, place in places_of(sim).items() if not name.startswith("final_")}
        players = [pool.submit(play) for _ in range(3)]
        try:
            sys.setswitchinterval(1e-6)  # threads take turns as often as they can
            list(pool.map(rebind, places))
        finally:
            sys.setswitchinterval(before)
            stop.set()
        steps = sum(player.result() for player in players)
        assert sim.step_count == steps
        for name, place in places.items():
            assert np.shares_memory(sim.tensors[name].to_numpy(), place), name
