"""Why episodes and replicas failed: texts by the numbers that go through the library, and the errors that readers of
results get."""

from __future__ import annotations

import logging
import threading
import traceback
from typing import Any, final

from doorstep._native._generated import EpisodeReason, FailureCause
from doorstep._native.rollouts import EngineHandle
from doorstep.errors import DoorstepError, StateError

_MOST_TEXTS = 4096  # that are kept: results with older ones say less

_KNOWN = {
    int(FailureCause.CLOSED): "the engine was closed",
    int(FailureCause.MEMORY): "no memory was left for what the request records, or for its policy",
    int(FailureCause.SIMULATION): "a step met a value that is not finite, or more contacts than a world can hold",
    int(FailureCause.DEVICE): "the policy is on a CUDA device where the replica is not; copy its module to the CPU",
}

_log = logging.getLogger("doorstep.rollouts")


@final
class FailureTexts:
    """Any thread may use it."""

    def __init__(self, engine: EngineHandle) -> None:
        self._engine, self._lock = engine, threading.Lock()
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

    def text_of(self, output: Any) -> tuple[str, str]:
        """What a failed result says, and where it was raised, or ""."""
        cause = int(output["cause"])
        if cause == FailureCause.LOGITS:
            agent, step = f"agent {output['failed_agent']}", f"step {output['failed_step']} (counted from 0)"
            return f"the logits of {agent} were not finite in {step}, which it made idly", ""
        if cause == FailureCause.REPLICA:
            failure = failure_of_replicas(self._engine)
            return ("its replica failed" if failure is None else describe(failure)), ""
        return (_KNOWN[cause], "") if cause in _KNOWN else self._texts.get(cause, ("its policy raised", ""))


def have_failed(outputs: Any) -> Any:
    """Which of an array of the library's outputs are results of episodes that failed, and were not just left unplayed
    when their engine was closed. Steps have another reason."""
    return (outputs["reason"] == EpisodeReason.FAILED) & (outputs["cause"] != FailureCause.CLOSED)


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


def failure_of_replicas(engine: EngineHandle) -> DoorstepError | None:
    """Of the first replica that has failed and is not restarted."""
    numbers = range(engine.info().num_replicas)
    failures = (engine.failure_of(number) for number in numbers if engine.replica(number).has_ended)
    return next(filter(None, failures), None)


@final
class ReplicaLog:
    """Logs failures of replicas. most: times that one is made again."""

    def __init__(self, engine: EngineHandle, most: int) -> None:
        self._engine, self._most = engine, most
        self._told: dict[int, int] = {}  # failures, by replica

    def write(self) -> None:
        """A line for each replica that has failed since the last call."""
        for number in range(self._engine.info().num_replicas):
            replica = self._engine.replica(number)
            has_failed_for_good = replica.has_ended and replica.restarts == self._most
            failures = replica.restarts + has_failed_for_good
            if failures > self._told.get(number, 0) and (error := self._engine.failure_of(number)) is not None:
                self._told[number] = failures
                what = "it has ended" if has_failed_for_good else f"restart {replica.restarts} of {self._most}"
                _log.warning("replica %d has failed, %s: %s", number, what, describe(error))


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
