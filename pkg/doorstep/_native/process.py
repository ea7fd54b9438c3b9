"""What the library knows about this process and machine."""

from __future__ import annotations

import ctypes

from doorstep._native._generated import LiveKind
from doorstep._native.library import load, open_library
from doorstep._native.status import check


def live_counts() -> dict[str, int]:
    """Number of native objects of each kind alive in this process; all zero when nothing is held any more.

    >>> import doorstep
    >>> sim = doorstep.Simulator(2)
    >>> doorstep.live_counts()["simulator"]
    1
    >>> sim.close()
    >>> doorstep.live_counts()["simulator"]
    0
    """
    return {kind.name.lower(): _live_count(kind) for kind in LiveKind}


def _live_count(kind: LiveKind) -> int:
    count = ctypes.c_int64()
    check(load().ds_live_count(kind, ctypes.byref(count)))
    return count.value


def default_thread_count() -> int:
    """Threads a simulator uses by default here, by affinity and cgroup quota."""
    count = ctypes.c_int64()
    check(load().ds_default_thread_count(ctypes.byref(count)))
    return count.value


def cpu_features() -> dict[str, bool]:
    """CPU features the library needs and whether they are there; works also where load() refuses the CPU."""
    function = open_library().ds_cpu_features
    function.restype = ctypes.c_char_p
    pairs = (entry.partition("=") for entry in function().decode().split(","))
    return {name: value == "1" for name, _, value in pairs}


def stage_names() -> list[str]:
    """The stages of a step, in order."""
    function = load().ds_stage_name
    names: list[str] = []
    while (name := function(len(names))) is not None:
        names.append(name.decode())
    return names
