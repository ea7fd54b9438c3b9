"""Whether worlds need a table of levels, and how large: known without `doorstep.levels`, which costs time to import."""

from __future__ import annotations

from collections.abc import Sequence

from doorstep._arguments import is_integer, refuse

REFERENCE = "reference"


def is_reference(levels: object) -> bool:
    """Whether these are the reference's levels alone, which need no table of levels."""
    return isinstance(levels, str) and levels == REFERENCE


def room_for(levels: Sequence[object], max_levels: int) -> int:
    """The `max_levels` of worlds that play these: as was asked, or as many as there are where that is 0.

    Raises:
        ArgumentError: they are more than was asked.
    """
    if is_integer(max_levels) and 0 < max_levels < len(levels):
        refuse("max_levels", f"0, or at least the number of `levels`, {len(levels)}", max_levels)
    return len(levels) if is_integer(max_levels) and max_levels == 0 else max_levels
