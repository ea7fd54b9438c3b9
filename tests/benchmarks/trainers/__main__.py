"""doorstep's PPO beside that of other libraries: what agents learn from the same number of steps, and how fast.

    python -m tests.benchmarks.trainers [--seeds 5] [--world-steps 2e6] [--rounds 3] [--worlds 64 256 1024]

All train the default preset's agents with its hyperparameters, as far as they have them, in the same network (CleanRL's
script has its own). Every run is a process with one thread; trainers take turns, because machines are shared and noisy:
read the ratios. What comes before the end of the first update is not counted. The last line has the figures alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence

from tests.benchmarks.trainers.meter import Point, make_config

NAMES = {
    "doorstep": "doorstep",
    "stable_baselines3": "Stable-Baselines3",
    "skrl": "skrl",
    "torchrl": "TorchRL",
    "cleanrl": "CleanRL",
}
LEARNERS = ("doorstep", "stable_baselines3", "skrl")
LEARNING_WORLDS = 256
LAST = 0.1  # share of a run whose returns are called final
SPEED_STEPS, LEAST_UPDATES = 100_000, 6  # of runs that measure speed alone
# Student's t for a confidence of 95%, by degrees of freedom, beginning with 1.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def points_of(trainer: str, worlds: int, world_steps: int, seed: int) -> list[Point]:
    """A run in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.trainers.run", trainer, *map(str, (worlds, world_steps, seed))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("[["))  # among what trainers print
    return [Point(*point) for point in json.loads(line)]


# ---- Learning


def final_return(points: Sequence[Point]) -> float:
    """Mean over the last part of a run."""
    first = (1 - LAST) * points[-1].world_steps
    return statistics.fmean(point.mean_return for point in points if point.world_steps > first)


def mean_return(points: Sequence[Point]) -> float:
    """Mean over the whole run: how soon something was learned."""
    return statistics.fmean(point.mean_return for point in points)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and how far the confidence interval of the mean reaches to both sides."""
    if len(values) < 2:
        return values[0], float("inf")
    half = STUDENT[len(values) - 2] * statistics.stdev(values) / len(values) ** 0.5
    return statistics.fmean(values), half


def learning_table(runs: dict[str, list[list[Point]]]) -> str:
    lines = ["| trainer | return at the end | mean return of the run |", "|---|---|---|"]
    for trainer, by_seed in runs.items():
        figures = (interval([measure(points) for points in by_seed]) for measure in (final_return, mean_return))
        cells = (f"{mean:+.2f} ± {half:.2f}" for mean, half in figures)
        lines.append(f"| {NAMES[trainer]} | {' | '.join(cells)} |")
    return "\n".join(lines)


# ---- Speed


def speeds(points: Sequence[Point]) -> tuple[float, float]:
    """World-steps per CPU-second and per second, from the first update to the last."""
    first, last = points[0], points[-1]
    steps = last.world_steps - first.world_steps
    return steps / (last.cpu_seconds - first.cpu_seconds), steps / (last.seconds - first.seconds)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, choices=range(len(STUDENT) + 2), default=5, help="0: speed alone")
    parser.add_argument("--world-steps", type=float, default=2e6, help="of each run that learns")
    parser.add_argument("--rounds", type=int, default=3, help="in which speed is measured")
    parser.add_argument("--worlds", type=int, nargs="+", default=[64, 256, 1024], help="in runs that measure speed")
    options = parser.parse_args()

    if options.seeds:
        runs: dict[str, list[list[Point]]] = {trainer: [] for trainer in LEARNERS}
        for seed in range(options.seeds):
            for trainer in LEARNERS:
                runs[trainer].append(points_of(trainer, LEARNING_WORLDS, int(options.world_steps), seed))
        print(f"{options.world_steps:,.0f} steps of {LEARNING_WORLDS} worlds, {options.seeds} seeds; 95% intervals\n")
        print(learning_table(runs) + "\n", flush=True)

    measured: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for seed in range(options.rounds):
        for worlds in options.worlds:
            steps = max(SPEED_STEPS, LEAST_UPDATES * make_config(worlds, 1, seed).steps_per_update)
            for trainer in NAMES:
                measured.setdefault((trainer, worlds), []).append(speeds(points_of(trainer, worlds, steps, seed)))
    medians = {
        key: (statistics.median(by_cpu for by_cpu, _ in rounds), statistics.median(by_clock for _, by_clock in rounds))
        for key, rounds in measured.items()
    }
    print(speed_table(medians) + "\n")
    print(last_line(medians, options.worlds[len(options.worlds) // 2]))


if __name__ == "__main__":
    main()
