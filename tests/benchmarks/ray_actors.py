"""What actors of Ray are worth on this machine, compared with an engine in one process.

    python tests/benchmarks/ray_actors.py [--worlds 256] [--requests 10000] [--rounds 5]

An engine with one and two replicas, and one and two actors of Ray with a replica each; a thread for each replica. All
play the same requests, whole episodes of random agents, in turns. Printed are medians over the rounds: episodes per
second, and the CPU time that this process spends on a request, which limits how many actors it can serve. The last line
has the figures alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import NamedTuple

import ray

from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.ray import RayConfig, RayRolloutEngine

Engine = RolloutEngine | RayRolloutEngine


class Round(NamedTuple):
    """Episodes per second, and seconds of this process's CPU time for a request."""

    speed: float
    cpu: float


def play(engine: Engine, requests: list[EpisodeRequest]) -> Round:
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
    requests = [EpisodeRequest(seed=seed) for seed in range(options.requests)]
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)  # of the actors of both engines
    engines: dict[str, Engine] = {
        "one replica": RolloutEngine(simulator),
        "two replicas": RolloutEngine(RolloutConfig(simulator, devices=("cpu", "cpu"))),
        "one actor": RayRolloutEngine(simulator, RayConfig(num_actors=1)),
        "two actors": RayRolloutEngine(simulator, RayConfig(num_actors=2)),
    }
    rounds: dict[str, list[Round]] = {name: [] for name in engines}
    for number in range(-1, options.rounds):  # in the first one actors start
        for name, engine in engines.items():
            measured = play(engine, requests)
            if number >= 0:
                rounds[name].append(measured)
    for engine in engines.values():
        engine.close()
    ray.shutdown()
    medians = {name: Round(*map(statistics.median, zip(*of_kind, strict=True))) for name, of_kind in rounds.items()}
    for name, (speed, cpu) in medians.items():
        ratio = speed / medians["one replica"].speed
        print(f"{name:14} {speed:8,.0f} episodes/s, {ratio:.2f} of the first, {cpu * 1e6:4.0f} us CPU time a request")
    print(json.dumps(medians))


if __name__ == "__main__":
    main()
