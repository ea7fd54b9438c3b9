"""Worlds in PyTorch tensors: `init` and `step` for programs that are compiled, recorded or moved between devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch

from doorstep._arguments import check_integer, refuse
from doorstep._native._generated import TENSORS, ActionCheck
from doorstep.errors import ArgumentError
from doorstep.simulator import MAX_GLOBAL_WORLDS, MAX_SEED, Simulator
from doorstep.torch._operands import place_of
from doorstep.torch._worlds import FLAT, NAMES, STATE_DTYPES, Rules, extents_of, prepare


@final
@dataclass(frozen=True, eq=False)
class State:
    """Worlds, and what they show. Tensors are attributes too: `state.rewards` is `state.tensors["rewards"]`.

    Attributes:
        worlds: int32 [N, words], one row per world, opaque. Copy rows to keep, split or reorder worlds.
        tensors: every tensor of a simulator by name, in one's order; a step writes them in place. `actions` and
            `resets` are its inputs.
        scratch: memory for a step.
    """

    worlds: torch.Tensor
    tensors: dict[str, torch.Tensor]
    scratch: torch.Tensor

    def __getattr__(self, name: str) -> torch.Tensor:
        try:
            return self.__dict__["tensors"][name]  # type: ignore[no-any-return]
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

    def init(self, seed: int = 0, world_offset: int = 0) -> State:
        """The first levels of `num_worlds` worlds: those of a Simulator of the same seed and offset.

        Raises:
            ArgumentError: seed or world_offset is out of range.
        """
        seed = check_integer("seed", seed, 0, MAX_SEED)
        offset = check_integer("world_offset", world_offset, 0, MAX_GLOBAL_WORLDS - self.num_worlds)
        place = place_of(self.device)
        prepare(place, self._rules.num_agents)
        extents = extents_of(place, self.num_worlds, self._rules.num_agents)
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
        """
        for name, given in (("actions", actions), ("resets", resets)):
            if given is not None:
                _put(name, given, state.tensors[name])
        torch.ops.doorstep.step_(*self._arguments(state), *self._rules)
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

    Raises:
        ArgumentError: a simulator whose steps may raise (action_check="raise", strict).
    """
    settings = sim._settings
    if settings["action_check"] == ActionCheck.RAISE or settings["strict"]:
        raise ArgumentError(
            "the simulator's steps may raise (action_check='raise' or strict=True), which a step of tensors cannot",
            argument="sim",
            hint="make the simulator with action_check='clamp' or 'off', and strict=False",
        )
    rules = Rules(
        sim.num_agents, sim.episode_length, bool(settings["auto_reset"]), int(ActionCheck(settings["action_check"]))
    )
    return Worlds(sim.num_worlds, rules, bool(settings["flat_observations"]), torch.device(sim.device))


def _put(name: str, given: torch.Tensor, to: torch.Tensor) -> None:
    if given.shape != to.shape or given.dtype not in (torch.int32, torch.bool):
        refuse(name, f"{to.dtype} {list(to.shape)}", f"{given.dtype} {list(given.shape)}")
    to.copy_(given)
