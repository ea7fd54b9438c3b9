"""Trouble counted inside the worlds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Health:
    """Counts since the worlds were made; all zero and no culprit when nothing went wrong.

    Attributes:
        clamped_actions: action values moved into their range.
        dropped_contacts: contacts beyond the capacity of a world.
        nonfinite_values: bodies, or edited worlds, found with a value that is not finite.
        repaired_indices: state indices edited to impossible values and set back.
        culprit_world: slot of the world of the latest trouble, or None.
        culprit_body: body of that trouble, or None.
        culprit_step: that world's step count when it happened, or None.
    """

    clamped_actions: int
    dropped_contacts: int
    nonfinite_values: int
    repaired_indices: int
    culprit_world: int | None
    culprit_body: int | None
    culprit_step: int | None
