"""Runs one target on changed inputs. What it accepts or refuses in a new way joins the inputs that are changed further.

The invariant: an input is accepted, and what was made of it can be used, or it is refused with a typed error. Nothing
else is raised, nothing crashes, hangs or leaks, and no input takes much memory.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import mmap
import random
import re
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.leaks import living, resident_bytes, threads_and_files

import doorstep

CORPUS = Path(__file__).parent / "corpus"
LONGEST_RUN = 20  # seconds for one input; then all stacks are printed and the process ends
MOST_MEMORY = 1 << 30  # bytes by which resident memory may grow at once
MOST_GROWTH = 64 << 20  # bytes that may stay after all inputs of a target
MOST_INPUTS = 2000  # that are kept to be changed further
PATIENCE = 10.0  # seconds in which what ends must have ended
CHECK_EVERY = 256  # runs between two looks for what is left alive; a target that holds a connection closes it there


class Target(Protocol):
    """What reads inputs. It may hold what lasts for many of them, such as a server, until it is closed."""

    def inputs(self) -> Sequence[bytes]:
        """Right ones to begin with."""

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        """Another input that gets past the first checks now and then, such as those of checksums."""

    def run(self, data: bytes) -> str:
        """Reads an input and uses what it is; what happened, in a few words. Raises DoorstepError if it is refused."""

    def close(self) -> None:
        """Ends what it holds."""


class Report(NamedTuple):
    """Of a target: how many inputs ran, how long, how many were accepted, and in how many ways others were refused."""

    runs: int
    seconds: float
    accepted: int
    ways: int

    def __str__(self) -> str:
        rate = self.runs / max(self.seconds, 1e-9)
        share = 100 * self.accepted / max(self.runs, 1)
        return (
            f"{self.runs} runs in {self.seconds:.0f} s ({rate:.0f}/s), {share:.0f}% accepted, "
            f"{self.ways} different outcomes"
        )


class FoundError(Exception):
    """An input broke the invariant."""


def corpus(name: str) -> list[bytes]:
    """The committed inputs of a target, in order."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def fuzz(target: Target, *, seconds: float, seed: int, most_runs: int = 10_000_000, last: Path) -> Report:
    """Runs a target on its inputs, then on changed ones, until the time is over, and closes it. The same seed gives the
    same inputs.

    Args:
        last: a file for the input that is running, which remains there if the process dies.

    Raises:
        FoundError: an input broke the invariant; the file has it.
    """
    begin, runs, accepted = time.monotonic(), 0, 0
    outcomes: Counter[str] = Counter()
    pool = list(target.inputs())
    first = len(pool)
    with contextlib.closing(target), _kept_input(last) as keep:
        watch = _Watch()
        while runs < most_runs and (runs < first or time.monotonic() - begin < seconds):
            chance = random.Random(f"{seed} {runs}")
            data = pool[runs] if runs < first else target.change(_chosen(pool, first, chance), chance, pool)
            keep(data)
            faulthandler.dump_traceback_later(LONGEST_RUN, exit=True)
            outcome, was_accepted = run_once(target, data)
            faulthandler.cancel_dump_traceback_later()
            runs, accepted = runs + 1, accepted + was_accepted
            outcomes[outcome] += 1
            if outcomes[outcome] == 1 and runs > first and len(pool) < MOST_INPUTS:
                pool.append(data)
            watch.look(runs)
    watch.end(sum(len(data) for data in pool[first:]))
    return Report(runs, time.monotonic() - begin, accepted, len(outcomes))


def run_once(target: Target, data: bytes) -> tuple[str, bool]:
    """The outcome of an input without its numbers and names, and whether it was accepted.

    Raises:
        FoundError: it broke the invariant.
    """
    before = _peak_bytes()
    try:
        outcome, was_accepted = target.run(data), True
    except doorstep.DoorstepError as error:
        outcome, was_accepted = f"{type(error).__name__}: {_without_values(str(error))}", False
        if type(error) is doorstep.DoorstepError:
            raise FoundError(f"an internal error: {error}") from error
    except Exception as error:
        raise FoundError(f"{type(error).__name__} instead of a typed error: {error}") from error
    if _peak_bytes() - before > MOST_MEMORY:
        raise FoundError(f"it took {(_peak_bytes() - before) >> 20} MiB of memory")
    return outcome, was_accepted


def _chosen(pool: Sequence[bytes], first: int, chance: random.Random) -> bytes:
    """One of the first half of the time: those found later are refused, most of them."""
    return chance.choice(pool[:first] if chance.random() < 0.5 else pool)


def _without_values(message: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"]*\"|[-+]?\d[\w.+-]*|\[.*?\]", "_", message)[:120]


# ---- What must not remain


@contextlib.contextmanager
def _kept_input(path: Path) -> Iterator[Any]:
    """A function that writes an input to a file, cheaply: through memory that outlives the process."""
    size = 1 << 20
    path.write_bytes(bytes(size))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size) as memory:
        length = 0

        def keep(data: bytes) -> None:
            nonlocal length
            length = min(len(data), size - 8)
            memory[:8] = length.to_bytes(8, "little")
            memory[8 : 8 + length] = data[:length]

        yield keep


def kept_input(path: Path) -> bytes:
    """The input that ran last."""
    data = path.read_bytes()
    return data[8 : 8 + int.from_bytes(data[:8], "little")]


class _Watch:
    """Looks from time to time whether objects, threads or files live on that did not at first, or memory grows."""

    def __init__(self) -> None:
        gc.collect()
        self._before, self._resident = living(), 0

    def look(self, runs: int) -> None:
        if runs % CHECK_EVERY == 0:
            self._compare()

    def _compare(self) -> None:
        gc.collect()
        deadline = time.monotonic() + PATIENCE
        while self._more() and time.monotonic() < deadline:  # servers may be closing connections
            time.sleep(0.05)
            gc.collect()
        if self._resident == 0:  # the first inputs import modules and fill caches
            self._before |= threads_and_files()
            self._resident = resident_bytes()
        if more := self._more():
            raise FoundError(f"these live on: {dict(more)}")

    def _more(self) -> Counter[str]:
        return living() - self._before

    def end(self, kept: int) -> None:
        """kept: bytes of inputs that the runner keeps, which are no growth of what reads them."""
        self._compare()
        grown = resident_bytes() - self._resident - kept
        if grown > MOST_GROWTH:
            raise FoundError(f"resident memory has grown by {grown >> 20} MiB")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
