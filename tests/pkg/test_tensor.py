"""The contract of every tensor, and reading it in place through every protocol: one memory, which lives as long as its
views."""

import ctypes
import gc
import itertools
import pickle
import sys
import warnings

import numpy as np
import pytest
from tests.interop.places import aligned
from tests.live_objects import alive
from tests.refuses import raising, refuses

import doorstep
from doorstep.tensor import _warn_about_immutability

# Written down from the contract, not from the generated table: shape after N and dtype.
# "P" is A - 1, "F" the flat observation.
OBSERVATIONS = {
    "self_observations": (("A", 8), "float32"), "partner_observations": (("A", "P", 3), "float32"),
    "room_entity_observations": (("A", 6, 3), "float32"), "door_observations": (("A", 3), "float32"),
    "lidar": (("A", 30, 2), "float32"), "observations": (("A", "F"), "float32"),
}  # fmt: skip
TENSORS = {
    "resets": ((1,), "int32"),
    "actions": (("A", 4), "int32"),
    "rewards": (("A", 1), "float32"),
    "dones": (("A", 1), "int32"),
    "terminations": (("A", 1), "uint8"),
    "truncations": (("A", 1), "uint8"),
    "steps_remaining": (("A", 1), "int32"),
    **OBSERVATIONS,
    "final_steps_remaining": (("A", 1), "int32"),
    **{f"final_{name}": row for name, row in OBSERVATIONS.items()},
    "episode_returns": (("A", 1), "float32"),
    "episode_lengths": ((1,), "int32"),
}
WORLDS = 5

needs_versions = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="numpy reads versioned capsules from 2.1 on"
)
needs_buffers = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python calls __buffer__ from 3.12 on")


def pointer(array):
    return array.__array_interface__["data"][0]


def test_every_tensor_has_its_shape_dtype_and_access():
    for agents in (1, 2, 3, 8):
        flat = 8 + 3 * (agents - 1) + 6 * 3 + 3 + 30 * 2 + 1 + 1
        values = {"A": agents, "P": agents - 1, "F": flat}
        with doorstep.Simulator(WORLDS, num_agents=agents) as sim:
            assert list(sim.tensors) == list(TENSORS)
            for name, (symbols, dtype) in TENSORS.items():
                tensor, shape = sim.tensors[name], (WORLDS, *(values.get(symbol, symbol) for symbol in symbols))
                assert tensor is getattr(sim, name)
                assert (tensor.name, tensor.shape, tensor.dtype) == (name, shape, np.dtype(dtype))
                assert tensor.readonly is (name not in ("actions", "resets"))
                assert (tensor.device, len(tensor)) == ("cpu", WORLDS)
            for tensor in [*sim.tensors.values(), sim.state.body_positions, sim.state.episode_index]:
                array = tensor.to_numpy()
                for name in ("ndim", "size", "nbytes", "shape", "dtype", "strides"):
                    assert getattr(tensor, name) == getattr(array, name)


READERS = {
    "numpy": [lambda tensor: tensor.to_numpy(), np.asarray, np.from_dlpack, lambda tensor: tensor.__array__()],
    "torch": [lambda tensor: sys.modules["torch"].from_dlpack(tensor), lambda tensor: tensor.to_torch()],
    "jax": [lambda tensor: sys.modules["jax"].dlpack.from_dlpack(tensor)],
}


def address(array):
    """Of what any library has read."""
    if hasattr(array, "data_ptr"):
        return array.data_ptr()
    return array.unsafe_buffer_pointer() if hasattr(array, "unsafe_buffer_pointer") else pointer(array)


@pytest.mark.parametrize("library", READERS)
def test_every_library_reads_one_memory_wherever_it_lies(library):
    pytest.importorskip(library)
    sim = doorstep.Simulator(WORLDS)
    own = dict(sim.tensors)
    places = {name: aligned(tensor.shape, tensor.dtype) for name, tensor in own.items()}
    addresses = {name: pointer(tensor) for name, tensor in own.items()}
    spans = sorted((pointer(tensor), pointer(tensor) + tensor.nbytes) for tensor in own.values())
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))  # apart from each other
    sim.bind(**places)
    bound = dict(sim.tensors)
    for closed in (False, True):
        for read in READERS[library]:
            for name in TENSORS:
                assert address(read(own[name])) == addresses[name], name
                assert addresses[name] % 256 == 0
                assert address(read(bound[name])) == places[name].ctypes.data, name
        if library != "jax" and not closed:
            for field in (getattr(sim.state, row) for row in dir(type(sim.state)) if not row.startswith("_")):
                assert address(READERS[library][-1](field)) == pointer(field)
        sim.close()


def test_numpy_arrays_are_views_with_the_access_of_the_tensor():
    with doorstep.Simulator(2) as sim:
        for tensor in sim.tensors.values():
            for array in (read(tensor) for read in READERS["numpy"]):
                assert (array.shape, array.dtype, array.flags.c_contiguous) == (tensor.shape, tensor.dtype, True)
                assert array.flags.writeable is not tensor.readonly or np.__version__ < "2.1"
        with pytest.raises(ValueError, match="WRITEABLE"):
            sim.rewards.to_numpy().flags.writeable = True
        sim.actions.to_numpy().flags.writeable = False
        assert sim.actions.to_numpy().flags.writeable  # another view
        np.from_dlpack(sim.actions)[0, 0] = (3, 0, 2, 0)
        assert sim.actions.to_numpy().tolist() == [[[3, 0, 2, 0], [0, 0, 2, 0]], [[0, 0, 2, 0]] * 2]


def test_array_protocol_copies_and_converts_only_when_asked():
    with doorstep.Simulator(2) as sim:
        tensor = sim.rewards
        for copied in (np.array(tensor, copy=True), tensor.__array__(copy=True)):
            assert (pointer(copied) != pointer(tensor), copied.flags.writeable) == (True, True)
        assert np.asarray(tensor, dtype=np.float64).dtype == tensor.__array__(np.float64).dtype == np.float64
        assert pointer(tensor.__array__(np.float32)) == pointer(tensor.__array__(copy=False)) == pointer(tensor)
        refuses("without a copy", tensor.__array__, np.float64, error=ValueError, copy=False)
        refuses("copy", pickle.dumps, tensor, error=TypeError)


# ---- DLPack and buffers


class Exporter:
    """Passes chosen arguments on to a tensor's __dlpack__, whatever the consumer asks for."""

    def __init__(self, tensor, **arguments):
        self.tensor, self.arguments = tensor, arguments

    def __dlpack__(self, **_):
        return self.tensor.__dlpack__(**self.arguments)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_capsules_are_versioned_only_for_who_knows_versions_and_only_for_the_cpu():
    with doorstep.Simulator(2) as sim:
        for max_version in (None, (0, 8), (1, 0), (1, 3), (2, 0)):
            name = '"dltensor_versioned"' if max_version and max_version[0] else '"dltensor"'
            assert name in repr(sim.rewards.__dlpack__(max_version=max_version))
        assert sim.rewards.__dlpack_device__() == (1, 0)
        assert "dltensor" in repr(sim.rewards.__dlpack__(dl_device=(1, 0)))
        for device in ((2, 0), (1, 1)):
            refuses("cannot be exported", sim.rewards.__dlpack__, error=BufferError, dl_device=device)
        for stream in (1, -1):
            refuses("it must be None", sim.rewards.__dlpack__, error=BufferError, stream=stream)
        assert not hasattr(sim.rewards, "__cuda_array_interface__")


@pytest.mark.parametrize("max_version", [None, pytest.param((1, 0), marks=needs_versions)])
def test_both_kinds_of_capsule_carry_the_memory_or_a_real_copy(max_version):
    with doorstep.Simulator(3) as sim:
        for tensor in (sim.actions, sim.steps_remaining, sim.state.body_positions, sim.state.agent_grabs):
            array = np.from_dlpack(Exporter(tensor, max_version=max_version))
            assert pointer(array) == pointer(tensor)
            assert (array.shape, array.dtype, array.strides) == (tensor.shape, tensor.dtype, tensor.strides)
            copy = np.from_dlpack(Exporter(tensor, max_version=max_version, copy=True))
            before = tensor.copy_to_host()
            assert pointer(copy) != pointer(tensor)
            sim.step()
            assert (copy == before).all()


@pytest.mark.parametrize("view", [lambda tensor: tensor.__buffer__(0), pytest.param(memoryview, marks=needs_buffers)])
def test_a_buffer_is_the_memory(view):
    with doorstep.Simulator(2, num_agents=1) as sim:
        for tensor in (*sim.tensors.values(), sim.state.body_positions):
            found = view(tensor)
            assert (found.shape, found.readonly) == (tensor.shape, tensor.readonly)
            assert (found.strides, np.dtype(found.format)) == (tensor.strides, tensor.dtype)
            assert tensor.size == 0 or np.shares_memory(np.asarray(found), tensor.to_numpy())
        view(sim.actions)[1, 0, 0] = 3
        assert sim.actions[1, 0, 0] == 3


@needs_buffers
def test_what_writes_gets_no_buffer_of_a_tensor_that_only_the_simulator_writes():
    with doorstep.Simulator(2) as sim:
        assert np.frombuffer(sim.rewards, np.float32).tolist() == [0] * 4
        refuses(None, ctypes.c_char.from_buffer, sim.rewards, error=(BufferError, TypeError))
        assert ctypes.c_int32.from_buffer(sim.actions).value == 0


# ---- Copies


def test_copies_to_and_from_the_host_are_real_copies_of_every_element():
    with doorstep.Simulator(3) as sim:
        for tensor in (*sim.tensors.values(), sim.state.body_positions, sim.state.agent_grabs):
            array = tensor.copy_to_host()
            assert (array.shape, array.dtype) == (tensor.shape, tensor.dtype)
            assert array.tobytes() == tensor.to_numpy().tobytes()
            assert array.nbytes == 0 or not np.shares_memory(array, tensor.to_numpy())
        sim.actions.copy_from_host(np.full((3, 2, 4), 1, np.int32))
        for wrong in (np.zeros((3, 2, 4)), np.zeros((3, 8), np.int32), np.int32(0), "no", None):
            refuses(r"it must be int32 \[3, 2, 4\]", sim.actions.copy_from_host, wrong, argument="array")
        assert (sim.actions.to_numpy() == 1).all()
        refuses("only the simulator writes .*rewards", sim.rewards.copy_from_host, np.zeros((3, 2, 1), np.float32))


def test_copies_of_many_rows_with_gaps_are_those_of_each_row():
    """They are made in parts."""
    with doorstep.Simulator(5_000) as sim:
        positions, before = sim.state.body_positions, sim.state.body_rotations.copy_to_host()
        moved = np.random.default_rng(1).random(positions.shape, np.float32)[..., ::-1]  # not contiguous
        positions.copy_from_host(moved)
        assert (positions.to_numpy() == moved).all()
        assert (positions.copy_to_host() == moved).all()
        assert (sim.state.body_rotations.copy_to_host() == before).all()


def test_copies_wait_for_the_running_step_and_outlive_the_simulator():
    sim = doorstep.Simulator(64)
    sim.step_async()
    remaining, actions = sim.steps_remaining, sim.actions
    assert (remaining.copy_to_host() == 199).all()
    sim.close()
    actions.copy_from_host(np.ones((64, 2, 4), np.int32))
    assert (actions.copy_to_host() == 1).all()


# ---- Lifetime

VIEWS = {
    "tensor": lambda tensor: tensor,
    "slice": lambda tensor: tensor.to_numpy()[1:, 0],
    "asarray": np.asarray,
    "from_dlpack": np.from_dlpack,
    "old dlpack": lambda tensor: np.from_dlpack(Exporter(tensor)),
    "torch": lambda tensor: pytest.importorskip("torch").from_dlpack(tensor)[1:],
    "to_torch": lambda tensor: pytest.importorskip("torch") and tensor.to_torch(),
    "capsule": lambda tensor: tensor.__dlpack__(),
    "versioned capsule": lambda tensor: tensor.__dlpack__(max_version=(1, 0)),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_outlives_its_simulator_and_then_frees_the_memory(view):
    for tensor_of in (lambda sim: sim.self_observations, lambda sim: sim.state.body_positions):
        for is_closed in (True, False):
            sim = doorstep.Simulator(3)
            held = VIEWS[view](tensor_of(sim))
            before = None if "capsule" in view else np.asarray(held).copy()
            if is_closed:
                sim.close()
            del sim  # closes it at once
            exports = {"export": 1} if "dlpack" in view or "torch" in view or "capsule" in view else {}
            assert alive() == {"memory": 1, **exports}
            assert before is None or (np.asarray(held) == before).all()
            del held
            assert not alive()


def test_neither_many_views_nor_a_capsule_that_cannot_be_made_leave_anything(monkeypatch):
    with doorstep.Simulator(2) as sim:
        for _ in range(300):
            np.from_dlpack(sim.rewards)
            np.asarray(sim.rewards)
            sim.rewards.__dlpack__()
        assert doorstep.live_counts()["export"] == 0
        monkeypatch.setattr("doorstep._native.memory.capsule_tools", lambda: (raising(MemoryError), (0, 0), 0))
        refuses(None, sim.rewards.__dlpack__, error=MemoryError)
        assert doorstep.live_counts()["export"] == 0


# ---- PyTorch and JAX


def test_torch_reads_state_with_its_strides():
    pytest.importorskip("torch")
    with doorstep.Simulator(3) as sim:
        positions = sim.state.body_positions
        view = positions.to_torch()
        assert [4 * stride for stride in view.stride()] == list(positions.strides)
        view[1, 0, 0] = 5.0
        assert positions.to_numpy()[1, 0, 0] == 5.0
        for tensor in sim.tensors.values():
            made = tensor.to_torch()
            assert (tuple(made.shape), str(made.dtype)) == (tensor.shape, f"torch.{tensor.dtype}")


def test_jax_reads_in_place_with_one_warning_and_copies_on_demand():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("jax")
    _warn_about_immutability.cache_clear()
    with doorstep.Simulator(WORLDS) as sim:
        with pytest.warns(UserWarning, match="never change"):
            sim.rewards.to_jax()
        for tensor in sim.tensors.values():
            array = tensor.to_jax()
            assert array.unsafe_buffer_pointer() == pointer(tensor) or tensor.nbytes == 0
            assert (array.shape, array.dtype) == (tensor.shape, tensor.dtype)
            del array
        refuses("contiguous", sim.state.body_positions.to_jax, argument="copy")
        for tensor in (sim.steps_remaining, sim.state.body_positions):
            array = tensor.to_jax(copy=True)
            before = np.array(array)
            sim.step()
            assert (np.array(array) == before).all()
        gc.collect()
