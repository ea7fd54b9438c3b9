"""What an engine keeps of requests and their results.

Python raises KeyboardInterrupt when a function begins, after a call, and at a jump back. So requests and results change
their places by plain assignments that follow each other, and at most one call of a function in C, at their end.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, final

import numpy as np

from doorstep.rollouts import EpisodeRequest, EpisodeResult

CLOSED = "the engine was closed"  # which is no failure of an episode


@final
class Asked(NamedTuple):
    """A request with its id, and as actors get it, with policies in place of names."""

    id: int
    request: EpisodeRequest
    sent: EpisodeRequest


@final
@dataclass(eq=False)
class Work:
    """What was submitted, or one `run()`. Its user has the engine's lock.

    Attributes:
        expected: episodes.
        arrived: results; readers have got the first `place` of these, and `taken` in all.
        failed: the first result of an episode that failed.
    """

    expected: int = 0
    taken: int = 0
    place: int = 0
    arrived: collections.deque[EpisodeResult] = field(default_factory=collections.deque)
    failed: EpisodeResult | None = None

    def next_results(self, most: int) -> list[EpisodeResult]:
        """They are taken when `taken` and `place` count them."""
        while self.place:
            self.place -= 1
            self.arrived.popleft()
        return list(itertools.islice(self.arrived, most))


@final
@dataclass(eq=False)
class Chunk:
    """Requests that an actor gets together, and answers together or not at all.

    Attributes:
        size: its episodes.
        actor: that has it.
    """

    work: Work
    asked: list[Asked] = field(default_factory=list)
    size: int = 0
    actor: Any = None

    def results(self, answers: Sequence[EpisodeResult | str] | str, num_agents: int) -> list[EpisodeResult]:
        """Of what an actor has answered, or why it has answered nothing. An actor's arrays are copied: those that come
        from Ray are read-only, and each of them keeps the memory of a whole chunk."""
        episodes = [(one, number) for one in self.asked for number in range(one.request.n)]
        answers, results = [answers] * self.size if isinstance(answers, str) else answers, []
        for (one, number), answer in zip(episodes, answers, strict=True):
            if isinstance(answer, str):
                results.append(_unplayed(one, number, num_agents, answer))
            else:
                arrays = {name: value.copy() for name, value in vars(answer).items() if isinstance(value, np.ndarray)}
                results.append(replace(answer, id=one.id, request=one.request, **arrays))
        self.work.failed = self.work.failed or next(filter(has_failed, results), None)
        return results


def has_failed(result: EpisodeResult) -> bool:
    """Whether its episode failed, and was not just left unplayed when the engine was closed."""
    return result.reason == "failed" and result.error != CLOSED


def in_chunks(work: Work, asked: Iterable[Asked], most: int) -> list[Chunk]:
    """Of so many episodes, or of one request."""
    chunks: list[Chunk] = []
    for one in asked:
        if not chunks or chunks[-1].size + one.request.n > most:
            chunks.append(Chunk(work))
        chunks[-1].asked.append(one)
        chunks[-1].size += one.request.n
    return chunks


def _unplayed(asked: Asked, continuation: int, num_agents: int, error: str) -> EpisodeResult:
    """The result of a request of which no step was played."""
    told: dict[str, Any] = {one.name: None for one in fields(EpisodeResult)}
    told |= {"id": asked.id, "request": asked.request, "continuation": continuation, "reason": "failed", "error": error}
    told |= {"length": 0, "state_hash": 0, "queued_seconds": 0.0, "played_seconds": 0.0, "replica": -1}
    return EpisodeResult(**told | {name: np.zeros(num_agents, np.float32) for name in ("returns", "max_y")})
