"""Worlds inside JAX programs: `make(...)` gives pure functions `init` and `step`, for jit, scan, donation and shards.

The worlds are data: a BatchState holds them, and a step makes the next BatchState from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from doorstep._arguments import check_integer, refuse
from doorstep._batches import FLAT, INPUTS, NAMES, OUTLIVING, BatchRules, batch_rules, usable_device
from doorstep._native import MAX_GLOBAL_WORLDS, MAX_SEED, TENSORS, DeviceKind, batch_info, xla_handler
from doorstep.config import SimulatorConfig, as_config
from doorstep.errors import ArgumentError

DEFAULT_OUTPUTS = ("observations", "rewards", "dones")
SCRATCH_ALIGNMENT = 256


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
        tensors: the outputs chosen in `make()`, by name.
        program: static.
    """

    worlds: jax.Array
    tensors: dict[str, jax.Array]
    program: Program

    def __getattr__(self, name: str) -> Any:
        tensors = self.__dict__.get("tensors", {})
        if name in tensors:
            return tensors[name]
        raise AttributeError(f"a BatchState has no {name!r}; the outputs chosen in make() are {', '.join(tensors)}")


class Batch(NamedTuple):
    """The functions that `make()` returns.

    Attributes:
        init: `init(seed=None, world_offset=None) -> BatchState`, the first levels of `num_worlds` worlds: those of a
            Simulator of the same seed and offset. Both may be traced; None: the config's.
        step: `step(state, actions, resets=None) -> BatchState`, the same function for all batches.
            actions: int32 [N, A, 4]; the config's `action_check` says what happens to values out of range.
            resets: int32 or bool, [N] or [N, 1]; worlds where it is not zero are regenerated at the end of the step.
        num_worlds: N of `init`. A step takes any number of worlds.
        outputs: names of `BatchState.tensors`.
        shapes: shape and dtype of the actions, the worlds and each output, by name.
    """

    init: Callable[..., BatchState]
    step: Callable[..., BatchState]
    num_worlds: int
    outputs: tuple[str, ...]
    shapes: Mapping[str, jax.ShapeDtypeStruct]


def make(config: SimulatorConfig | int, /, *, outputs: Iterable[str] = DEFAULT_OUTPUTS, **rules: Any) -> Batch:
    """Pure functions that do what a simulator does.

    >>> import doorstep.jax, jax
    >>> rooms = doorstep.jax.make(4, seed=7, outputs=("rewards", "lidar"))
    >>> state = rooms.init()
    >>> actions = jax.numpy.zeros((4, 2, 4), jax.numpy.int32)
    >>> state, _ = jax.lax.scan(lambda state, _: (rooms.step(state, actions), None), state, length=10)
    >>> state.lidar.shape
    (4, 2, 30, 2)

    Args:
        config: a SimulatorConfig, or the number of worlds. `num_threads` and `flat_observations` have no effect here.
        outputs: names of tensors that a BatchState has. Others are not kept; fewer make a step cheaper.
        rules: fields of the config by name; of those that are absent, the config's or the default.

    Raises:
        ArgumentError: a rule is out of range, an output is not a tensor of a simulator, or a rule is one that only a
            simulator has: `action_check="raise"`, `strict`, `cameras`.
        DeviceError: the device cannot be used.
    """
    checked = as_config(config, rules)
    program = _program(*usable_device(checked), batch_rules(checked), _check_outputs(outputs))
    return _batch(program, checked.num_worlds, checked.seed, checked.world_offset)


# ---- Making the functions


def _check_outputs(outputs: Iterable[str]) -> tuple[str, ...]:
    known = [name for name in NAMES if name not in INPUTS]
    requirement = "names among " + ", ".join(known)
    try:
        chosen = {outputs} if isinstance(outputs, str) else set(outputs)
    except TypeError:
        refuse("outputs", requirement, outputs)
    for name in chosen:
        if name not in known:
            refuse("outputs", requirement, name)
    return tuple(name for name in known if name in chosen)


@functools.cache
def _batch(program: Program, num_worlds: int, config_seed: int, config_offset: int) -> Batch:
    """Cached, so that programs with these functions in them are traced once."""

    def init(seed: Any = None, world_offset: Any = None) -> BatchState:
        offset = config_offset if world_offset is None else world_offset
        words = [
            _word("seed", config_seed if seed is None else seed, MAX_SEED),
            _word("world_offset", offset, MAX_GLOBAL_WORLDS - num_worlds),
        ]
        state: BatchState = _create(jnp.stack(words), program=program, num_worlds=num_worlds)
        return state

    shapes = {"actions": _shape("actions", program, num_worlds), "worlds": _worlds_shape(program, num_worlds)}
    shapes |= {name: _shape(name, program, num_worlds) for name in program.outputs}
    return Batch(init, step, num_worlds, program.outputs, shapes)


def _word(name: str, value: Any, largest: int) -> jax.Array:
    """An integer, or a traced one, as uint32 []. The value of a traced one is unknown here and not checked."""
    if not isinstance(value, jax.core.Tracer):
        return jnp.asarray(check_integer(name, value, 0, largest), jnp.uint32)
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.integer):
        refuse(name, "an integer or an integer array of shape ()", value)
    return value.astype(jnp.uint32)


# ---- The functions


@functools.partial(jax.jit, static_argnames=("program", "num_worlds"), inline=True)
def _create(seed_and_offset: jax.Array, *, program: Program, num_worlds: int) -> BatchState:
    fresh = tuple(name for name in program.outputs if name not in OUTLIVING)
    call = jax.ffi.ffi_call(_targets()["create"], _results(program, num_worlds, fresh), vmap_method="sequential")
    worlds, _, *tensors = call(seed_and_offset, rules=_rule_attribute(program, fresh, has_resets=False))
    kept = {
        name: jnp.zeros(**_shape_arguments(name, program, num_worlds)) for name in program.outputs if name in OUTLIVING
    }
    return BatchState(worlds, dict(zip(fresh, tensors, strict=True)) | kept, program)


@functools.partial(jax.jit, inline=True)
def step(state: BatchState, actions: jax.Array, resets: jax.Array | None = None) -> BatchState:
    """One step of every world of a BatchState; see `Batch.step`.

    Raises:
        ArgumentError: actions, resets or what the state has are no arrays, or have another shape or dtype.
    """
    num_worlds = _count_worlds(state)
    program = state.program
    _check_array("actions", actions, _shape("actions", program, num_worlds))
    kept = [name for name in program.outputs if name in OUTLIVING]
    for name in kept:
        _check_array(name, state.tensors.get(name), _shape(name, program, num_worlds))
    reset_column = _reset_column(resets, num_worlds)
    step_rows = _step_rows(program, has_resets=bool(reset_column))
    worlds, *tensors = step_rows(state.worlds, actions, *reset_column, *(state.tensors[name] for name in kept))
    return BatchState(worlds, dict(zip(program.outputs, tensors, strict=True)), program)


@functools.cache
def _step_rows(program: Program, *, has_resets: bool) -> Callable[..., list[jax.Array]]:
    """The custom call of a step: from worlds, actions, resets and the outputs that outlive it to worlds and outputs.

    Worlds are rows, and batches of them longer batches: `vmap` of this is one call on all rows.
    """
    kept = [name for name in program.outputs if name in OUTLIVING]
    first_kept, places = 2 + has_resets, {name: 2 + i for i, name in enumerate(program.outputs)}
    aliases = {0: 0} | {first_kept + i: places[name] for i, name in enumerate(kept)}
    attribute = _rule_attribute(program, program.outputs, has_resets=has_resets)

    def step_rows(*arguments: jax.Array) -> list[jax.Array]:
        results = _results(program, arguments[0].shape[0], program.outputs)
        step_batch = jax.ffi.ffi_call(_targets()["step"], results, input_output_aliases=aliases)
        worlds, _, *tensors = step_batch(*arguments, rules=attribute)
        return [worlds, *tensors]

    def step_batches(size: int, batched: list[bool], *arguments: jax.Array) -> tuple[list[jax.Array], list[bool]]:
        joined = [_join(array, None if has_axis else size) for array, has_axis in zip(arguments, batched, strict=True)]
        split = [_split(array, size) for array in call(*joined)]
        return split, [True] * len(split)

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
    numbers = [program.device_kind, *program.rules]
    return np.array([*numbers, has_resets, *map(NAMES.index, outputs)], np.int64)


def _results(program: Program, num_worlds: int, outputs: tuple[str, ...]) -> list[jax.ShapeDtypeStruct]:
    """Worlds, scratch memory for every tensor that is no output and for the device, outputs."""
    absent = [_shape(name, program, num_worlds) for name in NAMES if name not in (*outputs, *FLAT)]
    padded = [-(-tensor.size * tensor.dtype.itemsize // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT for tensor in absent]
    for_device = _scratch_bytes(program.device_kind, program.device_index, num_worlds, program.rules.num_agents)
    # XLA aligns it less
    scratch = jax.ShapeDtypeStruct((SCRATCH_ALIGNMENT + sum(padded) + for_device,), jnp.uint8)
    return [_worlds_shape(program, num_worlds), scratch, *(_shape(name, program, num_worlds) for name in outputs)]


@functools.cache
def _scratch_bytes(device_kind: DeviceKind, device_index: int, num_worlds: int, num_agents: int) -> int:
    """Cached: a GPU's driver may load the kernels for the answer."""
    return int(batch_info(device_kind, device_index, num_worlds, num_agents).scratch_bytes)


def _worlds_shape(program: Program, num_worlds: int) -> jax.ShapeDtypeStruct:
    info = batch_info(DeviceKind.CPU, 0, num_worlds, program.rules.num_agents)  # which does not depend on the device
    return jax.ShapeDtypeStruct((num_worlds, info.world_bytes // 4), jnp.uint32)


def _shape(name: str, program: Program, num_worlds: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(**_shape_arguments(name, program, num_worlds))


def _shape_arguments(name: str, program: Program, num_worlds: int) -> dict[str, Any]:
    agents = program.rules.num_agents
    info = batch_info(DeviceKind.CPU, 0, num_worlds, agents)
    symbols = {"N": num_worlds, "A": agents, "A-1": agents - 1, "F": info.flat_observation_size}
    row = TENSORS[NAMES.index(name)]
    shape = tuple(symbols[size] if size in symbols else int(size) for size in row.shape)
    return {"shape": shape, "dtype": np.dtype(row.dtype)}
