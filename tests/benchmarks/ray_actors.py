"""What actors of Ray are worth on this machine, compared with an engine in one process.

    python tests/benchmarks/ray_actors.py [--worlds 256] [--requests 10000] [--rounds 5]

An engine with one and two replicas, and one and two actors of Ray with a replica each; a thread for each replica. All
play the same requests, whole episodes of random agents, in turns. Printed are medians over the rounds; of actors also
the CPU time that the program itself spends on a request, by which many actors are limited. The last line has the
figures alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import ray

from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.ray import RayConfig, RayRolloutEngine

Engine = RolloutEngine | RayRolloutEngine


class Round(NamedTuple):
    """Episodes per second, and seconds of this process's CPU time for a request."""

    speed: float
    cpu: float


def play(make: Callable[[], Engine], requests: list[EpisodeRequest]) -> Round:
    with make() as engine:
        engine.submit(requests[: len(requests) // 10])  # all actors start and warm up
        assert engine.drain()
        list(engine)
        wall, cpu = time.perf_counter(), time.process_time()
        engine.submit(requests)
        count = len(list(engine))
        return Round(count / (time.perf_counter() - wall), (time.process_time() - cpu) / count)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worlds", type=int, default=256, help="of each replica")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    simulator = SimulatorConfig(options.worlds, num_threads=1)
    two = RolloutConfig(simulator, devices=("cpu", "cpu"))
    kinds: dict[str, Callable[[], Engine]] = {
        "an engine with one replica": lambda: RolloutEngine(simulator),
        "with two": lambda: RolloutEngine(two),
        "one actor": lambda: RayRolloutEngine(simulator, RayConfig(num_actors=1)),
        "two actors": lambda: RayRolloutEngine(simulator, RayConfig(num_actors=2)),
    }
    requests = [EpisodeRequest(seed=seed) for seed in range(options.requests)]
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    rounds: dict[str, list[Round]] = {name: [] for name in kinds}
    for _ in range(options.rounds):
        for name, make in kinds.items():
            rounds[name].append(play(make, requests))
    ray.shutdown()
    medians = {name: Round(*map(statistics.median, zip(*of_kind, strict=True))) for name, of_kind in rounds.items()}
    first = next(iter(medians.values()))
    for name, (speed, cpu) in medians.items():
        own = f", {cpu * 1e6:.0f} us of this process for a request" if "actor" in name else ""
        print(f"{name:28} {speed:8,.0f} episodes/s, {speed / first.speed:.2f} of the first{own}")
    print(json.dumps(medians))


if __name__ == "__main__":
    main()
