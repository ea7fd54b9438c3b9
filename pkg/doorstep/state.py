"""`sim.state`: the fields of the world blocks as tensors."""

from __future__ import annotations

from typing import final

from doorstep._copies import Owner
from doorstep._native import STATE_FIELDS, Session
from doorstep._properties import StateProperties
from doorstep.tensor import Tensor

FIELD_INDEX = {row.name: index for index, row in enumerate(STATE_FIELDS)}


@final
class StateFields(StateProperties, Owner, remedy="pickle copies of its fields, or sim.save()"):
    """Fields of the worlds' state: strided views, one property each. Edits take effect in the next step.

    Once a field has been read, every step checks for edits, which costs a little time. Observations show an edit after
    the next step or `Simulator.refresh()`. Index fields edited to impossible values are set back and counted in
    `Simulator.health`.

    >>> import doorstep
    >>> sim = doorstep.Simulator(1)
    >>> sim.state.body_positions.shape
    (1, 7, 3)
    >>> sim.state.body_positions[0, 0] = (0.0, 5.0, 0.0)
    >>> sim.refresh()
    >>> float(sim.self_observations[0, 0, 3]) * 40
    5.0
    """

    __slots__ = ("_device", "_session", "_tensors")

    def __init__(self, session: Session, device: str) -> None:
        self._session = session
        self._device = device
        self._tensors: dict[str, Tensor] = {}

    def __repr__(self) -> str:
        return f"StateFields({', '.join(FIELD_INDEX)})"

    def _forget(self) -> None:
        """Drops the fields and with them the memory; fields that users hold stay valid."""
        self._tensors = {}

    def _tensor(self, name: str) -> Tensor:
        memory = self._session.memory
        if name not in self._tensors:
            self._tensors[name] = Tensor(name, self._session.state_info(FIELD_INDEX[name]), memory, self._device)
        return self._tensors[name]
