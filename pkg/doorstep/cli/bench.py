"""`doorstep bench`: how fast `step()` is, and what it costs."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass

import doorstep
from doorstep import cuda
from doorstep._arguments import count
from doorstep._observations import BY_NAME
from doorstep.cli.argument_types import COUNT, add_simulator_arguments, simulator_of
from doorstep.cli.bench_report import report
from doorstep.cli.random_actions import ActionTable, DeviceActionTable
from doorstep.cli.rooms_start import RoomsStart
from doorstep.errors import ArgumentError

SUMMARY = "Time step() alone, under random actions."

EXAMPLES = ("doorstep bench --threads 1 --profile", "doorstep bench --threads 1 --report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add_simulator_arguments(parser)
    parser.add_argument("--steps", **COUNT, default=2000, help="timed steps (2000)")
    parser.add_argument("--profile", action="store_true", help="also report what each stage of a step takes (CPU only)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    said = "instead, time steps alone, among cubes, and with a network, views and training (CPU only)"
    parser.add_argument("--report", action="store_true", help=said)


@dataclass(frozen=True)
class Result:
    """A measurement and the arguments that it depends on."""

    version: str
    device: str  # "cpu", or "cuda:K" and the GPU's name
    worlds: int
    steps: int
    agents: int
    seed: int
    start: str
    threads: int
    world_steps_per_second: float
    world_steps_per_cpu_second: float  # CPU time of all threads of the process while in step()
    bytes_per_world: float  # of everything that the simulator allocated
    startup_seconds: float  # from calling the constructor to the end of the first step
    hash: str  # of all worlds at the end; the same on every machine for the same arguments but --threads
    profile: dict[str, float] | None  # nanoseconds of CPU time per world-step, by stage


def run(arguments: argparse.Namespace) -> int:
    """Measures and prints."""
    if arguments.report:
        _check_report(arguments)
        print(report(arguments))
        return 0
    result = measure(arguments)
    if arguments.json:
        print(json.dumps({key: value for key, value in asdict(result).items() if value is not None}))
    else:
        _print_table(result)
    return 0


def _check_report(arguments: argparse.Namespace) -> None:
    for option in ("json", "profile"):
        if getattr(arguments, option):
            raise ArgumentError(f"--report is given with --{option}; give one of them.", argument="report")
    if arguments.device != "cpu":
        raise ArgumentError(f"--report is given with --device {arguments.device}; it times the CPU.", argument="report")


def measure(arguments: argparse.Namespace) -> Result:
    """Makes a simulator and times its steps. The time of drawing actions and of moving agents is not counted."""
    table = ActionTable(arguments.seed)
    created = time.perf_counter_ns()
    with simulator_of(arguments, BY_NAME) as sim:
        sim.step()
        sim.wait()
        startup_seconds = (time.perf_counter_ns() - created) / 1e9
        time_them = time_steps if sim.device == "cpu" else time_steps_on_gpu
        wall_seconds, cpu_seconds, profile = time_them(
            sim, table, arguments.steps, RoomsStart(sim, arguments.start), profile=arguments.profile
        )
        world_steps = arguments.worlds * arguments.steps
        return Result(
            version=doorstep.__version__,
            device=_describe(sim.device),
            worlds=sim.num_worlds,
            steps=arguments.steps,
            agents=sim.num_agents,
            seed=sim.seed,
            start=arguments.start,
            threads=sim.num_threads,
            world_steps_per_second=round(world_steps / wall_seconds, 1),
            world_steps_per_cpu_second=round(world_steps / cpu_seconds, 1),
            bytes_per_world=round(sim.allocated_bytes / sim.num_worlds, 1),
            startup_seconds=round(startup_seconds, 6),
            hash=f"{sim.hash():016x}",
            profile=profile,
        )


def time_steps(
    sim: doorstep.Simulator, table: ActionTable, steps: int, rooms_start: RoomsStart, *, profile: bool
) -> tuple[float, float, dict[str, float] | None]:
    """Wall and CPU seconds spent in step(), and their split over its stages with `profile`."""
    actions = sim.actions.to_numpy()
    rooms_start.before_steps()
    if profile:
        sim.start_profile()
    wall_ns = cpu_ns = 0
    for step in range(steps):
        table.copy_into(actions, step)
        cpu_before, wall_before = time.process_time_ns(), time.perf_counter_ns()
        sim.step()
        wall_ns += time.perf_counter_ns() - wall_before
        cpu_ns += time.process_time_ns() - cpu_before
        rooms_start.after_step()
    split = _split(sim.stop_profile(), cpu_ns / (sim.num_worlds * steps)) if profile else None
    return wall_ns / 1e9, cpu_ns / 1e9, split


def time_steps_on_gpu(
    sim: doorstep.Simulator, table: ActionTable, steps: int, rooms_start: RoomsStart, *, profile: bool
) -> tuple[float, float, dict[str, float] | None]:
    """As time_steps, but times whole episodes of steps, with the copies of their actions within the GPU.

    The host waits for the GPU only where a measurement begins and ends; a wait in every step would measure the waits.
    """
    stream = cuda.Stream.from_handle(sim.stream, int(sim.device.removeprefix("cuda:")))
    device_table = DeviceActionTable(table, sim.actions, stream)
    rooms_start.before_steps()
    if profile:
        sim.start_profile()  # raises: only the CPU counts time by stage
    wall_ns = cpu_ns = step = 0
    while step < steps:
        end = min(step + int(sim.steps_remaining.copy_to_host().min()), steps) if rooms_start.moves_agents else steps
        sim.wait()
        cpu_before, wall_before = time.process_time_ns(), time.perf_counter_ns()
        for now in range(step, end):
            device_table.copy(now)
            sim.step()
        sim.wait()
        wall_ns += time.perf_counter_ns() - wall_before
        cpu_ns += time.process_time_ns() - cpu_before
        step = end
        rooms_start.after_step()
    return wall_ns / 1e9, cpu_ns / 1e9, None


def _describe(device: str) -> str:
    return device if device == "cpu" else f"{device} {cuda.Device(int(device.removeprefix('cuda:'))).name}"


def _split(ticks: dict[str, int], nanoseconds: float) -> dict[str, float]:
    """Shares out the CPU time of a world-step by the ticks of the stages."""
    total = max(sum(ticks.values()), 1)
    return {stage: round(nanoseconds * count / total, 2) for stage, count in ticks.items()}


def _where(result: Result) -> str:
    return count(result.threads, "thread") if result.device == "cpu" else result.device


def _print_table(result: Result) -> None:
    print(
        f"doorstep {result.version}: {result.worlds:,} worlds x {result.steps:,} steps, {result.agents} agents, "
        f"{result.start} start, seed {result.seed}, {_where(result)}"
    )
    rows = {
        "world-steps per second": f"{result.world_steps_per_second:,.0f}",
        "world-steps per CPU-second": f"{result.world_steps_per_cpu_second:,.0f}",
        "bytes per world": f"{result.bytes_per_world:,.0f}",
        "startup": f"{1000 * result.startup_seconds:,.1f} ms",
        "hash": result.hash,
    }
    for name, value in rows.items():
        print(f"  {name:<28}{value:>18}")
    if result.profile:
        total = sum(result.profile.values()) or 1.0
        print("  CPU time per world-step, by stage")
        for stage, nanoseconds in result.profile.items():
            print(f"    {stage:<26}{nanoseconds:>14,.1f} ns{100 * nanoseconds / total:>6.1f}%")
