"""What an engine knows of requests until their results have come."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from doorstep.rollouts.batch import Episodes
from doorstep.rollouts.request import MOST_AT_ONCE, EpisodeRequest
from doorstep.rollouts.result import EpisodeResult

# Requests are found by the tags that the library gives back with their outputs: the number of their submission, and
# the index of their episode in it. So nothing is kept for each of many requests.
INDEX_BITS = MOST_AT_ONCE.bit_length() - 1


def number_of(tag: int) -> int:
    return tag >> INDEX_BITS


def index_of(tag: int) -> int:
    return tag & (MOST_AT_ONCE - 1)


class Progress(Protocol):
    """Of a submission."""

    @property
    def num_accepted(self) -> int:
        """Requests that have found room, which are the first ones."""


@final
class Tally:
    """Numbers of requests."""

    def __init__(self) -> None:
        self.expected = self.answered = 0

    @property
    def unanswered(self) -> int:
        return self.expected - self.answered


class Promise(Protocol):
    """Gets the result of a request: a future, or what `run()` waits for."""

    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def set_running_or_notify_cancel(self) -> bool: ...
    def set_result(self, result: EpisodeResult, /) -> None: ...
    def set_exception(self, exception: BaseException | None, /) -> None: ...


@final
class AwaitedResult:
    """What `run()` waits for, in place of a future, whose lock would stay locked if Ctrl-C came while it is taken."""

    def __init__(self) -> None:
        self._result: EpisodeResult | None = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        return self._result is not None or self._error is not None

    def cancelled(self) -> bool:
        return False

    def set_running_or_notify_cancel(self) -> bool:
        return True

    def set_result(self, result: EpisodeResult) -> None:
        self._result = result

    def set_exception(self, error: BaseException | None) -> None:
        self._error = error

    def result(self) -> EpisodeResult:
        """The result that is there; raises where it is an error."""
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result


@final
class Submission:
    """Episodes that were submitted together, each a request of the library, and who gets their results: promises, one
    for each, or calls.

    Attributes:
        policies: the numbers of their policies.
        progress: None: none has been accepted.
        is_over: no further request will be accepted.
        expected: the requests that were accepted; all of them until that is known.
        answered: those whose result has come.
    """

    def __init__(
        self,
        number: int,
        episodes: Episodes,
        futures: Sequence[Promise],
    ) -> None:
        self.number, self._episodes, self._futures = number, episodes, futures
        self.policies: frozenset[int] = frozenset()
        self.progress: Progress | None = None
        self.is_over = False
        self.expected, self.answered = len(episodes), 0

    def request(self, index: int) -> EpisodeRequest:
        return self._episodes[index]

    def continuation(self, index: int) -> int:
        return self._episodes.continuation(index)

    @property
    def has_futures(self) -> bool:
        return bool(self._futures)

    def future(self, index: int) -> Promise:
        return self._futures[index]

    @property
    def first_tag(self) -> int:
        """Of its requests for the library; the others follow."""
        return self.number << INDEX_BITS

    def tags(self, indices: NDArray[Any]) -> Any:
        """Those that the caller gave the requests."""
        return self._episodes.tags(indices)


@final
class Submissions:
    """Those with requests that have not been answered. Its user guards it with a lock.

    Ctrl-C may end each call anywhere, and the same call, or `settle()`, then does the rest; see `Outbox`.

    Args:
        first_number: of the submissions.
    """

    def __init__(self, first_number: int = 0) -> None:
        self._numbers = itertools.count(first_number)
        self._by_number: dict[int, Submission] = {}
        self._settling: list[Submission] = []  # of which it is not known how many requests were accepted
        self.tally, self.tally_of_futures = Tally(), Tally()

    def make(self, episodes: Episodes, futures: Sequence[Promise]) -> Submission:
        """A submission that is not open yet. The caller sets its `is_over`, also after an exception, when no further
        request will be accepted."""
        return Submission(next(self._numbers), episodes, futures)

    def open(self, submission: Submission) -> None:
        """Its outputs may come from now on."""
        tally, more, settling = self._tally_of(submission), submission.expected, [*self._settling, submission]
        self._by_number[submission.number], tally.expected, self._settling = submission, tally.expected + more, settling

    def settle(self) -> None:
        """Expects no more than was accepted by submissions that are over."""
        for submission in self._settling:
            if submission.is_over:
                tally, accepted = self._tally_of(submission), 0
                if submission.progress is not None:
                    accepted = submission.progress.num_accepted
                if submission.answered == accepted:
                    self._by_number.pop(submission.number, None)
                expected = tally.expected + accepted - submission.expected
                others = [other for other in self._settling if other is not submission]
                submission.expected, tally.expected, self._settling = accepted, expected, others

    def find(self, tag: int) -> tuple[Submission, int]:
        """A request's submission and its index there."""
        return self._by_number[number_of(tag)], index_of(tag)

    def awaited(self, tag: int) -> EpisodeRequest | None:
        """The request of a future that has no result."""
        submission, index = self._by_number.get(number_of(tag)), index_of(tag)
        return submission.request(index) if submission and not submission.future(index).done() else None

    def find_all(self, tags: NDArray[np.uint64]) -> Iterator[tuple[Submission, Any, NDArray[Any]]]:
        """For every submission among these tags: the places of its tags, and the indices of their requests."""
        numbers, indices = tags >> np.uint64(INDEX_BITS), tags & np.uint64(MOST_AT_ONCE - 1)
        if (numbers == numbers[0]).all():  # as often
            yield self._by_number[int(numbers[0])], slice(None), indices
            return
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        for places in np.split(order, cuts):
            yield self._by_number[int(numbers[places[0]])], places, indices[places]

    def answer(self, submission: Submission, answered: int) -> None:
        """So many of its requests have been answered by now."""
        tally = self._tally_of(submission)
        more = answered - submission.answered
        submission.answered, tally.answered = answered, tally.answered + more
        if answered == submission.expected:
            self._by_number.pop(submission.number, None)

    def policies_in_use(self) -> frozenset[int]:
        """The numbers of the policies of requests that have not been answered."""
        return frozenset().union(*(submission.policies for submission in self._by_number.values()))

    def use_too(self, policy: int, other: int) -> None:
        """Requests that have a policy may get another one, by its number."""
        for submission in self._by_number.values():
            if policy in submission.policies:
                submission.policies |= {other}

    @property
    def unanswered(self) -> int:
        """Requests."""
        return self.tally.unanswered + self.tally_of_futures.unanswered

    def _tally_of(self, submission: Submission) -> Tally:
        return self.tally_of_futures if submission.has_futures else self.tally
