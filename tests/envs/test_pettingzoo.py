"""The parallel environment of PettingZoo: its own checks; episodes as a plain simulator has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.errors import ArgumentError, ClosedError, StateError

pytest.importorskip("pettingzoo")

from pettingzoo.test import parallel_api_test, parallel_seed_test, render_test, state_test
from pettingzoo.utils.conversions import parallel_to_aec

from doorstep.envs import EscapeRoomEnv, EscapeRoomParallelEnv

SEED = 11
LENGTH = 7


def sampled(env: EscapeRoomParallelEnv) -> dict[str, Any]:
    return {agent: env.action_space(agent).sample() for agent in env.agents}


# ---- PettingZoo's checks ----


@pytest.mark.parametrize("num_agents", [1, 2, 5])
def test_it_passes_the_check_of_the_interface(num_agents: int) -> None:
    env = EscapeRoomParallelEnv(num_agents=num_agents, episode_length=20)
    parallel_api_test(env, num_cycles=50)
    env.close()


@pytest.mark.parametrize("observations", [doorstep.OBSERVATIONS, "by_name"])
def test_equal_seeds_make_equal_episodes(observations: Any) -> None:
    parallel_seed_test(lambda: EscapeRoomParallelEnv(observations=observations, episode_length=30), num_cycles=40)


def test_pictures_pass_the_check() -> None:
    made = []

    # The check first makes an environment with the mode "human", which it does not use.
    def make(render_mode: str) -> Any:
        env = EscapeRoomParallelEnv(render_mode="rgb_array" if render_mode == "human" else render_mode)
        made.append(env)
        return parallel_to_aec(env)

    render_test(make)
    for env in made:
        env.close()


@pytest.mark.filterwarnings("ignore:Environment's m.* state space value is:UserWarning")  # it is not scaled
def test_the_state_passes_the_check() -> None:
    env, parallel_env = EscapeRoomParallelEnv(), EscapeRoomParallelEnv()
    state_test(parallel_to_aec(env), parallel_env)
    env.close()
    parallel_env.close()


# ---- Episodes ----


def test_an_episode_is_that_of_a_simulator_and_ends_with_its_last_observation() -> None:
    env = EscapeRoomParallelEnv(num_agents=3, episode_length=LENGTH)
    sim = doorstep.Simulator(
        1, seed=SEED, num_agents=3, episode_length=LENGTH, auto_reset=False
    )
    observations, _ = env.reset(seed=SEED)
    returns = np.zeros(3)
    for step in range(LENGTH):
        for index, agent in enumerate(env.possible_agents):
            np.testing.assert_array_equal(observations[agent], sim.observations.to_numpy()[0, index])
        actions = sampled(env)
        sim.actions = np.array([list(actions.values())])
        sim.step()
        observations, rewards, terminations, truncations, infos = env.step(actions)
        assert list(rewards.values()) == sim.rewards.to_numpy()[0, :, 0].tolist()
        returns += list(rewards.values())
        assert set(terminations.values()) == {False}
        assert set(truncations.values()) == {step == LENGTH - 1}
    np.testing.assert_array_equal(list(observations.values()), sim.observations.to_numpy()[0])
    assert env.agents == []
    assert [info["episode_lengths"] for info in infos.values()] == [LENGTH] * 3
    np.testing.assert_allclose([info["episode_returns"] for info in infos.values()], returns, atol=1e-5)
    env.close()
    sim.close()


def test_all_agents_return_with_the_next_episode_which_has_another_level() -> None:
    env = EscapeRoomParallelEnv(episode_length=1)
    first, _ = env.reset(seed=SEED)
    before = env.state()
    env.step(sampled(env))
    env.reset()
    assert env.agents == env.possible_agents == ["agent_0", "agent_1"]
    assert not np.array_equal(env.state(), before)
    again, _ = env.reset(seed=SEED)
    np.testing.assert_array_equal(env.state(), before)
    for agent in env.agents:
        np.testing.assert_array_equal(again[agent], first[agent])
    env.close()


def test_what_it_returned_keeps_its_values() -> None:
    env = EscapeRoomParallelEnv()
    observations, _ = env.reset(seed=SEED)
    kept, state = {agent: rows.copy() for agent, rows in observations.items()}, env.state()
    copied = state.copy()
    for _ in range(3):
        later, *_ = env.step(dict.fromkeys(env.agents, (3, 0, 2, 0)))
    for agent, rows in kept.items():
        np.testing.assert_array_equal(observations[agent], rows)
        assert not np.array_equal(later[agent], rows)
    np.testing.assert_array_equal(state, copied)
    env.close()


def test_the_state_holds_the_fields_of_the_world() -> None:
    env = EscapeRoomParallelEnv(episode_length=LENGTH)
    env.reset(seed=SEED)
    env.step(sampled(env))
    state = env.state()
    positions = env.simulator.state.body_positions.to_numpy()[0].ravel()
    np.testing.assert_array_equal(state[: positions.size], positions)
    assert state[-1] == LENGTH - 1
    assert state.dtype == np.float32
    assert env.state_space.contains(state)
    env.close()


@pytest.mark.parametrize("observations", [doorstep.OBSERVATIONS, "by_name"])
def test_agents_have_spaces_of_their_own_that_fit(observations: Any) -> None:
    env = EscapeRoomParallelEnv(observations=observations)
    first, _ = env.reset()
    assert env.action_space("agent_0") is not env.action_space("agent_1")
    assert env.observation_space("agent_0") is not env.observation_space("agent_1")
    stepped, *_ = env.step(sampled(env))
    for agent in env.agents:
        assert env.observation_space(agent).contains(first[agent])
        assert env.observation_space(agent).contains(stepped[agent])
    assert env.action_space("agent_0").nvec.tolist() == [4, 8, 5, 2]
    env.close()


def test_one_agent_has_the_observations_of_the_single_environment() -> None:
    env, single = EscapeRoomParallelEnv(num_agents=1), EscapeRoomEnv(num_agents=1)
    observations, _ = env.reset(seed=SEED)
    expected, _ = single.reset(seed=SEED)
    np.testing.assert_array_equal(observations["agent_0"], expected)
    env.close()
    single.close()


# ---- Wrong calls ----


def test_steps_need_a_running_episode() -> None:
    env = EscapeRoomParallelEnv(episode_length=1)
    with pytest.raises(StateError, match=r"call reset\(\)"):
        env.step({})
    env.reset()
    env.step(sampled(env))
    with pytest.raises(StateError, match=r"call reset\(\)"):
        env.step(dict.fromkeys(env.possible_agents, (0, 0, 2, 0)))
    env.close()
    with pytest.raises(ClosedError):
        env.reset()


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({}, "agent_0, agent_1"),
        ({"agent_0": [0] * 4}, "agent_0, agent_1"),
        ({"agent_0": [0] * 4, "agent_1": [0] * 4, "agent_2": [0] * 4}, "agent_0, agent_1"),
        ([[0] * 4] * 2, "a dictionary"),
        ({"agent_0": [0] * 4, "agent_1": [0] * 3}, r"agent_1.*\[4\]"),
        ({"agent_0": [0] * 4, "agent_1": [0.5] * 4}, r"float64.*integers of the shape \[4\]"),
    ],
    ids=["none", "one", "unknown", "no-dictionary", "short", "floats"],
)
def test_wrong_actions_are_refused_and_change_nothing(actions: Any, message: str) -> None:
    env = EscapeRoomParallelEnv()
    env.reset(seed=SEED)
    before = env.simulator.hash()
    with pytest.raises(ArgumentError, match=message) as caught:
        env.step(actions)
    assert caught.value.argument.startswith("actions")
    assert env.simulator.hash() == before
    assert env.agents == env.possible_agents
    env.close()


@pytest.mark.parametrize(
    ("name", "value"), [("num_agents", 9), ("observations", "sound"), ("render_mode", "human")]
)
def test_wrong_arguments_are_named(name: str, value: object) -> None:
    with pytest.raises(ArgumentError) as caught:
        EscapeRoomParallelEnv(**{name: value})  # type: ignore[arg-type]
    assert caught.value.argument == name


def test_the_example_of_the_documentation_runs() -> None:
    example = Path(__file__).resolve().parents[2] / "docs" / "examples" / "pettingzoo_parallel.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("has a return of") == 9  # 3 agents in 3 episodes
