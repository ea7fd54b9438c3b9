"""Ring and Output: values stay while anything refers to them, and their memory is used again afterwards."""

import gc
import itertools
import sys
import threading

import numpy as np
import pytest
from tests.envs.histories import actions_of

import doorstep.envs
from doorstep.envs._ring import LIMIT, Output, Ring

SHAPE = (6, 5)
MANY = 20_000  # calls, after which an interpreter has specialised what it runs


def address(array):
    return int(np.asarray(array).__array_interface__["data"][0])


def values_of(held):
    if isinstance(held, dict):
        return values_of(held["observations"][0])
    return np.asarray(held.numpy() if hasattr(held, "numpy") else held)


WAYS = {
    "the copy": lambda copy: copy,
    "a part of a part": lambda copy: copy[1:][1:, :2],
    "another dtype": lambda copy: copy.view(np.int32),
    "an array of a tensor": lambda copy: pytest.importorskip("torch").from_numpy(copy).numpy(),
    "an array of jax": lambda copy: pytest.importorskip("jax").dlpack.from_dlpack(copy),
    "through DLPack": np.from_dlpack,
    "a buffer": lambda copy: copy.data,
    "an array of a buffer": lambda copy: np.frombuffer(copy.data, np.float32),
    "a container": lambda copy: {"observations": [copy]},
}


def assert_kept(way, make):
    """What is held in a way keeps its values, while copies that nothing holds are written over."""
    kept = []
    for value in range(3 * LIMIT):
        held = WAYS[way](make(value))
        kept.append((held, values_of(held).copy()))
    for value in range(3 * LIMIT):
        make(value)[...] = -1
    for held, values in kept:
        np.testing.assert_array_equal(values_of(held), values, way)
    assert len({values.tobytes() for _, values in kept}) == len(kept)


def test_memory_is_used_again_in_turns_and_a_few_buffers_are_remembered():
    ring = Ring(np.zeros(SHAPE, np.float32))
    seen, kept = set(), None
    for _ in range(100):
        kept = ring.copy()  # the last one is dropped when this one is there
        seen.add(address(kept))
    assert len(seen) == 2
    held = [ring.copy() for _ in range(10 * LIMIT)]
    addresses = {address(copy) for copy in held}
    assert len(addresses) == 10 * LIMIT
    assert len({address(ring.copy()) for _ in range(100)} - addresses) == 1  # those who keep all leave it useful
    held.clear()
    again = [ring.copy() for _ in range(LIMIT)]
    assert len({address(copy) for copy in again} & addresses) >= LIMIT - 1
    assert len(ring._buffers) == LIMIT


# ---- Memory that a simulator writes ----


@pytest.fixture(params=["fast", "ctypes"])
def sim(request, monkeypatch):
    """Redirected in both ways."""
    if request.param == "ctypes":
        monkeypatch.setattr("doorstep._native.session.fast_calls", lambda: None)
    with doorstep.Simulator(3, num_threads=1) as made:
        made.actions[..., 2] = 4  # agents turn, so that every step observes something else
        yield made


def test_what_a_simulator_wrote_keeps_its_values_while_anything_refers_to_it(sim):
    output = Output(sim.observations.to_numpy(), sim._redirector("observations"))

    def play(_):
        output.renew()
        sim.step()
        return output.take()

    for way in WAYS:
        assert_kept(way, play)


def test_an_asynchronous_step_ends_in_the_memory_that_it_began_in():
    """Also if nobody else refers to it any more."""
    with doorstep.Simulator(2000, num_threads=1) as sim, doorstep.Simulator(2000, num_threads=1) as other:
        output = Output(sim.observations.to_numpy(), sim._redirector("observations"))
        for _ in range(3):
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


def test_a_simulator_lets_go_of_what_it_wrote(sim):
    redirect = sim._redirector("observations")
    first, second = (np.empty(sim.observations.shape, np.float32) for _ in range(2))
    before = sys.getrefcount(first), sys.getrefcount(second)
    redirect(first)
    assert (sys.getrefcount(first), sys.getrefcount(second)) == (before[0] + 1, before[1])
    redirect(second)
    assert (sys.getrefcount(first), sys.getrefcount(second)) == (before[0], before[1] + 1)
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


# ---- Environments ----


@pytest.mark.parametrize("name", ["EscapeRoomVectorEnv", "TorchEscapeRoomVectorEnv"])
def test_a_loop_over_steps_takes_no_new_memory_in_any_thread(name):
    """The main thread, which releases Python objects for native code, is busy. The memory that the simulator writes now
    is not the one for its next step."""
    pytest.importorskip("gymnasium")
    pytest.importorskip("torch" if name.startswith("Torch") else "numpy")
    env = getattr(doorstep.envs, name)(4, num_threads=1)
    env.reset()
    seen, kept = [], []

    def play():
        for actions in actions_of(1, 40, 4, 2).reshape(40, 4, -1):
            kept[:] = env.step(actions)[:1]
            seen.append(address(values_of(kept[0])))

    play()
    thread = threading.Thread(target=play)
    thread.start()
    thread.join()
    assert (len(seen), len(set(seen))) == (80, 2)
    assert all(one != other for one, other in itertools.pairwise(seen))
    env.close()
