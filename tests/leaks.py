"""Native objects, threads, open files and memory that a soak test leaves behind."""

from __future__ import annotations

import gc
import os
import threading
import time

import numpy as np

import doorstep


class Process:
    """What must come back to what it was after each round, and what must not grow.

    Make it after the first round, which imports modules and fills caches.
    """

    def __init__(self) -> None:
        self._live, self._threads, self._files = self._counts()
        self.resident: list[tuple[float, int]] = []  # seconds, bytes

    @staticmethod
    def _counts() -> tuple[dict[str, int], int, int]:
        return doorstep.live_counts(), threading.active_count(), len(os.listdir("/proc/self/fd"))

    def leaks(self) -> list[str]:
        gc.collect()
        gc.collect()  # objects that finalisers of the first have released
        self.resident.append((time.monotonic(), resident_bytes()))
        live, threads, files = self._counts()
        found = [f"{live[kind] - count} {kind} live on" for kind, count in self._live.items() if live[kind] > count]
        if threads > self._threads:
            found.append(f"threads live on: {[thread.name for thread in threading.enumerate()]}")
        if files > self._files:
            found.append(f"{files - self._files} files are still open")
        return found

    def growth(self) -> float:
        """Bytes, over the last two thirds of the rounds."""
        seconds, resident = np.array(self.resident[len(self.resident) // 3 :], float).T
        if len(seconds) < 3:
            return 0.0
        slope = np.polyfit(seconds - seconds[0], resident, 1)[0]
        return float(slope * (seconds[-1] - seconds[0]))


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
