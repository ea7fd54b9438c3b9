"""The figures of docs/explanation/performance.md, as a table: run it with the Python the wheel is installed in.

    python tests/benchmarks/measure.py [--rounds 5] [--steps 1000] [--worlds 256 1024 8192 65536] [--agents 2]

Machines are shared and noisy, so the sides of a comparison take turns and every figure is a median over the rounds.
Speeds are per CPU-second; the ratio of two threads to one is of wall-clock speeds.
"""

import argparse
import functools
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

IMPORT = "import time, numpy; begin = time.perf_counter(); import doorstep; print(time.perf_counter() - begin)"
FIRST_STEP = (
    "import time, doorstep; begin = time.perf_counter();"
    "sim = doorstep.Simulator(4096, num_threads=1, observations='by_name');"
    "sim.step(); print(time.perf_counter() - begin)"
)
LEVELS = (
    "import sys, doorstep; from doorstep.cli import bench, random_actions, rooms_start;"
    "worlds, agents, steps = map(int, sys.argv[1:]);"
    "sim = doorstep.Simulator(worlds, num_agents=agents, num_threads=1, max_levels=1, observations='by_name');"
    "start = rooms_start.RoomsStart(sim, 'normal');"
    "_, seconds, _ = bench.time_steps(sim, random_actions.ActionTable(0), steps, start, profile=False);"
    "print(worlds * steps / seconds)"
)


def bench(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "doorstep", "bench", "--json", *arguments]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def number(code: str, *arguments: int) -> float:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def take_turns(rounds: int, sides: Sequence[Callable[[], float]]) -> list[float]:
    """The median of each side."""
    taken = [[side() for side in sides] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def speed(*arguments: str) -> Callable[[], float]:
    return lambda: bench("--threads", "1", *arguments)["world_steps_per_cpu_second"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--worlds", type=int, nargs="+", default=[256, 1024, 8192, 65536])
    parser.add_argument("--agents", type=int, nargs="+", default=[2])
    options = parser.parse_args()
    begin = time.monotonic()

    print("| agents | worlds | normal start | among cubes | worlds that play any levels |\n|---|---|---|---|---|")
    for agents, worlds in itertools.product(options.agents, options.worlds):
        steps = max(4, options.steps * 1024 // worlds // 4)
        common = ("--agents", str(agents), "--worlds", str(worlds), "--steps", str(steps))
        levels = functools.partial(number, LEVELS, worlds, agents, steps)
        speeds = take_turns(options.rounds, [speed(*common), speed(*common, "--start", "rooms"), levels])
        print(f"| {agents} | {worlds:,} | {' | '.join(f'{each / 1e6:.2f} M' for each in speeds)} |", flush=True)

    def wall(threads: int) -> Callable[[], float]:
        arguments = ("--threads", str(threads), "--steps", str(options.steps))
        return lambda: bench(*arguments)["world_steps_per_second"]

    one, two = take_turns(options.rounds, [wall(1), wall(2)])
    print("\n| figure | value |\n|---|---|")
    print(f"| two threads against one, 1,024 worlds | {two / one:.2f} |")
    print(f"| bytes per world, 1,024 worlds | {bench('--steps', '1')['bytes_per_world']:,.0f} |")
    (imported, stepped) = take_turns(2 * options.rounds, [lambda: number(IMPORT), lambda: number(FIRST_STEP)])
    print(f"| import beyond numpy | {imported * 1e3:.1f} ms |")
    print(f"| 4,096 worlds, from the call to the end of the first step | {stepped * 1e3:.1f} ms |")
    print(f"\nmeasured in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
