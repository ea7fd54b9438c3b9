"""What a second process is worth in `doorstep train`, on the processors of this machine.

    python tests/benchmarks/scaling.py [--processes 2] [--worlds 1024] [--updates 20] [--rounds 3] [KEY=VALUE...]

One thread for each process. Strong: as many worlds in all, divided among the processes. Weak: as many for each.
Apart: as weak, but as runs that know nothing of each other, which shows what the machine itself takes from processes
that run beside each other. All kinds of runs take turns.

Efficiency: the speed of P processes, over P times that of one; in CPU time, which other programs disturb less, the CPU
time of a world-step in one process over that in several. Both as medians. The last line has the figures alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any, NamedTuple

import torch

from doorstep.training import Ranks, Trainer, preset

WARM_UPDATES = 2


class Speed(NamedTuple):
    """World-steps per second of the clock, and per second of all processes' CPU time."""

    by_clock: float
    by_cpu: float


# ---- Measured processes


def measure(num_worlds: int, updates: int, changes: list[str], ranks: Ranks) -> Speed:
    """Together: the speed of a run with so many worlds in all."""
    config = preset("default").changed(
        f"simulator.num_worlds={num_worlds}", "simulator.num_threads=1", "num_threads=1", *changes
    )
    trainer = Trainer(config, ranks)
    for _ in range(WARM_UPDATES):
        trainer.update()
    walls, cpus = [], []
    for _ in range(updates):
        wall, cpu = time.perf_counter(), time.process_time()
        trainer.update()
        taken = torch.tensor(time.process_time() - cpu, dtype=torch.float64)
        walls.append(time.perf_counter() - wall)
        ranks.sum(taken)
        cpus.append(taken.item())
    steps = config.steps_per_update
    return Speed(steps / statistics.median(walls), steps / statistics.median(cpus))


def measured_by(processes: int, num_worlds: int, apart: bool, options: argparse.Namespace) -> Speed:
    """The same in new processes; apart: of each of them, as runs of their own."""
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    own = [__file__, "--measure", f"--worlds={num_worlds}", f"--updates={options.updates}", *options.changes]
    own += ["--apart"] if apart else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *launch, *own]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return Speed(*json.loads(done.stdout.splitlines()[-1]))


# ---- Report


def median(speeds: list[Speed]) -> Speed:
    return Speed(*(statistics.median(column) for column in zip(*speeds, strict=True)))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("changes", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        speed = measure(options.worlds, options.updates, options.changes, Ranks() if options.apart else Ranks.join())
        if os.environ["RANK"] == "0":
            print(json.dumps(speed))
        return 0

    several, worlds = options.processes, options.worlds
    runs: dict[str, tuple[int, int, bool]] = {
        "one process": (1, worlds, False),
        "strong": (several, worlds, False),
        "weak": (several, several * worlds, False),
        "apart": (several, worlds, True),
    }
    found: dict[str, list[Speed]] = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, (processes, num_worlds, apart) in runs.items():
            speed = measured_by(processes, num_worlds, apart, options)
            found[name].append(Speed(processes * speed.by_clock, speed.by_cpu) if apart else speed)
    medians: dict[str, Any] = {name: median(speeds) for name, speeds in found.items()}
    alone = medians.pop("one process")
    print(f"one process, {worlds:,} worlds: {alone.by_clock:,.0f} world-steps/s, {alone.by_cpu:,.0f} per CPU-second")
    figures = []
    for name, speed in medians.items():
        efficiency, by_cpu = speed.by_clock / several / alone.by_clock, speed.by_cpu / alone.by_cpu
        print(
            f"{several} processes, {name}: {speed.by_clock:,.0f} world-steps/s, "
            f"{speed.by_cpu:,.0f} per CPU-second"
        )
        figures.append(f"{name} {efficiency:.2f} by the clock, {by_cpu:.2f} by CPU time")
    print("; ".join(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
