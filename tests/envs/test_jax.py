"""EscapeRoomJaxEnv, beside what all environments do (test_contract.py): one call for all worlds, transformations."""

import pickle
import re
import sys
import types

import numpy as np
import pytest
from tests.envs import histories
from tests.envs.histories import actions_of, output_of_example
from tests.refuses import refuses

import doorstep
from doorstep import levels

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import doorstep.jax  # noqa: E402
from doorstep.envs import EscapeRoomJaxEnv, EscapeRoomJaxMARLEnv, JaxMultiDiscrete  # noqa: E402

WORLDS, LENGTH = 4, 6
# Two agents that walk ahead are in the goal of the first one after two steps
NEAR = histories.NEAR.replace(rewards=levels.Rewards.sparse(), episode_length=5)
FAR = NEAR.replace(goal=None, episode_length=(3, 9))
AHEAD, NOWHERE = (np.tile([amount, 0, 2, 0], 2) for amount in (3, 0))


def keys_of(seed, *shape):
    return jax.random.split(jax.random.key(seed), shape)


def quick_key(seed):
    """Of the generator that compiles fastest."""
    return jax.random.key(seed, impl="unsafe_rbg")


def assert_same(one, other):
    assert jax.tree_util.tree_structure(one) == jax.tree_util.tree_structure(other)
    jax.tree_util.tree_map(np.testing.assert_array_equal, one, other)


def test_a_scan_over_many_worlds_makes_one_call_for_all_of_them_and_is_the_loop():
    env, keys = EscapeRoomJaxEnv(agents="rows", episode_length=LENGTH), keys_of(0, 3, 5)
    actions = jnp.asarray(actions_of(0, 8, 15, 2).reshape(8, 3, 5, 2, 4))
    step = jax.vmap(jax.vmap(env.step), in_axes=(0, 0, None))  # actions without an axis of the outer worlds

    def scan(states):
        return jax.lax.scan(lambda states, given: (step(keys, states, given[0])[1], ()), states, actions)[0]

    states = jax.vmap(jax.vmap(env.reset))(keys)[1]
    compiled = jax.jit(scan).lower(states).compile()
    assert re.findall(r"= \(u32\[(\d+),.*doorstep_step", compiled.as_text()) == ["15"]
    looped = states
    for given in actions:
        looped = jax.jit(step)(keys, looped, given[0])[1]
    assert_same(compiled(states), looped)


def test_one_flag_is_either_of_the_two():
    """The goal ends the first episode, the time the second one."""
    both, one = EscapeRoomJaxEnv(levels=[NEAR]), EscapeRoomJaxEnv(levels=[NEAR], flags="done")
    state, other = (env.reset(jax.random.key(0))[1] for env in (both, one))
    told = []
    for _ in range(8):
        action = NOWHERE if told else AHEAD
        observation, state, reward, terminated, truncated, info = both.step(None, state, action)
        result = one.step(None, other, action)
        other = result[1]
        assert_same((observation, reward, terminated | truncated, info), (result[0], *result[2:]))
        told += [(bool(terminated), bool(truncated))] * bool(result[3])
    assert told == [(True, False), (False, True)]


def test_spaces_contain_what_is_returned_and_taken():
    env = EscapeRoomJaxEnv(agents="rows", num_agents=3, observations="by_name")
    actions, observations = env.action_space(env.default_params), env.observation_space(env.default_params)
    sampled = jax.jit(jax.vmap(actions.sample))(jax.random.split(quick_key(0), 300))
    assert (sampled.shape, sampled.dtype) == ((300, 3, 4), jnp.int32)
    by_component = np.asarray(sampled).reshape(-1, 4)
    assert by_component.max(0).tolist() == [count - 1 for count in doorstep.ACTIONS]
    assert by_component.min(0).tolist() == [0, 0, 0, 0]
    assert actions.contains(by_component[:3])
    assert not actions.contains(by_component[:3] + np.array([0, 0, 5, 0]))
    observation, sample = env.reset(jax.random.key(0))[0], jax.jit(observations.sample)(quick_key(1))
    assert_same(env.reset(jax.random.key_data(jax.random.key(0)))[0], observation)  # a key as an array of uint32
    contains = jax.jit(observations.contains)
    assert contains(observation) & contains(sample)
    assert not contains({name: part + 1000 * (name == "lidar") for name, part in sample.items()})
    shapes = [jax.tree_util.tree_map(lambda one: (one.shape, one.dtype), each) for each in (observation, sample)]
    assert shapes[0] == shapes[1]
    tuples = EscapeRoomJaxEnv(actions="tuple", num_agents=1).action_space()
    assert tuples.contains(jax.jit(tuples.sample)(quick_key(0)))
    assert not tuples.contains((0, 0, 0, 2))


def test_spaces_are_those_of_gymnax_where_a_program_asks_for_its_classes(monkeypatch):
    theirs = types.ModuleType("gymnax.environments.spaces")
    theirs.Discrete, theirs.Box = type("Discrete", (), {}), type("Box", (), {})
    env = EscapeRoomJaxEnv(num_agents=1, actions="discrete")
    for module in (None, theirs):
        monkeypatch.setitem(sys.modules, theirs.__name__, module)
        action_space, observation_space = env.action_space(), env.observation_space()
        assert isinstance(action_space, theirs.Discrete) == isinstance(observation_space, theirs.Box) == bool(module)
        assert (action_space.n, action_space.shape, observation_space.shape) == (320, (), (91,))
        assert action_space.contains(action_space.sample(jax.random.key(0)))


# ---- Levels ----


def test_worlds_draw_levels_as_those_of_a_batch_do():
    table, keys = [levels.reference(), NEAR, FAR], keys_of(5, WORLDS)
    rules = {"levels": table, "max_levels": 4, "episode_length": LENGTH}
    env = pickle.loads(pickle.dumps(EscapeRoomJaxEnv(agents="rows", **rules)))
    rooms = doorstep.jax.make(1, outputs=("level_indices", "dones"), **rules)
    assert env.default_params.max_steps_in_episode == 9
    states = jax.vmap(env.reset)(keys)[1]
    batches = [rooms.init(int(jax.random.bits(key, (), jnp.uint32))) for key in keys]
    step, played = jax.jit(jax.vmap(env.step)), set()
    for actions in actions_of(3, 15, WORLDS, 2):
        _, states, *_, info = step(keys, states, actions)
        batches = [rooms.step(batch, jnp.asarray(actions[i : i + 1])) for i, batch in enumerate(batches)]
        assert_same(states.worlds, jnp.concatenate([batch.worlds for batch in batches]))
        assert info["level"].tolist() == [int(batch.level_indices[0, 0]) for batch in batches]
        played |= set(info["level"].tolist())
    assert played == {0, 1, 2}


# ---- Bad input ----

ARGUMENTS = [
    ({"agents": "both"}, "agents is 'both'; it must be one of 'joint', 'rows'"),
    ({"actions": "single"}, "actions is 'single'; it must be one of 'multi_discrete', 'discrete', 'tuple'"),
    ({"flags": 1}, "flags is 1; it must be one of 'both', 'done'"),
    ({"observations": "pixels"}, "observations is 'pixels'; it must be a sequence of parts, .*"),
    ({"max_levels": 1, "levels": [NEAR, FAR]}, "at least the number of `levels`, 2"),
]
ACTIONS = [
    ("joint", "multi_discrete", (np.zeros((2, 4), np.int32), np.zeros(8, np.float32), np.zeros(8, bool), 3)),
    ("rows", "multi_discrete", (np.zeros(8, np.int32),)),
    ("joint", "discrete", (3,)),
    ("joint", "tuple", (np.zeros(8, np.int32), (0,) * 7)),
    ("rows", "tuple", ((np.zeros(2, np.int32),) * 8, (0,) * 4)),
]


def test_what_cannot_be_is_refused_by_name():
    for arguments, message in ARGUMENTS:
        refuses(message, EscapeRoomJaxEnv, argument=next(iter(arguments)), **arguments)
    for agents, form, actions in ACTIONS:
        env = EscapeRoomJaxEnv(agents=agents, actions=form)
        _, state = env.reset(jax.random.key(0))
        for action in actions:
            refuses(r"action is .*; it must be (integers|a tuple) of ", env.step, None, state, action)
    env, other = EscapeRoomJaxEnv(), EscapeRoomJaxEnv(episode_length=9)
    _, state = env.reset(jax.random.key(0))
    for wrong in (other.reset(jax.random.key(0))[1], None, state.worlds):
        refuses("it must be a state of this environment", env.step, None, wrong, AHEAD)
    assert "level" not in env.step(None, state, AHEAD, env.default_params)[-1]
    assert env.default_params.max_steps_in_episode == 200
    for call in (lambda: env.step(None, state, AHEAD, other.default_params), lambda: env.reset(None, 3)):
        refuses("params is", call)


# ---- EscapeRoomJaxMARLEnv: what programs of JaxMARL need ----

AGENTS = ["agent_0", "agent_1"]


def test_a_program_of_jaxmarl_finds_what_it_needs():
    env = pickle.loads(pickle.dumps(EscapeRoomJaxMARLEnv(actions="discrete", levels=["reference"], episode_length=4)))
    assert (env.agents, env.num_agents, env.name) == (AGENTS, 2, "EscapeRoom")
    observations, state = env.reset(jax.random.key(0))
    actions = {name: env.action_space(name).sample(jax.random.key(0)) for name in AGENTS}
    actions = {name: action.reshape(1) for name, action in actions.items()}  # as ippo_ff scripts do
    for name in AGENTS:
        assert env.observation_space(name).contains(observations[name])
        assert env.observation_space(name).shape == observations[name].shape == (94,)
    _, _, rewards, dones, info = env.step(jax.random.key(0), state, actions)
    assert {leaf.shape for leaf in (*rewards.values(), *dones.values())} == {()}
    assert {leaf.shape for leaf in jax.tree_util.tree_leaves(info)} == {(2,)}
    assert "level" in info


def test_actions_of_other_agents_are_refused():
    env = EscapeRoomJaxMARLEnv(actions="discrete")
    _, state = env.reset(jax.random.key(0))
    for actions in ({"agent_0": 0}, {"agent_0": 0, "agent_1": 0, "agent_2": 0}, np.zeros(2, np.int32)):
        refuses("an action for each of agent_0, agent_1", env.step, None, state, actions)
    refuses("agents", EscapeRoomJaxMARLEnv, error=TypeError, agents="joint")


# ---- JaxMultiDiscrete ----

LOGITS = np.random.default_rng(0).normal(size=(5, 2, 19)).astype(np.float32)
LOGITS[0, 0, 3] = -np.inf  # the largest move amount is excluded
OTHERS = LOGITS + np.random.default_rng(1).normal(size=LOGITS.shape).astype(np.float32)


def test_its_distribution_is_that_of_pytorch_through_any_transformation():
    torch = pytest.importorskip("torch")
    from doorstep.envs import MultiDiscrete

    theirs = MultiDiscrete(torch.from_numpy(LOGITS))
    actions = theirs.sample()
    expected = torch.distributions.kl_divergence(theirs, MultiDiscrete(torch.from_numpy(OTHERS)))

    @jax.jit
    def told(ours, others):
        return ours.log_prob(actions.numpy()), ours.entropy(), ours.kl_divergence(others), ours.mode()

    ours = jax.vmap(jax.jit(JaxMultiDiscrete))(LOGITS)
    log_probabilities, entropies, divergences, modes = told(ours, JaxMultiDiscrete(OTHERS))
    np.testing.assert_allclose(log_probabilities, theirs.log_prob(actions), rtol=1e-5)
    np.testing.assert_allclose(entropies, theirs.entropy(), rtol=1e-5)
    np.testing.assert_allclose(divergences, expected, rtol=1e-4)
    np.testing.assert_array_equal(modes, theirs.mode)
    assert ours.sizes == tuple(doorstep.ACTIONS)
    gradient = jax.jit(jax.grad(lambda logits: JaxMultiDiscrete(logits).entropy().sum()))(LOGITS)
    assert np.isfinite(gradient).all()


def test_choices_are_as_frequent_as_they_are_likely():
    distribution = JaxMultiDiscrete(LOGITS[:2, 0])
    sample = jax.jit(lambda key: distribution.sample_and_log_prob(seed=key, sample_shape=(4000,)))
    actions, logarithms = sample(quick_key(0))
    assert (actions.shape, actions.dtype) == ((4000, 2, 4), np.int32)
    np.testing.assert_allclose(logarithms, distribution.log_prob(actions), rtol=1e-5)
    for row in range(2):
        for component, logits in enumerate(np.split(LOGITS[row, 0], np.cumsum(list(doorstep.ACTIONS))[:-1])):
            frequencies = np.bincount(actions[:, row, component], minlength=logits.size) / 4000
            np.testing.assert_allclose(frequencies, np.exp(logits) / np.exp(logits).sum(), atol=0.03)
    assert 3 not in actions[:, 0, 0]


def test_wrong_logits_are_refused():
    refuses(None, JaxMultiDiscrete, LOGITS[..., :-1], argument="logits")


@pytest.mark.nightly
def test_the_example_learns():
    returns = re.findall(r"return (-?[\d.]+)", output_of_example("jax_ppo.py", warns=True))
    assert float(returns[-1]) > 1.5 * float(returns[0]) > 0, returns
