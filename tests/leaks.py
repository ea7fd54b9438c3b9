"""Native objects, threads, open files and memory that a soak test leaves behind."""

import gc
import os
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from tests.live_objects import alive


class Process:
    """What must come back to what it was after each round, and what must not grow.

    Make it after the first round, which imports modules and fills caches.
    """

    def __init__(self):
        self._before = living()
        self.resident = []  # seconds, bytes

    def leaks(self):
        gc.collect()
        gc.collect()  # objects that finalisers of the first have released
        self.resident.append((time.monotonic(), resident_bytes()))
        more = living() - self._before
        names = f": {[thread.name for thread in threading.enumerate()]}" if more["threads"] else ""
        return [f"{count} {kind} live on" + names for kind, count in more.items()]

    def growth(self):
        """Bytes, over the last two thirds of the rounds."""
        seconds, resident = np.array(self.resident[len(self.resident) // 3 :], float).T
        if len(seconds) < 3:
            return 0.0
        return float(np.polyfit(seconds - seconds[0], resident, 1)[0] * (seconds[-1] - seconds[0]))


def living():
    """Native objects by kind, threads and open files."""
    return Counter(alive()) + threads_and_files()


def threads_and_files():
    # Threads of asyncio wait for more work.
    threads = sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())
    return Counter({"threads": threads, "open files": len(os.listdir("/proc/self/fd"))})


def open_files(folder):
    """This process's descriptors of files in the folder. Threads of other tests may close theirs at any time, and
    TensorBoard's thread opens its file anew for each of its writes."""
    files = {number: number.resolve() for number in Path("/proc/self/fd").iterdir()}
    return {number for number, file in files.items() if folder in file.parents and "tfevents" not in file.name}


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
