"""How fast `doorstep train` learns, and what it costs beside the simulator and the network.

    python tests/benchmarks/training.py [--minutes 10] [--seeds 3] [--preset default] [--json FILE] [KEY=VALUE...]

Learning: a run for each seed, for so many minutes, alone on the machine; the shares are of the episodes that ended in
the last tenth of the time so far, both agents past a door. Overhead: CPU time on one thread that is spent neither in
steps of the simulator nor in the network's forward and backward passes, drawing and evaluating actions included, as a
share of whole updates at 2,048 worlds. Collection: CPU time on one thread per world-step of a rollout with actions,
log-probabilities and values, in turns: of training's own loop, which acts with PyTorch or natively, and of an engine
that plays whole episodes with the same network and records them, as results and as tensors of their steps. The last
line has the figures alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import doorstep
from doorstep.rollouts import EpisodeColumns
from doorstep.training import Trainer, TrainingConfig, acting, ppo, preset
from doorstep.training.logs import Record

ROWS = 20  # of a curve
OVERHEAD_WORLDS, OVERHEAD_UPDATES = 2048, 5
COLLECTION_WORLDS, COLLECTION_ROUNDS, LEAST_STEPS = (64, 256, 1024), 7, 50_000
GOALS = ((1, 0.95), (2, 0.50))  # door, counted from 0, and the share of episodes that is to pass it


# ---- Learning


def learn(config: TrainingConfig, seconds: float) -> list[Record]:
    """The records of a run of that length."""
    trainer = Trainer(config)
    records = []
    while trainer.seconds < seconds:
        records.append(trainer.update())
    return records


def curve(records: list[Record], rows: int) -> list[dict[str, Any]]:
    """The run at equal distances in time: returns and shares of the episodes of the last tenth of the time so far."""
    end = records[-1].seconds
    points = []
    for row in range(1, rows + 1):
        until = end * row / rows
        recent = [record for record in records if 0.9 * until < record.seconds <= until and record.rooms_all]
        total = sum(record.episodes for record in recent)
        if not total:
            continue
        last = recent[-1]
        points.append(
            {
                "seconds": until,
                "world_steps": last.world_steps,
                "mean_return": sum(record.episodes * (record.mean_return or 0) for record in recent) / total,
                "rooms_all": [sum(one.episodes * one.rooms_all[door] for one in recent) / total for door in range(3)],
            }
        )
    return points


def first_time(points: list[dict[str, Any]], door: int, share: float) -> float:
    """Seconds until the share was reached; infinity if it was not."""
    return next((point["seconds"] for point in points if point["rooms_all"][door] >= share), float("inf"))


# ---- Overhead


class Stopwatch:
    """Adds up the CPU time of calls, those within others not counted twice."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            self._depth += 1
            begin = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.process_time() - begin

        return run


def measure_overhead(config: TrainingConfig) -> tuple[float, float]:
    """Share of an update outside simulator and network, the median of some; world-steps per CPU-second. The last thing
    that this program does: functions stay wrapped."""
    one_thread = config.changed(
        f"simulator.num_worlds={OVERHEAD_WORLDS}", "simulator.num_threads=1", "num_threads=1",
        f"ppo.num_minibatches={8 * config.ppo.num_minibatches}",
    )  # fmt: skip
    trainer: Any = Trainer(one_thread)
    watch = Stopwatch()
    measured: list[tuple[Any, str]] = [
        (trainer.worlds, "step"),
        (trainer._learner, "evaluate"),
        (trainer._actor, "_evaluate" if trainer._actor.evaluates else "act"),
        (acting, "multi_discrete_sample"),
        (ppo, "multi_discrete_evaluate"),
        (torch.Tensor, "backward"),
    ]
    for owner, name in measured:
        setattr(owner, name, watch.around(getattr(owner, name)))
    trainer.update()  # warm
    shares, taken = [], []
    for _ in range(OVERHEAD_UPDATES):
        watch.seconds, begin = 0.0, time.process_time()
        trainer.update()
        taken.append(time.process_time() - begin)
        shares.append(1 - watch.seconds / taken[-1])
    return statistics.median(shares), one_thread.steps_per_update / statistics.median(taken)


# ---- Collection


def collections(worlds: int) -> dict[str, Callable[[], int]]:
    """Ways of gathering steps; each returns how many."""
    torch.set_num_threads(1)
    config = TrainingConfig().changed(f"simulator.num_worlds={worlds}", "simulator.num_threads=1")

    def own_loop(inference: str) -> Callable[[], int]:
        trainer = Trainer(config.changed(f"experience.inference={inference}"))
        assert trainer._actor.evaluates

        def collect() -> int:
            trainer._collect()
            return config.steps_per_update

        return collect

    def engine(*names: str) -> Callable[[], int]:
        network: Any = Trainer(config).network
        policy = doorstep.load_policy(network.acting_modules())
        playing, seeds = doorstep.RolloutEngine(doorstep.SimulatorConfig(worlds, num_threads=1)), itertools.count()

        def collect() -> int:
            chosen = list(itertools.islice(seeds, worlds))
            record = ("observations", "log_probs", "values")
            results = playing.run(EpisodeColumns(chosen, policy=policy, record=record))
            for name in names:
                torch.from_numpy(np.stack([getattr(result, name) for result in results], 1))
            return int(results.length.sum())

        return collect

    recorded = ("observations", "actions", "rewards", "log_probs", "values")
    return {
        "own, PyTorch": own_loop("torch"), "own, native": own_loop("native"),
        "engine, results": engine(), "engine, tensors": engine(*recorded),
    }  # fmt: skip


def collection_microseconds(worlds: int, rounds: int) -> dict[str, float]:
    """CPU time per world-step, medians."""
    ways = collections(worlds)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for collect in ways.values():
        collect()  # warm
    for _ in range(rounds):
        for name, collect in ways.items():
            begin = time.process_time()
            steps = 0
            while steps < LEAST_STEPS:
                steps += collect()
            taken[name].append(1e6 * (time.process_time() - begin) / steps)
    return {name: statistics.median(times) for name, times in taken.items()}


# ---- Report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("changes", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--json", type=Path, help="also write the curves")
    options = parser.parse_args()
    config = preset(options.preset).changed(*options.changes)

    curves = []
    for seed in range(options.seeds):
        records = learn(config.changed(f"seed={seed}", f"simulator.seed={seed}"), 60 * options.minutes)
        curves.append(curve(records, ROWS))
        speed = records[-1].world_steps / records[-1].seconds
        print(f"\nseed {seed}: {speed:,.0f} world-steps/s\n\n| seconds | world-steps | return | doors 1, 2, 3 |")
        print("|---|---|---|---|")
        for point in curves[-1]:
            shares = ", ".join(f"{share:.0%}" for share in point["rooms_all"])
            print(
                f"| {point['seconds']:,.0f} | {point['world_steps']:,} | {point['mean_return']:+.2f} | {shares} |",
                flush=True,
            )
    for worlds in COLLECTION_WORLDS:
        times = collection_microseconds(worlds, COLLECTION_ROUNDS).items()
        print(f"{worlds} worlds:", ", ".join(f"{name} {time:.2f} us" for name, time in times), flush=True)
    overhead, speed = measure_overhead(config)
    if options.json is not None:
        options.json.write_text(json.dumps({"config": config.to_dict(), "curves": curves, "overhead": overhead}))
    figures = []
    for door, share in GOALS if curves else ():
        seconds = statistics.median(first_time(one, door, share) for one in curves)
        figures.append(f"door {door + 1} in {share:.0%} after {seconds:,.0f} s")
    figures += [f"overhead {overhead:.1%}", f"{speed:,.0f} world-steps per CPU-second"]
    print(f"\n{'; '.join(figures)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
