"""Why episodes failed: texts by the numbers that go through the library, and the errors that readers of results get."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any, final

from doorstep._native._generated import EpisodeReason, FailureCause
from doorstep.errors import StateError

_MOST_TEXTS = 4096  # that are kept: results with older ones say less

_AGENTS = 8  # as ds_failure_cause counts steps

CLOSED = int(FailureCause.CLOSED)  # which is no failure of the episode
CLOSED_TEXT = "the engine was closed"

_KNOWN = {
    CLOSED: CLOSED_TEXT,
    int(FailureCause.MEMORY): "no memory was left for what the request records, or for its policy",
    int(FailureCause.SIMULATION): "a step met a value that is not finite, or more contacts than a world can hold",
    int(FailureCause.DEVICE): "the policy is on a CUDA device where the replica is not; copy its module to the CPU",
}


@final
class FailureTexts:
    """Any thread may use it.

    Args:
        replicas: what the replicas have failed with; None: they have not.
    """

    def __init__(self, replicas: Callable[[], BaseException | None]) -> None:
        self._replicas = replicas
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._texts: dict[int, tuple[str, str]] = {}  # with where it was raised; in the order of their numbers
        self._next = 1

    def number_of(self, error: BaseException) -> int:
        """The same for exceptions with equal texts."""
        text = describe(error)
        with self._lock:
            number = self._numbers.get(text)
            if number is None:
                number, self._next = self._next, self._next + 1
                self._numbers[text], self._texts[number] = number, (text, _where(error))
                if len(self._texts) > _MOST_TEXTS:
                    del self._numbers[self._texts.pop(next(iter(self._texts)))[0]]
            return number

    def text_of(self, reason: int, cause: int) -> str:
        """What a result with this reason and cause says."""
        if reason != EpisodeReason.FAILED:
            return ""
        if cause <= FailureCause.LOGITS:
            step, agent = divmod(FailureCause.LOGITS - cause, _AGENTS)
            return f"the logits of agent {agent} were not finite in step {step} (counted from 0), which it made idly"
        if cause == FailureCause.REPLICA:
            failure = self._replicas()
            return "its replica failed" if failure is None else describe(failure)
        return _KNOWN.get(cause) or self._texts.get(cause, ("its policy raised", ""))[0]

    def error_of(self, result: Any, cause: int) -> StateError:
        """What the reader of a failed result gets."""
        return error_of(result, self._texts.get(cause, ("", ""))[1])


class _PolicyError(Exception):
    """Shows where an exception was raised in a thread of the engine; its own traceback would keep the policy alive."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def error_of(result: Any, where: str = "") -> StateError:
    """The error of an `EpisodeResult` that failed.

    Args:
        where: a traceback as text; "": unknown.
    """
    error = StateError(
        f"the episode of request {result.id}, with seed {result.request.seed}, failed: {result.error}",
        hint="the exception's `result` tells the rest; to get failed episodes as results, make the engine with"
        ' on_error="return"',
    )
    error.result = result  # type: ignore[attr-defined]
    error.__cause__ = _PolicyError(where) if where else None
    return error


def has_failed(result: Any) -> bool:
    """Whether the episode of an `EpisodeResult` failed, and was not just left unplayed when its engine was closed."""
    return bool(result.reason == "failed" and result.error != CLOSED_TEXT)


def describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # of its __str__(), which is the user's
        return f"{type(error).__name__}, whose message cannot be read"


def _where(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()
    except BaseException:  # likewise
        return ""
