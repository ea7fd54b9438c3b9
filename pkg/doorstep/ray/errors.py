"""Errors of actors, which no argument has caused."""

from __future__ import annotations

from doorstep.errors import ClosedError


class ActorsLostError(ClosedError):
    """An engine has ended because its actors died again and again, none of them became ready, or Ray has failed."""
