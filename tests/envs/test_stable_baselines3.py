"""The vector environment of Stable-Baselines3, beside what all environments do (test_contract.py): its own vectors,
checks, wrappers and trainers."""

import numpy as np
import pytest
from tests.envs.histories import actions_of, assert_example_learns
from tests.refuses import refuses

import doorstep
from doorstep.errors import StateError

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor

from doorstep.envs import EscapeRoomEnv, EscapeRoomVecEnv

WORLDS, AGENTS, LENGTH, SEED = 5, 3, 7, 11
ROWS = WORLDS * AGENTS
RULES = {"num_agents": AGENTS, "episode_length": LENGTH, "num_threads": 1}


@pytest.fixture
def env():
    return EscapeRoomVecEnv(ROWS, seed=SEED, **RULES)


# ---- Episodes ----


def test_cameras_show_the_last_view_of_an_episode():
    cameras = doorstep.Cameras(width=36, height=36, depth=False)
    rules = {"cameras": cameras, "seed": SEED, "episode_length": 3, "num_threads": 1}
    env = EscapeRoomVecEnv(4, observations="pixels", **rules)
    sim = doorstep.Simulator(2, auto_reset=False, **rules)
    np.testing.assert_array_equal(env.reset(), sim.rgb.to_numpy().reshape(4, 36, 36, 4))
    for step in range(7):
        chosen = np.full((4, 4), (3, 0, 3, 0))
        sim.actions = chosen
        sim.step()
        observations, _, dones, infos = env.step(chosen)
        views = sim.rgb.to_numpy().reshape(4, 36, 36, 4).copy()
        assert set(dones.tolist()) == {step % 3 == 2}
        if dones.any():
            for view, info in zip(views, infos, strict=True):
                np.testing.assert_array_equal(info["terminal_observation"], view)
            sim.reset()
            assert not np.array_equal(sim.rgb.to_numpy().reshape(4, 36, 36, 4), views)
        np.testing.assert_array_equal(observations, sim.rgb.to_numpy().reshape(4, 36, 36, 4))


# ---- Seeds and options ----


def test_without_a_seed_seed_chooses_one_with_numpy(env):
    np.random.seed(5)
    chosen = env.seed()[0]
    np.random.seed(5)
    assert env.seed()[0] == chosen
    env.reset()
    assert env.simulator.seed == chosen
    env.set_options()
    env.set_options([{} for _ in range(ROWS)])
    for options in ({"level": 3}, [{}, {"level": 3}]):
        refuses(None, env.set_options, options, argument="options")


# ---- Sub-environments ----


def test_attributes_and_methods_are_those_of_all(env):
    assert env.get_attr("num_envs") == [ROWS] * ROWS
    assert env.get_attr("render_mode", 2) == [None]
    assert env.get_attr("simulator", range(2)) == [env.simulator] * 2
    assert env.has_attr("simulator")
    assert not env.has_attr("colour")
    env.set_attr("colour", "red")
    assert env.get_attr("colour", [0]) == ["red"]
    assert env.env_method("seed", 3) == [[3] * ROWS] * ROWS
    assert env.env_is_wrapped(Monitor, [1, 2]) == [True, True]
    assert env.env_is_wrapped(VecMonitor) == [False] * ROWS
    refuses(None, env.set_attr, "colour", "blue", [0], argument="indices")
    refuses(None, env.env_method, "reset", indices=1, argument="indices")
    for indices in (ROWS, -1, [0.5], 0.5):
        refuses(None, env.get_attr, "colour", indices, argument="indices")
    assert env.get_attr("colour", [0]) == ["red"]


def test_pictures_stand_side_by_side():
    env = EscapeRoomVecEnv(4, render_mode="rgb_array")
    env.reset()
    assert np.shape(env.render()) == (2 * 480, 2 * 640, 3)
    first, second = env.env_method("render", indices=[0, 3], width=32, height=24)
    assert first.shape == second.shape == (24, 32, 3)
    assert not np.array_equal(first, second)


# ---- Steps ----


def test_steps_are_refused_out_of_turn_and_dropped_by_resets(env):
    env.reset()
    refuses("no step has begun", env.step_wait, error=StateError)
    actions = actions_of(3, 1, WORLDS, AGENTS).reshape(ROWS, 4)
    env.step_async(actions)
    refuses("a step is running", env.step_async, actions, error=StateError)
    env.reset()
    refuses("no step has begun", env.step_wait, error=StateError)
    for count in range(1, LENGTH + 1):
        assert set(env.step(actions)[2].tolist()) == {count == LENGTH}


# ---- Stable-Baselines3 ----


# It prefers flat vectors to one for each agent.
@pytest.mark.filterwarnings("ignore:.*unconventional shape:UserWarning")
def test_single_environments_pass_the_check():
    check_env(EscapeRoomEnv(render_mode="rgb_array"))


def test_what_was_trained_is_a_policy_of_doorstep():
    env, options = EscapeRoomVecEnv(8, actions="discrete", seed=3), {"device": "cpu", "seed": 1}
    dqn = DQN("MlpPolicy", env, learning_starts=40, train_freq=8, buffer_size=500, **options).learn(200)
    ppo = PPO("MlpPolicy", env, n_steps=8, batch_size=64, **options)
    observations = env.reset()
    for model, module in ((dqn, dqn.policy), (dqn, dqn.q_net), (ppo, ppo.policy)):
        numbers, _ = model.predict(observations, deterministic=True)
        assert all(number in env.action_space for number in numbers)
        actions = doorstep.load_policy(module)(observations)
        np.testing.assert_array_equal(np.ravel_multi_index(actions.T, doorstep.ACTIONS), numbers)
    assert doorstep.evaluate(dqn.policy, episodes=2, levels="reference").scores
    ppo = PPO("MlpPolicy", EscapeRoomVecEnv(8), n_steps=8, batch_size=64, **options)
    policy = doorstep.load_policy(ppo.policy, sampling=doorstep.policy.SamplingParams(greedy=True))
    assert (policy(observations) == ppo.predict(observations, deterministic=True)[0]).all()
    by_name = EscapeRoomVecEnv(8, observations="by_name")
    other = PPO("MultiInputPolicy", by_name, n_steps=8, batch_size=64, **options).policy
    refuses(r"it must be a policy of flat observations \(train with", doorstep.load_policy, other)


@pytest.mark.nightly
def test_the_example_of_the_documentation_learns():
    assert_example_learns("stable_baselines3_ppo.py", gain=0.25)
