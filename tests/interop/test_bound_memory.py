"""Bound memory lives as long as anybody uses it, and no longer."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.interop.places import WORLDS, make

import doorstep


class Memory(np.ndarray[Any, np.dtype[Any]]):
    """An array whose end can be seen."""


def make_memory() -> tuple[Memory, weakref.ref[Memory]]:
    memory = np.zeros((WORLDS, 2, 4), np.int32).view(Memory)
    return memory, weakref.ref(memory)


def is_gone(memory: weakref.ref[Memory]) -> bool:
    """Python's main thread lets go when it comes to it."""
    for _ in range(1000):
        gc.collect(0)
        if memory() is None:
            return True
    return False


def test_bound_memory_lives_as_long_as_the_simulator_uses_it() -> None:
    sim = make()
    memory, alive = make_memory()
    sim.bind(actions=memory)
    del memory
    gc.collect()
    sim.step()
    assert alive() is not None
    sim.bind(actions=None)
    assert is_gone(alive)
    memory, alive = make_memory()
    sim.bind(actions=memory)
    del memory
    sim.close()
    assert is_gone(alive)


@pytest.mark.parametrize(
    "view", [lambda tensor: tensor, np.asarray, np.from_dlpack, lambda tensor: tensor.__dlpack__()]
)
def test_bound_memory_lives_as_long_as_a_view_of_it(view: Callable[[doorstep.Tensor], Any]) -> None:
    sim = make()
    memory, alive = make_memory()
    sim.bind(actions=memory)
    del memory
    seen = view(sim.actions)
    sim.bind(actions=None)
    sim.close()
    gc.collect()
    assert alive() is not None
    del seen
    assert is_gone(alive)


def test_a_tensor_of_torch_keeps_bound_memory() -> None:
    pytest.importorskip("torch")
    with make() as sim:
        memory, alive = make_memory()
        sim.bind(actions=memory)
        del memory
        seen = sim.actions.to_torch()
        sim.bind(actions=None)
        gc.collect()
        assert alive() is not None
        seen += 1
        del seen
        assert is_gone(alive)


def test_memory_of_torch_cannot_be_exchanged_while_it_is_bound() -> None:
    torch = pytest.importorskip("torch")
    with make() as sim:
        place = torch.zeros(WORLDS, 2)
        address = place.data_ptr()
        sim.bind(rewards=place)
        place.data = torch.ones(1)
        torch.zeros(WORLDS, 2)  # would get the memory if it had been given back
        sim.step()
        assert sim.rewards.to_torch().data_ptr() == address


def test_a_simulator_that_is_dropped_lets_go_of_bound_memory() -> None:
    memory, alive = make_memory()
    make().bind(actions=memory)
    del memory
    assert is_gone(alive)


def test_refused_bindings_keep_nothing() -> None:
    with make() as sim:
        memory, alive = make_memory()
        for _ in range(3):
            with pytest.raises(doorstep.ArgumentError):
                sim.bind(actions=memory, rewards=memory.view(np.float32).reshape(-1)[: WORLDS * 2])
        del memory
        assert is_gone(alive)


def test_a_thousand_bindings_leave_nothing() -> None:
    with make() as sim:
        before = doorstep.live_counts()
        alive = []
        for _ in range(1000):
            memory, seen = make_memory()
            alive.append(seen)
            sim.bind(actions=memory)
        del memory
        sim.bind(actions=None)
        assert all(is_gone(one) for one in alive)
        assert doorstep.live_counts() == before


def test_memory_is_let_go_by_whatever_thread_uses_it_last() -> None:
    sim = make()
    memory, alive = make_memory()
    sim.bind(actions=memory)
    del memory
    closer = threading.Thread(target=sim.close)
    closer.start()
    closer.join()
    assert is_gone(alive)


def test_owners_do_not_pile_up_while_the_main_thread_waits() -> None:
    alive: list[weakref.ref[Memory]] = []
    most = 0

    def rebind() -> None:
        nonlocal most
        for _ in range(100):
            memory, seen = make_memory()
            alive.append(seen)
            sim.bind(actions=memory)
            del memory
            most = max(most, sum(one() is not None for one in alive))
        sim.close()

    with make() as sim:
        binder = threading.Thread(target=rebind)
        binder.start()
        binder.join()  # in C: nothing that Python asks the main thread to do is done meanwhile
    assert most == 1
    assert not any(one() is not None for one in alive)


@pytest.mark.parametrize(
    "ending", ["", "sim.close()", "del sim", "view = sim.actions.__dlpack__(); del sim", "os.fork()"]
)
def test_the_interpreter_ends_with_bound_memory(ending: str, run_python: Callable[..., str]) -> None:
    code = f"""
import os, warnings, numpy, doorstep
warnings.simplefilter("ignore")
sim = doorstep.Simulator(64)
sim.bind(actions=numpy.zeros((64, 2, 4), numpy.int32), rewards=numpy.zeros(128, numpy.float32))
sim.step()
{ending}
"""
    assert run_python(code) == ""


def test_a_forked_child_steps_in_its_copy_of_bound_memory(run_python: Callable[..., str]) -> None:
    code = """
import os, warnings, numpy, doorstep
warnings.simplefilter("ignore")
sim = doorstep.Simulator(64, num_threads=2)
remaining = numpy.zeros((64, 2), numpy.int32)
sim.bind(steps_remaining=remaining)
sim.step()
child = os.fork()
sim.step()
assert (remaining == 198).all()
if child == 0:
    sim.step()
    os._exit(0 if (remaining == 197).all() else 1)
_, status = os.waitpid(child, 0)
assert status == 0 and (remaining == 198).all()
sim.bind(steps_remaining=None)
"""
    assert run_python(code) == ""
