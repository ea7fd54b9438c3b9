"""The vector environment of Stable-Baselines3: its own checks and wrappers; episodes as a plain simulator has them."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import PARTS, Array, History, actions_of, equal

import doorstep
from doorstep.errors import ArgumentError, StateError

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize

from doorstep.envs import EscapeRoomEnv, EscapeRoomVecEnv

WORLDS, AGENTS, LENGTH, SEED = 5, 3, 7, 11
ROWS = WORLDS * AGENTS
RULES: dict[str, Any] = {"num_agents": AGENTS, "episode_length": LENGTH, "num_threads": 1}


@pytest.fixture
def env() -> Iterator[Any]:
    made = EscapeRoomVecEnv(ROWS, seed=SEED, **RULES)
    yield made
    made.close()


def by_row(values: Array, agents: str) -> Array:
    """[N, A, ...] as rows."""
    return values.reshape(-1, *values.shape[2:]) if agents == "rows" else values


def observed(told: dict[str, Array], kind: str, agents: str) -> Any:
    if kind != "by_name":
        return by_row(told["observations"], agents)
    return {name: by_row(told[name], agents) for name in PARTS}


def row_of(observations: Any, row: int) -> Any:
    if isinstance(observations, dict):
        return {name: array[row] for name, array in observations.items()}
    return observations[row]


def actions(steps: int, components: int = 4) -> Array:
    return actions_of(3, steps, WORLDS, AGENTS).reshape(steps, -1, components)


# ---- Episodes ----


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("agents", ["rows", "joint"])
def test_every_history_is_that_of_a_plain_simulator(agents: Any, kind: Any) -> None:
    rows = ROWS if agents == "rows" else WORLDS
    env = EscapeRoomVecEnv(rows, agents=agents, observations=kind, seed=SEED, **RULES)
    history = History("same_step", WORLDS, seed=SEED, num_agents=AGENTS, episode_length=LENGTH)
    equal(env.reset(), observed(history.worlds.observe(), kind, agents))
    ends = 0
    for step, chosen in enumerate(actions(40)):
        if step == 3:  # so that episodes do not end at the same time
            mask = np.arange(WORLDS) % 2 == 0
            env.simulator.reset(mask)
            history.reset(mask)
        told = history.step(chosen.reshape(WORLDS, AGENTS, 4))
        found, rewards, dones, infos = env.step(chosen.reshape(rows, -1))
        per_row = rows // WORLDS
        equal(found, observed(told.observations, kind, agents))
        assert rewards.dtype == np.float32
        expected_rewards = told.rewards.reshape(-1) if agents == "rows" else told.rewards.mean(1)
        np.testing.assert_allclose(rewards, expected_rewards, rtol=1e-5)
        equal(dones, np.repeat(told.ended, per_row))
        assert len(infos) == rows
        for row, info in enumerate(infos):
            world, agent = divmod(row, per_row)
            if not told.ended[world]:
                assert info == {}
                continue
            ends += 1
            assert history.final is not None
            equal(info["terminal_observation"], row_of(observed(history.final, kind, agents), row))
            assert info["TimeLimit.truncated"] is True
            expected = told.returns[world, agent] if agents == "rows" else told.returns[world].mean()
            assert info["episode"]["r"] == pytest.approx(expected, abs=1e-5)
            assert info["episode"]["l"] == told.lengths[world]
            assert 0 < info["episode"]["t"] < 100
    assert ends > rows
    env.close()


def test_it_is_a_dummy_vec_env_of_single_environments() -> None:
    """Sub-environment i of both is global world i of one seed."""
    singles = DummyVecEnv(
        [lambda world=world: EscapeRoomEnv(world_offset=world, seed=SEED, **RULES) for world in range(WORLDS)]
    )
    env = EscapeRoomVecEnv(WORLDS, agents="joint", seed=SEED, **RULES)
    assert (env.observation_space, env.action_space) == (singles.observation_space, singles.action_space)
    equal(env.reset(), singles.reset())
    for chosen in actions(20, 4 * AGENTS):
        found, expected = env.step(chosen), singles.step(chosen)
        for value, other in zip(found[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(value, other)
        for info, other in zip(found[3], expected[3], strict=True):
            assert info.get("TimeLimit.truncated", False) == other["TimeLimit.truncated"]
            if "terminal_observation" in other:
                equal(info["terminal_observation"], other["terminal_observation"])
    env.close()
    singles.close()


def test_what_it_returned_keeps_its_values(env: Any) -> None:
    kept = [env.reset()]
    copies = copy.deepcopy(kept)
    for chosen in actions(3 * LENGTH):
        step = env.step(chosen)
        kept.append(step)
        copies.append(copy.deepcopy(step))
    for step, copied in zip(kept[1:], copies[1:], strict=True):
        for value, expected in zip(step[:3], copied[:3], strict=True):
            np.testing.assert_array_equal(value, expected)
        for info, expected in zip(step[3], copied[3], strict=True):
            assert info.keys() == expected.keys()
            if info:
                np.testing.assert_array_equal(info["terminal_observation"], expected["terminal_observation"])
                assert info["episode"] == expected["episode"]
    np.testing.assert_array_equal(kept[0], copies[0])


def test_what_callers_write_into_infos_is_gone_in_the_next_step(env: Any) -> None:
    env.reset()
    for chosen in actions(LENGTH + 2):
        *_, infos = env.step(chosen)
        for info in infos:
            assert "mine" not in info
            info["mine"] = 1
        infos.clear()


def test_cameras_show_the_last_view_of_an_episode() -> None:
    cameras = doorstep.Cameras(width=36, height=36, depth=False)
    rules: dict[str, Any] = {"cameras": cameras, "seed": SEED, "episode_length": 3, "num_threads": 1}
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
    env.close()
    sim.close()


# ---- Seeds and options ----


def test_a_seed_chooses_the_levels_of_the_next_reset_only(env: Any) -> None:
    first = env.reset()
    assert env.seed(SEED + 1) == [SEED + 1] * ROWS
    np.testing.assert_array_equal(env.step(actions(1)[0])[1].shape, (ROWS,))
    other = env.reset()
    assert env.simulator.seed == SEED + 1
    assert not np.array_equal(other, first)
    following = env.reset()
    assert not np.array_equal(following, other)
    env.seed(SEED)
    np.testing.assert_array_equal(env.reset(), first)


def test_without_a_seed_seed_chooses_one_with_numpy(env: Any) -> None:
    np.random.seed(5)
    chosen = env.seed()[0]
    np.random.seed(5)
    assert env.seed()[0] == chosen
    env.reset()
    assert env.simulator.seed == chosen


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5])
def test_wrong_seeds_are_refused_and_change_nothing(env: Any, seed: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        env.seed(seed)
    assert caught.value.argument == "seed"
    env.reset()
    assert env.simulator.seed == SEED


def test_resets_have_no_options(env: Any) -> None:
    env.set_options()
    env.set_options({})
    env.set_options([{} for _ in range(ROWS)])
    for options in ({"level": 3}, [{}, {"level": 3}]):
        with pytest.raises(ArgumentError) as caught:
            env.set_options(options)
        assert caught.value.argument == "options"


# ---- Sub-environments ----


def test_attributes_and_methods_are_those_of_all(env: Any) -> None:
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
    calls: list[Callable[[], Any]] = [
        lambda: env.set_attr("colour", "blue", [0]),
        lambda: env.env_method("reset", indices=1),
    ]
    for call in calls:
        with pytest.raises(ArgumentError) as caught:
            call()
        assert caught.value.argument == "indices"
    for indices in (ROWS, -1, [0.5], 0.5):
        with pytest.raises(ArgumentError) as caught:
            env.get_attr("colour", indices)
        assert caught.value.argument == "indices"
    assert env.get_attr("colour", [0]) == ["red"]


def test_pictures_stand_side_by_side() -> None:
    env = EscapeRoomVecEnv(4, render_mode="rgb_array")
    env.reset()
    assert np.shape(env.render()) == (2 * 480, 2 * 640, 3)
    first, second = env.env_method("render", indices=[0, 3], width=32, height=24)
    assert first.shape == second.shape == (24, 32, 3)
    assert not np.array_equal(first, second)
    env.close()


# ---- Steps ----


def test_steps_are_refused_out_of_turn(env: Any) -> None:
    with pytest.raises(StateError, match=r"reset\(\)"):
        env.step(actions(1)[0])
    env.reset()
    with pytest.raises(StateError, match="no step has begun"):
        env.step_wait()
    env.step_async(actions(1)[0])
    with pytest.raises(StateError, match="a step is running"):
        env.step_async(actions(1)[0])
    env.step_wait()


def test_a_step_in_two_calls_is_a_step(env: Any) -> None:
    other = EscapeRoomVecEnv(ROWS, seed=SEED, **RULES)
    env.reset()
    other.reset()
    for chosen in actions(2 * LENGTH):
        sent = chosen.copy()
        env.step_async(sent)
        sent[:] = 0
        found, expected = env.step_wait(), other.step(chosen)
        for value, wanted in zip(found[:3], expected[:3], strict=True):
            equal(value, wanted)
        assert [info.keys() for info in found[3]] == [info.keys() for info in expected[3]]
    other.close()


def test_a_reset_drops_the_step_that_runs(env: Any) -> None:
    env.reset()
    env.step_async(actions(1)[0])
    env.reset()
    with pytest.raises(StateError):
        env.step_wait()
    for count in range(1, LENGTH + 1):
        _, _, dones, _ = env.step(actions(1)[0])
        assert set(dones.tolist()) == {count == LENGTH}


@pytest.mark.parametrize(
    "wrong", [np.zeros((ROWS, 3), int), np.zeros((ROWS - 1, 4), int), np.full((ROWS, 4), 0.5), [[0] * 4]]
)
def test_wrong_actions_are_refused_and_change_nothing(env: Any, wrong: Any) -> None:
    env.reset()
    before = env.simulator.hash()
    with pytest.raises(ArgumentError) as caught:
        env.step(wrong)
    assert caught.value.argument == "actions"
    assert env.simulator.hash() == before
    env.step(actions(1)[0])


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_envs", ROWS + 1), ("num_agents", 9), ("agents", "some"), ("render_mode", "human")],
)
def test_wrong_arguments_are_named(name: str, value: object) -> None:
    arguments: dict[str, Any] = {"num_envs": ROWS, **RULES, name: value}
    with pytest.raises(ArgumentError) as caught:
        EscapeRoomVecEnv(**arguments)
    assert caught.value.argument == name


# ---- Stable-Baselines3 ----


# It prefers flat vectors to one for each agent.
@pytest.mark.filterwarnings("ignore:.*unconventional shape:UserWarning")
@pytest.mark.parametrize("num_agents", [1, 2])
def test_single_environments_pass_the_check(num_agents: int) -> None:
    env = EscapeRoomEnv(num_agents=num_agents, render_mode="rgb_array")
    check_env(env)
    env.close()


def test_wrappers_see_terminal_observations_and_returns(env: Any) -> None:
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):  # as it has a Monitor's infos
        wrapped = VecNormalize(VecMonitor(VecFrameStack(env, 2)), norm_reward=False)
    plain = EscapeRoomVecEnv(ROWS, seed=SEED, **RULES)
    wrapped.reset()
    plain.reset()
    for chosen in actions(LENGTH):
        observations, rewards, dones, infos = wrapped.step(chosen)
        _, expected_rewards, _, expected = plain.step(chosen)
        np.testing.assert_array_equal(rewards, expected_rewards)
    assert dones.all()
    assert observations.shape == (ROWS, 2 * plain.observation_space.shape[0])
    terminal = np.stack([info["terminal_observation"] for info in expected])
    normalized = wrapped.unnormalize_obs(np.stack([info["terminal_observation"] for info in infos]))
    unclipped = np.abs(np.stack([info["terminal_observation"] for info in infos])) < wrapped.clip_obs
    half = terminal.shape[1]
    np.testing.assert_allclose(
        normalized[:, half:][unclipped[:, half:]], terminal[unclipped[:, half:]], atol=1e-4, rtol=1e-4
    )
    for info, other in zip(infos, expected, strict=True):
        assert info["episode"]["r"] == pytest.approx(other["episode"]["r"], abs=1e-5)
        assert info["episode"]["l"] == LENGTH
    plain.close()


class Returns(BaseCallback):  # type: ignore[misc]
    """The mean return of episodes that ended in each rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.means: list[float] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        assert self.model.ep_info_buffer is not None
        self.means.append(math.fsum(episode["r"] for episode in self.model.ep_info_buffer) / 128)


@pytest.fixture
def _one_thread() -> Iterator[None]:
    """Small networks are slower with several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("_one_thread")
def test_ppo_learns() -> None:
    env = EscapeRoomVecEnv(128, episode_length=20, seed=1)
    model = PPO(
        "MlpPolicy", env, n_steps=20, batch_size=640, n_epochs=4, learning_rate=2e-3, gamma=0.95, ent_coef=0.01,
        seed=0, device="cpu", stats_window_size=128,
    )  # fmt: skip
    returns = Returns()
    model.learn(25_000, callback=returns)
    assert returns.means[-1] > returns.means[0] + 0.2
    # The policy knows nothing that depends on how the environment was stepped while it learned.
    mean, _ = evaluate_policy(model, env, n_eval_episodes=128, deterministic=False)
    assert mean > returns.means[0] + 0.2
    env.close()


def test_evaluations_report_true_returns() -> None:
    """And not those that a wrapper made of the rewards."""
    env = EscapeRoomVecEnv(8, episode_length=5, seed=2)
    normalized = VecNormalize(env)
    model = PPO("MlpPolicy", normalized, n_steps=8, batch_size=64, device="cpu", seed=3)
    rewards = []

    def remember(values: dict[str, Any], _: Any) -> None:
        rewards.append(normalized.get_original_reward()[values["i"]])

    mean, _ = evaluate_policy(model, normalized, n_eval_episodes=8, callback=remember)
    assert len(rewards) == 8 * 5
    assert mean == pytest.approx(np.sum(rewards) / 8, abs=1e-5)
    env.close()


@pytest.mark.usefixtures("_one_thread")
def test_what_ppo_trained_is_a_policy_of_doorstep() -> None:
    env = EscapeRoomVecEnv(8)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=64, n_epochs=1, device="cpu", seed=1)
    policy = doorstep.load_policy(model.policy, sampling=doorstep.policy.SamplingParams(greedy=True))
    observations = env.reset()
    assert (policy(observations) == model.predict(observations, deterministic=True)[0]).all()
    env.close()
    env = EscapeRoomVecEnv(8, observations="by_name")
    other = PPO("MultiInputPolicy", env, n_steps=8, batch_size=64, device="cpu").policy
    with pytest.raises(doorstep.ArgumentError, match=r"it must be a policy of flat observations \(train with"):
        doorstep.load_policy(other)
    env.close()


@pytest.mark.usefixtures("_one_thread")
def test_what_learned_one_discrete_action_is_a_policy_of_doorstep() -> None:
    env = EscapeRoomVecEnv(8, actions="discrete", seed=3)
    dqn = DQN("MlpPolicy", env, learning_starts=40, train_freq=8, buffer_size=500, device="cpu", seed=1).learn(200)
    ppo = PPO("MlpPolicy", env, n_steps=8, batch_size=64, n_epochs=1, device="cpu", seed=1)
    observations = env.reset()
    for model, module in ((dqn, dqn.policy), (dqn, dqn.q_net), (ppo, ppo.policy)):
        numbers, _ = model.predict(observations, deterministic=True)
        assert all(number in env.action_space for number in numbers)
        actions = doorstep.load_policy(module)(observations)
        np.testing.assert_array_equal(np.ravel_multi_index(actions.T, doorstep.ACTIONS), numbers)
    assert doorstep.evaluate(dqn.policy, episodes=2, levels="reference").scores
    env.close()


@pytest.mark.usefixtures("_one_thread")
def test_ppo_runs_on_dictionaries() -> None:
    env = EscapeRoomVecEnv(8, observations="by_name", episode_length=5)
    PPO("MultiInputPolicy", env, n_steps=8, batch_size=64, n_epochs=1, device="cpu").learn(128)
    env.close()


@pytest.mark.slow
def test_the_example_of_the_documentation_learns() -> None:
    example = Path(__file__).resolve().parents[2] / "docs" / "examples" / "stable_baselines3_ppo.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    returns = [float(line.split()[-1]) for line in done.stdout.splitlines()]
    assert returns[-1] > returns[0] + 0.25
