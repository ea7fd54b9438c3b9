"""Which threads read the outputs of an engine, and which call code of its users: in these a wait may never end."""

from __future__ import annotations

import threading
from typing import Literal, final

from doorstep._native.rollouts import EngineHandle
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


CALLS, PROMISES = 0, 1  # readers, as the library knows them


@final
class Readers:
    """Knows the threads whose calls have read outputs, and refuses waits that would never end: for what a replica will
    do that waits until the current thread reads."""

    def __init__(self, engine: EngineHandle, threads: OwnThreads) -> None:
        self._engine, self._own = engine, threads
        self._threads: dict[int, threading.Thread] = {}

    def enter(self) -> None:
        """The current thread reads."""
        here = threading.get_ident()
        if here not in self._threads or not self._threads[here].is_alive():
            self._threads[here] = threading.current_thread()

    def check_wait(self) -> None:
        """Raises StateError where outputs have no room, and no other thread reads them."""
        full = self._engine.info().full_readers
        if full >> CALLS & 1 and not self._others_read():
            raise StateError(
                "this call would wait for ever: unread outputs leave no room for others, and no other thread reads",
                hint="iterate over the engine, or call get_outputs(), and then go on; or read in another thread while"
                " requests are submitted; or use futures; or raise output_capacity and output_bytes",
            )
        if full >> PROMISES & 1 and self._own.calls == "a callback of a future":
            raise StateError(
                "this callback would wait for ever: results of futures find no room until it returns",
                hint="wait in another thread, or raise output_capacity and output_bytes",
            )

    def _others_read(self) -> bool:
        here = threading.get_ident()
        readers = list(self._threads.items())
        return any(thread.is_alive() for ident, thread in readers if ident != here)
