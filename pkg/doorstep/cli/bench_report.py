"""The table of `doorstep bench --report`: how fast steps are, bare and in use, and what that depends on."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import doorstep
from doorstep._native import EntityKind
from doorstep._observations import BY_NAME
from doorstep.cameras import Cameras
from doorstep.cli.argument_types import simulator_of
from doorstep.cli.random_actions import ActionTable
from doorstep.cli.rooms_start import RoomsStart
from doorstep.policy import load_policy

_VIEW = 64  # pixels, width and height
_VIEWED_WORLDS = 64
_UPDATES = 4  # of training; the first one, which allocates, is not timed
_MOVING = 0.01  # metres per second


@dataclass(frozen=True)
class Row:
    """One way of stepping: world-steps, and the CPU seconds of all threads of the process that they took."""

    name: str
    agents: int
    world_steps: int
    cpu_seconds: float
    remark: str


def report(arguments: argparse.Namespace) -> str:
    """Measures each way in turn, on the CPU."""
    rows = [_bare(arguments, "normal"), _bare(arguments, "rooms"), _with_policy(arguments), _with_views(arguments)]
    if importlib.util.find_spec("torch") is not None:
        rows.append(_with_training())
    return "\n".join([*_conditions(arguments), "", *_table(rows)])


# ---- What is measured


def _bare(arguments: argparse.Namespace, start: str) -> Row:
    """Steps alone, under random actions, and the share of world-steps in which a cube moved."""
    table = ActionTable(arguments.seed)
    with simulator_of(_with(arguments, start=start), BY_NAME) as sim:
        rooms_start = RoomsStart(sim, start)
        rooms_start.before_steps()
        seconds, moving = 0.0, 0
        for step in range(arguments.steps):
            table.copy_into(sim.actions.to_numpy(), step)
            seconds += _cpu_seconds(sim.step)
            moving += _worlds_with_moving_cubes(sim)
            rooms_start.after_step()
        made = sim.num_worlds * arguments.steps
    name = "steps alone" if start == "normal" else "steps among cubes"
    return Row(name, arguments.agents, made, seconds, f"a cube moves in {moving / made:.0%} of them")


def _with_policy(arguments: argparse.Namespace) -> Row:
    """Steps with the actions of the network that comes with doorstep."""
    with simulator_of(_with(arguments, agents=2)) as sim:
        policy = load_policy("trained")

        def play() -> None:
            for _ in range(arguments.steps):
                sim.actions = policy(sim.observations)
                sim.step()

        return Row("with a network's actions", 2, sim.num_worlds * arguments.steps, _cpu_seconds(play), "2 agents")


def _with_views(arguments: argparse.Namespace) -> Row:
    """Steps with a picture for each agent."""
    worlds, table = min(arguments.worlds, _VIEWED_WORLDS), ActionTable(arguments.seed)
    cameras = Cameras(width=_VIEW, height=_VIEW)
    with doorstep.Simulator(
        worlds, num_agents=arguments.agents, seed=arguments.seed, num_threads=arguments.threads, cameras=cameras
    ) as sim:
        steps, seconds = max(arguments.steps // 20, 1), 0.0
        for step in range(steps):
            table.copy_into(sim.actions.to_numpy(), step)
            seconds += _cpu_seconds(sim.step)
    name = f"with views of {_VIEW} x {_VIEW}"
    return Row(name, arguments.agents, worlds * steps, seconds, f"{worlds} worlds, colour and depth")


def _with_training() -> Row:
    """Updates of `doorstep train`, with its own worlds, threads and network."""
    from doorstep.training import Trainer, preset  # here: it imports PyTorch

    trainer = Trainer(preset("default"))
    of_update = trainer.update().world_steps
    seconds = _cpu_seconds(lambda: [trainer.update() for _ in range(_UPDATES - 1)])
    rules = trainer.config.simulator
    remark = f"{rules.num_worlds} worlds, the default preset"
    return Row("with training", rules.num_agents, of_update * (_UPDATES - 1), seconds, remark)


def _cpu_seconds(call: Callable[[], object]) -> float:
    before = time.process_time()
    call()
    return time.process_time() - before


def _worlds_with_moving_cubes(sim: doorstep.Simulator) -> int:
    is_cube = sim.state.body_kinds.to_numpy() == EntityKind.CUBE
    speeds = np.abs(sim.state.body_linear_velocities.to_numpy()).max(axis=2)
    return int(((speeds > _MOVING) & is_cube).any(axis=1).sum())


def _with(arguments: argparse.Namespace, **changes: object) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(arguments), **changes})


# ---- What is printed


def _conditions(arguments: argparse.Namespace) -> list[str]:
    versions = f"doorstep {doorstep.__version__}, Python {platform.python_version()}, numpy {np.__version__}"
    what = f"{arguments.worlds:,} worlds, {arguments.steps:,} steps, {arguments.agents} agents, seed {arguments.seed}"
    length = doorstep.SimulatorConfig(1).episode_length
    return [
        f"{versions}, {_processor()}, {len(os.sched_getaffinity(0))} cores",
        f"{what}; episodes of {length} steps, which begin again by themselves; CPU time of all threads",
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _table(rows: list[Row]) -> list[str]:
    with doorstep.Simulator(1) as sim:
        rays = sim.lidar.shape[2]
    lines = [f"{'per second of CPU time':<28}{'world-steps':>14}{'agent-steps':>14}{'lidar rays':>14}"]
    for row in rows:
        rate = row.world_steps / max(row.cpu_seconds, 1e-9)
        each = (rate, row.agents * rate, row.agents * rays * rate)
        lines.append(f"{row.name:<28}" + "".join(f"{one:>14,.0f}" for one in each) + f"  {row.remark}")
    return lines
