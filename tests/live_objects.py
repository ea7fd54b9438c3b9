"""Native objects that live in this process."""

import gc
import time

import doorstep

PATIENCE = 20  # seconds, after which something hangs


def alive():
    """How many of each kind live. Configs are left out: those that are constants of a module keep their twins, and
    tests/pkg/configs counts them where there are none."""
    return {kind: count for kind, count in doorstep.live_counts().items() if count and kind != "config"}


def more_than(before):
    """The kinds of which more live than `live_counts()` told before."""
    return {kind: count for kind, count in alive().items() if count > before[kind]}


def soon_more_than(before):
    """The same once threads have ended that nobody waits for."""
    end = time.monotonic() + PATIENCE
    while more_than(before) and time.monotonic() < end:
        gc.collect()  # tracebacks are cycles
        time.sleep(0.001)
    return more_than(before)
