"""Bound memory lives as long as anybody uses it, and no longer; memory that its owner moves is not used."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from tests.interop.places import WORLDS, make
from tests.refuses import refuses
from tests.scenes import steps

import doorstep
from doorstep import Simulator, StateError


class Memory(np.ndarray):
    """An array whose end can be seen."""


def make_memory(shape=(WORLDS, 2, 4), dtype=np.int32):
    memory = np.zeros(shape, dtype).view(Memory)
    return memory, weakref.ref(memory)


def is_gone(memory):
    """Python's main thread lets go when it comes to it."""
    for _ in range(1000):
        gc.collect(0)
        if memory() is None:
            return True
    return False


def bound(sim):
    """A weak reference to memory that the simulator alone keeps."""
    memory, alive = make_memory()
    sim.bind(actions=memory)
    return alive


def close_in_a_thread(sim):
    closer = threading.Thread(target=sim.close)
    closer.start()
    closer.join()


ENDS = [
    lambda sim: sim.bind(actions=None),
    lambda sim: sim.bind(actions=np.zeros((WORLDS, 2, 4), np.int32)),
    lambda sim: sim.close(),
    close_in_a_thread,
    lambda sim: None,  # the simulator goes
]
VIEWS = [
    *(lambda tensor: tensor, np.asarray, np.from_dlpack, lambda tensor: tensor.__dlpack__()),
    lambda tensor: pytest.importorskip("torch").from_dlpack(tensor),
    lambda tensor: tensor.to_torch()[1:],
]


def test_bound_memory_lives_as_long_as_the_simulator_or_a_view_uses_it():
    for end in ENDS:
        for view in (None, *VIEWS):
            sim = make()
            alive = bound(sim)
            seen = view(sim.actions) if view else None
            sim.step()
            assert alive() is not None
            end(sim)
            del sim
            for _ in range(10 if view else 0):
                gc.collect(0)
                assert alive() is not None
            del seen
            assert is_gone(alive)


def test_the_memory_of_every_tensor_is_let_go_also_if_it_has_no_elements():
    for end in ENDS[2:]:
        sim, alive = make(num_agents=1, max_levels=2), {}
        for name, tensor in sim.tensors.items():
            memory, alive[name] = make_memory(tensor.shape, tensor.dtype)
            sim.bind(**{name: memory})
            del memory, tensor
        sim.step()
        end(sim)
        del sim
        assert [name for name, one in alive.items() if not is_gone(one)] == []


def test_refused_bindings_keep_nothing():
    with make() as sim:
        memory, alive = make_memory()
        for wrong in (memory.view(np.float32).reshape(-1)[: WORLDS * 2], memory):
            refuses(None, sim.bind, actions=memory, rewards=wrong)
        del memory, wrong
        assert is_gone(alive)


def test_many_bindings_leave_nothing_also_while_the_main_thread_waits():
    before, alive, most = doorstep.live_counts(), [], 0

    def rebind():
        nonlocal most
        for _ in range(100):
            alive.append(bound(sim))
            most = max(most, sum(one() is not None for one in alive))

    with make() as sim:
        rebind()
        binder = threading.Thread(target=rebind)
        binder.start()
        binder.join()  # in C: nothing that Python asks the main thread to do is done meanwhile
    assert most <= 2
    assert all(is_gone(one) for one in alive)
    assert doorstep.live_counts() == before


# ---- Owners that give their memory to others

# What gives a tensor or an array other memory in place.
MOVES = {
    "share_memory_": lambda tensor: tensor.share_memory_(),
    "storage.share_memory_": lambda tensor: tensor.untyped_storage().share_memory_(),
    "storage.resize_": lambda tensor: tensor.untyped_storage().resize_(1 << 26),
    "storage.resize_(0)": lambda tensor: tensor.untyped_storage().resize_(0),
    "resize_": lambda tensor: tensor.resize_(1 << 24),
    "set_": lambda tensor: tensor.set_(tensor.clone()),
    "data": lambda tensor: setattr(tensor, "data", tensor.clone()),
    "numpy.resize": lambda array: array.resize(1 << 24, refcheck=False),
}
USES = (
    *(Simulator.step, Simulator.step_async, Simulator.reset, Simulator.refresh, Simulator.save, pickle.dumps),
    lambda sim: setattr(sim, "actions", np.zeros((WORLDS, 2, 4), np.int32)),
    *(lambda sim: sim.rewards.to_numpy(), lambda sim: np.asarray(sim.rewards), lambda sim: sim.rewards[0]),
    *(lambda sim: sim.rewards.copy_to_host(), lambda sim: sim.rewards.__dlpack__()),
    lambda sim: sim.rewards.__buffer__(0),
)


def place_for(move, tensor):
    array = tensor.copy_to_host()
    return array if move.startswith("numpy") else pytest.importorskip("torch").from_numpy(array).clone()


@pytest.mark.parametrize("move", MOVES)
def test_memory_that_its_owner_moves_is_not_used(move):
    with make() as sim, make() as plain:
        place = place_for(move, sim.rewards)
        sim.bind(rewards=place)
        steps(1, sim, plain)
        sim.rewards.to_numpy()
        before = doorstep.live_counts()
        MOVES[move](place)
        for number, use in enumerate(USES):
            with pytest.raises(StateError, match=r"memory that its owner has moved \(bind it again") as caught:
                use(sim)
            assert caught.value.argument == "rewards", number
        assert (sim.step_count, doorstep.live_counts()) == (1, before)
        again = place_for(move, plain.rewards)
        again[:] = 7
        sim.bind(rewards=again)
        assert bool((again == 7).all())  # what was in the memory that moved is not copied
        steps(1, sim, plain)
        np.testing.assert_array_equal(np.asarray(again), plain.rewards)
        assert sim.hash() == plain.hash()


def test_every_bound_tensor_is_watched_also_through_arrays():
    torch = pytest.importorskip("torch")
    with make(max_levels=2) as sim:
        places = {name: place_for("", tensor) for name, tensor in sim.tensors.items()}
        through = places["rewards"] = torch.zeros(WORLDS, 2)
        sim.bind(**{**places, "rewards": through.numpy()[:]})
        sim.step()
        for name, place in places.items():
            place.share_memory_()
            refuses(f"^{name} is bound", sim.step, error=StateError)
            sim.bind(**{name: None if name == "resets" else place})
            sim.step()
        assert torch.equal(places["steps_remaining"], sim.steps_remaining.to_torch())


# ---- The end of the process, and its forks


def test_processes_end_and_fork_with_bound_memory(run_python):
    for ending in ("", "sim.close()", "del sim", "view = sim.actions.__dlpack__(); del sim"):
        code = f"""
import numpy, doorstep
sim = doorstep.Simulator(64)
sim.bind(actions=numpy.zeros((64, 2, 4), numpy.int32), rewards=numpy.zeros(128, numpy.float32))
sim.step()
{ending}
"""
        assert run_python(code) == ""
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
if os.fork() == 0:
    raise SystemExit  # and lets go of everything
os.wait()
"""
    assert run_python(code) == ""
