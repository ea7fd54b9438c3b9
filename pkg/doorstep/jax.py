"""Worlds inside JAX programs: `make(sim)` gives pure functions `init` and `step`, for jit, scan, donation and shards.

The worlds are data: a State holds them, and a step makes the next State of it. The simulator given to `make` says what
the rules are and is not touched.
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
from doorstep._batches import FLAT, INPUTS, NAMES, OUTLIVING, check_never_raises
from doorstep._native import TENSORS, ActionCheck, DeviceKind, batch_info, xla_handler
from doorstep.errors import ArgumentError
from doorstep.simulator import MAX_GLOBAL_WORLDS, MAX_SEED, Simulator

DEFAULT_OUTPUTS = ("observations", "rewards", "dones")
SCRATCH_ALIGNMENT = 256


# ---- What users hold


@final
@dataclass(frozen=True, eq=False)
class Rules:
    """What a step does, beside what is in the worlds. Equal rules are the same object, so that programs made for one
    simulator serve all others like it."""

    device_kind: DeviceKind
    device_index: int
    num_agents: int
    episode_length: int
    auto_reset: bool
    action_check: ActionCheck
    outputs: tuple[str, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rules, tuple(vars(self).values())


@functools.cache
def _rules(*values: Any) -> Rules:
    return Rules(*values)


@final
@functools.partial(
    jax.tree_util.register_dataclass, data_fields=("worlds", "tensors"), meta_fields=("rules",)
)
@dataclass(frozen=True)
class State:
    """Worlds, and what they show: a pytree. Tensors are attributes too: `state.rewards` is `state.tensors["rewards"]`.

    Attributes:
        worlds: uint32 [N, words], one row per world. Rows may be split, joined, reordered and kept; what is in them is
            opaque.
        tensors: the outputs chosen in `make()`, by name.
        rules: static.
    """

    worlds: jax.Array
    tensors: dict[str, jax.Array]
    rules: Rules

    def __getattr__(self, name: str) -> Any:
        tensors = self.__dict__.get("tensors", {})
        if name in tensors:
            return tensors[name]
        raise AttributeError(f"a State has no {name!r}; the outputs chosen in make() are {', '.join(tensors)}")


class Functions(NamedTuple):
    """What `make()` returns.

    Attributes:
        init: `init(seed, world_offset=0) -> State`, the first levels of `num_worlds` worlds: those of a Simulator of
            the same seed and offset. Both may be traced.
        step: `step(state, actions, resets=None) -> State`, the same function for all simulators.
            actions: int32 [N, A, 4]; what is out of range is clamped or taken as it is, as the simulator does.
            resets: int32 or bool, [N] or [N, 1]; worlds where it is not zero are regenerated at the end of the step.
        num_worlds: N of `init`. A step takes any number of worlds.
        outputs: names of `State.tensors`.
        shapes: shape and dtype of the actions, the worlds and each output, by name.
    """

    init: Callable[..., State]
    step: Callable[..., State]
    num_worlds: int
    outputs: tuple[str, ...]
    shapes: Mapping[str, jax.ShapeDtypeStruct]


def make(sim: Simulator, outputs: Iterable[str] = DEFAULT_OUTPUTS) -> Functions:
    """Pure functions that do what a simulator does, with its number of worlds and agents, device and rules.

    >>> import doorstep, doorstep.jax, jax
    >>> rooms = doorstep.jax.make(doorstep.Simulator(4), outputs=("rewards", "lidar"))
    >>> state = rooms.init(seed=7)
    >>> actions = jax.numpy.zeros((4, 2, 4), jax.numpy.int32)
    >>> state, _ = jax.lax.scan(lambda state, _: (rooms.step(state, actions), None), state, length=10)
    >>> state.lidar.shape
    (4, 2, 30, 2)

    Args:
        sim: stays as it is, and may be closed.
        outputs: names of tensors that a State has. What is not among them is not kept; fewer make a step cheaper.
            What cameras draw is not to be had: that belongs to simulators.

    Raises:
        ArgumentError: an output that is no tensor, or a simulator whose steps may raise (action_check="raise", strict):
            what runs within a program cannot.
    """
    check_never_raises(sim)
    settings = sim._settings
    kind, _, index = sim.device.partition(":")
    rules = _rules(
        DeviceKind[kind.upper()],
        int(index or 0),
        sim.num_agents,
        sim.episode_length,
        bool(settings["auto_reset"]),
        ActionCheck(settings["action_check"]),
        _check_outputs(outputs),
    )
    return _functions(rules, sim.num_worlds)


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
def _functions(rules: Rules, num_worlds: int) -> Functions:
    """Cached, so that programs with these functions in them are traced once."""

    def init(seed: Any, world_offset: Any = 0) -> State:
        words = [
            _word("seed", seed, MAX_SEED),
            _word("world_offset", world_offset, MAX_GLOBAL_WORLDS - num_worlds),
        ]
        state: State = _create(jnp.stack(words), rules=rules, num_worlds=num_worlds)
        return state

    shapes = {"actions": _shape("actions", rules, num_worlds), "worlds": _worlds_shape(rules, num_worlds)}
    shapes |= {name: _shape(name, rules, num_worlds) for name in rules.outputs}
    return Functions(init, step, num_worlds, rules.outputs, shapes)


def _word(name: str, value: Any, largest: int) -> jax.Array:
    """An integer, or a traced one, as uint32 []. How large a traced one is nobody knows."""
    if not isinstance(value, jax.core.Tracer):
        return jnp.asarray(check_integer(name, value, 0, largest), jnp.uint32)
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.integer):
        refuse(name, "an integer or an integer array of shape ()", value)
    return value.astype(jnp.uint32)


# ---- The functions


@functools.partial(jax.jit, static_argnames=("rules", "num_worlds"), inline=True)
def _create(seed_and_offset: jax.Array, *, rules: Rules, num_worlds: int) -> State:
    fresh = tuple(name for name in rules.outputs if name not in OUTLIVING)
    call = jax.ffi.ffi_call(
        _targets()["create"], _results(rules, num_worlds, fresh), vmap_method="sequential"
    )
    worlds, _, *tensors = call(seed_and_offset, rules=_rule_attribute(rules, fresh, has_resets=False))
    kept = {name: jnp.zeros(**_shape_arguments(name, rules, num_worlds)) for name in rules.outputs if name in OUTLIVING}
    return State(worlds, dict(zip(fresh, tensors, strict=True)) | kept, rules)


@functools.partial(jax.jit, inline=True)
def step(state: State, actions: jax.Array, resets: jax.Array | None = None) -> State:
    """One step of every world of a State; see `Functions.step`.

    Raises:
        ArgumentError: actions, resets or what the state has are no arrays, or have another shape or dtype.
    """
    num_worlds = _count_worlds(state)
    rules = state.rules
    _check_array("actions", actions, _shape("actions", rules, num_worlds))
    kept = [name for name in rules.outputs if name in OUTLIVING]
    for name in kept:
        _check_array(name, state.tensors.get(name), _shape(name, rules, num_worlds))
    arguments = [state.worlds, actions, *_reset_column(resets, num_worlds), *(state.tensors[name] for name in kept)]
    first_kept, places = len(arguments) - len(kept), {name: 2 + i for i, name in enumerate(rules.outputs)}
    call = jax.ffi.ffi_call(
        _targets()["step"],
        _results(rules, num_worlds, rules.outputs),
        vmap_method="sequential",
        input_output_aliases={0: 0} | {first_kept + i: places[name] for i, name in enumerate(kept)},
    )
    attribute = _rule_attribute(rules, rules.outputs, has_resets=resets is not None)
    worlds, _, *tensors = call(*arguments, rules=attribute)
    return State(worlds, dict(zip(rules.outputs, tensors, strict=True)), rules)


def _count_worlds(state: State) -> int:
    if not isinstance(state, State):
        refuse("state", "a State, as init() and step() return", state)
    num_worlds = state.worlds.shape[0] if isinstance(state.worlds, jax.Array) and state.worlds.ndim else 0
    _check_array("worlds", state.worlds, _worlds_shape(state.rules, num_worlds or 1))
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


def _rule_attribute(rules: Rules, outputs: tuple[str, ...], *, has_resets: bool) -> Any:
    """The attribute "rules" that native/src/interop/xla/handlers.h describes."""
    numbers = [rules.device_kind, rules.num_agents, rules.episode_length, rules.auto_reset, rules.action_check]
    return np.array([*numbers, has_resets, *map(NAMES.index, outputs)], np.int64)


def _results(rules: Rules, num_worlds: int, outputs: tuple[str, ...]) -> list[jax.ShapeDtypeStruct]:
    """Worlds, scratch memory for every tensor that is no output and for the device, outputs."""
    absent = [_shape(name, rules, num_worlds) for name in NAMES if name not in (*outputs, *FLAT)]
    padded = [-(-tensor.size * tensor.dtype.itemsize // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT for tensor in absent]
    for_device = _scratch_bytes(rules.device_kind, rules.device_index, num_worlds, rules.num_agents)
    # XLA aligns it less
    scratch = jax.ShapeDtypeStruct((SCRATCH_ALIGNMENT + sum(padded) + for_device,), jnp.uint8)
    return [_worlds_shape(rules, num_worlds), scratch, *(_shape(name, rules, num_worlds) for name in outputs)]


@functools.cache
def _scratch_bytes(device_kind: DeviceKind, device_index: int, num_worlds: int, num_agents: int) -> int:
    """Cached: a GPU's driver may load the kernels for the answer."""
    return int(batch_info(device_kind, device_index, num_worlds, num_agents).scratch_bytes)


def _worlds_shape(rules: Rules, num_worlds: int) -> jax.ShapeDtypeStruct:
    info = batch_info(DeviceKind.CPU, 0, num_worlds, rules.num_agents)  # which does not depend on the device
    return jax.ShapeDtypeStruct((num_worlds, info.world_bytes // 4), jnp.uint32)


def _shape(name: str, rules: Rules, num_worlds: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(**_shape_arguments(name, rules, num_worlds))


def _shape_arguments(name: str, rules: Rules, num_worlds: int) -> dict[str, Any]:
    agents = rules.num_agents
    info = batch_info(DeviceKind.CPU, 0, num_worlds, agents)
    symbols = {"N": num_worlds, "A": agents, "A-1": agents - 1, "F": info.flat_observation_size}
    row = TENSORS[NAMES.index(name)]
    shape = tuple(symbols[size] if size in symbols else int(size) for size in row.shape)
    return {"shape": shape, "dtype": np.dtype(row.dtype)}
