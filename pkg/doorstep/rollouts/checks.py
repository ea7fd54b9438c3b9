"""What is checked when requests are submitted, in engines of any kind."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from doorstep._arguments import refuse
from doorstep.rollouts.request import MOST_AT_ONCE, EpisodeRequest


def as_list(requests: Any) -> list[EpisodeRequest]:
    """The requests of a call, which has one or a sequence of them."""
    if isinstance(requests, EpisodeRequest):
        return [requests]
    try:
        return list(itertools.islice(requests, MOST_AT_ONCE + 1))  # of which one is too many
    except TypeError:
        refuse("request", "a doorstep.EpisodeRequest, or a sequence of them", requests)


def check_single(requests: Sequence[EpisodeRequest], hint: str) -> None:
    """Refuses those of several episodes."""
    for request in requests:
        if isinstance(request, EpisodeRequest) and request.n > 1:
            refuse("n", "1 here", request.n, hint)


def check_all_submitted(ids: Any, expected: int) -> None:
    if len(ids) < expected:
        error = TimeoutError(f"{len(ids)} of {expected} requests found room in the queue")
        error.ids = ids  # type: ignore[attr-defined]
        raise error
