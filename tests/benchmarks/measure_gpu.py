"""The GPU's figures of docs/explanation/performance.md, as tables: run it where the package and a GPU are.

    python -m tests.benchmarks.measure_gpu [--rounds 5] [--worlds 65536 8192] [--agents 2] [--quick] [--seconds 50]

Every step has new random actions, drawn beforehand and copied from device memory within the time that is measured, as
a policy would. 400 steps are two episodes of every world, so that resets are counted in. Times are elapsed, until the
GPU has done all of them; every figure is the median over the rounds. Worlds play the reference's rooms; the largest
number of them also begins both episodes among the cubes, as in `doorstep bench` (returning there is not counted), plays
the same rooms as a level, and plays them with friction of their own. `--quick`: one round, of few numbers of worlds.
Rows that would begin after `--seconds` are left out.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from tests.cuda import stand_in_driver as driver
from tests.cuda.users_memory import UsersArray
from tests.gpu.sizes import sized

import doorstep
from doorstep import cuda, levels
from doorstep.cli.rooms_start import RoomsStart
from doorstep.levels.files import AnyLevel

STEPS, EPISODE = sized((400, 200), (8, 4))
DRAWN = sized(40, 4)  # sets of actions, and steps in a recorded graph
# The largest first: what was predicted for it is compared first.
WORLDS = sized((65536, 262144, 131072, 32768, 16384, 8192, 4096, 512, 64, 8, 1), (5, 1))
QUICK_WORLDS = sized((65536, 8192, 1024), (5,))
WORLDS_WITH_VIEWS = sized((4096, 16384, 1024), (2,))
SCENES: dict[str, AnyLevel | None] = {
    "normal": None,
    "among cubes": None,
    "levels": levels.reference(),
    "levels, drawn friction": levels.GeneratedLevel(physics=levels.Physics(friction=(0.5, 1.5))),
}
Table = tuple[str, list[Callable[[], str]]]  # its header, and what measures each of its rows
LATENCY_WORLDS = sized(8192, 5)
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
    """Worlds on a stream, in a scene, with actions drawn for many steps."""

    def __init__(
        self,
        num_worlds: int,
        num_agents: int,
        stream: int,
        cameras: doorstep.Cameras | None = None,
        scene: str = "normal",
    ) -> None:
        before = cuda.Device().free_bytes
        self._stream = stream
        self.sim = doorstep.Simulator(
            num_worlds,
            num_agents=num_agents,
            device="cuda",
            stream=cuda.Stream.from_handle(stream, 0),
            cameras=cameras,
            observations="by_name",
            episode_length=EPISODE,
            levels=SCENES[scene] or "reference",
        )
        self.sim.wait()
        self.bytes_per_world = (before - cuda.Device().free_bytes) / num_worlds
        drawn = np.random.default_rng(0).integers(
            0, doorstep.ACTIONS, size=(DRAWN, num_worlds, num_agents, 4), dtype=np.int32
        )
        self._drawn = UsersArray(drawn.shape, np.int32, stream)
        self._drawn.fill(drawn)
        driver.synchronize(stream)
        self._graph = driver.RecordedGraph(stream)
        with self._graph:
            self.play()
        self._start: bytes | None = None
        if scene == "among cubes":
            RoomsStart(self.sim).place(np.arange(num_worlds))
            self._start = self.sim.save()

    def play(self) -> None:
        """A step with each of the drawn actions."""
        actions = self.sim.actions.__cuda_array_interface__["data"][0]
        nbytes = self._drawn.nbytes // DRAWN
        for step in range(DRAWN):
            driver.copy(self._stream, actions, self._drawn.pointer + step * nbytes, nbytes)
            self.sim.step()

    def replay(self) -> None:
        """The same steps, from the recorded graph."""
        self._graph.launch()

    def speed(self, action: Callable[[], None]) -> float:
        """World-steps per second of an action that makes DRAWN steps."""
        parts = 1 if self._start is None else STEPS // EPISODE
        seconds = sum(self._time(action, STEPS // DRAWN // parts) for _ in range(parts))
        return self.sim.num_worlds * STEPS / seconds

    def _time(self, action: Callable[[], None], times: int) -> float:
        """Seconds."""
        if self._start is not None:
            self.sim.restore(self._start)
        driver.synchronize(self._stream)
        begin = time.perf_counter()
        for _ in range(times):
            action()
        driver.synchronize(self._stream)
        return time.perf_counter() - begin

    def close(self) -> None:
        self._graph.close()
        self.sim.close()


def measure(scene: str, num_worlds: int, options: argparse.Namespace, stream: int) -> str:
    """A row: speeds with and without a graph, microseconds of a step, bytes."""
    batch = Batch(num_worlds, options.agents, stream, scene=scene)
    batch.speed(batch.replay)
    plain = statistics.median(batch.speed(batch.play) for _ in range(options.rounds))
    replayed = statistics.median(batch.speed(batch.replay) for _ in range(options.rounds))
    batch.close()
    microseconds = num_worlds / replayed * 1e6
    speeds = f"{plain / 1e6:.2f} M | {replayed / 1e6:.2f} M"
    return f"| {scene} | {num_worlds:,} | {speeds} | {microseconds:.1f} | {batch.bytes_per_world:,.0f} |"


def measure_views(num_worlds: int, options: argparse.Namespace, stream: int) -> str:
    """A row: views of 64 x 64 pixels per second, colours and depth, drawing alone and with the steps."""
    speeds = []
    for cameras in (None, doorstep.Cameras()):
        batch = Batch(num_worlds, options.agents, stream, cameras)
        batch.speed(batch.replay)
        speeds.append(statistics.median(batch.speed(batch.replay) for _ in range(options.rounds)) * options.agents)
        batch.close()
    drawing = 1 / (1 / speeds[1] - 1 / speeds[0])
    return f"| {num_worlds:,} | {drawing / 1e6:.2f} M | {speeds[1] / 1e6:.2f} M |"


def latency(rounds: int) -> str:
    """A row: milliseconds of construction and of the first step, each in a process of its own whose driver is open."""
    command = [sys.executable, "-c", f"import doorstep.cuda\n{LATENCY}"]
    taken = []
    for _ in range(rounds):
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        taken.append([float(word) for word in output.split()])
    made, stepped = (statistics.median(column) * 1e3 for column in zip(*taken, strict=True))
    return f"| {made:.1f} | {stepped:.1f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worlds", type=int, nargs="+", default=WORLDS)
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=math.inf)
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.worlds = 1, QUICK_WORLDS
    print(f"{cuda.Device().name}, doorstep {doorstep.__version__}, {options.agents} agents")
    with driver.users_stream() as stream:
        print_tables(tables(options, stream), options.seconds)
    return 0


def print_tables(tables: Iterable[Table], seconds: float) -> None:
    """Prints rows as they are measured, and begins none after so many seconds."""
    begin = time.monotonic()
    for header, rows in tables:
        print(f"\n{header}\n|" + "---|" * (header.count("|") - 1), flush=True)
        for row in rows:
            if time.monotonic() - begin > seconds:
                print(f"the rest is left out after {seconds:.0f} s")
                return
            print(row(), flush=True)
    print(f"\nmeasured in {time.monotonic() - begin:.0f} s")


def tables(options: argparse.Namespace, stream: int) -> Iterator[Table]:
    largest, *others = options.worlds
    measured = [(scene, largest) for scene in SCENES] + [("normal", num_worlds) for num_worlds in others]
    yield (
        "| scene | worlds | world-steps/s, one by one | world-steps/s, from a graph | a step, µs | bytes per world |",
        [functools.partial(measure, scene, num_worlds, options, stream) for scene, num_worlds in measured],
    )
    yield (
        "| worlds | views/s | views/s, steps included |",
        [functools.partial(measure_views, num_worlds, options, stream) for num_worlds in WORLDS_WITH_VIEWS],
    )
    yield (
        f"| {LATENCY_WORLDS:,} worlds: construction, ms | first step after it, ms |",
        [functools.partial(latency, options.rounds)],
    )


if __name__ == "__main__":
    sys.exit(main())
