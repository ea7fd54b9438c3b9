"""`sim.health`: errors counted inside the worlds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Health:
    """Counts since the worlds were made; all are 0, and the culprits None, if there was no error.

    Attributes:
        clamped_actions: action values out of range that were replaced by the nearest legal value.
        dropped_contacts: contacts beyond the capacity of a world.
        nonfinite_values: bodies, edited worlds, or draws from `level_weights`, with a value that is not finite.
        repaired_indices: state indices that were edited to impossible values and set back; draws of a level where no
            weight is positive.
        culprit_world: slot of the world of the latest error, or None.
        culprit_body: body of that error, or None.
        culprit_step: step count of that world at the error, or None.
    """

    clamped_actions: int
    dropped_contacts: int
    nonfinite_values: int
    repaired_indices: int
    culprit_world: int | None
    culprit_body: int | None
    culprit_step: int | None
