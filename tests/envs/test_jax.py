"""EscapeRoomJaxEnv: one call for all worlds, episodes as plain simulators have them, under every transformation."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import PARTS, Array, History, actions_of

import doorstep
from doorstep import levels

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import doorstep.jax  # noqa: E402
from doorstep.envs import EscapeRoomJaxEnv  # noqa: E402

PROJECT = Path(__file__).resolve().parents[2]
WORLDS, LENGTH = 4, 6
VIEWS = ("joint", "rows")


def keys_of(seed: int, *shape: int) -> Any:
    return jax.random.split(jax.random.key(seed), shape)


def row_action(actions: Array, agents: str) -> Any:
    """[..., A, 4] as an environment takes it."""
    return jnp.asarray(actions if agents == "rows" else actions.reshape(*actions.shape[:-2], -1))


def calls_in(compiled: str) -> tuple[int, list[int]]:
    """How many steps a compiled program calls, and the worlds of each."""
    lines = [line for line in compiled.splitlines() if 'custom_call_target="doorstep_step"' in line]
    return len(lines), [int(re.findall(r"= \(u32\[(\d+),", line)[0]) for line in lines]


# ---- One call ----


@pytest.mark.parametrize("shape", [(64,), (8, 8)], ids=["vmap", "vmap of vmap"])
@pytest.mark.parametrize("agents", VIEWS)
def test_many_worlds_are_stepped_by_one_call(agents: Any, shape: tuple[int, ...]) -> None:
    env = EscapeRoomJaxEnv(agents=agents)
    reset, step = env.reset, env.step
    for _ in shape:
        reset, step = jax.vmap(reset), jax.vmap(step)
    keys = keys_of(0, *shape)
    _, states = reset(keys)
    actions = jnp.zeros((*shape, *env.action_space().shape), jnp.int32)
    compiled = jax.jit(step).lower(keys, states, actions).compile().as_text()
    assert calls_in(compiled) == (1, [64])
    assert "while" not in compiled


def test_worlds_whose_actions_have_no_axis_are_stepped_by_one_call() -> None:
    env = EscapeRoomJaxEnv()
    _, states = jax.vmap(env.reset)(keys_of(0, 5))
    step = jax.jit(jax.vmap(env.step, in_axes=(None, 0, None)))
    action = jnp.asarray([3, 0, 2, 0] * 2)
    assert calls_in(step.lower(None, states, action).compile().as_text()) == (1, [5])
    repeated = jax.vmap(env.step)(keys_of(0, 5), states, jnp.tile(action, (5, 1)))
    assert_same(step(None, states, action), repeated)


def test_many_worlds_are_those_of_a_batch() -> None:
    env, rooms = EscapeRoomJaxEnv(agents="rows", episode_length=LENGTH), doorstep.jax.make(3, episode_length=LENGTH)
    _, states = jax.vmap(env.reset)(jnp.stack([jax.random.key(7)] * 3))
    whole = rooms.init(int(jax.random.bits(jax.random.key(7), (), jnp.uint32)))
    states = jax.tree_util.tree_map(lambda array: array, states)
    for actions in actions_of(2, 9, 3, 2):
        states = jax.vmap(env.step)(keys_of(1, 3), states, jnp.asarray(actions))[1]
        whole = rooms.step(whole, jnp.asarray(actions))
    assert_same(states.worlds[0], whole.worlds[0])
    assert states.worlds.shape == whole.worlds.shape


def assert_same(one: Any, other: Any) -> None:
    leaves, others = jax.tree_util.tree_leaves(one), jax.tree_util.tree_leaves(other)
    assert len(leaves) == len(others)
    for leaf, expected in zip(leaves, others, strict=True):
        np.testing.assert_array_equal(leaf, expected)


# ---- Episodes ----


@pytest.mark.parametrize("agents", VIEWS)
@pytest.mark.parametrize("num_agents", [1, 2, 3])
def test_episodes_are_those_of_simulators(agents: Any, num_agents: int) -> None:
    rules: dict[str, Any] = {"num_agents": num_agents, "episode_length": LENGTH}
    env, keys = EscapeRoomJaxEnv(agents=agents, **rules), keys_of(5, WORLDS)
    seeds = [int(jax.random.bits(key, (), jnp.uint32)) for key in keys]
    histories = [History("same_step", 1, seed=seed, **rules) for seed in seeds]
    observations, states = jax.vmap(env.reset)(keys)
    step = jax.jit(jax.vmap(env.step))
    shape = (-1,) if agents == "joint" and num_agents == 1 else (num_agents, -1)
    expected = np.stack([history.worlds.observe()["observations"].reshape(shape) for history in histories])
    np.testing.assert_array_equal(observations, expected)
    ended_before = np.zeros(WORLDS, bool)
    for actions in actions_of(3, 3 * LENGTH, WORLDS, num_agents):
        result = step(keys, states, row_action(actions, agents))
        observations, states, rewards, terminated, truncated, info = result
        for world, history in enumerate(histories):
            told = history.step(actions[world : world + 1])
            np.testing.assert_array_equal(observations[world], told.observations["observations"].reshape(shape))
            assert history.final is not None
            np.testing.assert_array_equal(
                info["final_observation"][world], history.final["observations"].reshape(shape)
            )
            mean = np.mean if agents == "joint" else np.array
            np.testing.assert_allclose(rewards[world], mean(told.rewards[0]), rtol=1e-6)
            ended = terminated[world] | truncated[world]
            assert (ended == told.ended[0]).all()
            assert ended.shape == (() if agents == "joint" else (num_agents,))
            if told.ended[0]:
                np.testing.assert_allclose(info["episode_returns"][world], mean(told.returns[0]), rtol=1e-5)
                assert (info["episode_lengths"][world] == told.lengths[0]).all()
                ended_before[world] = True
    assert ended_before.all()


@pytest.mark.parametrize("agents", VIEWS)
@pytest.mark.parametrize("num_agents", [1, 2])
def test_an_action_has_three_forms_of_equal_effect(agents: Any, num_agents: int) -> None:
    rules: Any = {"agents": agents, "num_agents": num_agents, "episode_length": LENGTH}
    envs = [EscapeRoomJaxEnv(actions=form, **rules) for form in ("multi_discrete", "discrete", "tuple")]
    states = [env.reset(jax.random.key(1))[1] for env in envs]
    for actions in actions_of(6, LENGTH + 1, 1, num_agents)[:, 0]:
        numbers = np.ravel_multi_index(tuple(actions.T), tuple(doorstep.ACTIONS))
        components = tuple(actions.T) if agents == "rows" else tuple(actions.ravel())
        single = numbers[0] if (agents, num_agents) == ("joint", 1) else numbers
        forms = [row_action(actions, agents), jnp.asarray(single), tuple(map(jnp.asarray, components))]
        for env, form in zip(envs, forms, strict=True):
            sample = env.action_space().sample(jax.random.key(0))
            shapes = jax.tree_util.tree_map(jnp.shape, form)
            assert jax.tree_util.tree_map(jnp.shape, sample) == shapes
            assert env.action_space().contains(sample) & env.action_space().contains(form)
        first, *others = [env.step(None, state, form) for env, state, form in zip(envs, states, forms, strict=True)]
        for other in others:
            assert_same((first[0], first[1].worlds, *first[2:]), (other[0], other[1].worlds, *other[2:]))
        states = [first[1], *(other[1] for other in others)]


def test_one_flag_is_either_of_the_two() -> None:
    both, one = EscapeRoomJaxEnv(levels=[NEAR]), EscapeRoomJaxEnv(levels=[NEAR], flags="done")
    state, other = (env.reset(jax.random.key(0))[1] for env in (both, one))
    told: list[tuple[bool, bool]] = []
    for _ in range(8):  # the goal ends the first episode, the time the second one
        observation, state, reward, terminated, truncated, info = both.step(None, state, AHEAD if not told else NOWHERE)
        result = one.step(None, other, AHEAD if not told else NOWHERE)
        other = result[1]
        assert_same((observation, reward, terminated | truncated, info), (result[0], *result[2:]))
        told += [(bool(terminated), bool(truncated))] * bool(result[3])
    assert told == [(True, False), (False, True)]


def test_the_time_truncates_and_the_task_terminates() -> None:
    env = EscapeRoomJaxEnv(episode_length=LENGTH, num_agents=1)
    _, state = env.reset(jax.random.key(0))
    for step in range(LENGTH):
        _, state, _, terminated, truncated, info = env.step(None, state, jnp.asarray([0, 0, 2, 0]))
        assert bool(truncated) == (step == LENGTH - 1)
        assert not terminated
        assert (terminated, truncated) == (info["terminated"], info["truncated"])


def test_observations_may_be_parts_by_name() -> None:
    env, flat = EscapeRoomJaxEnv(observations="by_name", episode_length=LENGTH), EscapeRoomJaxEnv(episode_length=LENGTH)
    key = jax.random.key(3)
    seed = int(jax.random.bits(key, (), jnp.uint32))
    history = History("same_step", 1, seed=seed, episode_length=LENGTH)
    parts, state = env.reset(key)
    assert set(parts) == set(env.observation_space().sample(key)) == set(PARTS)
    told = history.worlds.observe()
    _, other = flat.reset(key)
    for actions in actions_of(0, LENGTH + 2, 1, 2):
        for name, part in parts.items():
            np.testing.assert_array_equal(part, told[name][0])
        action = row_action(actions[0], "joint")
        parts, state, _, _, _, info = env.step(None, state, action)
        other = flat.step(None, other, action)[1]
        told = history.step(actions).observations
        assert history.final is not None
        for name, part in info["final_observation"].items():
            np.testing.assert_array_equal(part, history.final[name][0])
    np.testing.assert_array_equal(state.worlds, other.worlds)


def test_keys_choose_the_levels() -> None:
    env = EscapeRoomJaxEnv()
    observations, _ = jax.vmap(env.reset)(keys_of(0, 32))
    assert len({np.asarray(row).tobytes() for row in observations}) == 32
    again = [env.reset(key)[0] for key in keys_of(0, 32)]
    np.testing.assert_array_equal(np.stack(again), observations)
    old = env.reset(jax.random.key_data(jax.random.key(3)))[0]  # keys as arrays of uint32
    np.testing.assert_array_equal(old, env.reset(jax.random.key(3))[0])


# ---- Transformations ----


def test_a_scan_is_the_loop() -> None:
    env, keys = EscapeRoomJaxEnv(episode_length=LENGTH), keys_of(2, WORLDS)
    actions = jnp.asarray(actions_of(0, 15, WORLDS, 2).reshape(15, WORLDS, 8))

    def body(states: Any, step_actions: Any) -> Any:
        observations, states, *rest = jax.vmap(env.step)(keys, states, step_actions)
        return states, (observations, *rest)

    first = jax.vmap(env.reset)(keys)[1]
    states, told = jax.jit(lambda states: jax.lax.scan(body, states, actions))(first)
    kept, looped = [], first
    for step_actions in actions:
        looped, step_told = body(looped, step_actions)
        kept.append(step_told)
    assert_same(states, looped)
    assert_same(told, jax.tree_util.tree_map(lambda *rows: jnp.stack(rows), *kept))


def test_gradients_flow_around_steps() -> None:
    env, keys = EscapeRoomJaxEnv(agents="rows"), keys_of(4, WORLDS)

    def loss(weights: Any) -> Any:
        def body(carry: Any, _: None) -> Any:
            observations, states = carry
            scores = observations @ weights
            actions = jnp.argmax(scores, -1)[..., None] * jnp.asarray([1, 0, 0, 0]) + jnp.asarray([0, 0, 2, 0])
            observations, states, rewards, *_ = jax.vmap(env.step)(keys, states, actions)
            return (observations, states), (jax.nn.log_softmax(scores)[..., 0] * rewards).sum()

        return jax.lax.scan(body, jax.vmap(env.reset)(keys), None, length=3)[1].sum()

    gradient = jax.jit(jax.grad(loss))(jnp.zeros((94, 4)).at[0, 3].set(1.0))
    assert np.isfinite(gradient).all()
    assert float(jnp.abs(gradient).max()) > 0


def test_nothing_that_is_kept_is_overwritten() -> None:
    env, keys = EscapeRoomJaxEnv(episode_length=3), keys_of(0, WORLDS)
    observations, states = jax.vmap(env.reset)(keys)
    kept, copies = [observations, states], [jax.tree_util.tree_map(np.array, (observations, states))]
    for actions in actions_of(1, 5, WORLDS, 2):
        result = jax.vmap(env.step)(keys, states, row_action(actions, "joint"))
        assert_same(kept[:2], list(copies[0]))
        states = result[1]


# ---- Spaces ----


@pytest.mark.parametrize("agents", VIEWS)
def test_actions_of_the_space_are_legal(agents: Any) -> None:
    env = EscapeRoomJaxEnv(agents=agents, num_agents=3)
    space = env.action_space(env.default_params)
    sampled = jax.vmap(space.sample)(keys_of(0, 300))
    assert sampled.shape == (300, 12) if agents == "joint" else (300, 3, 4)
    assert sampled.dtype == jnp.int32
    by_component = np.asarray(sampled).reshape(-1, 4)
    assert by_component.max(0).tolist() == [count - 1 for count in doorstep.ACTIONS]
    assert by_component.min(0).tolist() == [0, 0, 0, 0]
    assert jax.jit(space.contains)(sampled[0])
    assert not space.contains(sampled[0].at[..., 2].set(5))


@pytest.mark.parametrize("observations", [doorstep.OBSERVATIONS, "by_name"])
def test_observations_are_in_the_space(observations: Any) -> None:
    env = EscapeRoomJaxEnv(observations=observations)
    space = env.observation_space(env.default_params)
    observation, _ = env.reset(jax.random.key(0))
    assert space.contains(observation)
    sample = space.sample(jax.random.key(1))
    shapes = jax.tree_util.tree_map(lambda array: (array.shape, array.dtype), observation)
    assert jax.tree_util.tree_map(lambda array: (array.shape, array.dtype), sample) == shapes
    assert space.contains(sample)


def test_spaces_are_those_of_gymnax_where_a_program_asks_for_its_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs: Any = types.ModuleType("gymnax.environments.spaces")
    theirs.Discrete, theirs.Box = type("Discrete", (), {}), type("Box", (), {})
    env = EscapeRoomJaxEnv(num_agents=1, actions="discrete")
    for module in (None, theirs):
        monkeypatch.setitem(sys.modules, theirs.__name__, module)
        action_space, observation_space = env.action_space(), env.observation_space()
        assert isinstance(action_space, theirs.Discrete) == isinstance(observation_space, theirs.Box) == bool(module)
        assert (action_space.n, action_space.shape, observation_space.shape) == (320, (), (91,))
        assert action_space.contains(action_space.sample(jax.random.key(0)))


# ---- Levels ----

# Two agents that walk ahead are in the goal of the first one after two steps
NEAR = levels.Level(
    spawns=(levels.Spawn(-5, 0), levels.Spawn(5, 0)),
    rooms=(levels.Room(0, 9),),
    goal=levels.Goal(min_x=-20, max_x=20, min_y=1.5, max_y=9),
    rewards=levels.Rewards.sparse(),
    episode_length=5,
)
FAR = NEAR.replace(goal=None, episode_length=(3, 9))
AHEAD, NOWHERE = (jnp.tile(jnp.asarray([amount, 0, 2, 0], jnp.int32), 2) for amount in (3, 0))


def test_a_goal_terminates_and_the_step_limit_truncates() -> None:
    env = EscapeRoomJaxEnv(levels=[NEAR])
    _, state = env.reset(jax.random.key(0))
    seen = []
    for action in (AHEAD, AHEAD, *[jnp.asarray([0, 0, 2, 0] * 2)] * 5):
        _, state, reward, terminated, truncated, info = env.step(None, state, action)
        seen.append((float(reward), bool(terminated), bool(truncated)))
        assert int(info["level"]) == 0
    assert seen == [(0, False, False), (1, True, False), *[(0, False, False)] * 4, (0, False, True)]


@pytest.mark.parametrize("agents", VIEWS)
def test_worlds_draw_levels_as_those_of_a_batch_do(agents: Any) -> None:
    table, keys = [levels.reference(), NEAR, FAR], keys_of(5, WORLDS)
    rules: Any = {"levels": table, "max_levels": 4, "episode_length": LENGTH}
    env = EscapeRoomJaxEnv(agents=agents, **rules)
    rooms = doorstep.jax.make(1, outputs=("level_indices", "dones"), **rules)
    assert env.default_params.max_steps_in_episode == 9
    states = jax.vmap(env.reset)(keys)[1]
    batches = [rooms.init(int(jax.random.bits(key, (), jnp.uint32))) for key in keys]
    step, played = jax.jit(jax.vmap(env.step)), set()
    for actions in actions_of(3, 25, WORLDS, 2):
        _, states, *_, info = step(keys, states, row_action(actions, agents))
        batches = [rooms.step(batch, jnp.asarray(actions[i : i + 1])) for i, batch in enumerate(batches)]
        assert_same(states.worlds, jnp.concatenate([batch.worlds for batch in batches]))
        assert info["level"].tolist() == [int(batch.level_indices[0, 0]) for batch in batches]
        played |= set(info["level"].tolist())
    assert played == {0, 1, 2}


def test_weights_of_a_state_may_be_replaced() -> None:
    env = EscapeRoomJaxEnv(levels=[NEAR, FAR])
    _, states = jax.vmap(env.reset)(keys_of(2, 16))
    assert set(np.asarray(states.level_indices).ravel().tolist()) == {0, 1}
    weights = jnp.tile(jnp.asarray([0.0, 1.0]), (16, 1))
    states = dataclasses.replace(states, tensors=states.tensors | {"level_weights": weights})
    for _ in range(5):  # the episodes that have begun end
        _, states, *_ = jax.vmap(env.step, in_axes=(0, 0, None))(keys_of(2, 16), states, AHEAD)
    _, states, *_, info = jax.vmap(env.step, in_axes=(0, 0, None))(keys_of(2, 16), states, AHEAD)
    assert np.asarray(info["level"])[np.asarray(info["episode_lengths"]) > 0].tolist().count(0) == 0


def test_without_levels_there_is_none() -> None:
    env = EscapeRoomJaxEnv()
    _, state = env.reset(jax.random.key(0))
    assert "level" not in env.step(None, state, AHEAD)[-1]
    assert env.default_params.max_steps_in_episode == 200


# ---- Bad input ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agents": "both"}, "agents is 'both'; it must be one of 'joint', 'rows'"),
        ({"actions": "single"}, "actions is 'single'; it must be one of 'multi_discrete', 'discrete', 'tuple'"),
        ({"flags": 1}, "flags is 1; it must be one of 'both', 'done'"),
        ({"observations": "pixels"}, "observations is 'pixels'; it must be a sequence of parts, .*"),
        ({"num_agents": 9}, "num_agents is 9"),
        ({"action_check": "raise"}, "action_check is 'raise'"),
        ({"cameras": doorstep.Cameras()}, "cameras is"),
        ({"levels": []}, "levels is .*; it must be 'reference'"),
        ({"levels": 3}, "levels is 3; it must be 'reference'"),
        ({"max_levels": 1, "levels": [NEAR, FAR]}, "at least the number of `levels`, 2"),
        ({"levels": [NEAR], "num_agents": 3}, "spawns"),
    ],
)
def test_arguments_are_checked(arguments: Any, message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=message) as caught:
        EscapeRoomJaxEnv(**arguments)
    assert caught.value.argument == next(iter(arguments))


@pytest.mark.parametrize(
    ("agents", "actions", "action"),
    [
        ("joint", "multi_discrete", np.zeros((2, 4), np.int32)),
        ("rows", "multi_discrete", np.zeros(8, np.int32)),
        ("joint", "multi_discrete", np.zeros(8, np.float32)),
        ("joint", "multi_discrete", np.zeros(8, bool)),
        ("joint", "multi_discrete", 3),
        ("joint", "discrete", 3),
        ("rows", "discrete", np.zeros((2, 4), np.int32)),
        ("joint", "tuple", np.zeros(8, np.int32)),
        ("rows", "tuple", (np.zeros(2, np.int32),) * 8),
        ("rows", "tuple", (0,) * 4),
    ],
)
def test_actions_of_other_shapes_and_dtypes_are_refused(agents: Any, actions: Any, action: Any) -> None:
    env = EscapeRoomJaxEnv(agents=agents, actions=actions)
    _, state = env.reset(jax.random.key(0))
    with pytest.raises(doorstep.ArgumentError, match=r"action is .*; it must be (integers|a tuple) of ") as caught:
        env.step(None, state, action)
    assert caught.value.argument == "action"


def test_states_and_params_of_others_are_refused() -> None:
    env, other = EscapeRoomJaxEnv(), EscapeRoomJaxEnv(episode_length=9)
    _, state = env.reset(jax.random.key(0))
    action = jnp.zeros(8, jnp.int32)
    for wrong in (other.reset(jax.random.key(0))[1], None, state.worlds):
        with pytest.raises(doorstep.ArgumentError, match="it must be a state of this environment"):
            env.step(None, wrong, action)
    env.step(None, state, action, env.default_params)
    with pytest.raises(doorstep.ArgumentError, match="params is"):
        env.step(None, state, action, other.default_params)
    with pytest.raises(doorstep.ArgumentError, match="params is"):
        env.reset(jax.random.key(0), other.default_params)


# ---- Training ----


@pytest.mark.slow
def test_the_example_learns() -> None:
    program = PROJECT / "docs/examples/jax_ppo.py"
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    returns = [float(number) for number in re.findall(r"return (-?[\d.]+)", done.stdout)]
    assert returns[-1] > 1.5 * returns[0] > 0, done.stdout
