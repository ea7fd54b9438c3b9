"""Why episodes failed: texts by the numbers that go through the library."""

from __future__ import annotations

import threading
from typing import final

from doorstep._native._generated import EpisodeReason, FailureCause

_MOST_TEXTS = 4096  # that are kept: results with older ones say less

_AGENTS = 8  # as ds_failure_cause counts steps

_OF_THE_LIBRARY = {
    int(FailureCause.MEMORY): "no memory was left for what the request records",
    int(FailureCause.SIMULATION): "a step met a value that is not finite, or more contacts than a world can hold",
}


@final
class FailureTexts:
    """Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._texts: dict[int, str] = {}  # in the order of their numbers
        self._next = 1

    def number_of(self, text: str) -> int:
        """The same for equal texts."""
        with self._lock:
            number = self._numbers.get(text)
            if number is None:
                number, self._next = self._next, self._next + 1
                self._numbers[text], self._texts[number] = number, text
                if len(self._texts) > _MOST_TEXTS:
                    del self._numbers[self._texts.pop(next(iter(self._texts)))]
            return number

    def text_of(self, reason: int, cause: int) -> str:
        """What a result with this reason and cause says."""
        if reason != EpisodeReason.FAILED:
            return ""
        if cause <= FailureCause.LOGITS:
            step, agent = divmod(FailureCause.LOGITS - cause, _AGENTS)
            return f"the logits of agent {agent} were not finite in step {step} (counted from 0), which it made idly"
        return _OF_THE_LIBRARY.get(cause) or self._texts.get(cause) or "its policy raised"


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
