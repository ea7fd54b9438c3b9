"""Worlds inside JAX programs: `make(...)` gives pure functions `init` and `step`, for jit, scan, donation and shards.

The worlds are data: a BatchState holds them, and a step makes the next BatchState from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, final

import numpy as np

from doorstep._arguments import check_integer, nearest, refuse
from doorstep._batches import (
    FLAT,
    INPUTS,
    LEVEL_WORDS,
    NAMES,
    OUTLIVING,
    BatchRules,
    batch_rules,
    check_no_levels,
    level_table,
    usable_device,
    with_levels,
)
from doorstep._level_table import REFERENCE
from doorstep._native import (
    MAX_GLOBAL_WORLDS,
    MAX_SEED,
    OBSERVATION_PARTS,
    TENSORS,
    DeviceKind,
    batch_info,
    xla_handler,
)
from doorstep._native._generated import Level as NativeLevel
from doorstep._optional import missing
from doorstep.config import SimulatorConfig, as_config
from doorstep.errors import ArgumentError
from doorstep.levels.choice import AnyLevels
from doorstep.levels.rules import Rewards
from doorstep.simulator import Simulator

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise missing("doorstep.jax needs JAX", "jax", error) from error

__all__ = ["make"]

DEFAULT_OUTPUTS = ("observations", "rewards", "dones")
WEIGHTS = "level_weights"  # with levels, a tensor of each state; no output: the caller's to replace
SCRATCH_ALIGNMENT = 256
INPUT_RESETS, INPUT_LEVELS, INPUT_REWARD = 1, 2, 4  # bits in the rules, see native/src/interop/xla/handlers.cpp
KEPT_TABLES = 16  # of levels, with the functions made for them


# ---- What users hold


@final
@dataclass(frozen=True, eq=False)
class Program:
    """The static part of a BatchState: rules, device and outputs. Equal programs are the same object, so that functions
    traced for one are reused for all others like it."""

    device_kind: DeviceKind
    device_index: int
    rules: BatchRules
    outputs: tuple[str, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _program, (self.device_kind, self.device_index, self.rules, self.outputs)


@functools.cache
def _program(*values: Any) -> Program:
    return Program(*values)


@final
@functools.partial(jax.tree_util.register_dataclass, data_fields=("worlds", "tensors"), meta_fields=("program",))
@dataclass(frozen=True)
class BatchState:
    """Worlds and their tensors: a pytree. Tensors are attributes too: `state.rewards` is `state.tensors["rewards"]`.

    Attributes:
        worlds: uint32 [N, words], one row per world, opaque. Rows may be split, joined, reordered and kept.
        tensors: the outputs chosen in `make()`, by name; with levels also `level_weights`, float32 [N, L].
        program: static.
    """

    worlds: jax.Array
    tensors: dict[str, jax.Array]
    program: Program

    def __getattr__(self, name: str) -> Any:
        tensors = self.__dict__.get("tensors", {})
        if name in tensors:
            return tensors[name]
        hint = nearest(name, tensors, "the outputs chosen in make() are")
        raise AttributeError(f"a BatchState has no {name!r}; {hint}")


class Batch(NamedTuple):
    """The functions that `make()` returns.

    Attributes:
        init: `init(seed=None, world_offset=None) -> BatchState`, the first levels of `num_worlds` worlds, as of a
            Simulator of the same seed and offset. Both may be traced; None: the config's. With levels, also
            `level_weights` and `levels`, as of `step`.
        step: `step(state, actions, resets=None) -> BatchState`, the same function for all batches without levels.
            actions: int32 [N, A, 4]; the config's `action_check` says what happens to values out of range.
            resets: int32 or bool, [N] or [N, 1]; worlds where it is not zero are regenerated at the end of the step.
            level_weights: float32 [N, L] or [L], only with levels: how likely each world draws each level from this
            step on, relative to the sum of its row; None: `state.level_weights`.
            levels: as the field `levels`: draw from these instead. They may be traced; what a simulator would refuse
            then gives worlds that make no sense, but does no harm.
            ArgumentError if weights or levels that are not traced have values out of range.
        num_worlds: N of `init`. A step takes any number of worlds.
        outputs: names of `BatchState.tensors`, without `level_weights`.
        shapes: shape and dtype of the actions, the worlds and each output, by name.
        levels: the L levels of `make()`, opaque: uint32 [L, words]. None without levels.
    """

    init: Callable[..., BatchState]
    step: Callable[..., BatchState]
    num_worlds: int
    outputs: tuple[str, ...]
    shapes: Mapping[str, jax.ShapeDtypeStruct]
    levels: np.ndarray[Any, Any] | None = None


def make(
    config: SimulatorConfig | int,
    /,
    *,
    outputs: Iterable[str] = DEFAULT_OUTPUTS,
    levels: AnyLevels = REFERENCE,
    reward: Rewards | None = None,
    **rules: Any,
) -> Batch:
    """Pure functions that do what a simulator does.

    >>> import doorstep.jax, jax
    >>> rooms = doorstep.jax.make(4, seed=7, outputs=("rewards", "lidar"))
    >>> state = rooms.init()
    >>> actions = jax.numpy.zeros((4, 2, 4), jax.numpy.int32)
    >>> state, _ = jax.lax.scan(lambda state, _: (rooms.step(state, actions), None), state, length=10)
    >>> state.lidar.shape
    (4, 2, 30, 2)

    Args:
        config: a SimulatorConfig, or the number of worlds. `num_threads` has no effect here.
        outputs: names of tensors that a BatchState has. Others are not kept; fewer make a step cheaper.
        levels: what worlds play, as for `Simulator`, at first all equally likely.
        reward: what agents are rewarded for, as for `Simulator`.
        rules: fields of the config by name; of those that are absent, the config's or the default.

    Raises:
        ArgumentError: a rule is out of range, an output is not a tensor of a simulator, levels are refused as by
            `Simulator.set_levels()`, or a rule is one that only a simulator has: `action_check="raise"`, `strict`,
            `cameras`.
        DeviceError: the device cannot be used.
    """
    checked, chosen = with_levels(as_config(config, rules), levels)
    checked_rules = batch_rules(checked, reward)
    program = _program(*usable_device(checked), checked_rules, _check_outputs(outputs, checked_rules))
    numbers = checked.num_worlds, checked.seed, checked.world_offset
    if checked.max_levels == 0:
        return _batch(program, *numbers)
    table = _Table(level_table(checked, chosen), len(chosen))
    return _batch_of_levels(program, *numbers, table)


# ---- Making the functions


class _Table(NamedTuple):
    """Levels as the native library takes them, and how many of them are of the caller."""

    levels: bytes
    given: int

    def words(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.levels, np.uint32).reshape(-1, LEVEL_WORDS)

    def weights(self) -> np.ndarray[Any, Any]:
        """Of a world, as `Simulator.set_levels()` sets them."""
        return (np.arange(len(self.words())) < self.given).astype(np.float32)


def _check_outputs(outputs: Iterable[str], rules: BatchRules) -> tuple[str, ...]:
    known = [name for name in NAMES if name not in (*INPUTS, WEIGHTS) and rules.has(name)]
    requirement = "names among " + ", ".join(known)
    try:
        chosen = {outputs} if isinstance(outputs, str) else set(outputs)
    except TypeError:
        refuse("outputs", requirement, outputs)
    for name in chosen:
        if name not in known:
            refuse("outputs", requirement, name)
    return tuple(name for name in known if name in chosen)


# Both are cached, so that programs with these functions in them are traced once.


@functools.cache
def _batch(program: Program, num_worlds: int, config_seed: int, config_offset: int) -> Batch:
    init_any = _init_function(program, num_worlds, config_seed, config_offset)

    def init(seed: Any = None, world_offset: Any = None) -> BatchState:
        return init_any(seed, world_offset)

    return Batch(init, step, num_worlds, program.outputs, _shapes(program, num_worlds))


@functools.lru_cache(KEPT_TABLES)
def _batch_of_levels(program: Program, num_worlds: int, config_seed: int, config_offset: int, table: _Table) -> Batch:
    init_any = _init_function(program, num_worlds, config_seed, config_offset)
    step_levels = _step_function(table)

    def init(seed: Any = None, world_offset: Any = None, level_weights: Any = None, levels: Any = None) -> BatchState:
        weights = table.weights() if level_weights is None else level_weights
        _check_weights(program, level_weights)
        drawn = _checked_levels(program, table, levels)
        return init_any(seed, world_offset, *_level_arguments(program, num_worlds, weights, drawn))

    shapes = _shapes(program, num_worlds)
    return Batch(init, step_levels, num_worlds, program.outputs, shapes, table.words())


@functools.lru_cache(KEPT_TABLES)
def _step_function(table: _Table) -> Callable[..., BatchState]:
    def step_levels(
        state: BatchState, actions: jax.Array, resets: Any = None, level_weights: Any = None, levels: Any = None
    ) -> BatchState:
        _count_worlds(state)
        _check_weights(state.program, level_weights)
        drawn = _checked_levels(state.program, table, levels)
        stepped: BatchState = step(state, actions, resets, level_weights, drawn)
        return stepped

    return step_levels


def _init_function(
    program: Program, num_worlds: int, config_seed: int, config_offset: int
) -> Callable[..., BatchState]:
    def init(seed: Any, world_offset: Any, *levels: jax.Array) -> BatchState:
        offset = config_offset if world_offset is None else world_offset
        words = [
            _word("seed", config_seed if seed is None else seed, MAX_SEED),
            _word("world_offset", offset, MAX_GLOBAL_WORLDS - num_worlds),
        ]
        state: BatchState = _create(jnp.stack(words), *levels, program=program, num_worlds=num_worlds)
        return state

    return init


def _shapes(program: Program, num_worlds: int) -> dict[str, jax.ShapeDtypeStruct]:
    shapes = {"actions": _shape("actions", program, num_worlds), "worlds": _worlds_shape(program, num_worlds)}
    return shapes | {name: _shape(name, program, num_worlds) for name in _tensors_of(program)}


def _tensors_of(program: Program) -> tuple[str, ...]:
    """Names of the tensors of a state."""
    return (*program.outputs, WEIGHTS) if program.rules.max_levels else program.outputs


def _word(name: str, value: Any, largest: int) -> jax.Array:
    """An integer, or a traced one, as uint32 []. The value of a traced one is unknown here and not checked."""
    if not isinstance(value, jax.core.Tracer):
        return jnp.asarray(check_integer(name, value, 0, largest), jnp.uint32)
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.integer):
        refuse(name, "an integer or an integer array of shape ()", value)
    return value.astype(jnp.uint32)


# ---- The functions


@functools.partial(jax.jit, static_argnames=("program", "num_worlds"), inline=True)
def _create(seed_and_offset: jax.Array, *levels: jax.Array, program: Program, num_worlds: int) -> BatchState:
    """levels: weights and table, if there are any."""
    fresh = tuple(name for name in program.outputs if name == "level_indices" or name not in OUTLIVING)
    call = jax.ffi.ffi_call(_targets()["create"], _results(program, num_worlds, fresh), vmap_method="sequential")
    worlds, _, *tensors = call(seed_and_offset, *levels, rules=_rule_attribute(program, fresh, has_resets=False))
    others = [name for name in program.outputs if name not in fresh]
    kept = {name: jnp.zeros(**_shape_arguments(name, program, num_worlds)) for name in others}
    kept |= {WEIGHTS: levels[0]} if levels else {}
    return BatchState(worlds, dict(zip(fresh, tensors, strict=True)) | kept, program)


@functools.partial(jax.jit, inline=True)
def step(
    state: BatchState,
    actions: jax.Array,
    resets: jax.Array | None = None,
    level_weights: jax.Array | None = None,
    levels: jax.Array | None = None,
) -> BatchState:
    """One step of every world of a BatchState; see `Batch.step`.

    Raises:
        ArgumentError: actions, resets, levels or what the state has are no arrays, or have another shape or dtype.
    """
    num_worlds = _count_worlds(state)
    program = state.program
    _check_array("actions", actions, _shape("actions", program, num_worlds))
    kept = [name for name in program.outputs if name in OUTLIVING]
    for name in kept:
        _check_array(name, state.tensors.get(name), _shape(name, program, num_worlds))
    reset_column = _reset_column(resets, num_worlds)
    weights = state.tensors.get(WEIGHTS) if level_weights is None else level_weights
    drawn = _level_arguments(program, num_worlds, weights, levels)
    step_rows = _step_rows(program, has_resets=bool(reset_column))
    worlds, *tensors = step_rows(state.worlds, actions, *reset_column, *drawn, *(state.tensors[name] for name in kept))
    given = {WEIGHTS: drawn[0]} if drawn else {}
    return BatchState(worlds, dict(zip(program.outputs, tensors, strict=True)) | given, program)


@functools.cache
def _step_rows(program: Program, *, has_resets: bool) -> Callable[..., list[jax.Array]]:
    """The custom call of a step: from worlds, actions, resets, weights, table and the outputs that outlive it to worlds
    and outputs.

    Worlds are rows, and batches of them longer batches: `vmap` of this is one call on all rows.
    """
    kept = [name for name in program.outputs if name in OUTLIVING]
    has_levels = program.rules.max_levels > 0
    table_at = 3 + has_resets if has_levels else -1
    first_kept, places = 2 + has_resets + 2 * has_levels, {name: 2 + i for i, name in enumerate(program.outputs)}
    aliases = {0: 0} | {first_kept + i: places[name] for i, name in enumerate(kept)}
    attribute = _rule_attribute(program, program.outputs, has_resets=has_resets)

    def step_rows(*arguments: jax.Array) -> list[jax.Array]:
        results = _results(program, arguments[0].shape[0], program.outputs)
        step_batch = jax.ffi.ffi_call(_targets()["step"], results, input_output_aliases=aliases)
        worlds, _, *tensors = step_batch(*arguments, rules=attribute)
        return [worlds, *tensors]

    def step_batches(size: int, batched: list[bool], *arguments: jax.Array) -> tuple[list[jax.Array], list[bool]]:
        if has_levels and batched[table_at]:
            return step_one_by_one(size, batched, *arguments)
        shared = [at == table_at for at in range(len(arguments))]
        joined = [
            array if is_shared else _join(array, None if has_axis else size)
            for array, has_axis, is_shared in zip(arguments, batched, shared, strict=True)
        ]
        split = [_split(array, size) for array in call(*joined)]
        return split, [True] * len(split)

    def step_one_by_one(size: int, batched: list[bool], *arguments: jax.Array) -> tuple[list[jax.Array], list[bool]]:
        """A call takes one table of levels."""
        spread = [
            array if has_axis else jnp.broadcast_to(array, (size, *array.shape))
            for array, has_axis in zip(arguments, batched, strict=True)
        ]
        stepped: list[jax.Array] = jax.lax.map(lambda rows: call(*rows), spread)
        return stepped, [True] * len(stepped)

    call: Any = jax.custom_batching.custom_vmap(step_rows)
    call.def_vmap(step_batches)
    stepped: Callable[..., list[jax.Array]] = call
    return stepped


def _join(batches: jax.Array, repeats: int | None) -> jax.Array:
    """[B, N, ...] as [B * N, ...], or [N, ...] that many times."""
    if repeats is not None:
        batches = jnp.broadcast_to(batches, (repeats, *batches.shape))
    return batches.reshape(batches.shape[0] * batches.shape[1], *batches.shape[2:])


def _split(rows: jax.Array, batches: int) -> jax.Array:
    """[B * N, ...] as [B, N, ...]."""
    return rows.reshape(batches, rows.shape[0] // batches, *rows.shape[1:])


def _count_worlds(state: BatchState) -> int:
    if not isinstance(state, BatchState):
        refuse("state", "a BatchState, as init() and step() return", state)
    num_worlds = state.worlds.shape[0] if isinstance(state.worlds, jax.Array) and state.worlds.ndim else 0
    _check_array("worlds", state.worlds, _worlds_shape(state.program, num_worlds or 1))
    return num_worlds


def _check_array(name: str, array: Any, expected: jax.ShapeDtypeStruct) -> None:
    if not isinstance(array, jax.Array):
        refuse(name, f"an array, {_text(expected)}", array)
    if (array.shape, array.dtype) != (expected.shape, expected.dtype):
        given = jax.ShapeDtypeStruct(array.shape, array.dtype)
        raise ArgumentError(
            f"{name} is {_text(given)}; it must be {_text(expected)}",
            argument=name,
            hint=f"convert it with .astype(jnp.{expected.dtype})" if array.shape == expected.shape else "",
        )


def _text(array: jax.ShapeDtypeStruct) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _reset_column(resets: Any, num_worlds: int) -> list[jax.Array]:
    if resets is None:
        return []
    if not isinstance(resets, jax.Array):
        refuse("resets", f"an array, bool or int32, [{num_worlds}] or [{num_worlds}, 1]", resets)
    if resets.shape not in ((num_worlds,), (num_worlds, 1)) or resets.dtype not in (jnp.bool_, jnp.int32):
        given = _text(jax.ShapeDtypeStruct(resets.shape, resets.dtype))
        raise ArgumentError(
            f"resets is {given}; it must be bool or int32, [{num_worlds}] or [{num_worlds}, 1]", argument="resets"
        )
    return [resets.astype(jnp.int32).reshape(num_worlds, 1)]


def _level_arguments(program: Program, num_worlds: int, weights: Any, table: Any) -> list[jax.Array]:
    """The rows of weights and the table, with shapes that are checked; nothing for worlds without levels."""
    count = program.rules.max_levels
    if count == 0:
        check_no_levels(table if weights is None else weights)
        return []
    weights, table = (jnp.asarray(each) if isinstance(each, np.ndarray) else each for each in (weights, table))
    rows = _shape(WEIGHTS, program, num_worlds)
    if isinstance(weights, jax.Array) and weights.shape == (count,):
        weights = jnp.broadcast_to(weights, rows.shape)
    _check_array(WEIGHTS, weights, rows)
    _check_array("levels", table, jax.ShapeDtypeStruct((count, LEVEL_WORDS), jnp.uint32))
    return [weights, table]


def _checked_levels(program: Program, table: _Table, levels: Any) -> Any:
    """The levels to draw from: as given to `make()`, or others, checked where their values are known."""
    if levels is None:
        return table.words()
    is_known = isinstance(levels, (np.ndarray, jax.Array)) and not isinstance(levels, jax.core.Tracer)
    if is_known and (levels.shape, levels.dtype) == ((program.rules.max_levels, LEVEL_WORDS), np.uint32):
        _check_level_bytes(np.ascontiguousarray(levels).tobytes(), program.rules.num_agents)
    return levels


@functools.lru_cache(KEPT_TABLES)
def _check_level_bytes(table: bytes, num_agents: int) -> None:
    """Raises ArgumentError as `Simulator.set_levels()`, but the level and its field are those of the library."""
    count = len(table) // (4 * LEVEL_WORDS)
    with Simulator(1, num_agents=num_agents, max_levels=count, num_threads=1) as sim:
        sim._session.set_levels((NativeLevel * count).from_buffer_copy(table), None)


def _check_weights(program: Program, weights: Any) -> None:
    """Refuses values that are no weights, where they are known."""
    count = program.rules.max_levels
    if isinstance(weights, jax.core.Tracer) or not isinstance(weights, (np.ndarray, jax.Array)):
        return
    if weights.shape[-1:] != (count,) or weights.dtype != np.float32:
        return  # refused with those that are traced
    rows = np.asarray(weights).reshape(-1, count)
    wrong = ~np.isfinite(rows).all(axis=1) | (rows < 0).any(axis=1) | ~rows.any(axis=1)
    if wrong.any():
        at = int(np.argmax(wrong))
        name = WEIGHTS if weights.ndim == 1 else f"{WEIGHTS}[{at}]"
        raise ArgumentError(
            f"{name} is {rows[at].tolist()}; it must be {count} numbers that are finite, not negative and not all zero",
            argument=WEIGHTS,
            hint="a level that is not to be played has the weight 0; give another one a larger weight",
        )


# ---- The custom calls


@functools.cache
def _targets() -> dict[str, str]:
    """The names of the custom calls, which this registers."""
    capsule = functools.cache(lambda name: jax.ffi.pycapsule(xla_handler(name)))
    for operation in ("create", "step"):
        name = f"doorstep_{operation}"
        jax.ffi.register_ffi_target(name, capsule(f"{operation}_cpu"), platform="cpu")
        stages = {"initialize": capsule("initialize_cuda"), "execute": capsule(f"{operation}_cuda")}
        jax.ffi.register_ffi_target(name, stages, platform="CUDA")
    return {"create": "doorstep_create", "step": "doorstep_step"}


def _rule_attribute(program: Program, outputs: tuple[str, ...], *, has_resets: bool) -> Any:
    """The attribute "rules" that native/src/interop/xla/handlers.cpp describes."""
    *rules, max_levels, observations, reward = program.rules
    inputs = INPUT_RESETS * has_resets + INPUT_LEVELS * (max_levels > 0) + INPUT_REWARD * bool(reward)
    bits = np.array(reward or [0.0] * len(fields(Rewards)), np.float32).view(np.uint32)
    parts, scales = np.zeros((2, len(OBSERVATION_PARTS)), np.float32)
    count = len(observations) // 2
    parts[:count], scales[:count] = observations[::2], observations[1::2]
    layout = [count, *parts.astype(int).tolist(), *scales.view(np.uint32).tolist()]
    numbers = [program.device_kind, *rules, inputs, *bits.tolist(), *layout, *map(NAMES.index, outputs)]
    return np.array(numbers, np.int64)


def _results(program: Program, num_worlds: int, outputs: tuple[str, ...]) -> list[jax.ShapeDtypeStruct]:
    """Worlds, scratch memory for every tensor that is no output and for the device, outputs."""
    placed = [name for name in NAMES if name not in (*outputs, *FLAT, WEIGHTS) and program.rules.has(name)]
    absent = [_shape(name, program, num_worlds) for name in placed]
    padded = [-(-tensor.size * tensor.dtype.itemsize // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT for tensor in absent]
    for_device = _scratch_bytes(program.device_kind, program.device_index, num_worlds, program.rules)
    # XLA aligns it less
    scratch = jax.ShapeDtypeStruct((SCRATCH_ALIGNMENT + sum(padded) + for_device,), jnp.uint8)
    return [_worlds_shape(program, num_worlds), scratch, *(_shape(name, program, num_worlds) for name in outputs)]


@functools.cache
def _scratch_bytes(device_kind: DeviceKind, device_index: int, num_worlds: int, rules: BatchRules) -> int:
    """Cached: a GPU's driver may load the kernels for the answer."""
    return int(batch_info(device_kind, device_index, num_worlds, *rules.kind).scratch_bytes)


def _worlds_shape(program: Program, num_worlds: int) -> jax.ShapeDtypeStruct:
    # Which does not depend on the device
    info = batch_info(DeviceKind.CPU, 0, num_worlds, *program.rules.kind)
    return jax.ShapeDtypeStruct((num_worlds, info.world_bytes // 4), jnp.uint32)


def _shape(name: str, program: Program, num_worlds: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(**_shape_arguments(name, program, num_worlds))


def _shape_arguments(name: str, program: Program, num_worlds: int) -> dict[str, Any]:
    agents = program.rules.num_agents
    info = batch_info(DeviceKind.CPU, 0, num_worlds, *program.rules.kind)
    symbols = {"N": num_worlds, "A": agents, "A-1": agents - 1, "F": info.flat_observation_size}
    symbols |= {"L": program.rules.max_levels}
    row = TENSORS[NAMES.index(name)]
    shape = tuple(symbols[size] if size in symbols else int(size) for size in row.shape)
    return {"shape": shape, "dtype": np.dtype(row.dtype)}
