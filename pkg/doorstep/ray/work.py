"""What an engine keeps of requests and their results.

Python raises KeyboardInterrupt when a function begins, after a call, and at a jump back. So requests and results change
their places by plain assignments that follow each other, and at most one call of a function in C, at their end.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, final

import numpy as np

from doorstep.rollouts import EpisodeRequest, EpisodeResult

CLOSED = "the engine was closed"  # which is no failure of an episode


@final
@dataclass(eq=False)
class Work:
    """What was submitted, or one `run()`. Its user has the engine's lock.

    Attributes:
        left: episodes whose result no reader has got.
        arrived: results that no reader has got.
        failed: the first result of an episode that failed.
    """

    left: int = 0
    arrived: collections.deque[EpisodeResult] = field(default_factory=collections.deque)
    failed: EpisodeResult | None = None

    def give(self, given: list[EpisodeResult], most: int, alone: bool) -> bool:
        """Gives a reader so many results if it has none. Returns whether it has some, or nothing is left.

        Args:
            alone: it gets a result of an episode that failed alone.
        """
        if not given:
            results = list(itertools.islice(self.arrived, most))
            if alone:
                results = list(itertools.takewhile(lambda result: not has_failed(result), results)) or results[:1]
            for result in results:
                del self.arrived[0]
                self.left -= 1
                given += [result]
        return bool(given) or not self.left


@final
@dataclass(eq=False)
class Chunk:
    """Requests that an actor gets together, and answers together or not at all.

    Attributes:
        asked: the requests, by their ids.
        size: its episodes.
        actor: that has it.
    """

    work: Work
    asked: dict[int, EpisodeRequest] = field(default_factory=dict)
    size: int = 0
    actor: Any = None

    def results(self, answers: Sequence[EpisodeResult | str] | str, num_agents: int) -> list[EpisodeResult]:
        """Of what an actor has answered, or why it has answered nothing. An actor's arrays are copied: those that come
        from Ray are read-only, and each of them keeps the memory of a whole chunk."""
        episodes = [(*asked, number) for asked in self.asked.items() for number in range(asked[1].n)]
        answers, results = [answers] * self.size if isinstance(answers, str) else answers, []
        for (request_id, request, number), answer in zip(episodes, answers, strict=True):
            played = _unplayed(answer, num_agents) if isinstance(answer, str) else answer
            arrays = {name: value.copy() for name, value in vars(played).items() if isinstance(value, np.ndarray)}
            results.append(replace(played, id=request_id, request=request, continuation=number, **arrays))
        self.work.failed = self.work.failed or next(filter(has_failed, results), None)
        return results


def has_failed(result: EpisodeResult) -> bool:
    """Whether its episode failed, and was not just left unplayed when the engine was closed."""
    return result.reason == "failed" and result.error != CLOSED


def in_chunks(work: Work, asked: Mapping[int, EpisodeRequest], most: int) -> list[Chunk]:
    """Of so many episodes, or of one request."""
    chunks: list[Chunk] = []
    for request_id, request in asked.items():
        if not chunks or chunks[-1].size + request.n > most:
            chunks.append(Chunk(work))
        chunks[-1].asked[request_id] = request
        chunks[-1].size += request.n
    return chunks


def _unplayed(error: str, num_agents: int) -> EpisodeResult:
    """The result of an episode of which no step was played."""
    told: dict[str, Any] = {one.name: None for one in fields(EpisodeResult)}
    told |= {"reason": "failed", "error": error, "replica": -1, "length": 0, "state_hash": 0}
    told |= {"queued_seconds": 0.0, "played_seconds": 0.0}
    return EpisodeResult(**told | {name: np.zeros(num_agents, np.float32) for name in ("returns", "max_y")})
