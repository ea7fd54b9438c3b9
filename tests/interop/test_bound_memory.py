"""Bound memory lives as long as anybody uses it, and no longer."""

from __future__ import annotations

import gc
import pickle
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


# What gives a tensor or an array other memory in place.
MOVES: dict[str, Callable[[Any], object]] = {
    "share_memory_": lambda tensor: tensor.share_memory_(),
    "storage.share_memory_": lambda tensor: tensor.untyped_storage().share_memory_(),
    "storage.resize_": lambda tensor: tensor.untyped_storage().resize_(1 << 26),
    "storage.resize_(0)": lambda tensor: tensor.untyped_storage().resize_(0),
    "resize_": lambda tensor: tensor.resize_(1 << 24),
    "set_": lambda tensor: tensor.set_(tensor.clone()),
    "data": lambda tensor: setattr(tensor, "data", tensor.clone()),
    "numpy.resize": lambda array: array.resize(1 << 24, refcheck=False),
}


def place_for(move: str, tensor: doorstep.Tensor) -> Any:
    array = tensor.copy_to_host()
    return array if move.startswith("numpy") else pytest.importorskip("torch").from_numpy(array).clone()


@pytest.mark.parametrize("move", MOVES)
def test_memory_that_its_owner_moves_is_not_used(move: str) -> None:
    uses: dict[str, Callable[[doorstep.Simulator], object]] = {
        "step": lambda sim: sim.step(),
        "step_async": lambda sim: sim.step_async(),
        "reset": lambda sim: sim.reset(),
        "refresh": lambda sim: sim.refresh(),
        "save": lambda sim: sim.save(),
        "pickle": pickle.dumps,
        "assign": lambda sim: setattr(sim, "actions", np.zeros((WORLDS, 2, 4), np.int32)),
        "to_numpy": lambda sim: sim.rewards.to_numpy(),
        "numpy": lambda sim: np.asarray(sim.rewards),
        "index": lambda sim: sim.rewards[0],
        "copy": lambda sim: sim.rewards.copy_to_host(),
        "dlpack": lambda sim: sim.rewards.__dlpack__(),
        "buffer": lambda sim: sim.rewards.__buffer__(0),
    }
    with make() as sim, make() as plain:
        place = place_for(move, sim.rewards)
        sim.bind(rewards=place)
        for each in (sim, plain):
            each.step()
        sim.rewards.to_numpy()
        before = doorstep.live_counts()
        MOVES[move](place)
        for name, use in uses.items():
            with pytest.raises(doorstep.StateError, match=r"memory that its owner has moved \(bind it again") as caught:
                use(sim)
            assert caught.value.argument == "rewards", name
        assert (sim.step_count, doorstep.live_counts()) == (1, before)
        again = place_for(move, plain.rewards)
        again[:] = 7
        sim.bind(rewards=again)
        assert bool((again == 7).all())  # what was in the memory that moved is not copied
        for each in (sim, plain):
            each.step()
        np.testing.assert_array_equal(np.asarray(again), plain.rewards)
        assert sim.hash() == plain.hash()


def test_every_bound_tensor_is_watched() -> None:
    torch = pytest.importorskip("torch")
    with make(max_levels=2) as sim:
        places = {name: place_for("", tensor) for name, tensor in sim.tensors.items()}
        sim.bind(**places)
        sim.step()
        for name, place in places.items():
            place.share_memory_()
            with pytest.raises(doorstep.StateError, match=f"^{name} is bound"):
                sim.step()
            sim.bind(**{name: None if name == "resets" else place})
            sim.step()
        assert torch.equal(places["steps_remaining"], sim.steps_remaining.to_torch())


def test_an_array_over_a_tensor_moves_with_it() -> None:
    torch = pytest.importorskip("torch")
    with make() as sim:
        tensor = torch.zeros(WORLDS, 2)
        sim.bind(rewards=tensor.numpy()[:])
        sim.step()
        tensor.share_memory_()
        with pytest.raises(doorstep.StateError, match="rewards"):
            sim.step()


def test_buffers_cannot_move_while_they_are_bound() -> None:
    with make() as sim:
        memory = bytearray(WORLDS * 2 * 4)
        sim.bind(rewards=np.frombuffer(memory, np.float32))
        with pytest.raises(BufferError):
            memory.extend(b"more")


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
