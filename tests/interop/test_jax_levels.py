"""Levels and weights of worlds inside JAX programs: data that steps may change, refused where the host sees values that
make no sense, and harmless where it does not."""

from dataclasses import replace

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep
from doorstep import levels
from doorstep._native._generated import Level as NativeLevel
from doorstep.levels import Level, Room, Spawn

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from tests.interop import jax_worlds  # noqa: E402
from tests.interop.jax_worlds import SOME, actions_of, assert_same, part_of, same_bits_as, table_of  # noqa: E402

import doorstep.jax  # noqa: E402

LEVEL = np.dtype(NativeLevel)
FIRST = np.array([1, 0, 0, 0], np.float32)  # the weights of a simulator whose levels nobody has set


def functions(num_worlds, outputs=(*SOME, "level_indices"), **options):
    return jax_worlds.functions(num_worlds, outputs, "levels", **options)


def test_the_first_levels_are_those_of_the_table():
    rooms = functions(200)
    state = rooms.init(seed=3)
    assert set(np.asarray(state.level_indices)[:, 0]) == {0, 1, 2, 3}
    assert (np.asarray(state.level_weights) == 1).all()
    assert not np.asarray(state.final_lidar).any()
    only = rooms.init(seed=3, level_weights=jnp.asarray([0, 0, 0, 2], jnp.float32))
    assert (np.asarray(only.level_indices) == 3).all()
    assert (np.asarray(only.level_weights) == (0, 0, 0, 2)).all()
    assert_same(functions(200, levels=table_of()[:2]).init(0).level_weights[0], jnp.asarray([1, 1, 0, 0], jnp.float32))
    without = doorstep.jax.make(200, max_levels=4, outputs=("lidar",))
    assert_same(without.init(0).level_weights[0], FIRST)
    assert_same(without.init(5).lidar, doorstep.jax.make(200, outputs=("lidar",)).init(5).lidar)
    assert_same(without.init(5, levels=rooms.levels, level_weights=np.ones(4, np.float32)).lidar, rooms.init(5).lidar)


def curriculum(rooms):
    """A rollout that moves each world's weights from the level that it has played to the others."""

    def run(state, actions, table):
        def body(state, step):
            less = state.level_weights * (1 - 0.5 * jax.nn.one_hot(state.level_indices[:, 0], 4))
            weights = jnp.where(state.dones[:, :1, 0] > 0, less, state.level_weights)
            state = rooms.step(state, step, None, weights, table)
            return state, state.level_indices

        return jax.lax.scan(body, state, actions)

    return run


def test_weights_change_between_the_steps_of_a_program():
    rooms, actions, outputs = functions(12, episode_length=4), actions_of(30, 12), (*SOME, "level_indices")
    with doorstep.Simulator(12, episode_length=4, max_levels=4) as sim:
        start = doorstep.jax.make(sim.config, outputs=outputs).init()
        sim.set_levels(table_of(), np.asarray(FIRST))
        state, shown = jax.jit(curriculum(rooms))(start, actions, rooms.levels)
        for step, levels_shown in zip(actions, shown, strict=True):
            ended = sim.dones[:, 0, 0] > 0
            played = np.eye(4, dtype=np.float32)[sim.level_indices[:, 0]]
            weights = sim.level_weights.to_numpy()
            weights[ended] *= 1 - 0.5 * played[ended]
            sim.actions.to_numpy()[:] = step
            sim.step()
            assert np.asarray(levels_shown).tobytes() == sim.level_indices.to_numpy().tobytes()
        same_bits_as(sim, state)


def test_weights_may_be_replaced_in_the_state():
    rooms = functions(6)
    state, actions, resets = rooms.init(0), actions_of(1, 6)[0], jnp.ones(6, bool)
    weights = jnp.tile(jnp.asarray([0, 1, 0, 0], jnp.float32), (6, 1))
    replaced = rooms.step(replace(state, tensors=state.tensors | {"level_weights": weights}), actions, resets)
    for given in (weights, weights[0], np.asarray(weights)):
        assert_same(replaced, rooms.step(state, actions, resets, given))
    assert (np.asarray(replaced.level_indices) == 1).all()
    assert_same(rooms.step(replaced, actions).level_weights, weights)


def test_tables_of_equal_shape_compile_nothing_and_vmap_over_them_is_the_loop():
    rooms, actions, resets = functions(3, ("lidar",)), actions_of(1, 3)[0], jnp.ones(3, bool)
    traces = 0

    def lidar(state, table):
        nonlocal traces
        traces += 1
        return rooms.step(state, actions, resets, levels=table).lidar

    run, state = jax.jit(lidar), rooms.init(0)
    tables = jnp.asarray([functions(3, levels=table).levels for table in (table_of(), table_of()[::-1])])
    first, second = (run(state, table) for table in tables)
    assert traces == 1
    assert (first != second).any()
    states = jax.jit(jax.vmap(rooms.step, in_axes=(None, None, None, None, 0)))(state, actions, resets, None, tables)
    for i in range(2):
        assert_same(part_of(states, i), rooms.step(state, actions, resets, None, np.asarray(tables)[i]))
    assert functions(3) is functions(3)
    assert functions(3).step is functions(4, ("lidar",), seed=5).step
    assert functions(3).step not in (functions(3, levels=table_of()[:1]).step, doorstep.jax.make(3).step)


# ---- Mistakes


def refused(argument, call, *arguments, message=None, **named):
    refuses(message, call, *arguments, argument=argument, **named)


def test_tables_and_weights_of_other_shapes_and_worlds_of_the_other_kind_are_refused():
    rooms, actions, plain = functions(3, ("rewards",)), actions_of(1, 3)[0], doorstep.jax.make(3, outputs=("rewards",))
    state, other = rooms.init(0), plain.init(0)
    for weights in (jnp.ones((2, 4)), jnp.ones(3), jnp.ones((3, 4), int), 1):
        refused("level_weights", rooms.init, level_weights=weights)
        refused("level_weights", rooms.step, state, actions, None, weights)
    refused("level_weights", rooms.init, level_weights=[1, 1, 1, 1])
    for table in (rooms.levels[:3], rooms.levels.view(np.int32)):
        refused("levels", rooms.step, state, actions, levels=table)
    refused("level_weights", rooms.step, replace(state, tensors={"rewards": state.rewards}), actions)
    refused("worlds", rooms.step, replace(state, worlds=other.worlds), actions)
    refused("levels", doorstep.jax.step, state, actions)
    refused("max_levels", plain.step, other, actions, None, jnp.ones((3, 4)))
    refused("max_levels", plain.step, other, actions, levels=rooms.levels)
    refused("outputs", doorstep.jax.make, 2, outputs=("level_indices",))
    refused("outputs", functions, 2, ("level_weights",))
    with pytest.raises(AttributeError, match="level_weights"):
        _ = other.level_weights


BAD = [
    ({"num_walls": 33}, r"levels\[3\]\.num_walls is 33; it must be 0 to 32"),
    ({"num_cubes": 2**30}, r"levels\[3\]\.num_cubes"),
    ({"num_rooms": 0}, r"levels\[3\]\.num_rooms"),
    ({"buttons__door": 7}, r"levels\[3\]\.buttons\[0\]\.door is 7"),
    ({"walls__size_x": -1}, r"levels\[3\]\.walls\[0\]"),
    ({"walls__x": np.nan}, r"levels\[3\]\.walls\[0\]"),
    ({"struct_size": 4}, r"levels\[3\]\.struct_size"),
]


def edited(table, **values):
    """The table with other values in the fields of its last level."""
    copy = table.copy()
    last = copy.view(LEVEL)[-1, 0]
    for name, value in values.items():
        part, _, field = name.partition("__")
        if field:
            last[part].flat[0][field] = value
        else:
            last[part] = value
    return copy


def test_levels_whose_values_are_known_are_checked():
    rooms, actions = functions(2, ("rewards",)), actions_of(1, 2)[0]
    state = rooms.init(0)
    for place, (values, message) in enumerate(BAD):
        table = (np.asarray, jnp.asarray)[place % 2](edited(rooms.levels, **values))
        refused("levels", rooms.step, state, actions, levels=table, message=message)
        refused("levels", rooms.init, 0, levels=table, message=message)
        traced = jax.jit(lambda state, table=table: rooms.step(state, actions, levels=table))
        refused("levels", traced, state, message=message)
    refuses("max_levels", functions, 1, levels=[*table_of(), table_of()[0]])
    refuses("spawns", functions, 1, levels=[Level(spawns=(Spawn(0, 0),), rooms=(Room(0, 40),))])
    for table in ([], [3], "levels", 3):
        refuses(r"^levels", functions, 1, levels=table)
    others = functions(1, num_agents=1).levels
    refuses("num_agents", functions(1, num_agents=3, levels=[levels.reference()]).init, 0, levels=others)


def test_weights_whose_values_are_known_are_checked():
    rooms, actions = functions(2, ("rewards",)), actions_of(1, 2)[0]
    state = rooms.init(0)
    for row, message in (([-1, 1, 1, 1], "not negative"), ([np.nan] * 4, "finite"), ([np.inf] * 4, "finite"),
                         ([0] * 4, "not all zero")):  # fmt: skip
        one = jnp.asarray(row, jnp.float32)
        rows = np.stack([np.ones(4, np.float32), np.asarray(one)])
        for weights, name in ((one, "level_weights is"), (rows, r"level_weights\[1\] is")):
            refused("level_weights", rooms.step, state, actions, None, weights, message=f"{name}.*{message}")
            refused("level_weights", rooms.init, 0, None, weights, message=f"{name}.*{message}")


ANY_WORDS = """
import jax, jax.numpy as jnp, numpy as np
from tests.interop.test_jax_levels import functions
rooms = functions(32, ("observations", "lidar", "rewards", "level_indices"))
step, generator, first = jax.jit(rooms.step), np.random.default_rng(3), rooms.init(0)
actions = [jnp.asarray(generator.integers(0, (4, 8, 5, 2), (32, 2, 4)), jnp.int32) for _ in range(6)]
for run in range(20):
    table = rooms.levels.copy()
    spoilt = generator.random(table.shape) < (1, 0.05)[run % 2]
    table[spoilt] = generator.integers(0, 2**32, spoilt.sum(), np.uint32)
    state = first
    for each in actions:
        state = step(state, each, jnp.ones(32, jnp.int32), levels=jnp.asarray(table))
    jax.block_until_ready(state)
print("survived")
"""


def test_no_levels_of_a_program_crash_it(run_python):
    """They are traced, so nobody can check them: any words at all, and a few words out of range."""
    assert run_python(ANY_WORDS) == "survived\n"
