"""On the CPU a tensor is used like the numpy array of its memory; other uses raise an error that names the way."""

from __future__ import annotations

import copy
import inspect
import operator
from typing import Any

import numpy as np
import pytest
from tests.pkg.dlpack_only import OnlyDlpack

import doorstep


def test_an_index_gives_a_view() -> None:
    with doorstep.Simulator(3) as sim:
        assert np.shares_memory(sim.actions[1], sim.actions.to_numpy())
        sim.actions[1][0, 3] = 1
        assert sim.actions[1, 0, 3] == 1
        assert sim.actions[..., 3].sum() == 1
        assert sim.actions[sim.actions[..., 3] == 1].tolist() == [[0, 0, 2, 1]]
        assert sim.lidar[-1, :, ::2].shape == (2, 15, 2)


def test_writing_to_parts_reaches_the_simulator() -> None:
    with doorstep.Simulator(2) as written, doorstep.Simulator(2) as assigned:
        written.actions[0] = (3, 0, 2, 0)
        written.actions[1, 1, 0] += 2
        written.resets[1] = True
        actions = assigned.actions.copy_to_host()
        actions[0], actions[1, 1, 0] = (3, 0, 2, 0), 2
        assigned.actions = actions
        assigned.resets = np.array([[0], [1]])
        for sim in (written, assigned):
            sim.step()
        assert written.hash() == assigned.hash()


def test_writing_to_what_the_simulator_writes_is_refused() -> None:
    with doorstep.Simulator(2) as sim:
        before = sim.rewards.copy_to_host()
        with pytest.raises(doorstep.ArgumentError, match=r"only the simulator writes Tensor\(rewards.*`actions`"):
            sim.rewards[0] = 1
        with pytest.raises(ValueError, match="read-only"):
            sim.rewards[0][:] = 1
        with pytest.raises(ValueError, match="read-only"):
            np.add(sim.rewards, 1, out=sim.rewards)  # type: ignore[call-overload]
        assert (sim.rewards == before).all()


@pytest.mark.parametrize("index", [5, (0, 0, 9), "rewards", (0, 0, 0, 0, 0)])
def test_a_wrong_index_is_numpys_error(index: Any) -> None:
    with doorstep.Simulator(2) as sim:
        with pytest.raises(IndexError):
            sim.rewards[index]
        with pytest.raises(IndexError):
            sim.actions[index] = 1


def test_sizes_are_numpys() -> None:
    with doorstep.Simulator(3, num_agents=1) as sim:
        for tensor in [*sim.tensors.values(), sim.state.body_positions, sim.state.episode_index]:
            array = tensor.to_numpy()
            for name in ("ndim", "size", "nbytes", "shape", "dtype", "strides"):
                assert getattr(tensor, name) == getattr(array, name)
            assert len(tensor) == len(array)


def test_iteration_gives_the_worlds() -> None:
    with doorstep.Simulator(3) as sim:
        for world, (actions, array) in enumerate(zip(sim.actions, sim.actions.to_numpy(), strict=True)):
            assert np.shares_memory(actions, array)
            actions[:] = world
        assert sim.actions[:, 0, 0].tolist() == [0, 1, 2]


def test_a_truth_value_is_numpys() -> None:
    with doorstep.Simulator(2) as sim, doorstep.Simulator(1, num_agents=1) as single:
        with pytest.raises(ValueError, match="ambiguous"):
            bool(sim.dones)
        with pytest.raises(ValueError, match="ambiguous"):
            assert not sim.dones
        assert not single.dones
        assert single.steps_remaining


@pytest.mark.parametrize(
    "name", ["eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "floordiv", "and_", "lshift"]
)
def test_operators_are_elementwise_in_both_directions(name: str) -> None:
    apply = getattr(operator, name)
    with doorstep.Simulator(2) as sim:
        sim.actions[:] = np.arange(1, 17).reshape(2, 2, 4)
        array = sim.actions.copy_to_host()
        for other in (2, array[::-1], [1, 2, 3, 4], sim.steps_remaining):
            result = apply(sim.actions, other)
            assert type(result) is np.ndarray
            np.testing.assert_array_equal(result, apply(array, np.asarray(other)))
        np.testing.assert_array_equal(apply(5, sim.actions), apply(5, array))
        np.testing.assert_array_equal(apply(array[::-1], sim.actions), apply(array[::-1], array))
        np.testing.assert_array_equal(sim.actions, array)


def test_done_worlds_are_found_by_comparing() -> None:
    with doorstep.Simulator(2, episode_length=2) as sim:
        sim.resets[0] = 1
        sim.step()
        sim.step()
        assert (sim.dones == 1)[:, :, 0].tolist() == [[False, False], [True, True]]
        assert 1 in sim.dones
        assert 7 not in sim.dones


def test_operators_in_place_write_the_memory() -> None:
    with doorstep.Simulator(2) as sim:
        tensor = sim.actions
        sim.actions += 1
        assert sim.actions is tensor
        assert sim.actions[1, 1].tolist() == [1, 1, 3, 1]
        sim.actions[:, 0] *= 0
        assert sim.actions[1].tolist() == [[0] * 4, [1, 1, 3, 1]]
        with pytest.raises(ValueError, match="read-only"):
            sim.rewards += 1


def test_functions_of_numpy_take_tensors() -> None:
    with doorstep.Simulator(2) as sim:
        sim.step()
        rewards = sim.rewards.to_numpy()
        assert np.exp(sim.rewards).tolist() == np.exp(rewards).tolist()
        assert np.mean(sim.rewards) == np.mean(rewards)
        assert np.add.reduce(sim.rewards, axis=None) == rewards.sum()
        assert np.where(sim.dones, 0.0, sim.rewards).shape == (2, 2, 1)
        out = np.empty_like(rewards)
        assert np.negative(sim.rewards, out=out) is out
        assert out.tolist() == (-rewards).tolist()


def test_methods_are_numpys() -> None:
    with doorstep.Simulator(3) as sim:
        sim.actions[1] = (3, 0, 2, 0)
        sim.step()
        for tensor in (sim.rewards, sim.actions):
            array = tensor.copy_to_host()
            assert tensor.mean() == array.mean()
            assert tensor.sum(axis=0).tolist() == array.sum(axis=0).tolist()
            assert tensor.reshape(3, -1).shape == (3, array.size // 3)
            assert tensor.tolist() == array.tolist()
            assert {"mean", "reshape", "to_torch"} <= set(dir(tensor))
        sim.actions.fill(1)
        assert (sim.actions == 1).all()
        with pytest.raises(ValueError, match="read-only"):
            sim.rewards.fill(1)
        for name in ("maen", "__array_struct__", "__jax_array__", "_shape_of"):
            assert not hasattr(sim.rewards, name)


def test_a_tensor_cannot_be_hashed_as_an_array_cannot() -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(TypeError, match="unhashable"):
        hash(sim.rewards)


def test_what_is_impossible_names_the_way() -> None:
    with doorstep.Simulator(2) as sim:
        with pytest.raises(AttributeError, match="is host memory; it has an __array_interface__"):
            sim.rewards.__cuda_array_interface__  # noqa: B018
        with pytest.raises(TypeError, match="copy_to_host"):
            copy.deepcopy(sim.rewards)


def test_repr_shows_what_it_is_and_few_values() -> None:
    with doorstep.Simulator(2) as small, doorstep.Simulator(1000) as large:
        assert repr(small.dones) == "Tensor(dones, int32 [2, 2, 1], cpu, read-only)\n[[[0]\n  [0]]\n\n [[0]\n  [0]]]"
        assert repr(large.actions).startswith("Tensor(actions, int32 [1000, 2, 4], cpu, writable)\n[[[0 0 2 0]\n")
        assert repr(large.actions).count("\n") < 15
        assert repr(large.lidar) == "Tensor(lidar, float32 [1000, 2, 30, 2], cpu, read-only)"


def test_notebooks_show_tensors_and_simulators() -> None:
    with doorstep.Simulator(2, seed=5) as sim:
        assert "<code>Tensor(dones, int32 [2, 2, 1], cpu, read-only)</code>" in sim.dones._repr_html_()
        assert "[[[0]" in sim.dones._repr_html_()
        shown = sim._repr_html_()
        assert "seed" in shown
        assert shown.count("<tr>") == len(sim.tensors) + 1
        for name, tensor in sim.tensors.items():
            assert f"<td>{name}</td><td>{tensor.dtype}</td><td>{list(tensor.shape)}</td>" in shown
    assert "closed" in sim._repr_html_()


# ---- Tensors that a simulator does not have ----


@pytest.mark.parametrize("name", ["rgb", "depth", "segmentation", "normals", "observations", "final_observations"])
def test_an_absent_tensor_is_no_attribute(name: str) -> None:
    with doorstep.Simulator(2, observations="by_name") as sim:
        assert not hasattr(sim, name)
        assert getattr(sim, name, None) is None
        with pytest.raises(doorstep.AbsentTensorError) as caught:
            getattr(sim, name)
        assert isinstance(caught.value, (doorstep.ArgumentError, AttributeError))
        assert caught.value.hint.startswith("make the simulator with ")
        assert name not in sim.tensors


def test_members_of_a_simulator_can_be_listed() -> None:
    with doorstep.Simulator(2) as sim:
        members = dict(inspect.getmembers(sim))
        assert members["rewards"] is sim.rewards
        assert "rgb" not in members


# ---- Assigning other integer dtypes ----

DTYPES = ["int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_actions_of_any_integer_dtype_are_assigned(dtype: str, strided: bool) -> None:
    actions = np.random.default_rng(1).integers(0, doorstep.ACTIONS, (5, 2, 4)).astype(dtype)
    with doorstep.Simulator(5) as sim:
        for shaped in (actions, actions.reshape(10, 4)):
            sim.actions[:] = 0
            sim.actions = np.repeat(shaped, 2, axis=-1)[..., ::2] if strided else shaped
            np.testing.assert_array_equal(sim.actions, actions)
            assert sim.actions.dtype == np.int32


@pytest.mark.parametrize(
    ("dtype", "value"), [("int64", 2**32 + 1), ("uint64", 2**63), ("int64", -(2**40)), ("uint32", 2**31)]
)
def test_values_beyond_int32_stay_illegal(dtype: str, value: int) -> None:
    actions = np.full((2, 2, 4), value, dtype)
    legal = np.full((2, 2, 4), 0 if value < 0 else np.array(doorstep.ACTIONS) - 1, np.int32)
    with doorstep.Simulator(2) as sim, doorstep.Simulator(2) as expected:
        sim.actions, expected.actions = actions, legal
        assert sim.actions[0, 0, 0] == (-(2**31) if value < 0 else 2**31 - 1)
        sim.step()
        expected.step()
        assert sim.health.clamped_actions == 16
        assert (sim.state.body_positions == expected.state.body_positions).all()
    with doorstep.Simulator(2, action_check="raise") as sim:
        sim.actions = actions
        with pytest.raises(doorstep.ArgumentError, match="actions"):
            sim.step()


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_integers_of_other_libraries_are_assigned(library: str) -> None:
    module = pytest.importorskip(library)
    numbers = np.random.default_rng(1).integers(0, doorstep.ACTIONS, (5, 2, 4))
    actions = module.as_tensor(numbers) if library == "torch" else module.numpy.asarray(numbers.astype(np.int16))
    with doorstep.Simulator(5) as sim:
        sim.actions = actions
        np.testing.assert_array_equal(sim.actions, numbers)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("library", ["numpy", "dlpack", "torch"])
def test_integers_are_assigned_whatever_their_strides(library: str, dtype: str) -> None:
    numbers = np.random.default_rng(1).integers(0, doorstep.ACTIONS, (5, 2, 4)).astype(dtype)
    if library == "torch":
        torch = pytest.importorskip("torch")
        whole = torch.from_numpy(numbers)
        pairs = [(whole, numbers), (whole.permute(2, 1, 0).contiguous().permute(2, 1, 0), numbers)]
    else:
        wrap = OnlyDlpack if library == "dlpack" else np.asarray
        columns = np.asfortranarray(numbers)
        pairs = [(wrap(each), each) for each in (numbers, columns, numbers[:, ::-1], columns[::-1])]
    with doorstep.Simulator(5) as sim:
        for actions, expected in pairs:
            sim.actions = actions
            np.testing.assert_array_equal(sim.actions, expected)


@pytest.mark.parametrize(
    "mask", [np.array([True, False, True]), np.array([[1], [0], [-7]], np.int64)], ids=["bool", "int64"]
)
def test_worlds_are_reset_by_truth_values_and_any_integers(mask: Any) -> None:
    with doorstep.Simulator(3) as sim:
        sim.resets = mask
        sim.step()
        assert sim.steps_remaining[:, 0, 0].tolist() == [200, 199, 200]


@pytest.mark.parametrize("dtype", ["bool", "float32", "float64", "complex64"])
def test_actions_that_are_not_integers_are_refused(dtype: str) -> None:
    with doorstep.Simulator(3) as sim:
        before = sim.actions.copy_to_host()
        with pytest.raises(doorstep.ArgumentError, match=f"actions is {dtype} .* must be int32"):
            sim.actions = np.ones((3, 2, 4), dtype)
        assert (sim.actions == before).all()
