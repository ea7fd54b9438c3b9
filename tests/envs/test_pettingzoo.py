"""PettingZoo's parallel environment, beside what all environments do (test_contract.py): its own checks; states."""

import numpy as np
import pytest
from tests.envs.histories import output_of_example

from doorstep.errors import ArgumentError, StateError

pytest.importorskip("pettingzoo")

from pettingzoo.test import parallel_api_test, parallel_seed_test, render_test, state_test
from pettingzoo.utils.conversions import parallel_to_aec

from doorstep.envs import EscapeRoomParallelEnv

SEED, LENGTH = 11, 7


def sampled(env):
    return {agent: env.action_space(agent).sample() for agent in env.agents}


@pytest.mark.filterwarnings("ignore:Environment's m.* state space value is:UserWarning")  # it is not scaled
def test_it_passes_pettingzoos_checks():
    for num_agents in (1, 3):
        env = EscapeRoomParallelEnv(num_agents=num_agents, episode_length=20)
        parallel_api_test(env, num_cycles=50)
    parallel_seed_test(lambda: EscapeRoomParallelEnv(observations="by_name", episode_length=30), num_cycles=40)
    state_test(parallel_to_aec(EscapeRoomParallelEnv()), EscapeRoomParallelEnv())
    # The check first makes an environment with the mode "human", which it does not use.
    render_test(lambda render_mode: parallel_to_aec(EscapeRoomParallelEnv(render_mode="rgb_array")))


def test_the_state_holds_the_fields_of_the_world():
    env = EscapeRoomParallelEnv(episode_length=LENGTH)
    env.reset(seed=SEED)
    first = env.state()
    kept = first.copy()
    env.step(sampled(env))
    state = env.state()
    np.testing.assert_array_equal(first, kept)
    positions = env.simulator.state.body_positions.to_numpy()[0].ravel()
    np.testing.assert_array_equal(state[: positions.size], positions)
    assert (first[-1], state[-1]) == (LENGTH, LENGTH - 1)
    assert state.dtype == np.float32
    assert env.state_space.contains(state)
    env.reset()
    assert not np.array_equal(env.state(), first)
    env.reset(seed=SEED)
    np.testing.assert_array_equal(env.state(), first)


WRONG = [
    ({}, "a dictionary of the actions of agent_0, agent_1"),
    ({"agent_0": [0] * 4}, "agent_0, agent_1"),
    ({"agent_0": [0] * 4, "agent_1": [0] * 4, "agent_2": [0] * 4}, "agent_0, agent_1"),
    ([[0] * 4] * 2, "a dictionary"),
    ({"agent_0": [0] * 4, "agent_1": [0] * 3}, r"agent_1.*\[4\]"),
    ({"agent_0": [0] * 4, "agent_1": [0.5] * 4}, r"float64.*integers of the shape \[4\]"),
]


def test_wrong_actions_are_refused_and_change_nothing():
    env = EscapeRoomParallelEnv(episode_length=1)
    env.reset(seed=SEED)
    before = env.simulator.hash()
    for actions, message in WRONG:
        with pytest.raises(ArgumentError, match=message) as caught:
            env.step(actions)
        assert caught.value.argument.startswith("actions")
    assert env.simulator.hash() == before
    assert env.agents == env.possible_agents
    env.step(sampled(env))
    with pytest.raises(StateError, match=r"no agent takes part in an episode .*call reset\(\)"):
        env.step(dict.fromkeys(env.possible_agents, (0, 0, 2, 0)))


def test_the_example_of_the_documentation_runs():
    assert output_of_example("pettingzoo_parallel.py").count("has a return of") == 9  # 3 agents in 3 episodes
