"""Ring and Output: values stay while anything refers to them, and their memory is used again afterwards."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import Array, actions_of

import doorstep.envs
from doorstep.envs._ring import LIMIT, Output, Ring

SHAPE = (6, 5)
MANY = 20_000  # calls, after which an interpreter has specialised what it runs


def address(array: Any) -> int:
    return int(np.asarray(array).__array_interface__["data"][0])


def values_of(held: Any) -> Array:
    if isinstance(held, dict):
        return values_of(held["observations"][0])
    return np.asarray(held.numpy() if hasattr(held, "numpy") else held)


def through_torch(copy: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(copy)


def through_jax(copy: Array) -> Any:
    return pytest.importorskip("jax").dlpack.from_dlpack(copy)


WAYS: dict[str, Callable[[Array], Any]] = {
    "the copy": lambda copy: copy,
    "a part": lambda copy: copy[2:4],
    "a part of a part": lambda copy: copy[1:][1:, :2],
    "another shape": lambda copy: copy.reshape(-1),
    "another dtype": lambda copy: copy.view(np.int32),
    "a tensor": through_torch,
    "a part of a tensor": lambda copy: through_torch(copy)[2:],
    "an array of a tensor": lambda copy: through_torch(copy).numpy(),
    "an array of jax": through_jax,
    "through DLPack": np.from_dlpack,
    "a buffer": lambda copy: copy.data,
    "an array of a buffer": lambda copy: np.frombuffer(copy.data, np.float32),
    "a container": lambda copy: {"observations": [copy]},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_keeps_its_values_while_anything_refers_to_it(way: str) -> None:
    source = np.zeros(SHAPE, np.float32)
    ring = Ring(source)
    kept = []
    for value in range(3 * LIMIT):
        held = WAYS[way](ring.copy())
        kept.append((held, values_of(held).copy()))
        source[...] = value + 1
    for _ in range(3 * LIMIT):
        ring.copy()[...] = -1
    for held, values in kept:
        np.testing.assert_array_equal(values_of(held), values)


def test_it_tells_kept_copies_from_dropped_ones_however_often_it_is_asked() -> None:
    source = np.zeros(SHAPE, np.float32)
    ring = Ring(source)
    first = ring.copy()
    last = first
    for value in range(1, MANY):
        source[...] = value
        new = ring.copy()
        assert (last[0, 0], new[0, 0]) == (value - 1, value)
        last = new
    assert (first == 0).all()


def test_memory_is_used_again_in_turns() -> None:
    ring = Ring(np.zeros(SHAPE, np.float32))
    seen = set()
    kept = None
    for _ in range(100):
        kept = ring.copy()  # the last one is dropped when this one is there
        seen.add(address(kept))
    assert len(seen) == 2


def test_it_remembers_few_buffers() -> None:
    ring = Ring(np.zeros(SHAPE, np.float32))
    kept = [ring.copy() for _ in range(10 * LIMIT)]
    kept_addresses = {address(copy) for copy in kept}
    assert len(kept_addresses) == 10 * LIMIT
    kept.clear()
    again = [ring.copy() for _ in range(LIMIT)]
    assert len({address(copy) for copy in again} & kept_addresses) == LIMIT
    assert len(ring._buffers) == LIMIT


def test_those_who_keep_some_copies_for_good_leave_the_ring_useful() -> None:
    ring = Ring(np.zeros(SHAPE, np.float32))
    kept = [ring.copy() for _ in range(LIMIT)]
    seen = {address(ring.copy()) for _ in range(100)}
    assert len(seen) == 1
    assert not seen & {address(copy) for copy in kept}


def test_what_is_done_to_a_copy_is_done_to_no_other() -> None:
    ring = Ring(np.zeros(SHAPE, np.float32))
    copy = ring.copy()
    where = address(copy)
    copy.flags.writeable = False
    del copy
    again = ring.copy()
    assert (address(again), again.flags.writeable) == (where, True)


# ---- Memory that a simulator writes ----


@pytest.fixture(params=["fast", "ctypes"])
def sim(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[doorstep.Simulator]:
    """Redirected in both ways."""
    if request.param == "ctypes":
        monkeypatch.setattr("doorstep._native.session.fast_calls", lambda: None)
    with doorstep.Simulator(3, num_threads=1) as made:
        made.actions[..., 2] = 4  # agents turn, so that every step observes something else
        yield made


@pytest.fixture
def output(sim: doorstep.Simulator) -> Output:
    return Output(sim.observations.to_numpy(), sim._redirector("observations"))


def play(sim: doorstep.Simulator, output: Output) -> Array:
    output.renew()
    sim.step()
    return output.take()


@pytest.mark.parametrize("way", WAYS)
def test_what_a_simulator_wrote_keeps_its_values_while_anything_refers_to_it(
    way: str, sim: doorstep.Simulator, output: Output
) -> None:
    kept = []
    for _ in range(3 * LIMIT):
        held = WAYS[way](play(sim, output))
        kept.append((held, values_of(held).copy()))
    for _ in range(3 * LIMIT):
        play(sim, output)[...] = -1
    for held, values in kept:
        np.testing.assert_array_equal(values_of(held), values)
    assert len({values.tobytes() for _, values in kept}) == len(kept)


def test_what_a_simulator_writes_into_is_used_in_turns(sim: doorstep.Simulator, output: Output) -> None:
    seen = set()
    kept = None
    for _ in range(100):
        kept = play(sim, output)
        seen.add(address(kept))
    assert len(seen) == 2
    del kept
    seen |= {address(play(sim, output)) for _ in range(100)}
    assert len(seen) == 2


def test_it_is_used_in_turns_in_any_thread(sim: doorstep.Simulator, output: Output) -> None:
    """The main thread, which releases Python objects for native code, is busy."""
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.extend(address(play(sim, output)) for _ in range(50)))
    thread.start()
    thread.join()
    assert (len(seen), len(set(seen))) == (50, 2)


def test_it_writes_nothing_that_it_told_even_to_those_who_dropped_it(sim: doorstep.Simulator, output: Output) -> None:
    """The memory that the simulator writes now is not the one for its next step."""
    seen = [address(play(sim, output)) for _ in range(50)]
    assert all(one != other for one, other in itertools.pairwise(seen))


def test_the_own_memory_is_copied(sim: doorstep.Simulator, output: Output) -> None:
    own = sim.observations.to_numpy()
    first = output.take()
    assert not np.shares_memory(first, own)
    np.testing.assert_array_equal(first, own)
    written = play(sim, output)
    assert not np.shares_memory(written, own)
    output.return_home()
    sim.step()
    again = output.take()
    np.testing.assert_array_equal(again, own)
    assert not np.shares_memory(again, own)
    assert not np.array_equal(again, written)


def test_an_asynchronous_step_ends_in_the_memory_that_it_began_in() -> None:
    """Also if nobody else refers to it any more."""
    with doorstep.Simulator(2000, num_threads=1) as sim, doorstep.Simulator(
        2000, num_threads=1
    ) as other:
        output = Output(sim.observations.to_numpy(), sim._redirector("observations"))
        for _ in range(5):
            output.renew()
            sim.step_async()
            other.step()
            first = output.take()
            output.renew()  # waits
            np.testing.assert_array_equal(first, other.observations)
            sim.step()
            other.step()
            np.testing.assert_array_equal(output.take(), other.observations)
        output.renew()
        sim.step_async()
        del output, first
        gc.collect()
        sim.wait()


def test_a_simulator_lets_go_of_what_it_wrote(sim: doorstep.Simulator) -> None:
    redirect = sim._redirector("observations")
    first, second = (np.empty(sim.observations.shape, np.float32) for _ in range(2))
    before = sys.getrefcount(first), sys.getrefcount(second)
    redirect(first)
    assert (sys.getrefcount(first), sys.getrefcount(second)) == (before[0] + 1, before[1])
    redirect(second)
    assert (sys.getrefcount(first), sys.getrefcount(second)) == (before[0], before[1] + 1)
    redirect(second)
    assert sys.getrefcount(second) == before[1] + 1
    redirect(None)
    assert sys.getrefcount(second) == before[1]
    for _ in range(MANY):
        redirect(first)
        redirect(second)
    sim.close()
    doorstep.Simulator(1).close()  # releases what no simulator needs any more
    assert (sys.getrefcount(first), sys.getrefcount(second)) == before
    for _ in range(3):
        with pytest.raises(doorstep.ClosedError):
            redirect(first)
    assert sys.getrefcount(first) == before[0]


def test_what_does_not_fit_is_refused_and_nothing_changes(sim: doorstep.Simulator) -> None:
    redirect = sim._redirector("observations")
    good, small = np.full(sim.observations.shape, 7, np.float32), np.zeros((3, 2, 93), np.float32)
    redirect(good)
    rewards = np.zeros((3, 2), np.float32)
    sim.bind(rewards=rewards)
    shared = rewards.view(np.int32)
    before = sys.getrefcount(small), sys.getrefcount(shared)
    with pytest.raises((TypeError, doorstep.ArgumentError)):
        redirect(small)
    with pytest.raises(doorstep.ArgumentError, match="overlaps that of rewards"):
        sim._redirector("steps_remaining")(shared)
    assert (sys.getrefcount(small), sys.getrefcount(shared)) == before
    assert (good == 7).all()
    sim.step()
    assert not (good == 7).any()


@pytest.mark.parametrize("name", ["rewards", "actions", "resets", "dones", "final_observations", "episode_returns"])
def test_only_what_every_step_writes_is_redirected(sim: doorstep.Simulator, name: str) -> None:
    redirect = sim._redirector(name)
    array = np.zeros(sim.tensors[name].shape, sim.tensors[name].dtype)
    before = sys.getrefcount(array)
    with pytest.raises(doorstep.ArgumentError, match="only what every step writes anew") as caught:
        redirect(array)
    assert caught.value.argument == name
    del caught  # whose traceback refers to it
    assert sys.getrefcount(array) == before


# ---- Environments ----


@pytest.mark.parametrize("name", ["EscapeRoomVectorEnv", "TorchEscapeRoomVectorEnv"])
def test_a_loop_over_steps_takes_no_new_memory(name: str) -> None:
    pytest.importorskip("gymnasium")
    pytest.importorskip("torch" if name.startswith("Torch") else "numpy")
    env: Any = getattr(doorstep.envs, name)(4, num_threads=1)
    observations, _ = env.reset()
    seen = set()
    for actions in actions_of(1, 30, 4, 2).reshape(30, 4, -1):
        observations, *_ = env.step(actions)
        seen.add(address(values_of(observations)))
    assert len(seen) == 2
    env.close()
