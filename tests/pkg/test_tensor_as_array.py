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
        sim.actions[1][0, 3] = 1
        assert (sim.actions[1, 0, 3], sim.actions[..., 3].sum()) == (1, 1)
        assert sim.actions[sim.actions[..., 3] == 1].tolist() == [[0, 0, 2, 1]]
        assert sim.lidar[-1, :, ::2].shape == (2, 15, 2)
        for world, actions in enumerate(sim.actions):
            actions[:] = world
        assert sim.actions[:, 0, 0].tolist() == [0, 1, 2]
        for index in (5, (0, 0, 9), "rewards", (0, 0, 0, 0, 0)):
            refuses(None, operator.getitem, sim.rewards, index, error=IndexError)
            refuses(None, operator.setitem, sim.actions, index, 1, error=IndexError)


def test_writing_to_parts_reaches_the_simulator():
    with doorstep.Simulator(2) as written, doorstep.Simulator(2) as assigned:
        tensor = written.actions
        written.actions[0] = (3, 0, 2, 0)
        written.actions[1, 1, 0] += 2
        written.actions += 1  # in place
        written.actions[:, 0] *= 0
        assert written.actions is tensor
        assert written.actions.tolist() == [[[0] * 4, [4, 1, 3, 1]], [[0] * 4, [3, 1, 3, 1]]]
        written.resets[1] = True
        assigned.actions, assigned.resets = written.actions, np.array([[0], [1]])
        steps(1, written, assigned)
        assert written.hash() == assigned.hash()
        written.actions.fill(1)
        assert (written.actions == 1).all()


def test_writing_to_what_the_simulator_writes_is_refused():
    with doorstep.Simulator(2) as sim:
        before = sim.rewards.copy_to_host()
        refuses(r"only the simulator writes Tensor\(rewards.*`actions`", operator.setitem, sim.rewards, 0, 1)
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
        refuses("unhashable", hash, sim.rewards, error=TypeError)
        assert not single.dones
        assert single.steps_remaining
        assert 0 in sim.dones
        assert 7 not in sim.dones


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
        assert np.add.reduce(sim.rewards, axis=None) == rewards.sum()
        assert np.where(sim.dones, 0.0, sim.rewards).shape == np.concatenate([sim.rewards]).shape
        out = np.empty_like(rewards)
        assert np.negative(sim.rewards, out=out) is out
        assert out.tolist() == (-rewards).tolist()
        assert sim.rewards.mean() == np.mean(sim.rewards) == rewards.mean()
        assert sim.rewards.reshape(3, -1).sum(axis=0).tolist() == rewards.reshape(3, -1).sum(axis=0).tolist()
        assert {"mean", "reshape", "to_torch"} <= set(dir(sim.rewards))
        for name in ("maen", "__array_struct__", "__jax_array__", "_shape_of"):
            assert not hasattr(sim.rewards, name)


def test_what_is_impossible_names_the_way():
    with doorstep.Simulator(2, observations="by_name") as sim:
        refuses("is host memory; it has", getattr, sim.rewards, "__cuda_array_interface__", error=AttributeError)
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
        shown = small._repr_html_()
        assert shown.count("<tr>") == len(small.tensors) + 1
        for name, tensor in small.tensors.items():
            assert f"<td>{name}</td><td>{tensor.dtype}</td><td>{list(tensor.shape)}</td>" in shown
    assert "closed" in small._repr_html_()
