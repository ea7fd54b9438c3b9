"""EscapeRoomJaxMARLEnv is EscapeRoomJaxEnv with everything by the names of agents, under every transformation."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import actions_of

import doorstep

jax: Any = pytest.importorskip("jax")

from doorstep.envs import EscapeRoomJaxEnv, EscapeRoomJaxMARLEnv  # noqa: E402

WORLDS, LENGTH, STEPS = 3, 4, 10
FORMS = ("multi_discrete", "discrete", "tuple")
AGENTS = ["agent_0", "agent_1"]


def by_agent(rows: Any) -> dict[str, Any]:
    return {name: jax.tree_util.tree_map(lambda row, i=i: row[i], rows) for i, name in enumerate(AGENTS)}


@pytest.mark.parametrize("observations", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("form", FORMS)
def test_it_is_the_ordinary_environment_by_names_of_agents(form: Any, observations: Any) -> None:
    rules: Any = {"actions": form, "observations": observations, "episode_length": LENGTH}
    env, plain = EscapeRoomJaxMARLEnv(**rules), EscapeRoomJaxEnv(agents="rows", **rules)
    keys = jax.random.split(jax.random.key(3), WORLDS)
    actions: Any = actions_of(2, STEPS, WORLDS, 2)
    if form == "discrete":
        actions = np.ravel_multi_index(tuple(np.moveaxis(actions, -1, 0)), tuple(doorstep.ACTIONS))
    elif form == "tuple":
        actions = tuple(np.moveaxis(actions, -1, 0))

    def transposed(rows: Any) -> dict[str, Any]:  # agents behind steps or worlds
        return by_agent(jax.tree_util.tree_map(lambda row: np.moveaxis(row, 2, 0), rows))

    given = transposed(actions)

    def rollout(step: Any, states: Any, actions: Any) -> Any:
        def body(states: Any, actions: Any) -> Any:
            observations, states, *told = jax.vmap(step)(keys, states, actions)
            return states, (observations, *told)

        return jax.jit(lambda states: jax.lax.scan(body, states, actions))(states)

    first, states = jax.vmap(env.reset)(keys)
    plain_first, plain_states = jax.vmap(plain.reset)(keys)
    _, (observed, rewards, dones, info) = rollout(env.step, states, given)
    _, (expected, plain_rewards, terminated, truncated, plain_info) = rollout(plain.step, plain_states, actions)
    assert_same(first, by_agent(jax.tree_util.tree_map(lambda row: np.moveaxis(row, 1, 0), plain_first)))
    assert_same(observed, transposed(expected))
    assert_same(rewards, transposed(plain_rewards))
    ended = np.asarray(terminated | truncated)
    assert_same(dones, {**transposed(ended), "__all__": ended.all(-1)})
    assert np.flatnonzero(dones["__all__"].all(1)).tolist() == [LENGTH - 1, 2 * LENGTH - 1]  # it goes on by itself
    plain_info.pop("final_observation")
    assert_same(info, plain_info)


def assert_same(one: Any, other: Any) -> None:
    assert jax.tree_util.tree_structure(one) == jax.tree_util.tree_structure(other)
    jax.tree_util.tree_map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("form", FORMS)
def test_a_program_of_jaxmarl_finds_what_it_needs(form: Any) -> None:
    env = pickle.loads(pickle.dumps(EscapeRoomJaxMARLEnv(actions=form, levels=["reference"], episode_length=LENGTH)))
    assert (env.agents, env.num_agents, env.name) == (AGENTS, 2, "EscapeRoom")
    observations, state = env.reset(jax.random.key(0))
    actions = {name: env.action_space(name).sample(jax.random.key(0)) for name in AGENTS}
    if form == "discrete":
        actions = {name: action.reshape(1) for name, action in actions.items()}  # as ippo_ff scripts do
    for name in AGENTS:
        assert env.observation_space(name).contains(observations[name])
        assert env.observation_space(name).shape == observations[name].shape == (94,)
    _, _, rewards, dones, info = env.step(jax.random.key(0), state, actions)
    assert set(rewards) == set(AGENTS)
    assert set(dones) == {*AGENTS, "__all__"}
    assert {leaf.shape for leaf in (*rewards.values(), *dones.values())} == {()}
    assert {leaf.shape for leaf in jax.tree_util.tree_leaves(info)} == {(2,)}
    assert "level" in info


def test_actions_of_other_agents_are_refused() -> None:
    env = EscapeRoomJaxMARLEnv(actions="discrete")
    _, state = env.reset(jax.random.key(0))
    for actions in ({"agent_0": 0}, {"agent_0": 0, "agent_1": 0, "agent_2": 0}, np.zeros(2, np.int32)):
        with pytest.raises(doorstep.ArgumentError, match="an action for each of agent_0, agent_1"):
            env.step(None, state, actions)
    with pytest.raises(TypeError, match="agents"):
        EscapeRoomJaxMARLEnv(agents="joint")
