"""What requests cost: an engine beside a loop of steps with the same policy, its queues, and its latency.

    python tests/benchmarks/rollouts.py [--requests 100000] [--worlds 1024] [--rounds 5]

Everything runs on one thread of the simulator; speeds are per CPU-second: of all threads of the process for episodes,
of the thread that calls for queues. Latencies are elapsed times. The sides of a comparison take turns, and figures are
medians over the rounds. The last line has the figures alone.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import doorstep
from doorstep._native import _generated as native
from doorstep._native.calls import check, read_struct, read_value
from doorstep._native.library import load
from doorstep.metrics import MetricsConfig
from doorstep.rollouts import EpisodeColumns

MOST_STEPS = 200  # of a request; at least 1
METRICS = {"off": MetricsConfig(enabled=False), "on": MetricsConfig(), "trace": MetricsConfig(trace=1 << 16)}


def seconds(act: Callable[[], Any], clock: Callable[[], float]) -> float:
    begin = clock()
    act()
    return clock() - begin


# ---- Episodes


def engine_of(worlds: int, metrics: MetricsConfig = METRICS["on"]) -> doorstep.RolloutEngine:
    simulator = doorstep.SimulatorConfig(worlds, num_threads=1)
    return doorstep.RolloutEngine(doorstep.RolloutConfig(simulator, metrics=metrics))


class Played(NamedTuple):
    """Steps of a simulator, of the worlds that played an episode, and of all worlds."""

    steps: int
    episode_steps: int
    world_steps: int


def played_by(engine: doorstep.RolloutEngine) -> Played:
    """So far; also of engines that measure nothing."""
    info = read_struct(load().ds_engine_get_replica, native.ReplicaInfo, engine.native_handle, 0)
    return Played(info.steps, info.world_steps, info.steps * info.num_worlds)


def play(
    lengths: NDArray[np.int64], worlds: int, policy: Any, metrics: MetricsConfig = METRICS["on"]
) -> tuple[float, Played]:
    """Episode steps per CPU-second, and what was played."""
    with engine_of(worlds, metrics) as engine:
        engine.run(EpisodeColumns(range(worlds), max_steps=1, policy=policy))  # warm
        before = played_by(engine)
        requests = EpisodeColumns(np.arange(len(lengths)), max_steps=lengths, policy=policy)
        taken = seconds(lambda: engine.run(requests), time.process_time)
        after = played_by(engine)
    played = Played(*(b - a for a, b in zip(before, after, strict=True)))
    return int(lengths.sum()) / taken, played


def metrics_microseconds(lengths: NDArray[np.int64], worlds: int, rounds: int) -> dict[str, float]:
    """CPU time of a step of all worlds without metrics, and what it takes longer with them and with a trace."""
    times: dict[str, list[float]] = {name: [] for name in METRICS}
    for _ in range(rounds):
        for name, metrics in METRICS.items():
            speed, played = play(lengths, worlds, "random", metrics)
            times[name].append(1e6 * played.episode_steps / speed / played.steps)
    off = times["off"]
    return {
        name: statistics.median(off if name == "off" else [a - b for a, b in zip(found, off, strict=True)])
        for name, found in times.items()
    }


def step(lengths: NDArray[np.int64], worlds: int, policy: Any) -> float:
    """World steps per CPU-second of a loop whose worlds play episodes of lengths like these, one after the other, a
    quarter of their steps. policy: None: random actions that were drawn before, new ones for every step."""
    steps = int(lengths.sum()) // 4 // worlds
    sim = doorstep.Simulator(worlds, num_threads=1, episode_length=MOST_STEPS)
    drawn = draw_actions(0 if policy else steps, worlds)
    ends = draw_ends(lengths, steps, worlds)

    def step_all() -> None:
        for i in range(steps):
            sim.actions = policy(sim.observations) if policy else drawn[i]
            sim.resets = ends[i]
            sim.step()

    taken = seconds(step_all, time.process_time)
    sim.close()
    return steps * worlds / taken


def draw_actions(steps: int, worlds: int) -> NDArray[np.int32]:
    return np.random.default_rng(0).integers(0, doorstep.ACTIONS, (steps, worlds, 2, 4), np.int32)


def draw_ends(lengths: NDArray[np.int64], steps: int, worlds: int) -> NDArray[np.int32]:
    """1 for the worlds whose episode ends with a step: [steps, worlds]."""
    ends = np.zeros((steps, worlds), np.int32)
    last = np.cumsum(np.random.default_rng(1).choice(lengths, (steps, worlds)), axis=0) - 1
    episode, world = np.nonzero(last < steps)
    ends[last[episode, world], world] = 1
    return ends


def make_policy() -> Any:
    try:
        import torch
    except ImportError:
        return None
    torch.manual_seed(1)
    linear, tanh = torch.nn.Linear, torch.nn.Tanh
    net = torch.nn.Sequential(linear(94, 64), tanh(), linear(64, 64), tanh(), linear(64, 19))
    return doorstep.load_policy(net)


# ---- Queues


def native_requests_per_second(count: int) -> float:
    """Submission, answers without play, and taking them: requests per second of all that, in native code."""
    config, library = doorstep.RolloutConfig(doorstep.SimulatorConfig(1), queue_capacity=1 << 21), load()
    requests, ids = (native.EpisodeRequest * count)(), np.empty(count, np.uint64)
    outputs, taken, delivery = (native.EpisodeOutput * 4096)(), ctypes.c_uint64(), native.Delivery()

    def pass_through() -> None:
        engine = doorstep.RolloutEngine(config)
        handle = engine.native_handle
        queue = read_value(library.ds_engine_open_outputs, ctypes.c_uint64, handle, 0)
        check(library.ds_engine_submit(handle, queue, requests, count, -1, ids.ctypes.data, ctypes.byref(taken)))
        engine.close()
        to_call = queue, 1, len(outputs), 0, ctypes.byref(delivery), outputs, ctypes.byref(taken)
        while not library.ds_outputs_take(*to_call) and taken.value:
            delivery.received = taken.value
        check(library.ds_outputs_release(queue))

    pass_through()
    return count / seconds(pass_through, time.process_time)


def batch_requests_per_second(count: int, worlds: int) -> tuple[float, float]:
    """Submitted and taken from Python."""
    seeds = np.arange(count)
    with engine_of(worlds) as engine:
        requests = EpisodeColumns(seeds, max_steps=1, policy="idle")
        submitted = seconds(lambda: engine.submit(requests), time.thread_time)
        while read_struct(load().ds_engine_get_info, native.EngineInfo, engine.native_handle).unanswered:
            time.sleep(0.01)

        def take_all() -> None:
            while engine.outstanding:
                engine.get_outputs()

        taken = seconds(take_all, time.thread_time)
    return count / submitted, count / taken


# ---- Latency


def latency_microseconds(worlds: int, count: int) -> tuple[float, float]:
    """From a submission to the end of the episode's first step, and the time of a step by itself."""
    latencies = []
    with engine_of(worlds) as engine:
        for seed in range(count):
            time.sleep(0.002)
            engine.submit(doorstep.EpisodeRequest(seed=seed, max_steps=1, policy="idle"))
            (record,) = engine.get_outputs().records
            latencies.append((record["ended_ns"] - record["submitted_ns"]) / 1e3)
    with doorstep.Simulator(worlds, num_threads=1, auto_reset=False) as sim:
        steps = []
        for _ in range(count):
            time.sleep(0.002)
            steps.append(1e6 * seconds(sim.step, time.perf_counter))
    return statistics.median(latencies[5:]), statistics.median(steps[5:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    lengths = np.random.default_rng(0).integers(1, MOST_STEPS + 1, options.requests)
    network = make_policy()
    # What plays in the engine, and in the loop; None: actions that were drawn before
    policies = {"random": ("random", None), "random_drawn": ("random", doorstep.load_policy("random"))}
    if network is not None:
        policies["network"] = (network, network)
    ratios, occupancy = {}, 0.0
    print("| policy | engine, steps/s | loop, steps/s | ratio | occupancy |\n|---|---|---|---|---|")
    for name, (policy, of_loop) in policies.items():
        rounds = []
        for _ in range(options.rounds):
            engine, played = play(lengths, options.worlds, policy)
            rounds.append((engine, step(lengths, options.worlds, of_loop)))
            occupancy = played.episode_steps / played.world_steps
        engine, loop = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratios[name] = statistics.median(a / b for a, b in rounds)
        speeds = f"{engine / 1e6:.2f} M | {loop / 1e6:.2f} M"
        print(f"| {name} | {speeds} | {ratios[name]:.3f} | {occupancy:.3f} |", flush=True)

    costs = metrics_microseconds(lengths[: options.requests // 4], options.worlds, options.rounds)
    off, on, trace = costs.values()
    print(f"a step without metrics takes {off:.1f} us; {on:.2f} us more with them, {trace:.2f} us more with a trace")

    through = statistics.median(native_requests_per_second(1_000_000) for _ in range(options.rounds))
    from_python = [batch_requests_per_second(1_000_000, options.worlds) for _ in range(options.rounds)]
    submitted, taken = np.median(from_python, axis=0)
    print(f"native queues: {through / 1e6:.2f} M requests/s from submission to the taken answer")
    print(f"Python: submit {submitted / 1e6:.2f} M/s, get_outputs {taken / 1e6:.2f} M/s")
    latency, one_step = np.median([latency_microseconds(options.worlds, 50) for _ in range(options.rounds)], axis=0)
    alone, alone_step = np.median([latency_microseconds(1, 50) for _ in range(options.rounds)], axis=0)
    print(f"latency: {latency:.0f} us with a step of {one_step:.0f} us; one world: {alone:.0f} and {alone_step:.0f} us")
    figures = {
        **{f"{name}_ratio": round(ratio, 3) for name, ratio in ratios.items()},
        **{f"metrics_{name}_us": round(cost, 2) for name, cost in costs.items()},
        "occupancy": round(occupancy, 4),
        "native_queue_per_s": round(through),
        "submit_per_s": round(submitted),
        "get_outputs_per_s": round(taken),
        "latency_beyond_step_us": round(latency - one_step, 1),
    }
    print(" ".join(f"{name}={value}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
