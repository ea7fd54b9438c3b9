"""What was asked of an engine, and what it answered."""

from __future__ import annotations

import collections
import threading
from collections.abc import Iterable
from concurrent.futures import Future, wait
from typing import Any

from doorstep import EpisodeRequest, EpisodeResult


class References:
    """The hash at the end of every episode that was seen: a later one of an equal request must have it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[Any, tuple[int, int]] = {}
        self.compared = 0

    def compare(self, result: EpisodeResult, plays_levels: bool) -> str | None:
        """What is different; hashes of simulators that can play levels are others."""
        request = result.request
        if not result.finished:
            return None
        given = request.policy
        policy = given if isinstance(given, str) else getattr(given, "name", "native")  # all native ones are equal
        level = None if request.level is None else request.level.name
        key = request.seed, request.max_steps, policy, level, request.sampling, plays_levels
        with self._lock:
            self.compared += 1
            first = self._seen.setdefault(key, (result.state_hash, result.length))
        if first == (result.state_hash, result.length):
            return None
        return f"{key} ended with {result.state_hash:x} after {result.length} steps, earlier with {first[0]:x}"

    def __len__(self) -> int:
        return len(self._seen)


class Ledger:
    """The requests of one engine by their ids. Any thread may use it."""

    def __init__(self, references: References, *, plays_levels: bool) -> None:
        self._lock = threading.Lock()
        self._references, self._plays_levels = references, plays_levels
        self._accepted: collections.Counter[int] = collections.Counter()
        self._answered: collections.Counter[int] = collections.Counter()
        self._cancelled: set[int] = set()
        self._futures: collections.Counter[Future[EpisodeResult]] = collections.Counter()
        self._awaited = 0
        self.reasons: collections.Counter[str] = collections.Counter()
        self.trouble: list[str] = []

    # ---- Requests with an id

    def accept(self, ids: Iterable[int]) -> None:
        with self._lock:
            self._accepted.update(ids)

    def cancel(self, request_id: int) -> None:
        """To be called before it is cancelled."""
        with self._lock:
            self._cancelled.add(request_id)

    def answer(self, result: EpisodeResult) -> None:
        difference = self._references.compare(result, self._plays_levels)
        with self._lock:
            self._answered[result.id] += 1
            self.reasons[result.reason] += 1
            if difference:
                self.trouble.append(difference)
            if not is_expected(result.request, result.reason, result.error):
                self.trouble.append(f"{result.request} ended with {result.reason}: {result.error}")
            if result.reason == "cancelled" and result.id not in self._cancelled:
                self.trouble.append(f"{result.id} ended as cancelled, and was not")
            if result.actions is not None and len(result.actions) != result.length:
                self.trouble.append(f"{result.id} has {len(result.actions)} actions of {result.length} steps")

    def answer_columns(self, results: Any) -> None:
        with self._lock:
            self._answered.update(results.id.tolist())
            self.reasons.update(results.reason.tolist())

    @property
    def num_accepted(self) -> int:
        return self._accepted.total()

    def run(self, reasons: list[str], asked: int) -> None:
        with self._lock:
            self.reasons.update(reasons)
            if len(reasons) != asked:
                self.trouble.append(f"a run of {asked} episodes had {len(reasons)} results")

    # ---- Futures and tasks

    def make_future(self, future: Future[EpisodeResult]) -> None:
        with self._lock:
            self._futures[future] += 0
        future.add_done_callback(self._future_is_done)

    def _future_is_done(self, future: Future[EpisodeResult]) -> None:
        result = None if future.cancelled() else result_of(future)
        reason = "cancelled" if result is None else result.reason
        difference = None if result is None else self._references.compare(result, self._plays_levels)
        with self._lock:
            self._futures[future] += 1
            self.reasons[reason] += 1
            if difference:
                self.trouble.append(difference)

    def await_futures(self) -> None:
        wait(list(self._futures), timeout=60)

    def await_one(self) -> None:
        with self._lock:
            self._awaited += 1

    def awaited(self, reason: str) -> None:
        with self._lock:
            self._awaited -= 1
            self.reasons[reason] += 1

    # ---- The balance

    def __len__(self) -> int:
        """Requests that were accepted."""
        return self._accepted.total() + len(self._futures)

    def imbalance(self) -> list[str]:
        """What is wrong when all results have been taken."""
        found = list(self.trouble)
        if lost := self._accepted.keys() - self._answered.keys():
            found.append(f"{len(lost)} requests were not answered, among them {min(lost)}")
        if unknown := self._answered.keys() - self._accepted.keys():
            found.append(f"{len(unknown)} answers belong to no request, among them {min(unknown)}")
        for name, counts in (("answers", self._answered), ("submissions", self._accepted), ("futures", self._futures)):
            if more := sum(count > 1 for count in counts.values()):
                found.append(f"{more} {name} came more than once")
        return found + self.imbalance_of_futures()

    def imbalance_of_futures(self) -> list[str]:
        """What can be said of an engine that was dropped with its results."""
        undone = sum(count == 0 for count in self._futures.values())
        found = [f"{undone} futures have no result"] if undone else []
        return [*found, f"{self._awaited} tasks still wait"] if self._awaited else found


def result_of(future: Future[EpisodeResult]) -> EpisodeResult:
    """Also that of an episode that failed, which comes with the error."""
    error = future.exception()
    return future.result() if error is None else error.result  # type: ignore[attr-defined]


def is_expected(request: EpisodeRequest, reason: str, error: str) -> bool:
    """Whether a request may end so."""
    if reason == "expired":
        return request.deadline is not None
    if reason == "failed":
        ended = "the engine was closed" in error or "injected" in error
        return ended or getattr(request.policy, "fails", False)
    return True
