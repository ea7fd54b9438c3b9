"""The requests of an engine: which ones wait, which ones actors have, and which ones are answered."""

from __future__ import annotations

import collections
import copy
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from doorstep._arguments import refuse
from doorstep.errors import ClosedError
from doorstep.ray.errors import ActorsLostError
from doorstep.ray.policy import check_ray_policy
from doorstep.rollouts.checks import RequestChecks
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.policies import PolicyTable
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult, Reason, make_unplayed
from doorstep.rollouts.submissions import Submission, Submissions


@final
@dataclass(eq=False)
class Chunk:
    """Requests that an actor gets together, and answers together or not at all.

    Attributes:
        ids: of the requests.
        losses: actors that were lost while they had it.
    """

    ids: list[int]
    requests: list[EpisodeRequest]
    losses: int = 0


@final
class Requests:
    """All requests of an engine, each of which gets one result. Any thread may use it."""

    def __init__(self, config: RolloutConfig) -> None:
        self._num_agents, self._capacity = config.simulator.num_agents, config.queue_capacity
        self._policies = PolicyTable(config.max_policies, self._num_agents, lambda number: None, check_ray_policy)
        self._checks = RequestChecks(config, self._policies)
        self._changed = threading.Condition()
        self._submissions = Submissions()
        self._waiting: collections.deque[int] = collections.deque()  # their ids
        self._lost: collections.deque[Chunk] = collections.deque()  # by an actor; they wait too
        self._playing: set[Chunk] = set()
        self._results: collections.deque[EpisodeResult] = collections.deque()
        self._end: ClosedError | None = None

    # ---- For callers of the engine

    def submit(self, requests: Sequence[EpisodeRequest], timeout: float | None) -> list[int]:
        """The ids of those that found room in time, which are the first ones."""
        if not requests:
            return []
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            self._check_open([])
            submission = self._open(requests)
            ids: list[int] = submission.library_tags().tolist()
            accepted = 0
            try:
                while accepted < len(ids) and self._wait_for_room(deadline):
                    self._check_open(ids[:accepted])
                    end = accepted + self._capacity - len(self._waiting)
                    self._waiting.extend(ids[accepted:end])
                    accepted = min(end, len(ids))
                    self._changed.notify_all()
            finally:
                self._count_answers(submission, len(ids) - accepted)
        return ids[:accepted]

    def cancel(self, request_id: int) -> bool:
        """Whether the request waited for its first actor; then its result, "cancelled", can be taken."""
        with self._changed:
            if request_id not in self._waiting:
                return False
            self._waiting.remove(request_id)
            self._answer(self._unplayed(request_id, self._request(request_id), "cancelled", ""))
            return True

    @property
    def outstanding(self) -> int:
        with self._changed:
            return self._submissions.unanswered + len(self._results)

    def take_results(self, most: int, timeout: float | None) -> list[EpisodeResult]:
        """At least one, unless none is to come, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._results or not self._submissions.unanswered, timeout)
            if not self._results and not self._submissions.unanswered:
                self._check_open([])
            return [self._results.popleft() for _ in range(min(most, len(self._results)))]

    def drain(self, timeout: float | None) -> bool:
        """Waits until every request has its result."""
        with self._changed:
            drained = self._changed.wait_for(lambda: not self._submissions.unanswered, timeout)
            if isinstance(self._end, ActorsLostError):
                self._check_open([])
            return drained

    # ---- For the thread that serves the actors

    def wait_for_work(self, timeout: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._lost, timeout)

    def take_chunk(self, most: int, *, is_idle: bool) -> Chunk | None:
        """The next requests for an actor; None if it is to get none now. A chunk that was lost comes before all others,
        and goes to an idle actor, which plays it alone: so it is seen which chunk actors die of."""
        with self._changed:
            if self._lost:
                if not is_idle:
                    return None
                chunk = self._lost.popleft()
            elif self._waiting:
                ids = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
                chunk = Chunk(ids, [self._request(one) for one in ids])
                self._changed.notify_all()  # there is room
            else:
                return None
            self._playing.add(chunk)
            return chunk

    def put_back(self, chunk: Chunk) -> None:
        """A chunk that no actor has answered waits again."""
        with self._changed:
            self._playing.remove(chunk)
            self._lost.append(chunk)

    def answer(self, chunk: Chunk, answers: Sequence[EpisodeResult | str]) -> None:
        """The result of each of its requests, or what made it fail."""
        results = [self._result(*one) for one in zip(chunk.ids, chunk.requests, answers, strict=True)]
        with self._changed:
            self._playing.remove(chunk)
            for result in results:
                self._answer(result)

    def fail(self, chunk: Chunk, error: str) -> None:
        """All requests of a chunk."""
        self.answer(chunk, [error] * len(chunk.ids))

    def end(self, error: ClosedError) -> None:
        """No request is taken any more, and those without a result fail."""
        with self._changed:
            self._end = error
            chunks = [*self._playing, *self._lost]
            unanswered = sorted([number for chunk in chunks for number in chunk.ids]) + list(self._waiting)
            self._playing.clear()
            self._lost.clear()
            self._waiting.clear()
            for number in unanswered:
                self._answer(self._unplayed(number, self._request(number), "failed", str(error.args[0])))
            self._changed.notify_all()

    # ---- With the lock held

    def _open(self, requests: Sequence[EpisodeRequest]) -> Submission:
        policies = self._checks.check(requests)
        for request in requests:
            if "stream" in request.record:
                refuse("request", "one that records no 'stream'", request, "steps do not leave their actor")
            if request.deadline is not None:
                refuse("request", "one without a deadline", request, "clocks of machines differ; use max_steps")
        self._policies.use(policies)
        return self._submissions.open(requests, policies, ())

    def _wait_for_room(self, deadline: float | None) -> bool:
        """Whether there is room, or the end came."""
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        return self._changed.wait_for(lambda: self._end is not None or len(self._waiting) < self._capacity, left)

    def _check_open(self, ids: list[int]) -> None:
        """ids: of the requests that have found room before, which the error tells."""
        if self._end is not None:
            error = copy.copy(self._end)
            error.ids = ids  # type: ignore[attr-defined]
            raise error from self._end.__cause__

    def _request(self, number: int) -> EpisodeRequest:
        submission, index = self._submissions.find(number)
        return submission.request(index)

    def _answer(self, result: EpisodeResult) -> None:
        self._results.append(result)
        self._count_answers(self._submissions.find(result.id)[0], 1)

    def _count_answers(self, submission: Submission, count: int) -> None:
        """Of requests that are answered, or were not submitted after all."""
        if count and self._submissions.answer(submission, count):
            self._policies.release(submission.policies)
        self._changed.notify_all()

    # ---- Results

    def _result(self, number: int, request: EpisodeRequest, answer: EpisodeResult | str) -> EpisodeResult:
        """The result of a request here. An actor's arrays are copied: those that come from Ray are read-only, and each
        of them keeps the memory of a whole chunk."""
        if isinstance(answer, str):
            return self._unplayed(number, request, "failed", answer)
        arrays = {name: value.copy() for name, value in vars(answer).items() if isinstance(value, np.ndarray)}
        return replace(answer, id=number, request=request, **arrays)

    def _unplayed(self, number: int, request: EpisodeRequest, reason: Reason, error: str) -> EpisodeResult:
        return make_unplayed(number, request, reason, self._num_agents, error)
