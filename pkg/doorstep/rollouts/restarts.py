"""Log lines about replicas of an engine that have failed and were restarted."""

from __future__ import annotations

import logging
import threading
from typing import final

from doorstep._native.rollouts import EngineHandle
from doorstep.errors import DoorstepError
from doorstep.rollouts.failures import describe

_log = logging.getLogger("doorstep.rollouts")


@final
class RestartLog:
    """Any thread may use it.

    Args:
        most: restarts that a replica may have.
    """

    def __init__(self, engine: EngineHandle, most: int) -> None:
        self._engine, self._most = engine, most
        self._lock = threading.Lock()
        self._told: dict[int, int] = {}  # restarts, by replica
        self._num_told = 0

    def write(self) -> None:
        """A line for each replica that has been restarted since the last call."""
        if self._engine.info().restarts == self._num_told or not self._lock.acquire(blocking=False):
            return
        try:
            for number in range(self._engine.info().num_replicas):
                restarts = self._engine.replica(number).restarts
                if restarts > self._told.get(number, 0):
                    self._told[number] = restarts
                    _log.warning("replica %d has failed: restart %d of %d: %s", number, restarts, self._most,
                                 self._failure_of(number))  # fmt: skip
            self._num_told = sum(self._told.values())
        finally:
            self._lock.release()

    def _failure_of(self, number: int) -> str:
        try:
            self._engine.check_replica(number)
        except DoorstepError as error:
            return describe(error)
        return ""
