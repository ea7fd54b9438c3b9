"""The GPU's figures of docs/explanation/performance.md, as tables: run it where the wheel, PyTorch and a GPU are.

    python tests/benchmarks/measure_gpu.py [--rounds 5] [--most-worlds 262144] [--agents 2] [--start rooms]

Every step has new random actions, drawn beforehand and copied from device memory within the time that is measured, as
a policy would. 400 steps are two episodes of every world, so that resets are counted in. Times are CUDA events'; every
figure is the median over the rounds. With `--start rooms` both episodes begin among the cubes, as in `doorstep bench`;
returning there is not counted. Only the first table depends on it, and only that is measured then.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import doorstep
from doorstep import cuda
from doorstep.cli.rooms_start import RoomsStart

STEPS, EPISODE = 400, 200
DRAWN = 40  # sets of actions, and steps in a recorded graph
ACTION_LIMITS = doorstep.ACTIONS
LATENCY_WORLDS = 8192
LATENCY = f"""
import time, doorstep
doorstep.cuda.Device()
begin = time.perf_counter()
sim = doorstep.Simulator({LATENCY_WORLDS}, device="cuda", observations="by_name")
made = time.perf_counter()
sim.step()
sim.wait()
print(made - begin, time.perf_counter() - made)
"""


class Batch:
    """Worlds with actions drawn for many steps. rooms: their episodes begin among the cubes."""

    def __init__(
        self, num_worlds: int, num_agents: int, cameras: doorstep.Cameras | None = None, *, rooms: bool = False
    ) -> None:
        before = cuda.Device().free_bytes
        self.sim = doorstep.Simulator(
            num_worlds, num_agents=num_agents, device="cuda", cameras=cameras, observations="by_name"
        )
        self.sim.wait()
        self.bytes_per_world = (before - cuda.Device().free_bytes) / num_worlds
        generator = np.random.default_rng(0)
        drawn = generator.integers(0, ACTION_LIMITS, size=(DRAWN, num_worlds, num_agents, 4), dtype=np.int32)
        self.drawn = torch.from_numpy(drawn).cuda()
        self.actions = self.sim.actions.to_torch()
        self.graph = self._record()
        self.start: bytes | None = None
        if rooms:
            RoomsStart(self.sim).place(np.arange(num_worlds))
            self.start = self.sim.save()

    def _record(self) -> Any:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.play()
        return graph

    def play(self) -> None:
        """A step with each of the drawn actions."""
        for actions in self.drawn:
            self.actions.copy_(actions)
            self.sim.step()

    def replay(self) -> None:
        """The same steps, from the recorded graph."""
        self.graph.replay()

    def speed(self, action: Callable[[], None]) -> float:
        """World-steps per second of an action that makes DRAWN steps."""
        parts = 1 if self.start is None else STEPS // EPISODE
        milliseconds = sum(self._time(action, STEPS // DRAWN // parts) for _ in range(parts))
        return self.sim.num_worlds * STEPS / (milliseconds * 1e-3)

    def _time(self, action: Callable[[], None], times: int) -> float:
        """Milliseconds of the GPU."""
        if self.start is not None:
            self.sim.restore(self.start)
        begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call,unused-ignore]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call,unused-ignore]
        begin.record()
        for _ in range(times):
            action()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))

    def close(self) -> None:
        del self.graph, self.actions, self.drawn
        self.sim.close()
        torch.cuda.empty_cache()


def measure(num_worlds: int, num_agents: int, rounds: int, *, rooms: bool) -> str:
    """A row: speeds with and without a graph, microseconds of a step, bytes."""
    batch = Batch(num_worlds, num_agents, rooms=rooms)
    batch.speed(batch.replay)
    plain = statistics.median(batch.speed(batch.play) for _ in range(rounds))
    replayed = statistics.median(batch.speed(batch.replay) for _ in range(rounds))
    bytes_per_world = batch.bytes_per_world
    batch.close()
    microseconds = num_worlds / replayed * 1e6
    speeds = f"{plain / 1e6:.2f} M | {replayed / 1e6:.2f} M"
    return f"| {num_worlds:,} | {speeds} | {microseconds:.1f} | {bytes_per_world:,.0f} |"


def measure_views(num_worlds: int, num_agents: int, rounds: int) -> str:
    """A row: views of 64 x 64 pixels per second, colours and depth, drawing alone and with the steps."""
    speeds = []
    for cameras in (None, doorstep.Cameras()):
        batch = Batch(num_worlds, num_agents, cameras)
        batch.speed(batch.replay)
        speeds.append(statistics.median(batch.speed(batch.replay) for _ in range(rounds)) * num_agents)
        batch.close()
    drawing = 1 / (1 / speeds[1] - 1 / speeds[0])
    return f"| {num_worlds:,} | {drawing / 1e6:.2f} M | {speeds[1] / 1e6:.2f} M |"


def latency(rounds: int) -> tuple[float, float]:
    """Seconds of construction and of the first step, each in a process of its own whose driver is open."""
    command = [sys.executable, "-c", f"import doorstep.cuda\n{LATENCY}"]
    taken = []
    for _ in range(rounds):
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        taken.append([float(word) for word in output.split()])
    made, stepped = (statistics.median(column) for column in zip(*taken, strict=True))
    return made, stepped


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most-worlds", type=int, default=262144)
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--start", choices=("normal", "rooms"), default="normal")
    options = parser.parse_args()
    begin = time.monotonic()
    device = cuda.Device()
    print(f"{device.name}, doorstep {doorstep.__version__}, PyTorch {torch.__version__}", end=", ")
    print(f"{options.agents} agents, {options.start} start\n")
    print("| worlds | world-steps/s, one by one | world-steps/s, from a graph | a step, µs | bytes per world |")
    print("|---|---|---|---|---|")
    num_worlds = 1
    while num_worlds <= options.most_worlds:
        print(measure(num_worlds, options.agents, options.rounds, rooms=options.start == "rooms"), flush=True)
        num_worlds *= 8 if num_worlds < 4096 else 2
    if options.start == "normal":
        measure_the_rest(options.agents, options.rounds)
    print(f"\nmeasured in {time.monotonic() - begin:.0f} s")
    return 0


def measure_the_rest(num_agents: int, rounds: int) -> None:
    """Prints the tables of views and latencies."""
    print("\n| worlds | views/s | views/s, steps included |\n|---|---|---|")
    for num_worlds in (1024, 4096, 16384):
        print(measure_views(num_worlds, num_agents, rounds), flush=True)
    made, stepped = latency(rounds)
    print(f"\n| {LATENCY_WORLDS:,} worlds | value |\n|---|---|")
    print(f"| construction | {made * 1e3:.1f} ms |")
    print(f"| first step after it | {stepped * 1e3:.1f} ms |")


if __name__ == "__main__":
    sys.exit(main())
