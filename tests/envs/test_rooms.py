"""Rooms: what every environment is a layer over, beyond what the tests of the vector environments show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.envs.histories import Array, History, actions_of, some_worlds

import doorstep
from doorstep.envs._arrays import host_arrays
from doorstep.envs._rooms import Element, Rooms

RULES = {"num_threads": 1, "episode_length": 4, "seed": 0}
WORLDS = 3


def rooms(num_rows: int = WORLDS, **options: Any) -> Rooms:
    rules = {**RULES, **options.pop("rules", {})}
    return Rooms(num_rows, rules=rules, **options)


def actions(steps: int, num_agents: int = 2) -> Array:
    return actions_of(5, steps, WORLDS, num_agents).reshape(steps, WORLDS, -1)


def test_a_step_that_is_begun_and_finished_is_a_step() -> None:
    whole, halves = rooms(autoreset="same_step"), rooms(autoreset="same_step")
    np.testing.assert_array_equal(halves.start(1), whole.start(1))
    for taken in actions(10):
        halves.begin(taken)
        found, expected = halves.finish(), whole.step(taken)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    whole.close()
    halves.close()


def test_one_step_runs_at_a_time() -> None:
    running = rooms()
    running.start(1)
    with pytest.raises(doorstep.StateError, match="no step has begun"):
        running.finish()
    taken = actions(1)[0]
    running.begin(taken)
    everywhere = np.ones(WORLDS, bool)
    for call in (lambda: running.begin(taken), lambda: running.step(taken), lambda: running.start(rows=everywhere)):
        with pytest.raises(doorstep.StateError, match="a step is running"):
            call()
    running.finish()
    running.step(taken)
    running.close()


@pytest.mark.parametrize("seed", [None, 7])
def test_starting_anew_drops_the_step_that_runs(seed: int | None) -> None:
    dropping, other = rooms(), rooms()
    for each in (dropping, other):
        each.start(7)
    dropping.begin(actions(1)[0])
    begun = dropping.start(seed)
    np.testing.assert_array_equal(begun, other.start(seed))
    np.testing.assert_array_equal(dropping.step(actions(1)[0]).observation, other.step(actions(1)[0]).observation)
    dropping.close()
    other.close()


@pytest.mark.parametrize("num_agents", [1, 2, 4])
def test_elements_are_those_of_a_row(num_agents: int) -> None:
    joint = rooms(rules={"num_agents": num_agents})
    of_world = () if num_agents == 1 else (num_agents,)
    rows = rooms(WORLDS * num_agents, agents="rows", rules={"num_agents": num_agents})
    size = 91 if num_agents == 1 else 91 + 3 * (num_agents - 1)
    assert joint.elements == {"observations": Element((*of_world, size), np.dtype(np.float32))}
    assert rows.elements == {"observations": Element((size,), np.dtype(np.float32))}
    assert (joint.action_sizes, rows.action_sizes) == (tuple(doorstep.ACTIONS) * num_agents, tuple(doorstep.ACTIONS))
    for made in (joint, rows):
        assert made.start().shape == (made.num_rows, *made.elements["observations"].shape)
        made.close()


def test_elements_are_those_of_their_tensors() -> None:
    parts = rooms(observations="by_name")
    observation = parts.start()
    assert list(observation) == list(parts.elements)
    for name, element in parts.elements.items():
        array = observation[name]
        assert Element(array.shape[1:], array.dtype) == element
        np.testing.assert_array_equal(array, np.asarray(parts.simulator.tensors[name]))
    parts.close()


def test_cameras_show_no_end_of_an_episode() -> None:
    cameras = doorstep.Cameras(width=8, height=6)
    with pytest.raises(doorstep.ArgumentError) as caught:
        rooms(observations="pixels", autoreset="same_step", rules={"cameras": cameras})
    assert caught.value.argument == "autoreset_mode"
    views = rooms(observations="pixels", rules={"cameras": cameras})
    views.start()
    with pytest.raises(doorstep.StateError, match="cameras"):
        views.final_observation(np.ones(WORLDS, bool))
    views.close()


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_shortest_episodes_end_as_told(autoreset: Any, length: int) -> None:
    """With resets of some worlds in between."""
    made = rooms(autoreset=autoreset, rules={"episode_length": length})
    history = History(autoreset, WORLDS, episode_length=length)
    made.start()
    generator = np.random.default_rng(2)
    for step, taken in enumerate(actions(20)):
        if step % 3 == 2:
            mask = some_worlds(generator, WORLDS)
            np.testing.assert_array_equal(made.start(rows=mask), history.reset(mask)["observations"])
        outcome, told = made.step(taken), history.step(taken.reshape(WORLDS, 2, 4))
        np.testing.assert_array_equal(outcome.ended, told.ended)
        np.testing.assert_array_equal(outcome.truncations, told.ended)
        np.testing.assert_array_equal(outcome.observation, told.observations["observations"])
        np.testing.assert_array_equal(outcome.rewards == 0, (told.rewards == 0).all(1))
    made.close()


def test_a_failed_reseeding_leaves_all_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    made = rooms()
    made.start(3)
    before, simulator = made.simulator.hash(), made.simulator

    def fail(*_: Any, **__: Any) -> Any:
        raise doorstep.OutOfMemoryError("no memory is left")

    with monkeypatch.context() as patched:
        patched.setattr(doorstep.Simulator, "from_config", fail)
        with pytest.raises(doorstep.OutOfMemoryError):
            made.start(4)
    assert made.simulator is simulator
    assert made.simulator.hash() == before
    made.step(actions(1)[0])
    made.close()


def test_a_step_that_the_simulator_refuses_ends_no_episode() -> None:
    refusing, other = (rooms(rules={"action_check": "raise", "episode_length": 2}) for _ in range(2))
    good = np.zeros((WORLDS, 8), int)
    for each in (refusing, other):
        each.start(1)
        each.step(good)
        assert each.step(good).ended.all()
    for _ in range(2):
        with pytest.raises(doorstep.ArgumentError):
            refusing.step(np.full((WORLDS, 8), 100))
    for _ in range(4):
        for one, expected in zip(refusing.step(good), other.step(good), strict=True):
            np.testing.assert_array_equal(one, expected)
    refusing.close()
    other.close()


def test_arrays_of_the_host_are_of_worlds_on_the_cpu() -> None:
    with pytest.raises(doorstep.ArgumentError, match="PyTorch") as caught:
        host_arrays("cuda:0")
    assert caught.value.argument == "device"


def test_nothing_stays_alive_without_closing() -> None:
    """The fixture of all tests counts what is left."""
    made = rooms()
    made.start(1)
    made.start(2)
    made.step(actions(1)[0])
