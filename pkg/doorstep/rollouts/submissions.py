"""What an engine knows of requests until their results are taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep.rollouts.batch import RequestBatch
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult

# Requests are found by the tags that the library gives back with their outputs: the number of their submission, and
# their index in it. So nothing is kept for each of many requests.
_INDEX_BITS = 24
MOST_AT_ONCE = 1 << _INDEX_BITS


@final
class Submission:
    """Requests that were submitted together, and who gets their results: futures, one for each, or none."""

    def __init__(
        self,
        number: int,
        requests: Sequence[EpisodeRequest] | RequestBatch,
        policies: frozenset[int],
        futures: Sequence[Future[EpisodeResult]],
    ) -> None:
        self.number, self.policies, self._futures = number, policies, futures
        self.unanswered = len(requests)
        self._requests = requests

    def request(self, index: int) -> EpisodeRequest:
        return self._requests[index]

    @property
    def has_futures(self) -> bool:
        return bool(self._futures)

    def future(self, index: int) -> Future[EpisodeResult] | None:
        return self._futures[index] if self._futures else None

    def library_tags(self) -> NDArray[np.uint64]:
        """The tags of its requests for the library."""
        first = self.number << _INDEX_BITS
        return np.arange(first, first + len(self._requests), dtype=np.uint64)

    def tags(self, indices: NDArray[Any]) -> Any:
        """Those that the caller gave the requests."""
        if isinstance(self._requests, RequestBatch):
            return self._requests.template.tag
        return [self._requests[index].tag for index in indices.tolist()]


@final
class Submissions:
    """Those with requests that have not been answered. Its user guards it with a lock."""

    def __init__(self) -> None:
        self._by_number: dict[int, Submission] = {}
        self._next_number = 0
        self.unanswered = 0  # requests
        self.unanswered_futures = 0  # of them

    def open(
        self,
        requests: Sequence[EpisodeRequest] | RequestBatch,
        policies: frozenset[int],
        futures: Sequence[Future[EpisodeResult]],
    ) -> Submission:
        submission = Submission(self._next_number, requests, policies, futures)
        self._next_number += 1
        self._by_number[submission.number] = submission
        self._count(submission, submission.unanswered)
        return submission

    def find(self, tag: int) -> tuple[Submission, int]:
        """A request's submission and its index there."""
        return self._by_number[tag >> _INDEX_BITS], tag & (MOST_AT_ONCE - 1)

    def find_all(self, tags: NDArray[np.uint64]) -> Iterator[tuple[Submission, NDArray[Any], NDArray[Any]]]:
        """For every submission among these tags: the places of its tags, and the indices of their requests."""
        numbers, indices = tags >> np.uint64(_INDEX_BITS), tags & np.uint64(MOST_AT_ONCE - 1)
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        for places in np.split(order, cuts) if len(order) else ():
            yield self._by_number[int(numbers[places[0]])], places, indices[places]

    def answer(self, submission: Submission, count: int) -> bool:
        """That many of its requests have been answered. Returns whether all have."""
        submission.unanswered -= count
        self._count(submission, -count)
        if submission.unanswered:
            return False
        del self._by_number[submission.number]
        return True

    def _count(self, submission: Submission, more: int) -> None:
        self.unanswered += more
        if submission.has_futures:
            self.unanswered_futures += more
