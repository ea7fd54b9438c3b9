"""What cameras cost on the CPU, as Markdown tables.

    python -m tests.benchmarks.render [--rounds 7] [--worlds 1024] [--size 64]

One thread, colours and depth, two views a world. The sides take turns, times are CPU seconds, every figure is a median
over the rounds: machines are shared and noisy, so read the ratios. The plain loop is plain_embree.cpp, which
`make test-native` builds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from tests.benchmarks.render.plain_embree import LIBRARY, PlainEmbree

import doorstep

WARM_UP = 60  # steps, after which agents are all over the first room


class Side:
    """A simulator that steps with the same random actions as the others'."""

    def __init__(self, worlds: int, cameras: doorstep.Cameras | None) -> None:
        self.sim = doorstep.Simulator(worlds, seed=5, num_threads=1, cameras=cameras, observations="by_name")
        self._random = np.random.default_rng(1)
        for _ in range(WARM_UP):
            self.step()

    def step(self) -> float:
        """The CPU seconds of a step."""
        shape = (self.sim.num_worlds, self.sim.num_agents, 4)
        self.sim.actions[:] = self._random.integers(0, doorstep.ACTIONS, shape)
        return cpu_seconds(self.sim.step)


def cpu_seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure(worlds: int, size: int, rounds: int) -> dict[str, float]:
    """Median CPU seconds: of a step without cameras and with each renderer, and of the plain loop over all views."""
    alone = Side(worlds, None)
    sides = {
        "raycast": Side(worlds, doorstep.Cameras(width=size, height=size, renderer="raycast")),
        "embree": Side(worlds, doorstep.Cameras(width=size, height=size, renderer="embree")),
    }
    plain = PlainEmbree(alone.sim, width=size, height=size) if LIBRARY.exists() else None
    taken: dict[str, list[float]] = {}
    for _ in range(rounds):
        taken.setdefault("none", []).append(alone.step())
        for name, side in sides.items():
            taken.setdefault(name, []).append(side.step())
        if plain:
            plain.read()
            taken.setdefault("plain", []).append(cpu_seconds(plain.draw))
    for side in (alone, *sides.values()):
        side.sim.close()
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def row(name: str, views: int, size: int, seconds: float, slowest: float) -> str:
    speed, rays = views / seconds, views * size * size / seconds / 1e6
    return f"| {name} | {speed:,.0f} | {rays:,.1f} M | {slowest / seconds:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--size", type=int, default=64)
    options = parser.parse_args()
    taken = measure(options.worlds, options.size, options.rounds)
    views = 2 * options.worlds
    without = taken["none"]
    drawing = {name: taken[name] - without for name in ("raycast", "embree")}
    slowest = taken.get("plain", drawing["embree"])
    print(f"{options.worlds:,} worlds, 2 views of {options.size} x {options.size} each, colours and depth\n")
    print("| renderer | views per CPU-second | rays per CPU-second | times the slowest |\n|---|---|---|---|")
    print(row("`raycast`", views, options.size, drawing["raycast"], slowest))
    print(row("`embree`", views, options.size, drawing["embree"], slowest))
    if "plain" in taken:
        print(row("a plain loop over Embree", views, options.size, taken["plain"], slowest))
    print("\n| a step | ms of CPU time |\n|---|---|")
    for name, title in (("none", "without cameras"), ("raycast", "with `raycast`"), ("embree", "with `embree`")):
        print(f"| {title} | {1e3 * taken[name]:.2f} |")


if __name__ == "__main__":
    main()
