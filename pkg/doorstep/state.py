"""The inside of the worlds, as writable views."""

from __future__ import annotations

from typing import Any, final

from doorstep._native import STATE_FIELDS, Session
from doorstep._properties import StateProperties
from doorstep.tensor import Tensor

FIELD_INDEX = {row.name: index for index, row in enumerate(STATE_FIELDS)}


@final
class State(StateProperties):
    """Fields of the world blocks: strided views, one property each. Edits reach the next step.

    From the first field taken on, every step looks for edits, which costs a little time. Observations show an edit
    after the next step, or after `Simulator.refresh()`. Index fields edited to impossible values are set back and
    counted in `Simulator.health`.

    >>> import doorstep
    >>> sim = doorstep.Simulator(1)
    >>> sim.state.body_positions
    Tensor(body_positions, float32 [1, 7, 3], cpu, writable)
    >>> sim.state.body_positions.to_numpy()[0, 0] = (0.0, 5.0, 0.0)
    >>> sim.refresh()
    >>> float(sim.self_observations.to_numpy()[0, 0, 3]) * 40
    5.0
    """

    __slots__ = ("_device", "_session", "_tensors")

    def __init__(self, session: Session, device: str) -> None:
        self._session = session
        self._device = device
        self._tensors: dict[str, Tensor] = {}

    def __repr__(self) -> str:
        return f"State({', '.join(FIELD_INDEX)})"

    def __reduce__(self) -> Any:
        raise TypeError("a State is a view of simulator memory; pickle copies of its fields, or sim.save(), instead")

    def _forget(self) -> None:
        """Lets go of the fields, and of the memory with them; those that users took stay valid."""
        self._tensors = {}

    def _tensor(self, name: str) -> Tensor:
        memory = self._session.memory
        if name not in self._tensors:
            self._tensors[name] = Tensor(name, self._session.state_info(FIELD_INDEX[name]), memory, self._device)
        return self._tensors[name]
