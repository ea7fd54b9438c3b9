"""doorstep's PPO beside that of other libraries: what agents learn in the same CPU time, and how fast they step.

    python -m tests.benchmarks.trainers [--seeds 1] [--cpu-seconds 300] [--episodes 2048] [--rounds 3]
                                        [--worlds 64 256 1024]

All train in the levels of the default preset, with its rewards and its hyperparameters, as far as they have them, in
the same network (CleanRL's script has its own). Every run is a process with one thread; trainers take turns, because
machines are shared and noisy: of speeds read the ratios. These do not count what comes before the end of the first
update. The last line has the figures alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tests.benchmarks.trainers.meter import Point
from tests.benchmarks.trainers.run import Order
from tests.benchmarks.trainers.task import make_config

NAMES = {
    "doorstep": "doorstep",
    "stable_baselines3": "Stable-Baselines3",
    "skrl": "skrl",
    "torchrl": "TorchRL",
    "cleanrl": "CleanRL",
}
DOORS = ("first door", "second", "third")
SPEED_STEPS, LEAST_UPDATES = 100_000, 6  # of runs that measure speed alone


def run(trainer: str, order: Order) -> tuple[list[Point], list[dict[str, Any]]]:
    """A run in a process of its own: its points, and its scores at the three doors."""
    command = [sys.executable, "-m", "tests.benchmarks.trainers.run", trainer, json.dumps(order)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith('{"points"'))  # among what trainers print
    result = json.loads(line)
    return [Point(*point) for point in result["points"]], result["rooms"]


# ---- Success


def success_head() -> str:
    columns = ("trainer", "seed", *DOORS, "CPU time", "world-steps", "per CPU-second")
    return f"both agents / at least one:\n\n| {' | '.join(columns)} |\n{'|---' * len(columns)}|"


def success_row(trainer: str, seed: int, last: Point, rooms: Sequence[Mapping[str, Any]]) -> str:
    shares = (f"{share(**room['all'])} / {share(**room['one'])}" for room in rooms)
    steps = f"{last.world_steps / 1e6:.1f} million | {last.world_steps / last.cpu_seconds:,.0f}"
    return f"| {NAMES[trainer]} | {seed} | {' | '.join(shares)} | {last.cpu_seconds:.0f} s | {steps} |"


def share(value: float, low: float, high: float) -> str:
    """With its interval, unless that is rounded to it."""
    shown = f"{value:.0%}"
    return shown if f"{low:.0%}" == f"{high:.0%}" else f"{shown} ({low:.0%} to {high:.0%})"


# ---- Speed


def speeds(points: Sequence[Point]) -> tuple[float, float]:
    """World-steps per CPU-second and per second, from the first update to the last."""
    first, last = points[0], points[-1]
    steps = last.world_steps - first.world_steps
    return steps / (last.cpu_seconds - first.cpu_seconds), steps / (last.seconds - first.seconds)


def median_speeds(measured: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(by_cpu for by_cpu, _ in measured), statistics.median(by_clock for _, by_clock in measured)


def speed_order(worlds: int, seed: int) -> Order:
    """One update more than are measured: most trainers are seen only before a step."""
    updates = max(LEAST_UPDATES, SPEED_STEPS // make_config(worlds, seed).steps_per_update) + 1
    return Order(worlds=worlds, updates=updates, seed=seed, cpu_seconds=float("inf"), episodes=0)


def speed_table(medians: dict[tuple[str, int], tuple[float, float]]) -> str:
    """Medians by trainer and number of worlds."""
    lines = ["| trainer | worlds | world-steps per CPU-second | per second | doorstep's, in units of it |"]
    lines.append("|---|---|---|---|---|")
    for (trainer, worlds), (by_cpu, by_clock) in medians.items():
        ratio = medians["doorstep", worlds][0] / by_cpu
        lines.append(f"| {NAMES[trainer]} | {worlds} | {by_cpu:,.0f} | {by_clock:,.0f} | {ratio:.2f} |")
    return "\n".join(lines)


def last_line(medians: dict[tuple[str, int], tuple[float, float]], worlds: int) -> str:
    figures = (f"{name} {medians[key, worlds][0]:,.0f} ({medians[key, worlds][1]:,.0f})" for key, name in NAMES.items())
    return f"world-steps per CPU-second (per second) of {worlds} worlds, end to end: {'; '.join(figures)}"


# ---- Report


def report_success(seeds: int, cpu_seconds: float, episodes: int) -> None:
    print(success_head())
    for seed in range(seeds):
        for trainer in NAMES:
            order = Order(worlds=None, updates=None, seed=seed, cpu_seconds=cpu_seconds, episodes=episodes)
            points, rooms = run(trainer, order)
            print(success_row(trainer, seed, points[-1], rooms), flush=True)
    print()


def report_speed(rounds: int, numbers_of_worlds: Sequence[int]) -> None:
    measured: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for seed in range(rounds):
        for worlds in numbers_of_worlds:
            for trainer in NAMES:
                points, _ = run(trainer, speed_order(worlds, seed))
                measured.setdefault((trainer, worlds), []).append(speeds(points))
    medians = {key: median_speeds(figures) for key, figures in measured.items()}
    print(speed_table(medians) + "\n")
    print(last_line(medians, numbers_of_worlds[len(numbers_of_worlds) // 2]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="with which each trainer trains; 0: speed alone")
    parser.add_argument("--cpu-seconds", type=float, default=300, help="of training with one seed")
    parser.add_argument("--episodes", type=int, default=2048, help="that agents then play in levels new to them")
    parser.add_argument("--rounds", type=int, default=3, help="in which speed is measured; 0: success alone")
    parser.add_argument("--worlds", type=int, nargs="+", default=[64, 256, 1024], help="in runs that measure speed")
    options = parser.parse_args()
    if options.seeds:
        report_success(options.seeds, options.cpu_seconds, options.episodes)
    if options.rounds:
        report_speed(options.rounds, options.worlds)


if __name__ == "__main__":
    main()
