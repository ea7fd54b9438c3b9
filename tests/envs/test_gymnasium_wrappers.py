"""gymnasium's checks and wrappers of vector environments accept doorstep's, and refuse the modes that they say."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import actions_of

import doorstep

gymnasium: Any = pytest.importorskip("gymnasium")

from gymnasium.utils import env_checker, passive_env_checker  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

from doorstep.envs import EscapeRoomVectorEnv  # noqa: E402

wrappers: Any = gymnasium.wrappers.vector
MODES = ("next_step", "same_step", "disabled")
ENVS, LENGTH, STEPS = 4, 5, 16


def make(mode: str = "next_step", **arguments: Any) -> Any:
    return EscapeRoomVectorEnv(
        ENVS, autoreset_mode=mode, **{"episode_length": LENGTH, "num_threads": 1, "num_agents": 1, **arguments}
    )


# ---- The checks of single environments that know nothing of single environments ----

CHECKS = [
    env_checker.check_seed_deprecation,
    env_checker.check_reset_return_info_deprecation,
    env_checker.check_reset_return_type,
    env_checker.check_reset_seed_determinism,
    env_checker.check_reset_options,
    passive_env_checker.env_reset_passive_checker,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("mode", MODES)
def test_a_check_of_environments_accepts_it(check: Callable[[Any], Any], mode: str, kind: str) -> None:
    env = make(mode, observations=kind)
    env.spec = gymnasium.envs.registration.EnvSpec("doorstep/EscapeRoom-v0", nondeterministic=False)
    check(env)
    env.close()


class Only:
    """The only sub-environment of a vector, with rewards and flags as a single environment has them."""

    spec = None

    def __init__(self, env: Any) -> None:
        self.unwrapped = env
        self.reset, self.action_space, self.observation_space = env.reset, env.action_space, env.observation_space

    def step(self, actions: Any) -> Any:
        observations, rewards, terminations, truncations, info = self.unwrapped.step(actions)
        return observations, rewards.item(), terminations.item(), truncations.item(), info


@pytest.mark.parametrize("view", ["joint", "rows"])
@pytest.mark.parametrize("mode", MODES)
def test_one_sub_environment_steps_as_the_checks_ask(mode: Any, view: Any) -> None:
    env = EscapeRoomVectorEnv(1, agents=view, autoreset_mode=mode, num_agents=1)
    env_checker.check_step_determinism(Only(env))
    env.reset()
    passive_env_checker.env_step_passive_checker(Only(env), env.action_space.sample())
    env.close()


@pytest.mark.skipif(not hasattr(env_checker, "check_returned_data_not_reused"), reason="gymnasium before 1.4")
@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("mode", MODES)
def test_the_check_of_reused_data_tells_copies_from_memory(mode: Any, kind: Any) -> None:
    """Every step ends an episode, so that the infos are compared too."""
    copied, memory = (
        EscapeRoomVectorEnv(1, observations=kind, autoreset_mode=mode, copy=copies, episode_length=1)
        for copies in (True, False)
    )
    env_checker.check_returned_data_not_reused(Only(copied))
    with pytest.raises(AssertionError, match="share an object"):
        env_checker.check_returned_data_not_reused(Only(memory))
    copied.close()
    memory.close()


# ---- Wrappers ----


def _halve(observations: Any) -> Any:
    return observations / 2


# name: (how it is made, the modes that it accepts)
WRAPPERS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "RecordEpisodeStatistics": (wrappers.RecordEpisodeStatistics, MODES),
    "NormalizeReward": (wrappers.NormalizeReward, MODES),
    "TransformReward": (lambda env: wrappers.TransformReward(env, lambda rewards: rewards + 1), MODES),
    "ClipReward": (lambda env: wrappers.ClipReward(env, 0.0, 0.01), MODES),
    "TransformAction": (lambda env: wrappers.TransformAction(env, lambda actions: actions), MODES),
    "DictInfoToList": (wrappers.DictInfoToList, MODES),
    "NormalizeObservation": (wrappers.NormalizeObservation, ("next_step",)),
    "FlattenObservation": (wrappers.FlattenObservation, ("next_step", "disabled")),
    "ReshapeObservation": (lambda env: wrappers.ReshapeObservation(env, (7, 13)), ("next_step", "disabled")),
    "DtypeObservation": (lambda env: wrappers.DtypeObservation(env, np.float64), ("next_step", "disabled")),
    "TransformObservation": (lambda env: wrappers.TransformObservation(env, _halve), ("next_step", "disabled")),
    "VectorizeTransformObservation": (
        lambda env: wrappers.VectorizeTransformObservation(
            env, gymnasium.wrappers.TransformObservation, func=_halve, observation_space=env.single_observation_space
        ),
        ("next_step", "disabled"),
    ),
}
CASES = [(name, mode) for name in WRAPPERS for mode in MODES]


def run(env: Any, mode: str, num_agents: int = 1) -> list[tuple[Any, ...]]:
    """All that it returns in some steps; with "disabled" its caller resets what has ended."""
    returned = [env.reset(seed=1)]
    for actions in actions_of(1, STEPS, ENVS, num_agents).reshape(STEPS, ENVS, -1):
        returned.append(copy.deepcopy(env.step(actions)))  # gymnasium's wrappers overwrite some of what they return
        ended = returned[-1][2] | returned[-1][3]
        if mode == "disabled" and ended.any():
            returned.append(env.reset(options={"reset_mask": ended}))
    return returned


# gymnasium compares float32 bounds with the largest float64
@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_a_wrapper_accepts_the_modes_that_it_says(name: str, mode: str) -> None:
    wrap, accepted = WRAPPERS[name]
    env = make(mode)
    if mode not in accepted:
        with pytest.raises(ValueError, match="autoreset_mode"):
            wrap(env)
        env.close()
        return
    wrapped = wrap(env)
    plain = make(mode)
    for found, expected in zip(run(wrapped, mode), run(plain, mode), strict=True):
        if name == "RecordEpisodeStatistics" and len(found) == 5:
            _compare_statistics(found[4], found[2] | found[3], mode)
        assert len(found) == len(expected)
        if name != "NormalizeObservation":
            assert found[0] in wrapped.observation_space
        if len(found) == 5:
            np.testing.assert_array_equal(found[3], expected[3])
        _compare_observations(name, found[0], expected[0])
    env.close()
    plain.close()


def _compare_observations(name: str, found: Any, expected: Any) -> None:
    if name in ("TransformObservation", "VectorizeTransformObservation"):
        np.testing.assert_array_equal(found, expected / 2)
    elif name != "NormalizeObservation":
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def _compare_statistics(info: dict[str, Any], ended: Any, mode: str) -> None:
    """Gymnasium's own sums are those that the environment reports."""
    assert ("episode" in info) == ended.any()
    if not ended.any():
        return
    own = info["final_info"] if mode == "same_step" else info
    np.testing.assert_array_equal(info["_episode"], ended)
    np.testing.assert_array_equal(info["episode"]["l"][ended], own["episode_lengths"][ended])
    np.testing.assert_allclose(info["episode"]["r"][ended], own["episode_returns"][ended], rtol=1e-5)


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("mode", MODES)
def test_infos_become_a_list_of_what_ended(mode: str, kind: str) -> None:
    env = wrappers.DictInfoToList(make(mode, observations=kind, num_agents=2))
    env.reset()
    env.reset(options={"reset_mask": np.array([True, False, False, False])})
    env.step(np.zeros((ENVS, 8), int))
    env.reset(options={"reset_mask": np.array([True, False, False, False])})
    for _ in range(LENGTH - 1):
        infos = env.step(np.zeros((ENVS, 8), int))[4]
    assert isinstance(infos, list)
    for row, info in enumerate(infos):
        if row == 0:
            assert "final_info" not in info
            assert "episode_lengths" not in info
            continue
        statistics = info["final_info"] if mode == "same_step" else info
        assert statistics["episode_lengths"] == LENGTH
        if mode == "same_step":
            final, single = info["final_obs"], env.single_observation_space
            assert final in single
    env.close()


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("mode", MODES)
def test_tensors_of_pytorch_come_from_a_wrapper_too(mode: str, kind: str) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    env, plain = (make(mode, observations=kind) for _ in range(2))
    wrapped = wrappers.NumpyToTorch(env)
    wrapped.reset(seed=1)
    plain.reset(seed=1)
    for _ in range(LENGTH):
        found = wrapped.step(torch.zeros(ENVS, 4, dtype=torch.int64))
        expected = plain.step(np.zeros((ENVS, 4), int))
    assert found[3].dtype == torch.bool
    assert found[3].all()
    for name, array in expected[0].items() if kind == "by_name" else [("", expected[0])]:
        tensor = found[0][name] if kind == "by_name" else found[0]
        np.testing.assert_array_equal(tensor.numpy(), array)
    assert set(found[4]) == set(expected[4])
    env.close()
    plain.close()


@pytest.mark.parametrize("mode", ["next_step", "disabled"])
def test_dictionaries_are_flattened_and_filtered(mode: str) -> None:
    env = make(mode, observations="by_name", num_agents=2)
    flat, filtered = wrappers.FlattenObservation(env), wrappers.FilterObservation(env, ["lidar", "door_observations"])
    for returned in run(flat, mode, 2):
        assert returned[0] in flat.observation_space
        assert returned[0].shape == (ENVS, gymnasium.spaces.flatdim(env.single_observation_space))
    for returned in run(filtered, mode, 2):
        assert set(returned[0]) == {"lidar", "door_observations"}
    env.close()


@pytest.mark.parametrize("mode", MODES)
def test_pixels_are_rescaled(mode: str) -> None:
    if mode == "same_step":
        with pytest.raises(doorstep.ArgumentError):
            make(mode, observations="pixels", cameras=doorstep.Cameras())
        return
    env = make(mode, observations="pixels", cameras=doorstep.Cameras(width=8, height=6, depth=False))
    floats = wrappers.DtypeObservation(env, np.float32)
    low, high = np.float32(0), np.float32(1)
    wrapped = wrappers.RescaleObservation(floats, low, high)
    for returned in run(wrapped, mode):
        assert returned[0] in wrapped.observation_space
    np.testing.assert_allclose(returned[0] * 255, np.asarray(env.simulator.rgb)[:, 0], atol=1e-3)
    env.close()


@pytest.mark.parametrize("mode", MODES)
def test_nothing_warns_of_the_mode(mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make_vec(
            "doorstep.envs:doorstep/EscapeRoom-v0", num_envs=2, autoreset_mode=AutoresetMode[mode.upper()]
        )
        wrappers.RecordEpisodeStatistics(env).reset()
    env.close()
