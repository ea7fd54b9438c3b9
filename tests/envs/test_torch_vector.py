"""TorchEscapeRoomVectorEnv: the same numbers as EscapeRoomVectorEnv, in tensors of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.envs import every
from tests.envs.histories import actions_of, some_worlds

import doorstep

pytest.importorskip("gymnasium")
torch: Any = pytest.importorskip("torch")

from tests.envs.torch_checks import NoWaits, arrays_of_a_gpu  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from doorstep.envs import EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv  # noqa: E402

MODES = ("next_step", "same_step", "disabled")
WORLDS, AGENTS, LENGTH = 4, 2, 5
RULES: dict[str, Any] = {"num_agents": AGENTS, "episode_length": LENGTH, "num_threads": 1, "seed": 0}


def pair(**arguments: Any) -> tuple[Any, Any]:
    rows = WORLDS * AGENTS if arguments.get("agents") == "rows" else WORLDS
    made = [kind(rows, **{**RULES, **arguments}) for kind in (EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv)]
    return made[0], made[1]


def equal(found: Any, expected: Any) -> None:
    """Tensors of the same bits as arrays."""
    if isinstance(expected, (dict, tuple)):
        items = expected.items() if isinstance(expected, dict) else enumerate(expected)
        assert len(found) == len(expected)
        for key, value in items:
            equal(found[key], value)
    else:
        assert isinstance(found, torch.Tensor)
        assert found.numpy().dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("view", ["joint", "rows"])
@pytest.mark.parametrize("mode", MODES)
def test_it_equals_the_numpy_environment(mode: str, view: str, kind: str) -> None:
    arrays, tensors = pair(agents=view, observations=kind, autoreset_mode=mode, seed=4)
    assert (tensors.observation_space, tensors.action_space) == (arrays.observation_space, arrays.action_space)
    equal(tensors.reset(), arrays.reset())
    generator = np.random.default_rng(1)
    for step, actions in enumerate(actions_of(7, 30, WORLDS, AGENTS).reshape(30, *arrays.action_space.shape)):
        if step % 7 == 2:
            mask = np.repeat(some_worlds(generator, WORLDS), AGENTS if view == "rows" else 1)
            options = {"reset_mask": torch.from_numpy(mask)}
            equal(tensors.reset(options=options), arrays.reset(options={"reset_mask": mask}))
        expected, found = arrays.step(actions), tensors.step(torch.from_numpy(actions))
        equal(found, expected)
        ended = expected[2] | expected[3]
        if mode == "disabled" and ended.any():
            equal(tensors.reset(options={"reset_mask": ended}), arrays.reset(options={"reset_mask": ended}))
    equal(tensors.reset(seed=3), arrays.reset(seed=3))
    arrays.close()
    tensors.close()


@pytest.mark.parametrize("num_agents", range(1, 9))
def test_rewards_of_worlds_have_the_same_bits(num_agents: int) -> None:
    kinds: Any = (EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv)
    made = [kind(64, num_agents=num_agents, episode_length=12) for kind in kinds]
    seen = 0
    for env in made:
        env.reset(seed=1)
    for actions in actions_of(1, 12, 64, num_agents).reshape(12, 64, -1):
        arrays, tensors = (env.step(actions) for env in made)
        equal(tensors, arrays)
        seen += np.count_nonzero(arrays[1])
    assert seen > 100
    for env in made:
        env.close()


@pytest.mark.parametrize("mode", MODES)
def test_what_a_gpu_would_be_asked_is_the_same(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps on a GPU ask for no values: `info` always has its keys, and is the same where its masks are set."""
    arrays = EscapeRoomVectorEnv(WORLDS, autoreset_mode=mode, **RULES)
    monkeypatch.setattr(TorchEscapeRoomVectorEnv, "_arrays", staticmethod(arrays_of_a_gpu))
    tensors = TorchEscapeRoomVectorEnv(WORLDS, autoreset_mode=mode, **RULES)
    equal(tensors.reset(seed=1)[0], arrays.reset(seed=1)[0])
    keys = set()
    for actions in actions_of(7, 20, WORLDS, AGENTS).reshape(20, WORLDS, -1):
        taken, expected = torch.from_numpy(actions), arrays.step(actions)
        with NoWaits():
            found = tensors.step(taken)
        equal(found[:4], expected[:4])
        keys.add(tuple(found[4]))
        if expected[4]:
            _equal_where_set(found[4], expected[4])
            if mode == "disabled":
                arrays.reset()
                tensors.reset()
        else:
            assert not found[4]["_final_obs" if mode == "same_step" else "_episode_returns"].any()
    assert len(keys) == 1
    arrays.close()
    tensors.close()


def _equal_where_set(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert set(found) == set(expected)
    for name, value in expected.items():
        if isinstance(value, dict):
            _equal_where_set(found[name], value)
        else:
            where = expected["_" + name.removeprefix("_")]
            np.testing.assert_array_equal(found[name].numpy()[where], value[where])


@pytest.mark.parametrize("mode", MODES)
def test_what_is_returned_belongs_to_the_caller(mode: str) -> None:
    env, other = pair(autoreset_mode=mode)[1], TorchEscapeRoomVectorEnv(WORLDS, autoreset_mode=mode, **RULES)
    env.reset()
    other.reset()
    kept = []
    for actions in actions_of(2, LENGTH, WORLDS, AGENTS).reshape(LENGTH, WORLDS, -1):
        outcome = env.step(torch.from_numpy(actions))
        equal(other.step(actions)[0], outcome[0].numpy())
        kept += [(tensor, tensor.clone()) for tensor in outcome[:4]]
    env.reset()
    assert all(torch.equal(tensor, copy) for tensor, copy in kept)
    for tensor in outcome[:4]:
        tensor.fill_(1)
    assert not torch.equal(env.reset()[0], outcome[0])
    env.close()
    other.close()


def test_without_copies_observations_are_the_simulators_memory() -> None:
    env = TorchEscapeRoomVectorEnv(WORLDS, copy=False, **RULES)
    observations, _ = env.reset()
    assert observations.data_ptr() == env.simulator.observations.to_torch().data_ptr()
    before = observations.clone()
    env.step(torch.ones(WORLDS, 4 * AGENTS, dtype=torch.int32))
    assert not torch.equal(observations, before)
    env.close()


@pytest.mark.parametrize("name", every.ENVIRONMENTS)
@pytest.mark.parametrize("arguments", [{}, {"copy": False}, {"copy": False, "observations": "by_name"}])
def test_what_pytorch_has_shared_goes_stale_nowhere(name: str, arguments: dict[str, Any]) -> None:
    """Sharing gives a tensor other memory, which no step writes."""
    if arguments and name not in ("EscapeRoomVectorEnv", "TorchEscapeRoomVectorEnv"):
        return  # its observations are copies by name or not at all
    env, other = every.make(name, seed=5, **arguments), every.make(name, seed=5, **arguments)
    for each in (env, other):
        every.begin(each)
    for _ in range(3):
        outcome = every.step(env)
        assert every.same_everywhere(outcome, every.step(other))
        for tensor in tree_leaves(dict(outcome) if hasattr(outcome, "keys") else outcome):
            if isinstance(tensor, torch.Tensor):
                tensor.share_memory_()
    env.close()
    other.close()


def test_no_step_makes_arrays_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU they would wait for it."""
    monkeypatch.setattr(TorchEscapeRoomVectorEnv, "_arrays", staticmethod(arrays_of_a_gpu))
    env = TorchEscapeRoomVectorEnv(WORLDS, autoreset_mode="same_step", **RULES)
    env.reset()
    actions = torch.ones(WORLDS, 4 * AGENTS, dtype=torch.int32)

    def refuse(*_: Any) -> Any:
        raise AssertionError("a tensor went to numpy")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    monkeypatch.setattr(torch.Tensor, "numpy", refuse)
    monkeypatch.setattr(torch.Tensor, "cpu", refuse)
    monkeypatch.setattr(torch.Tensor, "tolist", refuse)
    for _ in range(LENGTH + 1):
        env.step(actions)
    env.close()


@pytest.mark.parametrize(
    "actions",
    [
        torch.zeros(WORLDS, 4),
        torch.zeros(WORLDS, 8),
        torch.zeros(WORLDS, 8, dtype=torch.float16),
        torch.zeros(WORLDS, 2, 4, dtype=torch.int64),
        [[0] * 8] * 3,
    ],
    ids=lambda value: str(getattr(value, "shape", "list")),
)
def test_bad_actions_are_refused_and_change_nothing(actions: Any) -> None:
    env = TorchEscapeRoomVectorEnv(WORLDS, **RULES)
    env.reset()
    before = env.simulator.hash()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.step(actions)
    assert caught.value.argument == "actions"
    assert env.simulator.hash() == before
    env.close()


@pytest.mark.parametrize("mask", [torch.ones(WORLDS), torch.ones(3, dtype=torch.bool), torch.zeros(WORLDS).bool()])
def test_bad_masks_are_refused(mask: Any) -> None:
    env = TorchEscapeRoomVectorEnv(WORLDS, **RULES)
    env.reset()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.reset(options={"reset_mask": mask})
    assert caught.value.argument == "reset_mask"
    env.close()


@pytest.mark.parametrize("mode", MODES)
def test_wrappers_for_numpy_follow_a_conversion(mode: str) -> None:
    """gymnasium's statistics are made by numpy."""
    conversion: Any = pytest.importorskip("gymnasium.wrappers.vector.array_conversion")
    wrappers: Any = pytest.importorskip("gymnasium.wrappers.vector")
    to_numpy: Any = pytest.importorskip("array_api_compat.numpy")
    to_torch: Any = pytest.importorskip("array_api_compat.torch")
    env = TorchEscapeRoomVectorEnv(WORLDS, autoreset_mode=mode, **RULES)
    converted = conversion.ArrayConversion(env, env_xp=to_torch, target_xp=to_numpy)
    wrapped = wrappers.RecordEpisodeStatistics(converted)
    wrapped.reset(seed=1)
    for _ in range(LENGTH):
        observations, *_, info = wrapped.step(np.ones((WORLDS, 4 * AGENTS), np.int32))
    assert isinstance(observations, np.ndarray)
    own = info["final_info"] if mode == "same_step" else info
    np.testing.assert_array_equal(info["episode"]["l"], own["episode_lengths"])
    np.testing.assert_allclose(info["episode"]["r"], own["episode_returns"], rtol=1e-5)
    env.close()


def test_an_ended_episode_is_not_stepped_with_disabled() -> None:
    env = TorchEscapeRoomVectorEnv(WORLDS, autoreset_mode="disabled", **RULES)
    env.reset()
    actions = torch.ones(WORLDS, 4 * AGENTS, dtype=torch.int32)
    for _ in range(LENGTH):
        env.step(actions)
    with pytest.raises(doorstep.StateError, match="row 0 has ended"):
        env.step(actions)
    env.close()
