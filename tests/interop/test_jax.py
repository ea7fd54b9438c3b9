"""Worlds inside JAX programs: the bits of a simulator, under every transformation that pure functions allow."""

import dataclasses
import doctest
import functools
import gc
import os
import pickle
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import RunPython
from tests.scenes import random_actions

import doorstep
from doorstep._batches import BatchRules

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from tests.interop.jax_worlds import actions_of, assert_same, same_bits_as  # noqa: E402

import doorstep.jax  # noqa: E402
from doorstep._batches import INPUTS, LEVEL_NAMES, NAMES  # noqa: E402
from doorstep._native import ActionCheck, DeviceKind, batch_info  # noqa: E402

EVERYTHING = tuple(name for name in NAMES if name not in (*INPUTS, *LEVEL_NAMES))


def functions(num_worlds: int, outputs: Any = doorstep.jax.DEFAULT_OUTPUTS, **options: Any) -> Any:
    return doorstep.jax.make(num_worlds, outputs=outputs, **options)


# ---- The same bits


@pytest.mark.parametrize(("num_worlds", "num_agents"), [(1, 2), (3, 1), (70, 2), (5, 4)])
def test_steps_are_those_of_a_simulator(num_worlds: int, num_agents: int) -> None:
    options: dict[str, Any] = {"num_agents": num_agents, "episode_length": 7}
    with doorstep.Simulator(num_worlds, seed=2**32 - 1, world_offset=12, **options) as sim:
        rooms = doorstep.jax.make(sim.config, outputs=EVERYTHING)
        state = rooms.init(2**32 - 1, 12)
        same_bits_as(sim, state)
        resets = np.random.default_rng(3).random((20, num_worlds)) < 0.1
        for step, actions in enumerate(random_actions(1, 20, num_worlds, num_agents)):
            sim.actions.to_numpy()[:] = actions
            sim.resets.to_numpy()[:, 0] = resets[step]
            sim.step()
            state = rooms.step(state, jnp.asarray(actions), jnp.asarray(resets[step]))
            same_bits_as(sim, state)


@pytest.mark.parametrize("options", [{"auto_reset": False}, {"action_check": "off"}, {"action_check": "clamp"}])
def test_rules_are_those_of_the_simulator(options: dict[str, Any]) -> None:
    with doorstep.Simulator(4, episode_length=5, **options) as sim:
        rooms = doorstep.jax.make(sim.config, outputs=("rewards", "dones", "lidar", "steps_remaining"))
        state = rooms.init(0)
        for step in range(12):
            actions = np.random.default_rng(step).integers(-3, 12, (4, 2, 4), np.int32)  # mostly out of range
            sim.actions.to_numpy()[:] = actions
            sim.step()
            state = rooms.step(state, jnp.asarray(actions))
            same_bits_as(sim, state)


def test_init_gives_the_levels_of_seed_and_offset() -> None:
    rooms = functions(6, ("lidar",))
    whole, shard = rooms.init(5), functions(2, ("lidar",)).init(seed=5, world_offset=4)
    assert_same(whole.worlds[4:], shard.worlds)
    assert_same(whole.lidar[4:], shard.lidar)
    assert_same(rooms.init(np.uint32(5)), whole)
    assert_same(jax.jit(rooms.init)(jnp.uint32(5), jnp.int32(0)), whole)
    assert np.asarray(rooms.init(6).worlds).tobytes() != np.asarray(whole.worlds).tobytes()


def test_outputs_chosen_do_not_change_the_worlds() -> None:
    actions = actions_of(9, 3)
    ends = []
    for outputs in ((), ("lidar",), EVERYTHING):
        rooms = functions(3, outputs, episode_length=4)
        state = rooms.init(1)
        for step in actions:
            state = rooms.step(state, step)
        assert tuple(sorted(state.tensors)) == tuple(sorted(outputs))
        ends.append(state.worlds)
    assert_same(ends[0], ends[1])
    assert_same(ends[0], ends[2])


def test_worlds_are_rows_that_may_be_taken_and_joined() -> None:
    rooms = functions(6, ("rewards",), episode_length=5)
    actions = actions_of(8, 6)
    state = rooms.init(0)
    order = jnp.asarray([4, 0, 5, 5])
    taken = jax.tree_util.tree_map(lambda array: array[order], state)
    for step in actions:
        state, taken = rooms.step(state, step), rooms.step(taken, step[order])
    assert_same(taken, jax.tree_util.tree_map(lambda array: array[order], state))


# ---- Transformations


def test_compiled_rollouts_are_the_loop() -> None:
    rooms = functions(5, EVERYTHING, episode_length=6)
    actions = actions_of(15, 5)
    resets = jnp.arange(15 * 5).reshape(15, 5) % 7 == 0

    def loop(state: Any, actions: Any, resets: Any) -> Any:
        shown = []
        for step_actions, step_resets in zip(actions, resets, strict=True):
            state = rooms.step(state, step_actions, step_resets)
            shown.append(state.lidar)
        return state, jnp.stack(shown)

    def scan(state: Any, actions: Any, resets: Any) -> Any:
        def body(state: Any, given: Any) -> Any:
            state = rooms.step(state, *given)
            return state, state.lidar

        return jax.lax.scan(body, state, (actions, resets))

    looped = loop(rooms.init(3), actions, resets)
    for compiled in (jax.jit(scan), jax.jit(loop), jax.jit(scan, donate_argnums=0)):
        assert_same(compiled(rooms.init(3), actions, resets), looped)


def test_worlds_may_be_put_back_in_a_program() -> None:
    rooms = functions(5, EVERYTHING, episode_length=6)
    actions = actions_of(1, 5)[0]
    saved = jnp.stack([rooms.init(seed).worlds for seed in (1, 2, 3)])

    def run(state: Any, saved: Any) -> Any:
        shown = []
        for worlds in saved:
            state = rooms.step(dataclasses.replace(state, worlds=worlds), actions)
            shown.append(state.lidar)
        return state, jnp.stack(shown)

    assert_same(jax.jit(run)(rooms.init(0), saved), run(rooms.init(0), saved))


def test_a_step_changes_no_array_that_it_is_given() -> None:
    rooms = functions(4, ("rewards", "final_lidar"), episode_length=3)
    state, resets = rooms.init(0), jnp.ones(4, jnp.int32)
    actions = actions_of(1, 4)[0]
    before = jax.tree_util.tree_map(np.array, (state, actions, resets))
    for _ in range(5):
        jax.jit(rooms.step)(state, actions, resets)
        assert_same((state, actions, resets), before)


def test_a_donated_state_is_stepped_in_place() -> None:
    rooms = functions(4)
    step = jax.jit(rooms.step, donate_argnums=0)
    state, expected = rooms.init(0), rooms.init(0)
    place = state.worlds.unsafe_buffer_pointer()
    for actions in actions_of(5, 4):
        expected = rooms.step(expected, actions)
        donated, state = state, step(state, actions)
        assert donated.worlds.is_deleted()
        assert state.worlds.unsafe_buffer_pointer() == place
        assert_same(state, expected)


def test_vmap_is_the_loop_over_its_axis() -> None:
    rooms = functions(3, ("rewards", "episode_returns"), episode_length=4)
    seeds, actions = jnp.arange(5, dtype=jnp.uint32), actions_of(6, 3)
    states = jax.vmap(rooms.init)(seeds)
    for step in actions:
        states = jax.vmap(rooms.step, in_axes=(0, None))(states, step)
    for i in range(5):
        state = rooms.init(i)
        for step in actions:
            state = rooms.step(state, step)
        assert_same(jax.tree_util.tree_map(lambda array, i=i: array[i], states), state)


@pytest.mark.parametrize("num_agents", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_vmap_is_one_call_also_of_batches_of_batches(num_agents: int) -> None:
    rooms = functions(3, EVERYTHING, episode_length=4, num_agents=num_agents)
    step = jax.vmap(jax.vmap(rooms.step, in_axes=(0, None, 0)), in_axes=(1, 0, None), out_axes=1)
    states = jax.vmap(jax.vmap(rooms.init))(jnp.arange(10, dtype=jnp.uint32).reshape(2, 5))
    actions = actions_of(5, 3, num_agents)
    resets = jnp.asarray([[True, False, False], [False, True, True]])
    compiled = jax.jit(step).lower(states, actions, resets).compile().as_text()
    assert compiled.count('custom_call_target="doorstep_step"') == 1
    assert "while" not in compiled
    assert "u32[30," in compiled
    for _ in range(6):
        states = step(states, actions, resets)
    for i in range(2):
        for j in range(5):
            state = rooms.init(5 * i + j)
            for _ in range(6):
                state = rooms.step(state, actions[j], resets[i])
            assert_same(jax.tree_util.tree_map(lambda array, i=i, j=j: array[i, j], states), state)


def test_gradients_flow_around_steps() -> None:
    rooms = functions(2, ("lidar", "rewards"))
    start = rooms.init(0)

    def loss(weights: Any) -> Any:
        def body(state: Any, _: None) -> Any:
            scores = state.lidar.reshape(2, 2, 60) @ weights
            actions = jnp.argmax(scores, -1)[..., None] * jnp.asarray([1, 0, 0, 0]) + jnp.asarray([0, 0, 2, 0])
            state = rooms.step(state, actions.astype(jnp.int32))
            return state, (jax.nn.log_softmax(scores)[..., 0] * state.rewards[..., 0]).sum()

        return jax.lax.scan(body, start, None, length=4)[1].sum()

    weights = jnp.linspace(-1.0, 1.0, 180).reshape(60, 3)
    gradient = jax.jit(jax.grad(loss))(weights)
    nudge = jnp.zeros_like(weights).at[7, 1].set(1e-2)
    slope = (loss(weights + nudge) - loss(weights - nudge)) / 2e-2  # the same actions on both sides
    np.testing.assert_allclose(gradient[7, 1], slope, rtol=1e-2, atol=1e-6)
    assert float(jnp.abs(gradient).max()) > 0


def test_a_step_itself_has_no_gradient() -> None:
    rooms = functions(1, ("final_lidar",))
    state = rooms.init(0)

    def through(scale: Any) -> Any:
        scaled = doorstep.jax.BatchState(state.worlds, {"final_lidar": state.final_lidar * scale}, state.program)
        return rooms.step(scaled, actions_of(1, 1)[0]).final_lidar.sum()

    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(through)(1.0)


TWO_DEVICES = """
import jax, numpy as np, doorstep, doorstep.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
assert len(jax.devices()) == 2
with doorstep.Simulator(140, episode_length=5) as sim:
    rooms = doorstep.jax.make(sim.config, outputs=("rewards", "final_lidar"))
mesh = Mesh(np.array(jax.devices()), ("worlds",))
split = PartitionSpec("worlds")
whole = rooms.init(9)
shards = jax.device_put(whole, NamedSharding(mesh, split))
step = jax.jit(jax.shard_map(rooms.step, mesh=mesh, in_specs=split, out_specs=split))
draw = np.random.default_rng(0)
for _ in range(12):
    actions = draw.integers(0, doorstep.ACTIONS, (140, 2, 4)).astype(np.int32)
    whole = rooms.step(whole, jax.numpy.asarray(actions))
    shards = step(shards, jax.device_put(actions, NamedSharding(mesh, split)))
assert shards.worlds.sharding.spec == split, shards.worlds.sharding
for one, other in zip(jax.tree_util.tree_leaves(whole), jax.tree_util.tree_leaves(shards)):
    assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
halves = jax.tree_util.tree_map(lambda array: np.asarray(array).reshape(2, 70, *array.shape[1:]), whole)
stepped = jax.pmap(rooms.step)(halves, actions.reshape(2, 70, 2, 4))
expected = rooms.step(whole, jax.numpy.asarray(actions))
assert np.asarray(stepped.worlds).tobytes() == np.asarray(expected.worlds).tobytes()
"""


def test_shards_step_on_devices_of_their_own(run_python: RunPython) -> None:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    run_python(TWO_DEVICES, **os.environ, **flags)


# ---- Compilation and memory


def test_simulators_of_equal_rules_share_programs() -> None:
    traces = 0

    def steps(state: Any, actions: Any) -> Any:
        nonlocal traces
        traces += 1
        return jax.lax.scan(lambda state, step: (rooms.step(state, step), None), state, actions)[0]

    program = jax.jit(steps)
    actions = actions_of(3, 4)
    for seed in range(3):
        rooms = functions(4, ("dones", "rewards"), seed=seed, world_offset=seed)
        assert rooms == functions(4, ["rewards", "dones"], seed=seed, world_offset=seed)
        program(rooms.init(), actions)
    assert traces == 1
    program(functions(4, ("dones", "rewards"), episode_length=9).init(0), actions)
    assert traces == 2
    assert functions(4).step is functions(5, ("lidar",)).step


def test_stepping_takes_no_memory() -> None:
    rooms = functions(64)
    actions = actions_of(1, 64)[0]
    step = jax.jit(rooms.step, donate_argnums=0)
    run = jax.jit(lambda state: jax.lax.scan(lambda s, _: (rooms.step(s, actions), None), state, length=500)[0])
    state = run(rooms.init(0))

    def work(repeats: int) -> None:
        nonlocal state
        for _ in range(repeats):
            state = run(state)
            for _ in range(20):
                state = step(state, actions)
        state.worlds.block_until_ready()

    work(2)
    gc.collect()
    before = resident_bytes()
    work(20)  # 10,400 steps, each with 94 KB of worlds
    assert resident_bytes() - before < 2**23


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_a_state_can_be_pickled() -> None:
    rooms = functions(2, ("lidar",))
    state = rooms.init(4)
    copy = pickle.loads(pickle.dumps(jax.device_get(state)))
    assert copy.program is state.program
    actions = actions_of(1, 2)[0]
    assert_same(rooms.step(copy, actions), rooms.step(state, actions))


def test_a_gpu_is_asked_once_for_its_memory_however_often_programs_are_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def info(kind: DeviceKind, _: int, num_worlds: int, *of_rules: Any) -> Any:
        asked.append(kind)
        return batch_info(DeviceKind.CPU, 0, num_worlds, *of_rules)

    monkeypatch.setattr(doorstep.jax, "batch_info", info)
    monkeypatch.setattr(doorstep.jax, "_scratch_bytes", functools.cache(doorstep.jax._scratch_bytes.__wrapped__))
    rules = BatchRules(2, 7, True, ActionCheck.CLAMP, 0, (), ())
    program = doorstep.jax.Program(DeviceKind.CUDA, 0, rules, ("rewards",))
    for _ in range(3):
        doorstep.jax._results(program, 31, ("rewards",))
    assert asked.count(DeviceKind.CUDA) == 1
    assert asked.count(DeviceKind.CPU) > 1


# ---- Mistakes


def test_worlds_that_are_none_are_an_error_and_no_crash() -> None:
    rooms = functions(3)
    state, actions = rooms.init(0), actions_of(1, 3)[0]
    noise = np.random.default_rng(1).integers(0, 2**32, state.worlds.shape, np.uint32)
    for worlds in (jnp.zeros_like(state.worlds), jnp.asarray(noise)):
        broken = doorstep.jax.BatchState(worlds, state.tensors, state.program)
        with pytest.raises(Exception, match=r"worlds\[0\] of 3 is not a valid world"):
            rooms.step(broken, actions).worlds.block_until_ready()
    assert rooms.step(state, actions).rewards.shape == (3, 2, 1)  # the next call finds everything in order


@pytest.mark.parametrize(
    ("argument", "actions", "resets", "message"),
    [
        ("actions", np.zeros((2, 2, 4), np.int32), None, r"int32\[2, 2, 4\]; it must be int32\[3, 2, 4\]"),
        ("actions", np.zeros((3, 2, 4), np.float32), None, r"float32\[3, 2, 4\].*astype\(jnp\.int32\)"),
        ("resets", np.zeros((3, 2, 4), np.int32), np.zeros(2, np.int32), r"int32\[2\]; it must be bool or int32"),
        ("resets", np.zeros((3, 2, 4), np.int32), np.zeros(3, np.float32), r"float32\[3\]"),
    ],
)
def test_arrays_of_other_shapes_and_dtypes_are_refused(argument: str, actions: Any, resets: Any, message: str) -> None:
    rooms = functions(3)
    with pytest.raises(doorstep.ArgumentError, match=message) as caught:
        rooms.step(rooms.init(0), actions, resets)
    assert caught.value.argument == argument


@pytest.mark.parametrize("actions", [[[0] * 4], None])
def test_actions_that_are_no_array_are_refused(actions: Any) -> None:
    rooms = functions(1)
    with pytest.raises(doorstep.ArgumentError, match=r"actions is .*; it must be an array, int32\[1, 2, 4\]"):
        rooms.step(rooms.init(0), actions)
    with pytest.raises(doorstep.ArgumentError, match=r"resets is .*an array"):
        rooms.step(rooms.init(0), actions_of(1, 1)[0], [0])


def test_states_that_are_none_of_the_rules_are_refused() -> None:
    rooms = functions(2, ("rewards", "final_lidar"))
    state, actions = rooms.init(0), actions_of(1, 2)[0]
    lacking = {"rewards": state.rewards}
    for tensors in (lacking, lacking | {"final_lidar": state.final_lidar[:1]}):
        with pytest.raises(doorstep.ArgumentError, match="final_lidar is") as caught:
            rooms.step(doorstep.jax.BatchState(state.worlds, tensors, state.program), actions)
        assert caught.value.argument == "final_lidar"
    for worlds in (None, state.worlds[0, 0], state.worlds[:0], state.worlds[:, 1:]):
        with pytest.raises(doorstep.ArgumentError, match="worlds is"):
            rooms.step(doorstep.jax.BatchState(worlds, state.tensors, state.program), actions)
    with pytest.raises(doorstep.ArgumentError, match="state is"):
        rooms.step((state.worlds, state.tensors), actions)


@pytest.mark.parametrize("seed", [5, np.uint32(5), np.array(5), np.array(2**31 + 5), jnp.array(5)])
def test_seeds_are_integers_of_any_kind(seed: Any) -> None:
    assert_same(functions(2).init(seed).worlds, functions(2).init(int(seed)).worlds)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "1", np.zeros(2, np.int32), np.float32(1)])
def test_seeds_out_of_range_are_refused(seed: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match="seed is"):
        functions(1).init(seed)


@pytest.mark.parametrize("seed", [np.array(2**32 + 5), np.array(-1), jnp.array(-1), np.array(True), jnp.zeros(1, int)])
def test_arrays_as_seeds_are_checked_like_integers(seed: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match="seed is"):
        functions(1).init(seed)


def test_the_offset_leaves_room_for_the_worlds() -> None:
    functions(4).init(0, 2**32 - 4)
    with pytest.raises(doorstep.ArgumentError, match="world_offset is"):
        functions(4).init(0, 2**32 - 3)


@pytest.mark.parametrize("outputs", ["foo", ["rewards", "actions"], [3], None, 3, ([],)])
def test_outputs_are_names_of_tensors(outputs: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match="outputs is"):
        functions(1, outputs)


@pytest.mark.parametrize(
    ("name", "value"), [("action_check", "raise"), ("strict", True), ("cameras", doorstep.Cameras())]
)
def test_rules_that_only_a_simulator_has_are_refused(name: str, value: object) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"^{name} is .*; it must be ") as caught:
        functions(1, **{name: value})
    assert caught.value.argument == name


def test_a_batch_is_made_from_a_config_or_from_its_fields() -> None:
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


def test_a_simulator_in_place_of_its_config_is_refused() -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match=r"pass sim.config"):
        doorstep.jax.make(sim)  # type: ignore[arg-type]
    with pytest.raises(doorstep.ArgumentError, match=r"'num_agent' is not a field .*did you mean 'num_agents'"):
        doorstep.jax.make(2, num_agent=3)


def test_an_output_that_was_not_chosen_is_named_in_the_error() -> None:
    with pytest.raises(AttributeError, match=r"no 'lidar'; the outputs chosen in make\(\) are .*rewards"):
        _ = functions(1).init(0).lidar


def test_shapes_are_those_of_the_arrays() -> None:
    rooms = functions(3, EVERYTHING, num_agents=3)
    state = rooms.init(0)
    assert rooms.num_worlds == 3
    assert rooms.outputs == EVERYTHING
    assert rooms.shapes["actions"].shape == (3, 3, 4)
    for name, array in [("worlds", state.worlds), *state.tensors.items()]:
        assert (rooms.shapes[name].shape, rooms.shapes[name].dtype) == (array.shape, array.dtype), name


# ---- Documentation


def test_examples_of_the_docstrings_are_true() -> None:
    assert doctest.testmod(doorstep.jax).failed == 0
