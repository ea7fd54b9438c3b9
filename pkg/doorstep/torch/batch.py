"""Worlds in PyTorch tensors: a `Batch` whose `init` and `step` can be compiled, captured in CUDA graphs and saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch

from doorstep._arguments import check_integer, nearest, refuse
from doorstep._batches import (
    LEVEL_WORDS,
    NAMES,
    batch_rules,
    check_no_levels,
    level_table,
    usable_device,
    with_levels,
)
from doorstep._level_table import REFERENCE
from doorstep._native import MAX_GLOBAL_WORLDS, MAX_SEED, TENSORS, DeviceKind
from doorstep._tensors.checks import refuse_tensor
from doorstep.config import SimulatorConfig, as_config
from doorstep.levels import Rewards
from doorstep.levels.choice import AnyLevels
from doorstep.levels.files import AnyLevel
from doorstep.torch._batch_operators import STATE_DTYPES, extents_of, step_in_place
from doorstep.torch._operators import device_stream

INPUT_DTYPES = {"actions": (torch.int32,), "resets": (torch.int32, torch.bool)}


@final
@dataclass(frozen=True, eq=False)
class BatchState:
    """Worlds and their tensors. Tensors are attributes too: `state.rewards` is `state.tensors["rewards"]`.

    Attributes:
        worlds: int32 [N, words], one row per world, opaque. Copy rows to keep, split or reorder worlds. On a GPU their
            contents are not validated: pass only rows that `init()` and `step()` made under the same rules.
        tensors: every tensor of a simulator by name, in the simulator's order; a step writes them in place. `actions`
            and `resets` are its inputs. With levels also `level_weights`, float32 [N, L], which a step reads: write to
            it to change what worlds draw at their next resets.
        scratch: memory for a step.
    """

    worlds: torch.Tensor
    tensors: dict[str, torch.Tensor]
    scratch: torch.Tensor

    def __getattr__(self, name: str) -> torch.Tensor:
        try:
            return self.__dict__["tensors"][name]  # type: ignore[no-any-return,unused-ignore]
        except KeyError:
            hint = nearest(name, self.__dict__.get("tensors", ()), "it has")
            raise AttributeError(f"a BatchState has no {name!r}; {hint}") from None


@final
class Batch:
    """Makes and steps states of worlds; from `make()`.

    Attributes:
        config: the rules, with the device that was chosen.
        device: where the tensors are.
    """

    def __init__(self, config: SimulatorConfig, levels: Sequence[AnyLevel], reward: Rewards | None) -> None:
        kind, index = usable_device(config)
        self.device = torch.device("cpu") if kind == DeviceKind.CPU else torch.device("cuda", index)
        self.config = config.replace(device=str(self.device))
        self._rules = batch_rules(config, reward)
        self._names = tuple(filter(self._rules.has, NAMES))
        self._extents = extents_of(device_stream(self.device), config.num_worlds, self._rules)
        self._level_table: torch.Tensor | None = None
        self._count = len(levels)
        if config.max_levels:
            self._level_table = self._make_table(levels)

    @property
    def num_worlds(self) -> int:
        """Worlds of a state that `init()` makes."""
        return self.config.num_worlds

    def set_levels(self, levels: Sequence[AnyLevel]) -> None:
        """Replaces the levels from which the worlds of all states draw at their next resets, in place.

        Their `level_weights` stay as they are; those of later states are equal for these levels.

        Args:
            levels: 1 to `max_levels` of them; each has a spawn for every agent.

        Raises:
            ArgumentError: as `Simulator.set_levels()`. Nothing has changed.
        """
        if self._level_table is None:
            check_no_levels(levels)
        else:
            self._level_table.copy_(self._make_table(levels))
            self._count = len(levels)

    @torch.inference_mode(False)  # type: ignore[untyped-decorator] # which the state would not outlive
    def init(
        self, seed: int | None = None, world_offset: int | None = None, level_weights: torch.Tensor | None = None
    ) -> BatchState:
        """The first levels of `num_worlds` worlds: those of a Simulator of the same seed and offset.

        Args:
            seed: 0 to 2**32 - 1; None: the config's.
            world_offset: global number of the first world; None: the config's.
            level_weights: float32 [N, L] or [L], only with levels: how likely each world draws each level, relative to
                the sum of its row. None: all levels are equally likely.

        Raises:
            ArgumentError: seed or world_offset is out of range, or level_weights is another tensor.
        """
        seed = self.config.seed if seed is None else check_integer("seed", seed, 0, MAX_SEED)
        largest = MAX_GLOBAL_WORLDS - self.num_worlds
        offset = self.config.world_offset if world_offset is None else world_offset
        offset = check_integer("world_offset", offset, 0, largest)
        extents = self._extents
        tensors = {}
        for row in TENSORS:
            if row.name in self._names:
                shape = [extents[symbol] if symbol in extents else int(symbol) for symbol in row.shape]
                tensors[row.name] = torch.zeros(shape, dtype=STATE_DTYPES[row.dtype], device=self.device)
        worlds = torch.zeros((extents["N"], extents["W"]), dtype=torch.int32, device=self.device)
        scratch = torch.zeros(extents["X"], dtype=torch.uint8, device=self.device)
        state = BatchState(worlds, tensors, scratch)
        self._write_weights(state, level_weights)
        torch.ops.doorstep.create_(*self._arguments(state), *self._rules, seed, offset)
        return state

    def step(
        self, state: BatchState, actions: torch.Tensor | None = None, resets: torch.Tensor | None = None
    ) -> BatchState:
        """Steps every world once, in place.

        Args:
            state: from `init()`. Its tensors are written in place; on a GPU on PyTorch's current stream.
            actions: int32 [N, A, 4], copied to `state.actions`; None: `state.actions` as it is.
            resets: int32 or bool [N, 1], copied to `state.resets`; nonzero: the world is regenerated at the end of the
                step. None: `state.resets` as it is; a step sets it to 0.

        Returns:
            `state`.

        Raises:
            ArgumentError: a tensor has the wrong shape, dtype or device, or shares memory with another one.
            StateError: on the CPU, a row of `state.worlds` is not a world of these rules; no world has been stepped.
        """
        if not isinstance(state, BatchState):
            refuse("state", "a BatchState, as init() returns", state)
        inputs = [(name, given) for name, given in (("actions", actions), ("resets", resets)) if given is not None]
        for name, given in inputs:
            _check_input(name, given, state.tensors[name])
        for name, given in inputs:
            state.tensors[name].copy_(given)
        step_in_place(self._arguments(state), self._rules)
        return state

    def _arguments(self, state: BatchState) -> list[torch.Tensor | None]:
        return [state.worlds, *(state.tensors.get(name) for name in NAMES), self._level_table, state.scratch]

    def _make_table(self, levels: Sequence[AnyLevel]) -> torch.Tensor:
        """The levels as the native library takes them."""
        made = bytearray(level_table(self.config, levels))
        table = torch.frombuffer(made, dtype=torch.int32).reshape(-1, LEVEL_WORDS)
        return table.to(self.device, copy=True)

    def _write_weights(self, state: BatchState, level_weights: torch.Tensor | None) -> None:
        if self.config.max_levels == 0:
            check_no_levels(level_weights)
        elif level_weights is None:
            state.tensors["level_weights"][:, : self._count] = 1.0
        else:
            rows = state.tensors["level_weights"]
            _check_weights(level_weights, rows)
            rows.copy_(level_weights)


def make(
    config: SimulatorConfig | int,
    /,
    *,
    levels: AnyLevels = REFERENCE,
    reward: Rewards | None = None,
    **rules: Any,
) -> Batch:
    """The worlds of a simulator, bit for bit, with all of their state in tensors of PyTorch.

    >>> import torch
    >>> from doorstep.torch import make
    >>> rooms = make(4, seed=7)
    >>> state = rooms.init()
    >>> actions = torch.tensor([[1, 0, 2, 0]] * 8, dtype=torch.int32).reshape(4, 2, 4)
    >>> for _ in range(10):
    ...     state = rooms.step(state, actions)
    >>> state.steps_remaining.ravel()
    tensor([190, 190, 190, 190, 190, 190, 190, 190], dtype=torch.int32)

    Args:
        config: a SimulatorConfig, or the number of worlds. `num_threads` has no effect here.
        levels: what worlds play, as for `Simulator`, at first all equally likely.
        reward: what agents are rewarded for, as for `Simulator`.
        rules: fields of the config by name; of those that are absent, the config's or the default.

    Raises:
        ArgumentError: a rule is out of range, or one that only a simulator has: `action_check="raise"`, `strict`,
            `cameras`; or levels are refused as by `Simulator.set_levels()`.
        DeviceError: the device cannot be used.
    """
    return Batch(*with_levels(as_config(config, rules), levels), reward)


def _check_weights(given: object, rows: torch.Tensor) -> None:
    found = type(given).__name__
    if isinstance(given, torch.Tensor):
        fits = given.shape in (rows.shape, rows.shape[1:])
        if fits and given.dtype == rows.dtype and given.device == rows.device:
            return
        found = f"{given.dtype} {list(given.shape)} on {given.device}"
    wanted = f"{rows.dtype} {list(rows.shape)} or {list(rows.shape[1:])} on {rows.device}"
    refuse_tensor("level_weights", found, f"a tensor, {wanted}")


def _check_input(name: str, given: torch.Tensor, to: torch.Tensor) -> None:
    dtypes = INPUT_DTYPES[name]
    if isinstance(given, torch.Tensor):
        if given.dtype in dtypes and given.shape == to.shape and given.device == to.device:
            return
        found = f"{given.dtype} {list(given.shape)} on {given.device}"
    else:
        found = type(given).__name__
    refuse_tensor(name, found, f"a tensor, {' or '.join(map(str, dtypes))} {list(to.shape)} on {to.device}")
