"""Worlds inside JAX programs that play levels: the bits of a simulator, with weights and levels that are data."""

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.conftest import RunPython
from tests.interop.xla_frames import NO_REWARD_NO_PARTS, HandlerError, Tensor, call
from tests.scenes import random_actions

import doorstep
from doorstep import levels
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Physics, Room, Spawn

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from tests.interop.jax_worlds import actions_of, assert_same, same_bits_as  # noqa: E402

import doorstep.jax  # noqa: E402
from doorstep._batches import INPUTS, NAMES  # noqa: E402
from doorstep._native import DeviceKind, batch_info  # noqa: E402

EVERYTHING = tuple(name for name in NAMES if name not in (*INPUTS, "level_weights"))
FIRST = np.array([1, 0, 0, 0], np.float32)  # the weights of a simulator whose levels nobody has set


def table_of(num_agents: int = 2) -> list[Level | GeneratedLevel]:
    """Two halls, the generator with other rules, and a level that comes with doorstep or another hall."""
    spawns = tuple(Spawn(x=4.0 * i - 14, y=(0, 2)) for i in range(num_agents))
    hall = Level(spawns=spawns, rooms=(Room(0, 40),), physics=Physics(friction=(0.5, 1.5)), episode_length=(2, 6))
    parts: dict[str, Any] = {"cubes": (Cube(0, 8),), "doors": (Door(0, 20),), "buttons": (Button(-5, 2, 0),)}
    generated = GeneratedLevel(room_types=("any", "any", "any"))
    curated = levels.curated()["one door"] if num_agents <= 2 else replace(hall, goal=Goal(-50, 50, 3, 60))
    return [hall, replace(hall, **parts), generated, curated]


def functions(num_worlds: int, outputs: Any = EVERYTHING, **options: Any) -> Any:
    return doorstep.jax.make(num_worlds, outputs=outputs, **{"max_levels": 4, "levels": table_of(), **options})


# ---- The same bits


@pytest.mark.parametrize(("num_worlds", "num_agents"), [(1, 2), (70, 2), (5, 4)])
def test_steps_are_those_of_a_simulator(num_worlds: int, num_agents: int) -> None:
    options: dict[str, Any] = {"num_agents": num_agents, "episode_length": 7, "max_levels": 4}
    table = table_of(num_agents)
    with doorstep.Simulator(num_worlds, seed=2**32 - 1, world_offset=12, **options) as sim:
        rooms = doorstep.jax.make(sim.config, outputs=EVERYTHING)
        state = rooms.init()
        same_bits_as(sim, state)
        drawn = doorstep.jax.make(sim.config, levels=table).levels
        sim.set_levels(table)
        draw = np.random.default_rng(3)
        weights = None
        for step, actions in enumerate(random_actions(1, 40, num_worlds, num_agents)):
            if step in (0, 15):  # equal ones, then rows of their own
                given = np.ones((num_worlds, 4), np.float32) if step == 0 else draw.random((num_worlds, 4), np.float32)
                weights = jnp.asarray(given)
                sim.level_weights[:] = given
            resets = draw.random(num_worlds) < 0.1
            sim.actions.to_numpy()[:] = actions
            sim.resets.to_numpy()[:, 0] = resets
            sim.step()
            state = rooms.step(state, jnp.asarray(actions), jnp.asarray(resets), weights, drawn)
            same_bits_as(sim, state)
            weights = None
        assert num_worlds < 70 or set(np.asarray(state.level_indices)[:, 0]) == {0, 1, 2, 3}


def test_the_first_levels_are_those_of_the_table() -> None:
    rooms = functions(200)
    state = rooms.init(seed=3)
    assert set(np.asarray(state.level_indices)[:, 0]) == {0, 1, 2, 3}
    assert (np.asarray(state.level_weights) == 1).all()
    assert not np.asarray(state.final_lidar).any()
    only = rooms.init(seed=3, level_weights=jnp.asarray([0, 0, 0, 2], jnp.float32))
    assert (np.asarray(only.level_indices) == 3).all()
    assert (np.asarray(only.level_weights) == (0, 0, 0, 2)).all()
    fewer = functions(200, levels=table_of()[:2])
    assert_same(fewer.init(0).level_weights[0], jnp.asarray([1, 1, 0, 0], jnp.float32))
    without = doorstep.jax.make(200, max_levels=4, outputs=EVERYTHING)
    assert_same(without.init(0).level_weights[0], FIRST)
    assert_same(without.init(5).lidar, doorstep.jax.make(200, outputs=("lidar",)).init(5).lidar)


def test_worlds_without_the_output_play_the_same_levels() -> None:
    with_levels, without = functions(9, ("rewards", "level_indices")), functions(9, ("rewards",))
    state, other = with_levels.init(1), without.init(1)
    for step in actions_of(20, 9):
        state, other = with_levels.step(state, step), without.step(other, step)
    assert_same(state.worlds, other.worlds)
    assert sorted(other.tensors) == ["level_weights", "rewards"]


# ---- A curriculum


def curriculum(rooms: Any) -> Any:
    """A rollout that moves each world's weights from the level that it has played to the others."""

    def run(state: Any, actions: Any, table: Any) -> Any:
        def body(state: Any, step: Any) -> Any:
            played = jax.nn.one_hot(state.level_indices[:, 0], 4)
            less = state.level_weights * (1 - 0.5 * played)
            weights = jnp.where(state.dones[:, :1, 0] > 0, less, state.level_weights)
            state = rooms.step(state, step, None, weights, table)
            return state, state.level_indices

        return jax.lax.scan(body, state, actions)

    return run


def test_weights_change_between_the_steps_of_a_program() -> None:
    rooms, actions = functions(12, episode_length=4), actions_of(30, 12)
    with doorstep.Simulator(12, episode_length=4, max_levels=4) as sim:
        table = functions(12).levels
        start = doorstep.jax.make(sim.config, outputs=EVERYTHING).init()
        sim.set_levels(table_of(), np.asarray(FIRST))
        state, shown = jax.jit(curriculum(rooms))(start, actions, table)
        assert_same((state, shown), curriculum(rooms)(start, actions, table))
        for step, levels_shown in zip(actions, shown, strict=True):
            ended = sim.dones[:, 0, 0] > 0
            played = np.eye(4, dtype=np.float32)[sim.level_indices[:, 0]]
            weights = sim.level_weights.to_numpy()
            weights[ended] *= 1 - 0.5 * played[ended]
            sim.actions.to_numpy()[:] = step
            sim.step()
            assert np.asarray(levels_shown).tobytes() == sim.level_indices.to_numpy().tobytes()
        same_bits_as(sim, state)


def test_weights_may_be_replaced_in_the_state() -> None:
    rooms = functions(6)
    state, actions = rooms.init(0), actions_of(1, 6)[0]
    weights = jnp.tile(jnp.asarray([0, 1, 0, 0], jnp.float32), (6, 1))
    resets = jnp.ones(6, bool)
    replaced = rooms.step(replace(state, tensors=state.tensors | {"level_weights": weights}), actions, resets)
    assert_same(replaced, rooms.step(state, actions, resets, weights))
    assert_same(replaced, rooms.step(state, actions, resets, weights[0]))
    assert (np.asarray(replaced.level_indices) == 1).all()
    assert_same(rooms.step(replaced, actions).level_weights, weights)


def test_other_levels_of_equal_shape_compile_nothing() -> None:
    rooms, actions = functions(3, ("lidar",)), actions_of(1, 3)[0]
    traces = 0

    def resets(state: Any, table: Any) -> Any:
        nonlocal traces
        traces += 1
        return rooms.step(state, actions, jnp.ones(3, bool), levels=table).lidar

    run = jax.jit(resets)
    tables = [functions(3, levels=table).levels for table in (table_of(), table_of()[::-1])]
    first, second = (run(rooms.init(0), table) for table in tables)
    assert traces == 1
    assert (first != second).any()


def test_equal_batches_share_their_functions() -> None:
    assert functions(3) is functions(3)
    assert functions(3).step is functions(4, ("lidar",), seed=5).step
    assert functions(3).step is not functions(3, levels=table_of()[:1]).step
    assert functions(3).step is not doorstep.jax.make(3).step


# ---- Transformations


def test_worlds_are_rows_with_their_weights() -> None:
    rooms = functions(6)
    state = rooms.init(0, level_weights=jnp.asarray(np.random.default_rng(0).random((6, 4), np.float32)))
    order = jnp.asarray([4, 0, 5, 5])
    taken = jax.tree_util.tree_map(lambda array: array[order], state)
    for step in actions_of(20, 6):
        state, taken = rooms.step(state, step), rooms.step(taken, step[order])
    assert_same(taken, jax.tree_util.tree_map(lambda array: array[order], state))


def test_vmap_is_one_call_with_one_table() -> None:
    rooms, actions = functions(3), actions_of(12, 3)
    states = jax.vmap(rooms.init)(jnp.arange(5, dtype=jnp.uint32))
    step = jax.vmap(rooms.step, in_axes=(0, None, None, 0))
    weights = jnp.asarray(np.random.default_rng(0).random((5, 3, 4), np.float32))
    compiled = jax.jit(step).lower(states, actions[0], None, weights).compile().as_text()
    assert compiled.count('custom_call_target="doorstep_step"') == 1
    assert "while" not in compiled
    assert "u32[15," in compiled
    for step_actions in actions:
        states = step(states, step_actions, None, weights)
    for i in range(5):
        state = rooms.init(i)
        for step_actions in actions:
            state = rooms.step(state, step_actions, None, weights[i])
        assert_same(jax.tree_util.tree_map(lambda array, i=i: array[i], states), state)


def test_vmap_over_tables_is_the_loop() -> None:
    rooms, actions = functions(3), actions_of(1, 3)[0]
    state, resets = rooms.init(0), jnp.ones(3, bool)
    tables = jnp.stack([functions(3, levels=table).levels for table in (table_of(), table_of()[::-1])])
    states = jax.vmap(rooms.step, in_axes=(None, None, None, None, 0))(state, actions, resets, None, tables)
    for i in range(2):
        expected = rooms.step(state, actions, resets, None, tables[i])
        assert_same(jax.tree_util.tree_map(lambda array, i=i: array[i], states), expected)


def test_a_donated_state_is_stepped_in_place() -> None:
    rooms = functions(4)
    step = jax.jit(rooms.step, donate_argnums=0)
    state, expected = rooms.init(0), rooms.init(0)
    place = state.worlds.unsafe_buffer_pointer()
    for actions in actions_of(5, 4):
        expected, state = rooms.step(expected, actions), step(state, actions)
        assert state.worlds.unsafe_buffer_pointer() == place
        assert_same(state, expected)


TWO_DEVICES = """
import jax, numpy as np, doorstep.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tests.interop.test_jax_levels import functions
rooms = functions(140, ("rewards", "level_indices", "final_lidar"), episode_length=5)
mesh = Mesh(np.array(jax.devices()), ("worlds",))
split, everywhere = PartitionSpec("worlds"), PartitionSpec()
spread = NamedSharding(mesh, split)
whole = rooms.init(9)
shards = other = jax.device_put(whole, spread)
step = jax.jit(jax.shard_map(rooms.step, mesh=mesh, in_specs=split, out_specs=split))
specs = (split, split, split, split, everywhere)
step_table = jax.jit(jax.shard_map(rooms.step, mesh=mesh, in_specs=specs, out_specs=split))
table = jax.device_put(rooms.levels, NamedSharding(mesh, everywhere))
draw = np.random.default_rng(0)
for _ in range(12):
    actions = draw.integers(0, doorstep.ACTIONS, (140, 2, 4)).astype(np.int32)
    whole = rooms.step(whole, jax.numpy.asarray(actions))
    placed = jax.device_put(actions, spread)
    shards, other = step(shards, placed), step_table(other, placed, None, other.level_weights, table)
for stepped in (shards, other):
    assert stepped.worlds.sharding.spec == split, stepped.worlds.sharding
    for one, expected in zip(jax.tree_util.tree_leaves(stepped), jax.tree_util.tree_leaves(whole)):
        assert np.asarray(one).tobytes() == np.asarray(expected).tobytes()
"""


def test_shards_draw_from_one_table(run_python: RunPython) -> None:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    run_python(TWO_DEVICES, **os.environ, **flags)


# ---- Mistakes


def refused(call: Any) -> doorstep.ArgumentError:
    with pytest.raises(doorstep.ArgumentError) as caught:
        call()
    return caught.value


def test_tables_are_checked_as_a_simulator_does() -> None:
    alone = Level(spawns=(Spawn(0, 0),), rooms=(Room(0, 40),))
    assert "max_levels" in str(refused(lambda: functions(1, levels=[*table_of(), table_of()[0]])))
    assert "spawns" in str(refused(lambda: functions(1, levels=[alone])))
    for table in ([], [3], "levels", 3):
        assert refused(lambda table=table: functions(1, levels=table)).argument.startswith("levels")
    assert doorstep.jax.make(1, levels=table_of()).init().level_weights.shape == (1, len(table_of()))


def test_weights_and_tables_of_other_shapes_are_refused() -> None:
    rooms, actions = functions(3), actions_of(1, 3)[0]
    state = rooms.init(0)
    for weights in (jnp.ones((2, 4)), jnp.ones(3), jnp.ones((3, 4), int), [1, 1, 1, 1], 1):
        assert refused(lambda weights=weights: rooms.init(level_weights=weights)).argument == "level_weights"
        if not isinstance(weights, list):
            wrong = refused(lambda weights=weights: rooms.step(state, actions, None, weights))
            assert wrong.argument == "level_weights"
    for table in (rooms.levels[:3], rooms.levels.view(np.int32)):
        assert refused(lambda table=table: rooms.step(state, actions, levels=table)).argument == "levels"
    lost = replace(state, tensors={name: array for name, array in state.tensors.items() if name != "level_weights"})
    assert refused(lambda: rooms.step(lost, actions)).argument == "level_weights"


def test_batches_without_levels_take_none() -> None:
    rooms, actions = doorstep.jax.make(2), actions_of(1, 2)[0]
    state = rooms.init(0)
    assert refused(lambda: rooms.step(state, actions, None, jnp.ones((2, 4)))).argument == "max_levels"
    assert refused(lambda: rooms.step(state, actions, levels=functions(2).levels)).argument == "max_levels"
    assert refused(lambda: doorstep.jax.make(2, outputs=("level_indices",))).argument == "outputs"
    assert refused(lambda: functions(2, ("level_weights",))).argument == "outputs"
    with pytest.raises(AttributeError, match="level_weights"):
        _ = state.level_weights


def test_worlds_of_the_other_kind_are_refused() -> None:
    rooms, plain, actions = functions(2, ("rewards",)), doorstep.jax.make(2, outputs=("rewards",)), actions_of(1, 2)[0]
    wrong = replace(rooms.init(0), worlds=plain.init(0).worlds)
    assert refused(lambda: rooms.step(wrong, actions)).argument == "worlds"
    assert refused(lambda: doorstep.jax.step(rooms.init(0), actions)).argument == "levels"


# ---- Calls that fit no batch, made by hand


def tensor(array: Any) -> Tensor:
    return Tensor(array.ctypes.data, array.shape, str(array.dtype))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda call: call["arguments"].pop(), "levels: missing"),
        (lambda call: call.update(arguments=call["arguments"][:2]), "level_weights: missing"),
        (lambda call: call["arguments"].__setitem__(2, tensor(np.ones((2, 3), np.float32))), "levels: wrong"),
        (lambda call: call["arguments"].__setitem__(2, tensor(np.ones((3, 4), np.float32))), "level_weights: wrong"),
        (lambda call: call["arguments"].__setitem__(2, tensor(np.ones((2, 4), np.int32))), "level_weights: wrong"),
        (lambda call: call["arguments"].__setitem__(2, tensor(np.ones((2, 0), np.float32))), "level_weights: wrong"),
        (lambda call: call["rules"].append(NAMES.index("level_weights")), "rules: out of range"),
        (lambda call: call["rules"].__setitem__(5, 0), "worlds: wrong"),
    ],
)
def test_calls_that_fit_no_batch_are_errors(spoil: Any, message: str) -> None:
    info = batch_info(DeviceKind.CPU, 0, 2, 2, 4)
    memory = np.zeros(2 * info.world_bytes + 64, np.uint8)
    worlds = memory[-memory.ctypes.data % 64 :][: 2 * info.world_bytes].view(np.uint32).reshape(2, -1)
    scratch, words = np.zeros(2 * 8192, np.uint8), np.zeros(2, np.uint32)
    drawn = [np.ones((2, 4), np.float32), functions(1).levels]
    results = [tensor(worlds), tensor(scratch)]
    call("create_cpu", [tensor(array) for array in (words, *drawn)], results, [0, 2, 5, 1, 0, 2, *NO_REWARD_NO_PARTS])
    before = worlds.copy()
    actions = np.zeros((2, 2, 4), np.int32)
    step: dict[str, Any] = {
        "arguments": [tensor(array) for array in (worlds, actions, *drawn)],
        "results": results,
        "rules": [0, 2, 5, 1, 0, 2, *NO_REWARD_NO_PARTS],
    }
    broken: dict[str, Any] = {name: list(values) for name, values in step.items()}
    spoil(broken)
    with pytest.raises(HandlerError) as caught:
        call("step_cpu", **broken)
    assert message in caught.value.args[1]
    assert (worlds == before).all()
    call("step_cpu", **step)
    assert (worlds != before).any()
