"""TorchEscapeRoomVectorEnv: the bits of EscapeRoomVectorEnv in tensors of PyTorch; on a GPU without waiting."""

import numpy as np
import pytest
from tests.envs import every
from tests.envs.histories import actions_of
from tests.refuses import raising, refuses

pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")

from tests.envs.torch_checks import NoWaits, arrays_of_a_gpu  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from doorstep.envs import EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv  # noqa: E402

MODES = ("next_step", "same_step", "disabled")
WORLDS, AGENTS, LENGTH = 4, 2, 5
RULES = {"num_agents": AGENTS, "episode_length": LENGTH, "num_threads": 1, "seed": 0}


def equal(found, expected):
    """Tensors of the same bits as arrays, in the same dictionaries."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            equal(found[key], value)
    else:
        assert isinstance(found, torch.Tensor)
        assert found.numpy().dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("num_agents", [1, 2, 5, 8])
def test_rewards_of_worlds_have_the_same_bits(num_agents):
    rules = {"num_agents": num_agents, "episode_length": 12}
    made = [kind(64, **rules) for kind in (EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv)]
    assert (made[0].observation_space, made[0].action_space) == (made[1].observation_space, made[1].action_space)
    seen = 0
    for env in made:
        env.reset(seed=1)
    for actions in actions_of(1, 12, 64, num_agents).reshape(12, 64, -1):
        arrays, tensors = (env.step(actions) for env in made)
        for found, expected in zip(tensors, arrays, strict=True):
            equal(found, expected)
        seen += np.count_nonzero(arrays[1])
    assert seen > 100


@pytest.mark.parametrize("mode", MODES)
def test_what_a_gpu_would_be_asked_is_the_same(mode, monkeypatch):
    """Steps on a GPU ask for no values: `info` always has its keys, and is the same where its masks are set. Nor do
    they make arrays of numpy."""
    arrays = EscapeRoomVectorEnv(WORLDS, autoreset_mode=mode, **RULES)
    monkeypatch.setattr(TorchEscapeRoomVectorEnv, "_arrays", staticmethod(arrays_of_a_gpu))
    tensors = TorchEscapeRoomVectorEnv(WORLDS, autoreset_mode=mode, **RULES)
    equal(tensors.reset(seed=1)[0], arrays.reset(seed=1)[0])
    keys = set()

    refuse = raising(AssertionError, "a tensor went to the host")
    for actions in actions_of(7, 20, WORLDS, AGENTS).reshape(20, WORLDS, -1):
        taken, expected = torch.from_numpy(actions), arrays.step(actions)
        with NoWaits(), monkeypatch.context() as patched:
            for name in ("__array__", "numpy", "cpu", "tolist"):
                patched.setattr(torch.Tensor, name, refuse)
            found = tensors.step(taken)
        for one, other in zip(found[:4], expected[:4], strict=True):
            equal(one, other)
        keys.add(tuple(found[4]))
        if expected[4]:
            equal_where_set(found[4], expected[4])
            if mode == "disabled":
                arrays.reset()
                tensors.reset()
        else:
            assert not found[4]["_final_obs" if mode == "same_step" else "_episode_returns"].any()
    assert len(keys) == 1


def equal_where_set(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        if isinstance(value, dict):
            equal_where_set(found[name], value)
        else:
            where = expected["_" + name.removeprefix("_")]
            np.testing.assert_array_equal(found[name].numpy()[where], value[where])


def test_without_copies_observations_are_the_simulators_memory():
    env = TorchEscapeRoomVectorEnv(WORLDS, copy=False, **RULES)
    observations, _ = env.reset()
    assert observations.data_ptr() == env.simulator.observations.to_torch().data_ptr()
    before = observations.clone()
    env.step(torch.ones(WORLDS, 4 * AGENTS, dtype=torch.int32))
    assert not torch.equal(observations, before)
    for mask in (torch.ones(WORLDS), torch.ones(3, dtype=torch.bool), torch.zeros(WORLDS).bool()):
        refuses(r"^reset_mask", env.reset, options={"reset_mask": mask})
    refuses(r"actions is .*torch\.float16", env.step, torch.zeros(WORLDS, 8, dtype=torch.float16))


@pytest.mark.parametrize("name", ["EscapeRoomRslRlEnv", "EscapeRoomSkrlEnv", "TorchEscapeRoomVectorEnv"])
def test_what_pytorch_has_shared_goes_stale_nowhere(name):
    """Sharing gives a tensor other memory, which no step writes."""
    pytest.importorskip(every.KINDS[name].module)
    for options in ({}, *([{"copy": False}] if name == "TorchEscapeRoomVectorEnv" else [])):
        one, other = every.played(name, seed=5, **options), every.played(name, seed=5, **options)
        one.reset()
        other.reset()
        for actions in actions_of(3, 3, one.case.worlds, 2):
            found, expected = one.step(actions), other.step(actions)
            np.testing.assert_array_equal(found.observations["observations"], expected.observations["observations"])
            np.testing.assert_array_equal(found.rewards, expected.rewards)
            for tensor in tree_leaves(one.raw):
                if isinstance(tensor, torch.Tensor):
                    tensor.share_memory_()


def test_wrappers_for_numpy_follow_a_conversion():
    """gymnasium's statistics are made by numpy."""
    conversion = pytest.importorskip("gymnasium.wrappers.vector.array_conversion")
    wrappers = pytest.importorskip("gymnasium.wrappers.vector")
    ours, theirs = (pytest.importorskip(f"array_api_compat.{name}") for name in ("torch", "numpy"))
    for mode in MODES:
        env = TorchEscapeRoomVectorEnv(WORLDS, autoreset_mode=mode, **RULES)
        wrapped = wrappers.RecordEpisodeStatistics(conversion.ArrayConversion(env, env_xp=ours, target_xp=theirs))
        wrapped.reset(seed=1)
        for _ in range(LENGTH):
            observations, *_, info = wrapped.step(np.ones((WORLDS, 4 * AGENTS), np.int32))
        assert isinstance(observations, np.ndarray)
        own = info["final_info"] if mode == "same_step" else info
        np.testing.assert_array_equal(info["episode"]["l"], own["episode_lengths"])
        np.testing.assert_allclose(info["episode"]["r"], own["episode_returns"], rtol=1e-5)
