"""Native objects that live in this process."""

from __future__ import annotations

import doorstep


def alive() -> dict[str, int]:
    """How many of each kind live. Configs are left out: those that are constants of a module keep their twins, and
    tests/pkg/configs counts them where there are none."""
    return {kind: count for kind, count in doorstep.live_counts().items() if count and kind != "config"}
