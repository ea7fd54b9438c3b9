"""Worlds in PyTorch tensors: `init` and `step` for programs that are compiled, recorded or moved between devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch

from doorstep._arguments import check_integer, refuse
from doorstep._batches import FLAT, NAMES, check_never_raises
from doorstep._native._generated import TENSORS, ActionCheck
from doorstep.simulator import MAX_GLOBAL_WORLDS, MAX_SEED, Simulator
from doorstep.torch._operands import place_of, refuse_tensor
from doorstep.torch._worlds import STATE_DTYPES, Rules, extents_of, step_in_place

INPUT_DTYPES = {"actions": (torch.int32,), "resets": (torch.int32, torch.bool)}


@final
@dataclass(frozen=True, eq=False)
class State:
    """Worlds, and what they show. Tensors are attributes too: `state.rewards` is `state.tensors["rewards"]`.

    Attributes:
        worlds: int32 [N, words], one row per world, opaque. Copy rows to keep, split or reorder worlds. On a GPU nobody
            looks at them: give a step only rows that `init()` and `step()` made under the same rules.
        tensors: every tensor of a simulator by name, in one's order; a step writes them in place. `actions` and
            `resets` are its inputs.
        scratch: memory for a step.
    """

    worlds: torch.Tensor
    tensors: dict[str, torch.Tensor]
    scratch: torch.Tensor

    def __getattr__(self, name: str) -> torch.Tensor:
        try:
            return self.__dict__["tensors"][name]  # type: ignore[no-any-return,unused-ignore]
        except KeyError:
            raise AttributeError(f"a State has no {name!r}") from None


@final
class Worlds:
    """Makes states and steps them; from `make()`."""

    def __init__(self, num_worlds: int, rules: Rules, flat_observations: bool, device: torch.device) -> None:
        self.num_worlds = num_worlds
        self.device = device
        self._rules = rules
        self._names = tuple(name for name in NAMES if flat_observations or name not in FLAT)
        self._extents = extents_of(place_of(device), num_worlds, rules.num_agents)

    def init(self, seed: int = 0, world_offset: int = 0) -> State:
        """The first levels of `num_worlds` worlds: those of a Simulator of the same seed and offset.

        Raises:
            ArgumentError: seed or world_offset is out of range.
        """
        seed = check_integer("seed", seed, 0, MAX_SEED)
        offset = check_integer("world_offset", world_offset, 0, MAX_GLOBAL_WORLDS - self.num_worlds)
        extents = self._extents
        tensors = {}
        for row in TENSORS:
            if row.name in self._names:
                shape = [extents[symbol] if symbol in extents else int(symbol) for symbol in row.shape]
                tensors[row.name] = torch.zeros(shape, dtype=STATE_DTYPES[row.dtype], device=self.device)
        worlds = torch.zeros((extents["N"], extents["W"]), dtype=torch.int32, device=self.device)
        scratch = torch.zeros(extents["X"], dtype=torch.uint8, device=self.device)
        state = State(worlds, tensors, scratch)
        torch.ops.doorstep.create_(*self._arguments(state), *self._rules, seed, offset)
        return state

    def step(self, state: State, actions: torch.Tensor | None = None, resets: torch.Tensor | None = None) -> State:
        """Steps every world once, in place.

        Args:
            state: from `init()`. Its tensors have changed when this returns; on a GPU, once the work has been done that
                this begins on PyTorch's current stream.
            actions: int32 [N, A, 4], copied to `state.actions`; None: what is there.
            resets: int32 or bool [N, 1], copied to `state.resets`; nonzero: the world is regenerated at the end of the
                step. None: what is there, which is 0 after a step.

        Returns:
            The state that was given.

        Raises:
            ArgumentError: a tensor has another shape, dtype or device than it must, or shares memory with another one.
            StateError: on the CPU, a row of `state.worlds` cannot be a world of these rules; no world has been stepped.
        """
        if not isinstance(state, State):
            refuse("state", "a State, as init() returns", state)
        inputs = [(name, given) for name, given in (("actions", actions), ("resets", resets)) if given is not None]
        for name, given in inputs:
            _check_input(name, given, state.tensors[name])
        for name, given in inputs:
            state.tensors[name].copy_(given)
        step_in_place(self._arguments(state), self._rules)
        return state

    @staticmethod
    def _arguments(state: State) -> list[torch.Tensor | None]:
        return [state.worlds, *(state.tensors.get(name) for name in NAMES), state.scratch]


def make(sim: Simulator) -> Worlds:
    """What a simulator does, on tensors of PyTorch: the same worlds, bit for bit, with all of their state in tensors.

    >>> import doorstep, torch
    >>> from doorstep.torch import make
    >>> rooms = make(doorstep.Simulator(4))
    >>> state = rooms.init(seed=7)
    >>> actions = torch.tensor([[1, 0, 2, 0]] * 8, dtype=torch.int32).reshape(4, 2, 4)
    >>> for _ in range(10):
    ...     state = rooms.step(state, actions)
    >>> state.steps_remaining.ravel()
    tensor([190, 190, 190, 190, 190, 190, 190, 190], dtype=torch.int32)

    Args:
        sim: says how many worlds and agents, which rules and which device. It stays as it is, and may be closed.
            Its cameras, if it has some, are not taken over: views are drawn for simulators only.

    Raises:
        ArgumentError: a simulator whose steps may raise (action_check="raise", strict).
    """
    check_never_raises(sim)
    settings = sim._settings
    rules = Rules(
        sim.num_agents, sim.episode_length, bool(settings["auto_reset"]), int(ActionCheck(settings["action_check"]))
    )
    return Worlds(sim.num_worlds, rules, bool(settings["flat_observations"]), torch.device(sim.device))


def _check_input(name: str, given: torch.Tensor, to: torch.Tensor) -> None:
    dtypes = INPUT_DTYPES[name]
    if isinstance(given, torch.Tensor):
        if given.dtype in dtypes and given.shape == to.shape and given.device == to.device:
            return
        found = f"{given.dtype} {list(given.shape)} on {given.device}"
    else:
        found = type(given).__name__
    refuse_tensor(name, found, f"a tensor, {' or '.join(map(str, dtypes))} {list(to.shape)} on {to.device}")
