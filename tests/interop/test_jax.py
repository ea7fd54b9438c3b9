"""Worlds inside JAX programs: the bits of a simulator, under every transformation that pure functions allow. Levels and
weights of worlds are data that steps may change, refused where the host sees values that make no sense."""

import importlib
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from tests.refuses import refuses
from tests.scenes import played, random_actions

import doorstep
from doorstep import ArgumentError
from doorstep._native._generated import Level as NativeLevel
from doorstep.levels import Level, Rewards, Room, Spawn, reference

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from tests.interop import jax_worlds  # noqa: E402
from tests.interop.jax_worlds import SOME, actions_of, assert_same, functions, part_of, table_of  # noqa: E402

import doorstep.jax  # noqa: E402

both_kinds = pytest.mark.parametrize("kind", jax_worlds.KINDS)

# ---- The same bits

PARTS = ("door_observations", ("lidar", 0.5), "physics")
REWARD = Rewards(progress=0.3, idle=-0.1, room=1.0, exit=2.0, cube_approach=0.5)
CASES = {
    "one world": (1, {}),
    "one agent, clamped": (3, {"num_agents": 1, "action_check": "clamp", "observations": PARTS}),
    "many worlds": (70, {}),
    "four agents, unchecked": (5, {"num_agents": 4, "action_check": "off"}),
    "no reset, other rewards": (4, {"auto_reset": False, "reward": REWARD}),
    "many worlds of levels": (70, {"max_levels": 4}),
    "four agents in levels": (5, {"max_levels": 4, "num_agents": 4, "action_check": "off"}),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_a_simulator(case):
    num_worlds, options = CASES[case]
    table, draw = table_of(options.get("num_agents", 2)), np.random.default_rng(3)
    with doorstep.Simulator(num_worlds, seed=2**32 - 1, world_offset=12, episode_length=7, **options) as sim:
        outputs = (*jax_worlds.EVERYTHING, "level_indices") if sim.config.max_levels else jax_worlds.EVERYTHING
        rooms = doorstep.jax.make(sim.config, outputs=outputs, reward=sim.reward)
        state = rooms.init()
        jax_worlds.same_bits_as(sim, state)
        drawn = ()
        if sim.config.max_levels:
            sim.set_levels(table)
            drawn = (np.ones(4, np.float32), doorstep.jax.make(sim.config, levels=table).levels)
        for step, actions in enumerate(random_actions(1, 30, num_worlds, sim.num_agents)):
            if step == 15 and drawn:  # rows of their own
                drawn = (draw.random((num_worlds, 4), np.float32), drawn[1])
                sim.level_weights[:] = drawn[0]
            if step > 20:  # mostly out of range
                actions = draw.integers(-3, 12, actions.shape, np.int32)
            resets = draw.random(num_worlds) < (0.1 if step % 5 else 0)
            given = (resets, resets[:, None].astype(np.int32) * 7)[step % 2] if step % 5 else None
            sim.actions.to_numpy()[:] = actions
            sim.resets.to_numpy()[:, 0] = resets
            sim.step()
            given = given if given is None else jnp.asarray(given)
            state = rooms.step(state, jnp.asarray(actions), given, *drawn)
            jax_worlds.same_bits_as(sim, state)
        assert not drawn or num_worlds < 70 or set(np.asarray(state.level_indices)[:, 0]) == {0, 1, 2, 3}


def test_init_gives_the_worlds_of_seed_and_offset():
    rooms = functions(6, ("lidar",))
    whole, shard = rooms.init(5), functions(2, ("lidar",)).init(seed=5, world_offset=4)
    assert_same(whole.worlds[4:], shard.worlds)
    assert_same(whole.lidar[4:], shard.lidar)
    assert_same(jax.jit(rooms.init)(jnp.uint32(5), jnp.int32(0)), whole)
    assert np.asarray(rooms.init(6).worlds).tobytes() != np.asarray(whole.worlds).tobytes()
    for seed in (5, np.uint32(5), np.array(5), np.array(2**31 + 5), jnp.array(5)):
        assert_same(rooms.init(seed).worlds, rooms.init(int(seed)).worlds)
    wrong = (-1, 2**32, 1.5, "1", np.zeros(2, np.int32), np.float32(1))
    wrong += (np.array(2**32 + 5), np.array(-1), jnp.array(-1), np.array(True), jnp.zeros(1, int))
    for seed in wrong:
        refuses("seed is", rooms.init, seed)
    rooms.init(0, 2**32 - 6)
    refuses("world_offset is", rooms.init, 0, 2**32 - 5)


@both_kinds
def test_neither_outputs_nor_neighbours_change_a_world(kind):
    """Worlds are rows that may be taken and joined, with the weights of their levels."""
    actions, order, ends = actions_of(15, 6), np.array([4, 0, 5, 5]), []
    weights = np.random.default_rng(0).random((6, 4), np.float32)
    drawn = {"level_weights": jnp.asarray(weights)} if kind == "levels" else {}
    for outputs in ((), ("lidar",), SOME):
        rooms = functions(6, outputs, kind, episode_length=5)
        state = rooms.init(1, **drawn)
        taken = part_of(state, order)
        for step in actions:
            state, taken = rooms.step(state, step), rooms.step(taken, step[order])
        assert_same(taken, part_of(state, order))
        assert set(state.tensors) - {"level_indices"} == {*outputs, *drawn}
        ends.append(state.worlds)
    assert_same(ends[0], ends[1])
    assert_same(ends[0], ends[2])


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_rewards_in_place_of_those_of_levels_are_a_simulators(library):
    pytest.importorskip(library)
    module = importlib.import_module(f"doorstep.{library}")
    chosen = {"outputs": ("rewards",)} if library == "jax" else {}
    convert = np.asarray if library == "jax" else importlib.import_module("torch").from_numpy
    others = [reference(), reference().replace(rewards=Rewards(idle=7.0))]
    own = [reference().replace(rewards=REWARD)] * 2
    made = [{"reward": REWARD}, {"levels": own}, {"levels": others, "reward": REWARD}]
    rooms = [module.make(12, seed=4, **chosen, **options) for options in made]
    states = [one.init() for one in rooms]
    with doorstep.Simulator(12, seed=4, reward=REWARD) as sim:
        for actions in played(random_actions(8, 40, 12, 2), sim):
            given = convert(np.ascontiguousarray(actions))
            states = [one.step(state, given) for one, state in zip(rooms, states, strict=True)]
            assert np.asarray(states[0].rewards).tobytes() == sim.rewards.to_numpy().tobytes()
            assert_same(np.asarray(states[1].rewards), np.asarray(states[2].rewards))
    refuses("environments and train", module.make, 2, reward=lambda step: step.rewards, argument="reward")


# ---- Transformations


@both_kinds
def test_compiled_rollouts_are_the_loop_and_change_only_what_is_donated(kind):
    rooms, actions = functions(5, SOME, kind, episode_length=6), actions_of(15, 5)
    resets = jnp.arange(15 * 5).reshape(15, 5) % 7 == 0
    start, before = rooms.init(3), np.asarray(rooms.init(3).worlds)

    def loop(state):
        shown = []
        for step_actions, step_resets in zip(actions, resets, strict=True):
            state = rooms.step(state, step_actions, step_resets)
            shown.append(state.lidar)
        return state, jnp.stack(shown)

    def scan(state):
        def body(state, given):
            state = rooms.step(state, *given)
            return state, state.lidar

        return jax.lax.scan(body, state, (actions, resets))

    looped = loop(start)
    for compiled in (jax.jit(scan), jax.jit(scan, donate_argnums=0)):
        assert_same(compiled(rooms.init(3)), looped)
    step, state, expected = jax.jit(rooms.step, donate_argnums=0), rooms.init(3), start
    place = state.worlds.unsafe_buffer_pointer()
    for each in actions[:5]:
        expected = rooms.step(expected, each)
        donated, state = state, step(state, each)
        assert donated.worlds.is_deleted()
        assert state.worlds.unsafe_buffer_pointer() == place
        assert_same(state, expected)
    assert_same(start.worlds, before)


@both_kinds
def test_vmap_is_one_call_also_of_batches_of_batches_and_gives_the_loop(kind):
    rooms, actions = functions(3, SOME, kind, episode_length=4), actions_of(3, 3)
    resets = jnp.asarray([[True, False, False], [False, True, True]])
    weights = jnp.asarray(np.random.default_rng(0).random((2, 3, 4), np.float32)) if kind == "levels" else None
    inner = jax.vmap(rooms.step, in_axes=(0, None, 0, None if weights is None else 0))
    step = jax.vmap(inner, in_axes=(1, 0, None, None), out_axes=1)
    states = jax.jit(jax.vmap(jax.vmap(rooms.init)))(jnp.arange(6, dtype=jnp.uint32).reshape(2, 3))
    compiled = jax.jit(step).lower(states, actions, resets, weights).compile()
    text = compiled.as_text()
    assert text.count('custom_call_target="doorstep_step"') == 1
    assert "while" not in text
    assert "u32[18," in text
    for _ in range(6):
        states = compiled(states, actions, resets, weights)
    for i in range(2):
        for j in range(3):
            state = rooms.init(3 * i + j)
            for _ in range(6):
                state = rooms.step(state, actions[j], resets[i], *(() if weights is None else (weights[i],)))
            assert_same(part_of(states, (i, j)), state)


def test_gradients_flow_around_steps_and_not_through_them():
    rooms = functions(2, ("lidar",))
    start, weights = rooms.init(0), jnp.linspace(-1.0, 1.0, 180).reshape(60, 3)

    def loss(weights, known=None):
        scores = start.lidar.reshape(2, 2, 60) @ weights
        actions = jnp.argmax(scores, -1)[..., None] * jnp.asarray([1, 0, 0, 0]) + jnp.asarray([0, 0, 2, 0])
        seen = rooms.step(start, actions.astype(jnp.int32)).lidar if known is None else known
        return (jax.nn.log_softmax(scores)[..., 0] * seen[:, :, 0, 0]).sum(), seen

    gradient, seen = jax.jit(jax.grad(loss, has_aux=True))(weights)
    np.testing.assert_allclose(gradient, jax.grad(loss, has_aux=True)(weights, seen)[0], rtol=1e-4, atol=1e-6)
    assert jnp.abs(gradient).max() > 0

    kept = functions(1, ("final_lidar",))
    state = kept.init(0)

    def through(scale):
        scaled = doorstep.jax.BatchState(state.worlds, {"final_lidar": state.final_lidar * scale}, state.program)
        return kept.step(scaled, actions_of(1, 1)[0]).final_lidar.sum()

    refuses("cannot be differentiated", jax.grad(through), 1.0, error=ValueError)


TWO_DEVICES = """
import jax, numpy as np, doorstep.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tests.interop.jax_worlds import assert_same, functions
assert len(jax.devices()) == 2
mesh = Mesh(np.array(jax.devices()), ("worlds",))
split, everywhere = PartitionSpec("worlds"), PartitionSpec()
spread = NamedSharding(mesh, split)
draw = np.random.default_rng(0)
for kind in ("generated", "levels"):
    rooms = functions(140, ("rewards", "final_lidar"), kind, episode_length=5)
    whole = rooms.init(9)
    shards = other = jax.device_put(whole, spread)
    step = jax.jit(jax.shard_map(rooms.step, mesh=mesh, in_specs=split, out_specs=split))
    if kind == "levels":
        specs = (split, split, split, split, everywhere)
        step_table = jax.jit(jax.shard_map(rooms.step, mesh=mesh, in_specs=specs, out_specs=split))
        table = jax.device_put(rooms.levels, NamedSharding(mesh, everywhere))
    for _ in range(8):
        actions = draw.integers(0, doorstep.ACTIONS, (140, 2, 4)).astype(np.int32)
        whole = rooms.step(whole, jax.numpy.asarray(actions))
        placed = jax.device_put(actions, spread)
        shards = step(shards, placed)
        if kind == "levels":
            other = step_table(other, placed, None, other.level_weights, table)
            assert_same(other, whole)
    assert shards.worlds.sharding.spec == split, shards.worlds.sharding
    assert_same(shards, whole)
"""


def test_shards_step_on_devices_of_their_own_and_draw_from_one_table(run_python):
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    run_python(TWO_DEVICES, **os.environ, **flags)


# ---- Compilation


def test_simulators_of_equal_rules_share_programs():
    traces = 0

    def steps(state, actions):
        nonlocal traces
        traces += 1
        return jax.lax.scan(lambda state, step: (rooms.step(state, step), None), state, actions)[0]

    program, actions = jax.jit(steps), actions_of(3, 4)
    for seed in range(3):
        rooms = functions(4, ("dones", "rewards"), seed=seed, world_offset=seed)
        assert rooms == functions(4, ["rewards", "dones"], seed=seed, world_offset=seed)
        program(rooms.init(), actions)
    assert traces == 1
    program(functions(4, ("dones", "rewards"), episode_length=9).init(0), actions)
    assert traces == 2
    assert functions(4).step is functions(5, ("lidar",)).step


def test_a_state_can_be_pickled():
    rooms = functions(2, ("lidar",))
    state = rooms.init(4)
    copy = pickle.loads(pickle.dumps(jax.device_get(state)))
    assert copy.program is state.program
    actions = actions_of(1, 2)[0]
    assert_same(rooms.step(copy, actions), rooms.step(state, actions))


# ---- Mistakes


def test_worlds_that_are_none_are_an_error_and_no_crash():
    rooms = functions(3, ("rewards",))
    state, actions = rooms.init(0), actions_of(1, 3)[0]
    noise = np.random.default_rng(1).integers(0, 2**32, state.worlds.shape, np.uint32)
    for worlds in (jnp.zeros_like(state.worlds), jnp.asarray(noise)):
        broken = doorstep.jax.BatchState(worlds, state.tensors, state.program)
        with pytest.raises(Exception, match=r"worlds\[0\] of 3 is not a valid world"):
            rooms.step(broken, actions).worlds.block_until_ready()
    assert rooms.step(state, actions).rewards.shape == (3, 2, 1)  # the next call finds everything in order


def test_arrays_of_other_shapes_and_dtypes_and_states_of_other_rules_are_refused():
    rooms = functions(3, ("rewards", "final_lidar"))
    state, actions = rooms.init(0), actions_of(1, 3)[0]

    def with_tensors(tensors, worlds=state.worlds):
        return doorstep.jax.BatchState(worlds, tensors, state.program)

    for argument, arguments, message in (
        ("actions", (state, actions[:2]), r"int32\[2, 2, 4\]; it must be int32\[3, 2, 4\]"),
        ("actions", (state, actions.astype(float)), r"float32\[3, 2, 4\].*astype\(jnp\.int32\)"),
        ("actions", (state, [[0] * 4]), r"it must be an array, int32\[3, 2, 4\]"),
        ("actions", (state, None), r"actions is None; it must be an array"),
        ("resets", (state, actions, jnp.zeros(2, int)), r"int32\[2\]; it must be bool or int32"),
        ("resets", (state, actions, jnp.zeros(3)), r"float32\[3\]"),
        ("resets", (state, actions, [0, 0, 0]), "an array"),
        ("final_lidar", (with_tensors({"rewards": state.rewards}), actions), "final_lidar is"),
        ("final_lidar", (with_tensors(state.tensors | {"final_lidar": state.final_lidar[:1]}), actions), "_lidar is"),
        ("worlds", (with_tensors(state.tensors, None), actions), "worlds is"),
        ("worlds", (with_tensors(state.tensors, state.worlds[0, 0]), actions), "worlds is"),
        ("worlds", (with_tensors(state.tensors, state.worlds[:0]), actions), "worlds is"),
        ("worlds", (with_tensors(state.tensors, state.worlds[:, 1:]), actions), "worlds is"),
        ("state", ((state.worlds, state.tensors), actions), "state is"),
    ):
        refuses(message, rooms.step, *arguments, argument=argument)


def test_outputs_and_rules_are_checked():
    for outputs in ("foo", ["rewards", "actions"], [3], None, 3, ([],)):
        refuses("outputs is", functions, 1, outputs)
    for name, value in (("action_check", "raise"), ("strict", True), ("cameras", doorstep.Cameras())):
        refuses(f"^{name} is .*; it must be ", functions, 1, argument=name, **{name: value})
    with doorstep.Simulator(2) as sim, pytest.raises(ArgumentError, match=r"pass sim.config"):
        doorstep.jax.make(sim)
    refuses(r"'num_agent' is not a field .*did you mean 'num_agents'", doorstep.jax.make, 2, num_agent=3)
    with pytest.raises(AttributeError, match=r"no 'lidar'; the outputs chosen in make\(\) are .*rewards"):
        _ = functions(1, ("rewards",)).init(0).lidar


def test_a_batch_is_made_from_a_config_or_from_its_fields_and_tells_its_shapes():
    config = doorstep.SimulatorConfig(3, seed=9, world_offset=5, num_agents=1, device="auto")
    made = [
        doorstep.jax.make(config),
        doorstep.jax.make(3, seed=9, world_offset=5, num_agents=1),
        doorstep.jax.make(config.replace(seed=1), seed=9),
    ]
    for rooms in made:
        assert rooms.num_worlds == 3
        assert rooms.step is made[0].step
        assert_same(rooms.init().worlds, made[0].init(seed=9, world_offset=5).worlds)
    assert (rooms.init(seed=0).worlds != rooms.init().worlds).any()
    rooms = functions(3, num_agents=3)
    state = rooms.init(0)
    assert (rooms.outputs, rooms.shapes["actions"].shape) == (jax_worlds.EVERYTHING, (3, 3, 4))
    for name, array in [("worlds", state.worlds), *state.tensors.items()]:
        assert (rooms.shapes[name].shape, rooms.shapes[name].dtype) == (array.shape, array.dtype), name


# ---- Levels

LEVEL = np.dtype(NativeLevel)
FIRST = np.array([1, 0, 0, 0], np.float32)  # the weights of a simulator whose levels nobody has set


def with_levels(num_worlds, outputs=(*SOME, "level_indices"), **options):
    return functions(num_worlds, outputs, "levels", **options)


def test_the_first_levels_are_those_of_the_table():
    rooms = with_levels(200)
    state = rooms.init(seed=3)
    assert set(np.asarray(state.level_indices)[:, 0]) == {0, 1, 2, 3}
    assert (np.asarray(state.level_weights) == 1).all()
    assert not np.asarray(state.final_lidar).any()
    only = rooms.init(seed=3, level_weights=jnp.asarray([0, 0, 0, 2], jnp.float32))
    assert (np.asarray(only.level_indices) == 3).all()
    assert (np.asarray(only.level_weights) == (0, 0, 0, 2)).all()
    assert_same(
        with_levels(200, levels=table_of()[:2]).init(0).level_weights[0], jnp.asarray([1, 1, 0, 0], jnp.float32)
    )
    without = doorstep.jax.make(200, max_levels=4, outputs=("lidar",))
    assert_same(without.init(0).level_weights[0], FIRST)
    assert_same(without.init(5).lidar, doorstep.jax.make(200, outputs=("lidar",)).init(5).lidar)
    assert_same(without.init(5, levels=rooms.levels, level_weights=np.ones(4, np.float32)).lidar, rooms.init(5).lidar)


def test_weights_may_be_replaced_in_the_state():
    rooms = with_levels(6)
    state, actions, resets = rooms.init(0), actions_of(1, 6)[0], jnp.ones(6, bool)
    weights = jnp.tile(jnp.asarray([0, 1, 0, 0], jnp.float32), (6, 1))
    replaced = rooms.step(replace(state, tensors=state.tensors | {"level_weights": weights}), actions, resets)
    for given in (weights, weights[0], np.asarray(weights)):
        assert_same(replaced, rooms.step(state, actions, resets, given))
    assert (np.asarray(replaced.level_indices) == 1).all()
    assert_same(rooms.step(replaced, actions).level_weights, weights)


def test_tables_of_equal_shape_compile_nothing_and_vmap_over_them_is_the_loop():
    rooms, actions, resets = with_levels(3, ("lidar",)), actions_of(1, 3)[0], jnp.ones(3, bool)
    traces = 0

    def lidar(state, table):
        nonlocal traces
        traces += 1
        return rooms.step(state, actions, resets, levels=table).lidar

    run, state = jax.jit(lidar), rooms.init(0)
    tables = jnp.asarray([with_levels(3, levels=table).levels for table in (table_of(), table_of()[::-1])])
    first, second = (run(state, table) for table in tables)
    assert traces == 1
    assert (first != second).any()
    states = jax.jit(jax.vmap(rooms.step, in_axes=(None, None, None, None, 0)))(state, actions, resets, None, tables)
    for i in range(2):
        assert_same(part_of(states, i), rooms.step(state, actions, resets, None, np.asarray(tables)[i]))
    assert with_levels(3).step is with_levels(4, ("lidar",), seed=5).step
    assert with_levels(3).step not in (with_levels(3, levels=table_of()[:1]).step, doorstep.jax.make(3).step)


def refused(argument, call, *arguments, message=None, **named):
    refuses(message, call, *arguments, argument=argument, **named)


def test_tables_and_weights_of_other_shapes_and_worlds_of_the_other_kind_are_refused():
    rooms, actions, plain = (
        with_levels(3, ("rewards",)),
        actions_of(1, 3)[0],
        doorstep.jax.make(3, outputs=("rewards",)),
    )
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
    refused("outputs", with_levels, 2, ("level_weights",))
    with pytest.raises(AttributeError, match="level_weights"):
        _ = other.level_weights


def test_levels_whose_values_are_known_are_checked():
    rooms, actions = with_levels(2, ("rewards",)), actions_of(1, 2)[0]
    state = rooms.init(0)
    wrong, message = rooms.levels.copy(), r"levels\[3\]\.num_walls is 33; it must be 0 to 32"
    wrong.view(LEVEL)[-1, 0]["num_walls"] = 33
    for table in (wrong, jnp.asarray(wrong)):
        refused("levels", rooms.step, state, actions, levels=table, message=message)
        refused("levels", rooms.init, 0, levels=table, message=message)
        traced = jax.jit(lambda state, table=table: rooms.step(state, actions, levels=table))
        refused("levels", traced, state, message=message)
    refuses("max_levels", with_levels, 1, levels=[*table_of(), table_of()[0]])
    refuses("spawns", with_levels, 1, levels=[Level(spawns=(Spawn(0, 0),), rooms=(Room(0, 40),))])
    for table in ([], [3], "levels", 3):
        refuses(r"^levels", with_levels, 1, levels=table)
    others = with_levels(1, num_agents=1).levels
    refuses("num_agents", with_levels(1, num_agents=3, levels=[reference()]).init, 0, levels=others)


def test_weights_whose_values_are_known_are_checked():
    rooms, actions = with_levels(2, ("rewards",)), actions_of(1, 2)[0]
    state = rooms.init(0)
    for row, message in (([-1, 1, 1, 1], "not negative"), ([np.nan] * 4, "finite"), ([np.inf] * 4, "finite"),
                         ([0] * 4, "not all zero")):  # fmt: skip
        one = jnp.asarray(row, jnp.float32)
        rows = np.stack([np.ones(4, np.float32), np.asarray(one)])
        for weights, name in ((one, "level_weights is"), (rows, r"level_weights\[1\] is")):
            refused("level_weights", rooms.step, state, actions, None, weights, message=f"{name}.*{message}")
            refused("level_weights", rooms.init, 0, None, weights, message=f"{name}.*{message}")
