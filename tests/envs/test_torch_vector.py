"""TorchEscapeRoomVectorEnv: the bits of EscapeRoomVectorEnv in tensors of PyTorch; on a GPU without waiting."""

import numpy as np
import pytest
from tests.envs import every
from tests.envs.every import Case, played
from tests.envs.histories import actions_of, same_where_set
from tests.refuses import raising, refuses

pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")

from tests.envs.torch_checks import NoWaits, arrays_of_a_gpu  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import doorstep  # noqa: E402
from doorstep._action_forms import NUM_ACTIONS  # noqa: E402
from doorstep.envs import TorchEscapeRoomVectorEnv  # noqa: E402

MODES = ("next_step", "same_step", "disabled")
WORLDS, AGENTS, LENGTH = 4, 2, 5
RULES = {"num_agents": AGENTS, "episode_length": LENGTH, "num_threads": 1, "seed": 0}


def equal(tensors, arrays):
    """Tensors of the same bits as arrays."""
    for found, expected in zip(tensors, arrays, strict=True):
        assert isinstance(found, torch.Tensor)
        assert found.numpy().dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize(
    ("mode", "form", "num_agents"),
    [("next_step", "multi_discrete", 5), ("same_step", "discrete", 8), ("disabled", "tuple", 2)],
)
def test_bits_are_the_same_also_with_what_a_gpu_would_be_asked(mode, form, num_agents, monkeypatch):
    """Steps on a GPU ask for no values: `info` always has its keys, and is the same where its masks are set. Nor do
    they make arrays of numpy. Numbers outside are actions out of range, which the simulator counts."""
    case = Case(64, num_agents, "joint", form, autoreset=mode)
    plain, on_cpu = (played(f"{name}EscapeRoomVectorEnv", case, seed=1) for name in ("", "Torch"))
    monkeypatch.setattr(TorchEscapeRoomVectorEnv, "_arrays", staticmethod(arrays_of_a_gpu))
    on_gpu = played("TorchEscapeRoomVectorEnv", case, seed=1)
    arrays, tensors = plain.env, on_gpu.env
    for name in ("observation_space", "action_space"):
        assert getattr(arrays, name) == getattr(tensors, name)
    for env in (on_cpu.env, tensors):
        equal(env.reset()[:1], arrays.reset(seed=1)[:1])
    keys, seen, refuse = set(), 0, raising(AssertionError, "a tensor went to the host")
    for actions in actions_of(7, 12, 64, num_agents):
        expected, given = arrays.step(plain.given(actions)), on_gpu.given(actions)
        equal(on_cpu.env.step(given)[:4], expected[:4])
        with NoWaits(), monkeypatch.context() as patched:
            for name in ("__array__", "numpy", "cpu", "tolist"):
                patched.setattr(torch.Tensor, name, refuse)
            found = tensors.step(given)
        equal(found[:4], expected[:4])
        seen += np.count_nonzero(expected[1])
        keys.add(tuple(found[4]))
        if expected[4]:
            same_where_set(found[4], expected[4])
            if mode == "disabled":
                for env in (arrays, on_cpu.env, tensors):
                    env.reset()
        else:
            assert not found[4]["_final_obs" if mode == "same_step" else "_episode_returns"].any()
    assert len(keys) == 1
    assert seen > 100
    if form == "discrete":
        tensors.step(np.full((64, num_agents), [NUM_ACTIONS, -1] * (num_agents // 2)))
        assert tensors.simulator.health.clamped_actions == 64 * num_agents * len(doorstep.ACTIONS)


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
        one, other = played(name, seed=5, **options), played(name, seed=5, **options)
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
