"""A soak test of the rollout engine: a day's requests with faults, and nothing may be lost, doubled, leaked or hang.

Run from the root of the project: python -m tests.soak_rollouts --minutes 20

One engine after the other, each with another configuration, is used by threads that submit, cancel, take, await and
break things (see users.py and players.py), and ended in one of five ways. 20 minutes must see at least 1,036,800
requests, those of a day at 12 a second. Exits with 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import gc
import os
import sys
import threading
import time

import numpy as np
from tests.soak_rollouts.ledger import References
from tests.soak_rollouts.rounds import CONTROLLERS, SCHEDULERS, Round

import doorstep

REQUESTS_PER_MINUTE = 12 * 86_400 / 20
MOST_PRINTED = 20
LONGEST_ROUND = 120  # seconds; then it hangs: all stacks are printed, and the process ends
MOST_GROWTH = 32 << 20  # bytes of resident memory, by a line through the last two thirds of the rounds


class Process:
    """What must come back to what it was after each round, and what must not grow."""

    def __init__(self) -> None:
        self._twins = [config.native_handle for config in (*SCHEDULERS, *CONTROLLERS)]  # these live on
        self._live, self._threads, self._files = self._counts()
        self.resident: list[tuple[float, int]] = []  # seconds, bytes

    @staticmethod
    def _counts() -> tuple[dict[str, int], int, int]:
        return doorstep.live_counts(), threading.active_count(), len(os.listdir("/proc/self/fd"))

    def leaks(self) -> list[str]:
        gc.collect()
        gc.collect()  # what finalisers of the first have let go
        self.resident.append((time.monotonic(), _resident_bytes()))
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


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--first-round", type=int, default=0, help="begin with this one")
    parser.add_argument("--rounds", type=int, default=0, help="at least")
    parser.add_argument("--requests-per-minute", type=float, default=REQUESTS_PER_MINUTE, help="at least")
    parser.add_argument("--round-seconds", type=float, default=2.0, help="that an engine is used for, at most")
    parser.add_argument("--no-forks", action="store_true", help="for sanitizers that cannot fork with threads")
    options = parser.parse_args()
    wanted = options.requests_per_minute * options.minutes
    references, begin, number, requests, troubles = References(), time.monotonic(), options.first_round, 0, 0
    reasons: collections.Counter[str] = collections.Counter()
    process: Process | None = None
    told = begin
    while (
        time.monotonic() - begin < 60 * options.minutes
        or requests < wanted
        or number - options.first_round < options.rounds
    ):
        faulthandler.dump_traceback_later(LONGEST_ROUND, exit=True)
        one = Round(number, references, most_seconds=options.round_seconds, forks=not options.no_forks)
        found = one.run()
        requests, reasons = requests + len(one.ledger), reasons + one.ledger.reasons
        described = f"round {number}, {one}"
        del one
        if process is None:
            gc.collect()
            process = Process()  # after the first round, which imports and caches
        found += process.leaks()
        for trouble in found:
            troubles += 1
            if troubles <= MOST_PRINTED:
                print(f"{described}: {trouble}", flush=True)
        number += 1
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"{told - begin:6.0f} s  {requests} requests  {_resident_bytes() >> 20} MiB", flush=True)
    faulthandler.cancel_dump_traceback_later()
    assert process is not None
    seconds, growth = time.monotonic() - begin, process.growth()
    print(f"{requests} requests in {seconds:.0f} s, {number - options.first_round} engines: {dict(reasons)}")
    print(f"{references.compared} hashes compared, of {len(references)} episodes")
    print(f"resident memory: {_resident_bytes() >> 20} MiB, growth {growth / 2**20:+.1f} MiB; troubles: {troubles}")
    if growth > MOST_GROWTH:
        print("resident memory grows")
        troubles += 1
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
