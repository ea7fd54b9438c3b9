"""The threads of an engine that call code of its users, where a wait for the engine would never end."""

from __future__ import annotations

import threading
from typing import Literal, final

from doorstep.errors import StateError


@final
class OwnThreads:
    """Knows what the current thread calls, if it is one of the engine's. Refers to no part of the engine."""

    def __init__(self) -> None:
        self._here = threading.local()

    def enter(self, calls: Literal["a policy", "a callback of a future"]) -> None:
        """The current thread is one of the engine's until its end."""
        self._here.calls = calls

    @property
    def calls(self) -> str:
        """What the current thread calls; "" in threads of others."""
        return getattr(self._here, "calls", "")

    def check_wait(self, timeout: float | None) -> None:
        """Raises StateError where a wait, unless its timeout is 0, is one of the engine for itself."""
        if self.calls and timeout != 0:
            raise waits_for_itself(self.calls)


def waits_for_itself(calls: str) -> StateError:
    return StateError(
        f"{calls} would wait for the engine that calls it, for ever",
        hint="wait in another thread, or play these episodes with another engine; timeout=0 does not wait",
    )
