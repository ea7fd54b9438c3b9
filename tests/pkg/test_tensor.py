"""The contract of every tensor, and reading it in place through every protocol."""

import ctypes
import gc
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.live_objects import alive

import doorstep
from doorstep.tensor import _warn_about_immutability

# Written down from the contract, not from the generated table: name, shape after N, dtype, writable.
# "P" is A - 1, "F" the flat observation.
TENSORS: list[tuple[str, tuple[Any, ...], str, bool]] = [
    ("resets", (1,), "int32", True),
    ("actions", ("A", 4), "int32", True),
    ("rewards", ("A", 1), "float32", False),
    ("dones", ("A", 1), "int32", False),
    ("terminations", ("A", 1), "uint8", False),
    ("truncations", ("A", 1), "uint8", False),
    ("steps_remaining", ("A", 1), "int32", False),
    ("self_observations", ("A", 8), "float32", False),
    ("partner_observations", ("A", "P", 3), "float32", False),
    ("room_entity_observations", ("A", 6, 3), "float32", False),
    ("door_observations", ("A", 3), "float32", False),
    ("lidar", ("A", 30, 2), "float32", False),
    ("observations", ("A", "F"), "float32", False),
    ("final_steps_remaining", ("A", 1), "int32", False),
    ("final_self_observations", ("A", 8), "float32", False),
    ("final_partner_observations", ("A", "P", 3), "float32", False),
    ("final_room_entity_observations", ("A", 6, 3), "float32", False),
    ("final_door_observations", ("A", 3), "float32", False),
    ("final_lidar", ("A", 30, 2), "float32", False),
    ("final_observations", ("A", "F"), "float32", False),
    ("episode_returns", ("A", 1), "float32", False),
    ("episode_lengths", (1,), "int32", False),
]
NAMES = [name for name, *_ in TENSORS]
WORLDS = 5

needs_versions = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="numpy reads versioned capsules from 2.1 on"
)

needs_buffers = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python calls __buffer__ from 3.12 on")


def expected_shape(symbols: tuple[Any, ...], agents: int) -> tuple[int, ...]:
    flat = 8 + 3 * (agents - 1) + 6 * 3 + 3 + 30 * 2 + 1 + 1
    values = {"A": agents, "P": agents - 1, "F": flat}
    return (WORLDS, *(values.get(symbol, symbol) for symbol in symbols))


def pointer(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_flat_observation_of_two_agents_has_94_values() -> None:
    assert expected_shape(("A", "F"), 2) == (WORLDS, 2, 94)


@pytest.mark.parametrize("agents", [1, 2, 3, 8])
def test_every_tensor_has_its_shape_dtype_and_access(agents: int) -> None:
    with doorstep.Simulator(WORLDS, num_agents=agents) as sim:
        assert list(sim.tensors) == NAMES
        for name, symbols, dtype, writable in TENSORS:
            tensor = sim.tensors[name]
            assert tensor is getattr(sim, name)
            assert tensor.name == name
            assert tensor.shape == expected_shape(symbols, agents)
            assert tensor.dtype == np.dtype(dtype)
            assert tensor.readonly is not writable
            assert tensor.device == "cpu"
            assert len(tensor) == WORLDS
            assert tensor.nbytes == int(np.prod(tensor.shape)) * tensor.dtype.itemsize


@pytest.mark.parametrize("name", NAMES)
def test_tensor_is_contiguous_aligned_and_apart_from_the_others(name: str) -> None:
    with doorstep.Simulator(WORLDS) as sim:
        tensor = sim.tensors[name]
        array = tensor.to_numpy()
        assert array.flags.c_contiguous
        assert pointer(array) % 256 == 0
        assert tensor.strides == array.strides
        spans = [(pointer(other), pointer(other) + other.nbytes) for other in sim.tensors.values()]
        begin, end = pointer(tensor), pointer(tensor) + tensor.nbytes
        assert sum(begin < other_end and other_begin < end for other_begin, other_end in spans) == 1


@pytest.mark.parametrize("name", NAMES)
def test_numpy_reads_the_memory_itself(name: str) -> None:
    with doorstep.Simulator(WORLDS) as sim:
        tensor = sim.tensors[name]
        for array in (tensor.to_numpy(), np.asarray(tensor), np.from_dlpack(tensor), tensor.__array__()):
            assert pointer(array) == pointer(tensor)
            assert (array.shape, array.dtype) == (tensor.shape, tensor.dtype)
        for array in (tensor.to_numpy(), np.asarray(tensor), tensor.__array__()):
            assert array.flags.writeable is not tensor.readonly


@needs_versions
def test_numpy_learns_through_dlpack_what_is_read_only() -> None:
    with doorstep.Simulator(2) as sim:
        assert np.from_dlpack(sim.actions).flags.writeable
        assert not np.from_dlpack(sim.rewards).flags.writeable


def test_what_numpy_writes_the_simulator_reads() -> None:
    with doorstep.Simulator(2) as sim:
        before = sim.state.body_positions.to_numpy().copy()
        sim.actions.to_numpy()[0, 0] = (3, 0, 2, 0)
        sim.step()
        moved = np.abs(sim.state.body_positions.to_numpy() - before)[:, :2].max(axis=(1, 2)) > 0.01
        assert moved.tolist() == [True, False]


def test_read_only_arrays_cannot_be_made_writable() -> None:
    with doorstep.Simulator(2) as sim:
        array = sim.rewards.to_numpy()
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_to_numpy_hands_out_independent_views() -> None:
    with doorstep.Simulator(2) as sim:
        array = sim.actions.to_numpy()
        array.flags.writeable = False
        assert sim.actions.to_numpy().flags.writeable


def test_array_protocol_copies_and_converts_only_when_asked() -> None:
    with doorstep.Simulator(2) as sim:
        tensor = sim.rewards
        assert pointer(np.array(tensor, copy=True)) != pointer(tensor)
        assert np.array(tensor, copy=True).flags.writeable
        assert np.asarray(tensor, dtype=np.float64).dtype == np.float64
        assert tensor.__array__(np.float64).dtype == np.float64
        assert pointer(tensor.__array__(np.float32)) == pointer(tensor)
        assert pointer(tensor.__array__(copy=True)) != pointer(tensor)
        assert pointer(tensor.__array__(copy=False)) == pointer(tensor)
        with pytest.raises(ValueError, match="without a copy"):
            tensor.__array__(np.float64, copy=False)


def test_numpy_functions_accept_a_tensor() -> None:
    with doorstep.Simulator(2) as sim:
        assert np.sum(sim.actions) == 2 * 2 * 2
        assert np.concatenate([sim.rewards, sim.rewards]).shape == (4, 2, 1)


def test_tensor_cannot_be_pickled_and_the_error_names_a_copy() -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(TypeError, match="copy"):
        pickle.dumps(sim.rewards)


# ---- DLPack ----


@pytest.mark.parametrize(
    ("max_version", "name"),
    [
        (None, '"dltensor"'),
        ((0, 8), '"dltensor"'),
        ((1, 0), '"dltensor_versioned"'),
        ((1, 3), '"dltensor_versioned"'),
        ((2, 0), '"dltensor_versioned"'),
    ],
)
def test_capsule_is_versioned_only_for_who_knows_versions(max_version: tuple[int, int] | None, name: str) -> None:
    with doorstep.Simulator(2) as sim:
        assert name in repr(sim.rewards.__dlpack__(max_version=max_version))


def test_dlpack_device_is_the_cpu() -> None:
    with doorstep.Simulator(2) as sim:
        assert sim.rewards.__dlpack_device__() == (1, 0)
        assert "dltensor" in repr(sim.rewards.__dlpack__(dl_device=(1, 0)))


@pytest.mark.parametrize(
    "arguments",
    [{"dl_device": (2, 0)}, {"dl_device": (1, 1)}, {"dl_device": (2, 0), "copy": True}, {"stream": 1}, {"stream": -1}],
    ids=repr,
)
def test_dlpack_for_another_device_or_a_stream_is_a_buffer_error(arguments: dict[str, Any]) -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(BufferError):
        sim.rewards.__dlpack__(**arguments)


class Exporter:
    """Passes chosen arguments on to a tensor's __dlpack__, whatever the consumer asks for."""

    def __init__(self, tensor: doorstep.Tensor, **arguments: Any) -> None:
        self.tensor = tensor
        self.arguments = arguments

    def __dlpack__(self, **_: Any) -> Any:
        return self.tensor.__dlpack__(**self.arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("max_version", [None, pytest.param((1, 0), marks=needs_versions)])
def test_both_kinds_of_capsule_carry_the_memory(max_version: tuple[int, int] | None) -> None:
    with doorstep.Simulator(3) as sim:
        for tensor in (sim.actions, sim.state.body_positions, sim.state.agent_grabs):
            array = np.from_dlpack(Exporter(tensor, max_version=max_version))
            assert pointer(array) == pointer(tensor)
            assert (array.shape, array.dtype, array.strides) == (tensor.shape, tensor.dtype, tensor.strides)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_dlpack_copy_is_a_real_copy(max_version: tuple[int, int] | None) -> None:
    with doorstep.Simulator(3) as sim:
        for tensor in (sim.steps_remaining, sim.state.body_positions):
            array = np.from_dlpack(Exporter(tensor, max_version=max_version, copy=True))
            before = array.copy()
            assert pointer(array) != pointer(tensor)
            assert (array == np.asarray(tensor)).all()
            sim.step()
            assert (array == before).all()


def test_memory_of_the_host_has_no_interface_of_cuda_arrays() -> None:
    with doorstep.Simulator(2) as sim:
        assert hasattr(sim.rewards, "__array_interface__")
        assert not hasattr(sim.rewards, "__cuda_array_interface__")


@pytest.mark.parametrize(
    "view", [lambda tensor: tensor.__buffer__(0), pytest.param(memoryview, marks=needs_buffers)]
)
def test_a_buffer_is_the_memory(view: Callable[[doorstep.Tensor], memoryview]) -> None:
    with doorstep.Simulator(2) as sim:
        for tensor in (*sim.tensors.values(), sim.state.body_positions):
            found = view(tensor)
            assert (found.shape, found.readonly) == (tensor.shape, tensor.readonly)
            assert (found.strides, np.dtype(found.format)) == (tensor.strides, tensor.dtype)
            assert tensor.size == 0 or np.shares_memory(np.asarray(found), tensor.to_numpy())
        view(sim.actions)[1, 1, 0] = 3
        assert sim.actions[1, 1, 0] == 3


@needs_buffers
def test_what_writes_gets_no_buffer_of_a_tensor_that_only_the_simulator_writes() -> None:
    with doorstep.Simulator(2) as sim:
        rewards: Any = sim.rewards  # has __buffer__
        assert np.frombuffer(rewards, np.float32).tolist() == [0] * 4
        with pytest.raises((BufferError, TypeError)):
            ctypes.c_char.from_buffer(sim.rewards)
        assert ctypes.c_int32.from_buffer(sim.actions).value == 0


def test_copies_to_and_from_the_host_are_real_copies_of_every_element() -> None:
    with doorstep.Simulator(3) as sim:
        for tensor in (*sim.tensors.values(), sim.state.body_positions, sim.state.agent_grabs):
            array = tensor.copy_to_host()
            assert (array.shape, array.dtype) == (tensor.shape, tensor.dtype)
            assert array.tobytes() == tensor.to_numpy().tobytes()
            assert array.nbytes == 0 or not np.shares_memory(array, tensor.to_numpy())
        positions = sim.state.body_positions
        moved = (positions.copy_to_host() + 1)[..., ::-1]
        assert not moved.flags.c_contiguous
        before = sim.state.body_rotations.copy_to_host()
        positions.copy_from_host(moved)
        assert (positions.to_numpy() == moved).all()
        assert (sim.state.body_rotations.copy_to_host() == before).all()
        sim.actions.copy_from_host(np.full((3, 2, 4), 1, np.int32))
        assert (sim.actions.to_numpy() == 1).all()


def test_copies_wait_for_the_running_step_and_outlive_the_simulator() -> None:
    sim = doorstep.Simulator(64)
    sim.step_async()
    remaining = sim.steps_remaining
    assert (remaining.copy_to_host() == 199).all()
    actions = sim.actions
    sim.close()
    actions.copy_from_host(np.ones((64, 2, 4), np.int32))
    assert (actions.copy_to_host() == 1).all()


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 2, 4)), np.zeros((2, 2, 4), np.int64), np.zeros((2, 8), np.int32), np.int32(0), "no", None],
    ids=["dtype", "width", "shape", "scalar", "text", "nothing"],
)
def test_copying_from_another_shape_or_dtype_names_both_and_changes_nothing(array: Any) -> None:
    with doorstep.Simulator(2) as sim:
        before = sim.actions.copy_to_host()
        with pytest.raises(doorstep.ArgumentError, match=r"it must be int32 \[2, 2, 4\]") as caught:
            sim.actions.copy_from_host(array)
        assert caught.value.argument == "array"
        assert (sim.actions.copy_to_host() == before).all()


def test_read_only_tensors_take_no_copy() -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match="rewards") as caught:
        sim.rewards.copy_from_host(np.zeros((2, 2, 1), np.float32))
    assert caught.value.hint


def test_a_tensor_without_elements_can_be_exported() -> None:
    with doorstep.Simulator(2, num_agents=1) as sim:
        assert sim.partner_observations.shape == (2, 1, 0, 3)
        assert np.asarray(sim.partner_observations).shape == (2, 1, 0, 3)
        assert np.from_dlpack(sim.partner_observations).shape == (2, 1, 0, 3)


# ---- Lifetime ----


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_that_nobody_consumes_holds_the_memory_until_it_is_dropped(
    max_version: tuple[int, int] | None,
) -> None:
    sim = doorstep.Simulator(2)
    capsule = sim.rewards.__dlpack__(max_version=max_version)
    sim.close()
    del sim
    assert alive() == {"memory": 1, "export": 1}
    del capsule
    assert not alive()


VIEWS = {
    "tensor": lambda tensor: tensor,
    "to_numpy": lambda tensor: tensor.to_numpy(),
    "slice": lambda tensor: tensor.to_numpy()[1:, 0],
    "asarray": np.asarray,
    "from_dlpack": np.from_dlpack,
    "legacy dlpack": lambda tensor: np.from_dlpack(Exporter(tensor)),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("state", [False, True], ids=["tensor", "state"])
def test_a_view_outlives_its_simulator_and_then_frees_the_memory(view: Any, state: bool) -> None:
    sim = doorstep.Simulator(3)
    held = view(sim.state.body_positions if state else sim.self_observations)
    before = np.array(held)
    sim.close()
    del sim
    gc.collect()
    assert doorstep.live_counts()["simulator"] == 0
    assert doorstep.live_counts()["memory"] == 1
    assert (np.array(held) == before).all()
    del held
    assert not alive()


def test_a_simulator_that_is_dropped_is_closed_at_once_even_with_views_alive() -> None:
    sim = doorstep.Simulator(2)
    actions = sim.actions.to_numpy()
    gc.disable()
    try:
        del sim
        assert doorstep.live_counts()["simulator"] == 0
    finally:
        gc.enable()
    actions[:] = 1


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_simulator_tensor_and_array_can_go_in_any_order(order: tuple[int, ...]) -> None:
    sim = doorstep.Simulator(2)
    held: dict[int, Any] = {0: sim, 1: sim.rewards, 2: np.from_dlpack(sim.rewards)}
    del sim
    for key in order:
        assert doorstep.live_counts()["memory"] == 1
        del held[key]
    assert not alive()


def test_a_capsule_that_cannot_be_made_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("doorstep._native.memory.capsule_tools", lambda: (no_memory, (0, 0), 0))
    with doorstep.Simulator(2) as sim, pytest.raises(MemoryError):
        sim.rewards.__dlpack__()
    assert doorstep.live_counts()["export"] == 0


def test_many_views_leave_nothing_behind() -> None:
    with doorstep.Simulator(2) as sim:
        for _ in range(1000):
            np.from_dlpack(sim.rewards)
            np.asarray(sim.rewards)
            sim.rewards.__dlpack__()
        assert doorstep.live_counts()["export"] == 0


# ---- PyTorch and JAX ----


@pytest.mark.parametrize("name", NAMES)
def test_torch_reads_the_memory_itself(name: str) -> None:
    torch = pytest.importorskip("torch")
    with doorstep.Simulator(WORLDS) as sim:
        tensor = sim.tensors[name]
        for view in (tensor.to_torch(), torch.from_dlpack(tensor)):
            assert view.data_ptr() == pointer(tensor)
            assert tuple(view.shape) == tensor.shape
            assert str(view.dtype) == f"torch.{tensor.dtype}"


def test_torch_reads_state_with_its_strides() -> None:
    torch = pytest.importorskip("torch")
    with doorstep.Simulator(3) as sim:
        positions = sim.state.body_positions
        view = positions.to_torch()
        assert view.data_ptr() == pointer(positions)
        assert [4 * stride for stride in view.stride()] == list(positions.strides)
        view[1, 0, 0] = 5.0
        assert positions.to_numpy()[1, 0, 0] == 5.0
        assert torch.equal(view, torch.from_numpy(positions.to_numpy()))


def test_a_torch_tensor_outlives_its_simulator() -> None:
    pytest.importorskip("torch")
    sim = doorstep.Simulator(2)
    view = sim.steps_remaining.to_torch()
    sim.close()
    del sim
    assert view.sum().item() == 2 * 2 * 200
    assert doorstep.live_counts()["export"] == 1
    del view
    assert not alive()


@pytest.fixture
def jax() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("jax")


def test_jax_reads_the_memory_itself_and_warns_once(jax: Any) -> None:
    _warn_about_immutability.cache_clear()
    with doorstep.Simulator(WORLDS) as sim:
        with pytest.warns(UserWarning, match="never change"):
            sim.rewards.to_jax()
        for tensor in sim.tensors.values():
            array = tensor.to_jax()
            assert array.unsafe_buffer_pointer() == pointer(tensor) or tensor.nbytes == 0
            assert (array.shape, array.dtype) == (tensor.shape, tensor.dtype)
            del array
        gc.collect()


def test_jax_cannot_read_state_in_place_and_the_error_names_copy(jax: Any) -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match="contiguous") as caught:
        sim.state.body_positions.to_jax()
    assert caught.value.argument == "copy"


def test_jax_copy_is_a_real_copy_without_a_warning(jax: Any) -> None:
    with doorstep.Simulator(2) as sim:
        for tensor in (sim.steps_remaining, sim.state.body_positions):
            array = tensor.to_jax(copy=True)
            before = np.array(array)
            sim.step()
            assert (np.array(array) == before).all()
