"""gymnasium's checks and wrappers of vector environments accept doorstep's, and refuse the modes that they say."""

import copy
import warnings

import numpy as np
import pytest
from tests.envs.histories import actions_of
from tests.refuses import refuses

import doorstep

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils import env_checker, passive_env_checker  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

from doorstep.envs import EscapeRoomVectorEnv  # noqa: E402

wrappers = gymnasium.wrappers.vector
MODES = ("next_step", "same_step", "disabled")
ENVS, LENGTH, STEPS = 4, 5, 16


def make(mode="next_step", **arguments):
    arguments = {"episode_length": LENGTH, "num_threads": 1, "num_agents": 1, **arguments}
    return EscapeRoomVectorEnv(arguments.pop("num_envs", ENVS), autoreset_mode=mode, **arguments)


class Only:
    """The only sub-environment of a vector, with rewards and flags as a single environment has them."""

    spec = None

    def __init__(self, env):
        self.unwrapped = env
        self.reset, self.action_space, self.observation_space = env.reset, env.action_space, env.observation_space

    def step(self, actions):
        observations, rewards, terminations, truncations, info = self.unwrapped.step(actions)
        return observations, rewards.item(), terminations.item(), truncations.item(), info


@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_checks_accept_it(mode):
    """Those of single environments that know nothing of single environments. The one of reused data tells copies from
    the simulator's memory; every step ends an episode there, so that infos are compared too."""
    for kind in (doorstep.OBSERVATIONS, "by_name"):
        env = make(mode, observations=kind)
        env.spec = gymnasium.envs.registration.EnvSpec("doorstep/EscapeRoom-v0", nondeterministic=False)
        for check in ("return_info_deprecation", "return_type", "seed_determinism", "options"):
            getattr(env_checker, f"check_reset_{check}")(env)
        env_checker.check_seed_deprecation(env)
        passive_env_checker.env_reset_passive_checker(env)
        env = make(mode, num_envs=1, observations=kind)
        env_checker.check_step_determinism(Only(env))
        env.reset()
        passive_env_checker.env_step_passive_checker(Only(env), env.action_space.sample())
        if hasattr(env_checker, "check_returned_data_not_reused"):  # from gymnasium 1.4 on
            options = {"num_envs": 1, "observations": kind, "episode_length": 1}
            copied, memory = make(mode, **options), make(mode, copy=False, **options)
            env_checker.check_returned_data_not_reused(Only(copied))
            refuses("share an object", env_checker.check_returned_data_not_reused, Only(memory), error=AssertionError)


# ---- Wrappers ----


NO_FINALS = ("next_step", "disabled")
# name: (how it is made, the modes that it accepts)
WRAPPERS = {
    "RecordEpisodeStatistics": (wrappers.RecordEpisodeStatistics, MODES),
    "NormalizeReward": (wrappers.NormalizeReward, MODES),
    "NormalizeObservation": (wrappers.NormalizeObservation, ("next_step",)),
    "DtypeObservation": (lambda env: wrappers.DtypeObservation(env, np.float64), NO_FINALS),
    "TransformObservation": (lambda env: wrappers.TransformObservation(env, lambda seen: seen / 2), NO_FINALS),
}


def run(env, mode, num_agents=1):
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
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_accepts_the_modes_that_it_says(name):
    wrap, accepted = WRAPPERS[name]
    for mode in MODES:
        env, plain = make(mode), make(mode)
        if mode not in accepted:
            refuses("autoreset_mode", wrap, env, error=ValueError)
            continue
        wrapped = wrap(env)
        for found, expected in zip(run(wrapped, mode), run(plain, mode), strict=True):
            if name == "RecordEpisodeStatistics" and len(found) == 5:
                _compare_statistics(found[4], found[2] | found[3], mode)
            if len(found) == 5:
                np.testing.assert_array_equal(found[3], expected[3])
            if name != "NormalizeObservation":
                assert found[0] in wrapped.observation_space
                scale = 2 if name == "TransformObservation" else 1
                np.testing.assert_array_equal(found[0].reshape(expected[0].shape), expected[0] / scale)


def _compare_statistics(info, ended, mode):
    """Gymnasium's own sums are those that the environment reports."""
    assert ("episode" in info) == ended.any()
    if ended.any():
        own = info["final_info"] if mode == "same_step" else info
        np.testing.assert_array_equal(info["_episode"], ended)
        np.testing.assert_array_equal(info["episode"]["l"][ended], own["episode_lengths"][ended])
        np.testing.assert_allclose(info["episode"]["r"][ended], own["episode_returns"][ended], rtol=1e-5)


def test_pixels_are_rescaled():
    env = make(observations="pixels", cameras=doorstep.Cameras(width=8, height=6, depth=False))
    floats = wrappers.DtypeObservation(env, np.float32)
    wrapped = wrappers.RescaleObservation(floats, np.float32(0), np.float32(1))
    for returned in run(wrapped, "next_step"):
        assert returned[0] in wrapped.observation_space
    np.testing.assert_allclose(returned[0] * 255, np.asarray(env.simulator.rgb)[:, 0], atol=1e-3)


def test_nothing_warns_of_the_mode():
    for mode in AutoresetMode:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env = gymnasium.make_vec("doorstep.envs:doorstep/EscapeRoom-v0", num_envs=2, autoreset_mode=mode)
            wrappers.RecordEpisodeStatistics(env).reset()
