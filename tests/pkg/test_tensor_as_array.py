"""On the CPU a tensor is used like the numpy array of its memory; other uses raise an error that names the way."""

import copy
import inspect
import operator

import numpy as np
import pytest
from tests.refuses import refuses
from tests.scenes import steps

import doorstep
from doorstep import ArgumentError


def test_an_index_gives_a_view_and_iteration_the_worlds():
    with doorstep.Simulator(3) as sim:
        assert np.shares_memory(sim.actions[1], sim.actions.to_numpy())
        sim.actions[1][0, 3] = 1
        assert (sim.actions[1, 0, 3], sim.actions[..., 3].sum()) == (1, 1)
        assert sim.actions[sim.actions[..., 3] == 1].tolist() == [[0, 0, 2, 1]]
        assert sim.lidar[-1, :, ::2].shape == (2, 15, 2)
        for world, (actions, array) in enumerate(zip(sim.actions, sim.actions.to_numpy(), strict=True)):
            assert np.shares_memory(actions, array)
            actions[:] = world
        assert sim.actions[:, 0, 0].tolist() == [0, 1, 2]
        for index in (5, (0, 0, 9), "rewards", (0, 0, 0, 0, 0)):
            with pytest.raises(IndexError):
                sim.rewards[index]
            with pytest.raises(IndexError):
                sim.actions[index] = 1


def test_writing_to_parts_reaches_the_simulator():
    with doorstep.Simulator(2) as written, doorstep.Simulator(2) as assigned:
        written.actions[0] = (3, 0, 2, 0)
        written.actions[1, 1, 0] += 2
        written.resets[1] = True
        actions = assigned.actions.copy_to_host()
        actions[0], actions[1, 1, 0] = (3, 0, 2, 0), 2
        assigned.actions = actions
        assigned.resets = np.array([[0], [1]])
        steps(1, written, assigned)
        assert written.hash() == assigned.hash()
        tensor = written.actions
        tensor[:] = (0, 0, 2, 0)
        written.actions += 1  # in place
        assert written.actions is tensor
        written.actions[:, 0] *= 0
        assert written.actions[1].tolist() == [[0] * 4, [1, 1, 3, 1]]
        written.actions.fill(1)
        assert (written.actions == 1).all()


def test_writing_to_what_the_simulator_writes_is_refused():
    with doorstep.Simulator(2) as sim:
        before = sim.rewards.copy_to_host()
        with pytest.raises(ArgumentError, match=r"only the simulator writes Tensor\(rewards.*`actions`"):
            sim.rewards[0] = 1
        for write in (
            lambda: sim.rewards[0].fill(1),
            lambda: np.add(sim.rewards, 1, out=sim.rewards),
            lambda: operator.iadd(sim.rewards, 1),
            lambda: sim.rewards.fill(1),
        ):
            refuses("read-only", write, error=ValueError)
        assert (sim.rewards == before).all()


def test_truth_membership_and_hash_are_numpys():
    with doorstep.Simulator(2, episode_length=2) as sim, doorstep.Simulator(1, num_agents=1) as single:
        refuses("ambiguous", bool, sim.dones, error=ValueError)
        assert not single.dones
        assert single.steps_remaining
        sim.resets[0] = 1
        steps(2, sim)
        assert (sim.dones == 1)[:, :, 0].tolist() == [[False, False], [True, True]]
        assert 1 in sim.dones
        assert 7 not in sim.dones
        refuses("unhashable", hash, sim.rewards, error=TypeError)


def test_operators_are_elementwise_in_both_directions():
    with doorstep.Simulator(2) as sim:
        sim.actions[:] = np.arange(1, 17).reshape(2, 2, 4)
        array = sim.actions.copy_to_host()
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "floordiv", "and_", "lshift"):
            apply = getattr(operator, name)
            for other in (2, array[::-1], [1, 2, 3, 4], sim.steps_remaining):
                result = apply(sim.actions, other)
                assert type(result) is np.ndarray
                np.testing.assert_array_equal(result, apply(array, np.asarray(other)))
            np.testing.assert_array_equal(apply(5, sim.actions), apply(5, array))
            np.testing.assert_array_equal(apply(array[::-1], sim.actions), apply(array[::-1], array))
            np.testing.assert_array_equal(sim.actions, array)


def test_functions_and_methods_are_numpys():
    with doorstep.Simulator(3) as sim:
        sim.actions[1] = (3, 0, 2, 0)
        sim.step()
        rewards = sim.rewards.to_numpy()
        assert np.exp(sim.rewards).tolist() == np.exp(rewards).tolist()
        assert np.add.reduce(sim.rewards, axis=None) == rewards.sum()
        assert np.where(sim.dones, 0.0, sim.rewards).shape == np.concatenate([rewards]).shape
        out = np.empty_like(rewards)
        assert np.negative(sim.rewards, out=out) is out
        assert out.tolist() == (-rewards).tolist()
        for tensor in (sim.rewards, sim.actions):
            array = tensor.copy_to_host()
            assert tensor.mean() == np.mean(tensor) == array.mean()
            assert tensor.sum(axis=0).tolist() == array.sum(axis=0).tolist()
            assert tensor.reshape(3, -1).shape == (3, array.size // 3)
            assert tensor.tolist() == array.tolist()
            assert {"mean", "reshape", "to_torch"} <= set(dir(tensor))
        for name in ("maen", "__array_struct__", "__jax_array__", "_shape_of"):
            assert not hasattr(sim.rewards, name)


def test_what_is_impossible_names_the_way():
    with doorstep.Simulator(2, observations="by_name") as sim:
        with pytest.raises(AttributeError, match="is host memory; it has an __array_interface__"):
            sim.rewards.__cuda_array_interface__  # noqa: B018
        refuses("copy_to_host", copy.deepcopy, sim.rewards, error=TypeError)
        for name in ("rgb", "depth", "segmentation", "normals", "observations", "final_observations"):
            assert not hasattr(sim, name)
            with pytest.raises(doorstep.AbsentTensorError) as caught:
                getattr(sim, name)
            assert isinstance(caught.value, (ArgumentError, AttributeError))
            assert caught.value.hint.startswith("make the simulator with ")
            assert name not in sim.tensors
        members = dict(inspect.getmembers(sim))
        assert members["rewards"] is sim.rewards
        assert "rgb" not in members


def test_repr_shows_what_it_is_and_few_values_also_in_notebooks():
    with doorstep.Simulator(2, seed=5) as small, doorstep.Simulator(1000) as large:
        assert repr(small.dones) == "Tensor(dones, int32 [2, 2, 1], cpu, read-only)\n[[[0]\n  [0]]\n\n [[0]\n  [0]]]"
        assert repr(large.actions).startswith("Tensor(actions, int32 [1000, 2, 4], cpu, writable)\n[[[0 0 2 0]\n")
        assert repr(large.actions).count("\n") < 15
        assert repr(large.lidar) == "Tensor(lidar, float32 [1000, 2, 30, 2], cpu, read-only)"
        assert "<code>Tensor(dones, int32 [2, 2, 1], cpu, read-only)</code>" in small.dones._repr_html_()
        assert "[[[0]" in small.dones._repr_html_()
        shown = small._repr_html_()
        assert "seed" in shown
        assert shown.count("<tr>") == len(small.tensors) + 1
        for name, tensor in small.tensors.items():
            assert f"<td>{name}</td><td>{tensor.dtype}</td><td>{list(tensor.shape)}</td>" in shown
    assert "closed" in small._repr_html_()
