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
import sys
import time

from tests.leaks import Process, resident_bytes
from tests.soak_rollouts.ledger import References
from tests.soak_rollouts.rounds import SCHEDULERS, Round

REQUESTS_PER_MINUTE = 12 * 86_400 / 20
MOST_PRINTED = 20
LONGEST_ROUND = 120  # seconds; then it hangs: all stacks are printed, and the process ends
MOST_GROWTH = 32 << 20  # bytes of resident memory, by a line through the last two thirds of the rounds


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
    _twins = [config.native_handle for config in SCHEDULERS]  # these live on
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
        leaks, end = process.leaks(), time.monotonic() + 20
        while leaks and time.monotonic() < end:  # an engine that nobody refers to ends by itself
            time.sleep(0.05)
            leaks = process.leaks()
        found += leaks
        for trouble in found:
            troubles += 1
            if troubles <= MOST_PRINTED:
                print(f"{described}: {trouble}", flush=True)
        number += 1
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"{told - begin:6.0f} s  {requests} requests  {resident_bytes() >> 20} MiB", flush=True)
    faulthandler.cancel_dump_traceback_later()
    assert process is not None
    seconds, growth = time.monotonic() - begin, process.growth()
    print(f"{requests} requests in {seconds:.0f} s, {number - options.first_round} engines: {dict(reasons)}")
    print(f"{references.compared} hashes compared, of {len(references)} episodes")
    print(f"resident memory: {resident_bytes() >> 20} MiB, growth {growth / 2**20:+.1f} MiB; troubles: {troubles}")
    if growth > MOST_GROWTH:
        print("resident memory grows")
        troubles += 1
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
