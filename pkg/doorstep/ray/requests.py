"""The requests of an engine: which ones wait, which ones actors have, and which ones are answered."""

from __future__ import annotations

import collections
import copy
import functools
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from doorstep._arguments import refuse
from doorstep._native import rollouts as native
from doorstep.errors import ArgumentError, ClosedError
from doorstep.ray.config import ActorsLostError
from doorstep.ray.policy import load_for_ray
from doorstep.rollouts.batch import Episodes, RequestWriter
from doorstep.rollouts.changes import TimeLimit
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.failures import CLOSED_TEXT, error_of, has_failed
from doorstep.rollouts.outbox import Delivery, Outbox, Reading
from doorstep.rollouts.policies import NamedPolicy, PolicyTable
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult, Reason, make_unplayed
from doorstep.rollouts.submissions import INDEX_BITS, Submission, Submissions

_ENGINE_BITS = 12  # the upper ones of an id
_SLICE_SECONDS = 1.0  # of a wait, in which other threads tell what they change
_engines = itertools.count()


@final
@dataclass(eq=False)
class Chunk:
    """Episodes that an actor gets together, and answers together or not at all.

    Attributes:
        ids: of the episodes.
        requests: theirs, with policies in place of names.
        continuations: which of its request's episodes each is.
        losses: actors that were lost while they had it.
    """

    ids: list[int]
    requests: list[EpisodeRequest]
    continuations: list[int]
    losses: int = 0


@final
class _Accepted:
    """Of a submission."""

    num_accepted = 0


@final
class _Answered:
    """Results on their way to the outbox, and how many requests of each submission they answer."""

    def __init__(self, results: list[EpisodeResult], answers: list[tuple[Submission, int]]) -> None:
        self.results, self.answers = results, answers

    def __len__(self) -> int:
        return len(self.results)


@final
class Requests:
    """All requests of an engine, each of which gets one result. Any thread may use it. Ctrl-C may end calls anywhere;
    the next call does what is left to do, see `Outbox`.

    Attributes:
        changes: told of what the threads that use this do.
    """

    def __init__(self, config: RolloutConfig, *, raises: bool) -> None:
        """raises: whether taking the result of an episode that failed raises, and does not return it."""
        self._raises = raises
        self._num_agents, self._capacity = config.simulator.num_agents, config.queue_capacity
        # The last ones first: engines that play here have the first ones
        self._engine = (1 << _ENGINE_BITS) - 1 - next(_engines) % ((1 << _ENGINE_BITS) - 1)
        self._submissions = Submissions(self._engine << (64 - _ENGINE_BITS - INDEX_BITS))
        in_use = self._submissions.policies_in_use
        self._policies = PolicyTable(
            config.max_policies, config.simulator, in_use, lambda number, policy, name: None, load_for_ray
        )
        self._config = config
        self._writer = RequestWriter(self._num_agents, self._policies, are_loaded=False)
        self._forgotten: dict[str, NamedPolicy] = {}  # whose names were deleted while requests waited
        self._lock = threading.RLock()
        self._outbox: Outbox[list[EpisodeResult]] = Outbox(lambda parts: list(itertools.chain(*parts)), len)
        self.changes = self._outbox.changes
        self._waiting: collections.deque[int] = collections.deque()  # their ids
        self._lost: collections.deque[Chunk] = collections.deque()  # by an actor; they wait too
        self._playing: set[Chunk] = set()
        self._end: ClosedError | None = None

    # ---- For callers of the engine

    def submit(self, requests: Sequence[EpisodeRequest], timeout: float | None) -> list[int]:
        """The ids of those that found room in time, which are the first ones."""
        if not requests:
            return []
        limit = TimeLimit(timeout)
        episodes = Episodes(requests)
        submission = self._submissions.make(episodes, ())
        submission.progress = accepted = _Accepted()
        ids = range(submission.first_tag, submission.first_tag + len(episodes))
        try:
            with self._lock:
                self._check_open([])
                self._open(submission, requests, episodes)
            self.changes.wait_until(lambda: self._accept(ids, accepted), limit, _SLICE_SECONDS)
        finally:
            submission.is_over = True  # first of all: a second Ctrl-C may end what follows
            with self._lock:
                self._settle()
            self.changes.tell()
        return list(ids[: accepted.num_accepted])

    def cancel(self, request_id: int) -> bool:
        """Whether the request waited for its first actor; then its result, "cancelled", can be taken.

        Raises:
            ArgumentError: another engine gave the id.
        """
        if (engine := request_id >> (64 - _ENGINE_BITS)) != self._engine:
            raise ArgumentError(
                f"request_id is {request_id}, an id of engine {engine}; this is engine {self._engine}",
                argument="request_id",
                hint="cancel it in the engine that gave this id",
            )
        with self._lock:
            self._settle()
            if request_id not in self._waiting:
                return False
            answered = self._answered([self._unplayed(request_id, "cancelled", "")])
            self._outbox.incoming = answered
            self._waiting.remove(request_id)  # right after the assignment: Ctrl-C cannot come between
            self._settle()
        self.changes.tell()
        return True

    @property
    def outstanding(self) -> int:
        with self._lock:
            self._settle()
            self._outbox.take_back()
            return self._submissions.tally.expected - self._outbox.num_taken

    def take_results(self, most: int, timeout: float | None) -> list[EpisodeResult]:
        """At least one, unless none is to come, or the time is over."""
        return self._take(most, timeout, lambda results: results) or []

    def take_result(self) -> EpisodeResult | None:
        """The next one; None if none is to come."""
        # At once: Ctrl-C between two lines would lose it
        return self._take(1, None, lambda results: results[0])  # type: ignore[no-any-return]

    def _take(self, most: int, timeout: float | None, read: Callable[[list[EpisodeResult]], Any]) -> Any:
        fill = functools.partial(self._fill, most)
        return self._outbox.hand_out(fill, self.changes.wait, functools.partial(self._read, read), timeout)

    def _read(
        self, read: Callable[[list[EpisodeResult]], Any], results: list[EpisodeResult]
    ) -> Reading[Any, list[EpisodeResult]]:
        """Up to the first episode that failed; or its error, if it is the first one."""
        failed = (place for place, result in enumerate(results) if self._raises and has_failed(result))
        end = next(failed, len(results))
        if end == 0:
            return None, error_of(results[0]), results[1:] or None
        return read(results[:end]), None, results[end:] or None

    def _fill(self, most: int, delivery: Delivery[list[EpisodeResult]]) -> bool:
        with self._lock:
            self._settle()
            self._outbox.fill(delivery, most)
            if delivery.part is not None:
                return True
            if self._submissions.unanswered:
                return False
            self._check_open([])
            return True

    def drain(self, timeout: float | None) -> bool:
        """Waits until every request has its result."""
        drained = self.changes.wait_until(self._is_drained, TimeLimit(timeout), _SLICE_SECONDS)
        if isinstance(self._end, ActorsLostError):
            self._check_open([])
        return drained

    def _is_drained(self) -> bool:
        with self._lock:
            self._settle()
            return not self._submissions.unanswered

    # ---- Named policies

    @property
    def named_policies(self) -> Mapping[str, NamedPolicy]:
        return self._policies.named

    def name_policy(self, named: NamedPolicy) -> None:
        """Its name stands for it, also in requests that wait."""
        with self._lock:
            self._check_open([])
            self._forgotten.pop(named.name, None)
            self._policies.set_name(named, lambda number, by: None)  # names are looked up when chunks are taken

    def forget_name(self, name: str) -> None:
        """Requests that wait keep the policy."""
        with self._lock:
            named = self._policies.named[name]
            self._policies.forget_name(name)
            self._forgotten = {**self._forgotten, name: named} if self._waiting else {}

    # ---- For the thread that serves the actors

    def take_chunk(self, most: int, *, is_idle: bool) -> Chunk | None:
        """The next requests for an actor; None if it is to get none now. A chunk that was lost comes before all others,
        and goes to an idle actor, which plays it alone: so it is seen which chunk actors die of."""
        with self._lock:
            self._settle()
            if self._lost:
                if not is_idle:
                    return None
                chunk = self._lost.popleft()
            elif self._waiting:
                ids = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
                chunk = self._chunk_of(ids)
            else:
                return None
            self._playing.add(chunk)
        self.changes.tell()  # there is room
        return chunk

    def put_back(self, chunk: Chunk) -> None:
        """A chunk that no actor has answered waits again."""
        with self._lock:
            self._playing.remove(chunk)
            self._lost.append(chunk)

    def answer(self, chunk: Chunk, answers: Sequence[EpisodeResult | str]) -> None:
        """The result of each of its requests, or what made it fail."""
        with self._lock:
            self._settle()
            results = [self._result(*one) for one in zip(chunk.ids, answers, strict=True)]
            self._playing.remove(chunk)
            self._answer(results)
        self.changes.tell()

    def fail(self, chunk: Chunk, error: str) -> None:
        """All requests of a chunk."""
        self.answer(chunk, [error] * len(chunk.ids))

    def end(self, error: ClosedError) -> None:
        """No request is taken any more, and those without a result fail."""
        with self._lock:
            self._settle()
            self._end = error
            chunks = [*self._playing, *self._lost]
            unanswered = sorted([number for chunk in chunks for number in chunk.ids]) + list(self._waiting)
            self._playing.clear()
            self._lost.clear()
            self._waiting.clear()
            text = str(error.args[0]) if isinstance(error, ActorsLostError) else CLOSED_TEXT
            self._answer([self._unplayed(number, "failed", text) for number in unanswered])
        self.changes.tell()

    # ---- With the lock held

    def _open(self, submission: Submission, requests: Sequence[EpisodeRequest], episodes: Episodes) -> None:
        written = self._writer.write(episodes)
        native.check_requests(self._config.native_handle, written.array)
        submission.policies = written.policies
        for request in requests:
            if "stream" in request.record:
                refuse("request", "one that records no 'stream'", request, "steps do not leave their actor")
            if request.deadline is not None:
                refuse("request", "one without a deadline", request, "clocks of machines differ; use max_steps")
        self._submissions.open(submission)

    def _accept(self, ids: range, accepted: _Accepted) -> bool:
        """As many as there is room for; whether that is all."""
        with self._lock:
            before = accepted.num_accepted
            self._check_open(ids[:before])
            end = min(before + max(self._capacity - len(self._waiting), 0), len(ids))
            more = ids[before:end]
            accepted.num_accepted = end
            self._waiting.extend(more)  # right after the assignment: Ctrl-C cannot come between
        self.changes.tell()
        return end == len(ids)

    def _check_open(self, ids: Sequence[int]) -> None:
        """ids: of the requests that have found room before, which the error tells."""
        if self._end is not None:
            error = copy.copy(self._end)
            error.ids = list(ids)  # type: ignore[attr-defined]
            raise error from self._end.__cause__

    def _chunk_of(self, ids: list[int]) -> Chunk:
        """With the policies that names stand for now. Requests that are equal stay one object, which is sent once."""
        found = [self._submissions.find(number) for number in ids]
        requests = [submission.request(index) for submission, index in found]
        continuations = [submission.continuation(index) for submission, index in found]
        if self._policies.named or self._forgotten:
            sent = {number: self._with_policies(one) for number, one in {id(one): one for one in requests}.items()}
            requests = [sent[id(request)] for request in requests]
        return Chunk(ids, requests, continuations)

    def _with_policies(self, request: EpisodeRequest) -> EpisodeRequest:
        given = request.policy
        policy = tuple(map(self._policy_of, given)) if isinstance(given, tuple) else self._policy_of(given)
        return replace(request, policy=policy)

    def _policy_of(self, policy: Any) -> Any:
        named = self._policies.named.get(policy) or self._forgotten.get(policy) if isinstance(policy, str) else None
        return named.loaded if named else policy

    def _answer(self, results: list[EpisodeResult]) -> None:
        self._outbox.incoming = self._answered(results)
        self._settle()

    def _answered(self, results: list[EpisodeResult]) -> _Answered:
        counts = collections.Counter(self._submissions.find(result.id)[0] for result in results)
        return _Answered(results, [(submission, submission.answered + count) for submission, count in counts.items()])

    def _settle(self) -> None:
        """Finishes what a call has left undone."""
        if self._outbox.incoming is not None:
            for submission, answered in self._outbox.incoming.answers:
                self._submissions.answer(submission, answered)
            self._outbox.put(self._outbox.incoming.results)
        self._submissions.settle()

    # ---- Results

    def _result(self, number: int, answer: EpisodeResult | str) -> EpisodeResult:
        """The result of a request here. An actor's arrays are copied: those that come from Ray are read-only, and each
        of them keeps the memory of a whole chunk."""
        if isinstance(answer, str):
            return self._unplayed(number, "failed", answer)
        submission, index = self._submissions.find(number)
        arrays = {name: value.copy() for name, value in vars(answer).items() if isinstance(value, np.ndarray)}
        return replace(answer, id=number, request=submission.request(index), **arrays)

    def _unplayed(self, number: int, reason: Reason, error: str) -> EpisodeResult:
        submission, index = self._submissions.find(number)
        request, continuation = submission.request(index), submission.continuation(index)
        return make_unplayed(number, request, continuation, reason, self._num_agents, error)
