"""Small programs for a GPU that need numpy, and for policies PyTorch's modules, and no CUDA of theirs: each kind of
kernel does some work. Sanitizers watch them and profilers look into them.

    python -m tests.gpu.workloads {step,cubes,agents,levels,policy,views,level-views,training,all} [--worlds 70]
        [--steps 8]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from tests.cuda import stand_in_driver as driver
from tests.cuda.training_calls import advantages, multi_discrete, prepared, run_on_gpu
from tests.cuda.twins import some_levels
from tests.cuda.users_memory import UsersArrays
from tests.gpu.sizes import AGENTS
from tests.scenes import random_actions

import doorstep
from doorstep import cuda
from doorstep.cli.rooms_start import RoomsStart
from doorstep.policy import SamplingParams

NETWORK = (256, 256, 256)


def play(sim: doorstep.Simulator, steps: int) -> None:
    """Steps with random actions."""
    for actions in random_actions(0, steps, sim.num_worlds, sim.num_agents):
        sim.actions.copy_from_host(actions)
        sim.step()
    sim.wait()


def step(worlds: int, steps: int, num_agents: int = 2) -> None:
    """Steps, then the other kernels of the simulator."""
    with doorstep.Simulator(worlds, device="cuda", num_agents=num_agents, episode_length=200) as sim:
        play(sim, steps)
        sim.reset([0, worlds - 1])
        sim.refresh()
        sim.restore(sim.save())
        sim.wait()


def cubes(worlds: int, steps: int) -> None:
    """Agents begin among the cubes."""
    with doorstep.Simulator(worlds, device="cuda") as sim:
        RoomsStart(sim).place(np.arange(worlds))
        play(sim, steps)


def agents(worlds: int, steps: int) -> None:
    """The same with all other numbers of agents."""
    for num_agents in AGENTS:
        if num_agents != 2:
            step(worlds, steps, num_agents)


def levels(worlds: int, steps: int, cameras: doorstep.Cameras | None = None) -> None:
    """Worlds that play levels of all kinds."""
    table = some_levels(2)
    with doorstep.Simulator(worlds, device="cuda", max_levels=len(table), cameras=cameras) as sim:
        sim.set_levels(table)
        sim.reset()
        play(sim, steps)


def views(worlds: int, steps: int) -> None:
    """Worlds whose agents see pictures of all kinds."""
    with doorstep.Simulator(worlds, device="cuda", cameras=all_pictures()) as sim:
        play(sim, steps)


def level_views(worlds: int, steps: int) -> None:
    """The same of worlds that play levels."""
    levels(worlds, steps, all_pictures())


def all_pictures() -> doorstep.Cameras:
    """Of 64 x 64 pixels."""
    return doorstep.Cameras(width=64, height=64, rgb=True, depth=True, segmentation=True, normals=True)


@contextmanager
def policy_on(stream: int, module: Any) -> Iterator[tuple[doorstep.Policy, UsersArrays]]:
    """The policy of a module whose weights have been copied to the GPU, and its arrays there."""
    from tests.cuda.device_module import DeviceModule  # PyTorch takes seconds, and other workloads do without it

    arrays = UsersArrays(stream)
    made = DeviceModule(module, arrays, SamplingParams(seed=3))
    driver.synchronize(stream)
    yield made.policy, arrays
    del made
    arrays.forget()


def policy(worlds: int, steps: int) -> None:
    """A network chooses the actions of all agents."""
    from tests.pkg.policy.networks import mlp

    with (
        driver.users_stream() as stream,
        policy_on(stream, mlp(*NETWORK)) as (chooser, _),
        doorstep.Simulator(worlds, device="cuda", stream=cuda.Stream.from_handle(stream, 0)) as sim,
    ):
        for number in range(steps):
            sim.actions = chooser.act(sim.observations, step=number)
            sim.step()
        sim.wait()


def training(worlds: int, steps: int) -> None:
    """Advantages and multi-discrete actions, forward and backward."""
    with prepared():
        for name in ("generalized_advantages", "v_trace"):
            run_on_gpu(name, *advantages("float32", steps, 2 * worlds))
        for name in ("sample", "evaluate", "backward"):
            call, inputs, results = multi_discrete("float32", 2 * worlds, draws=name == "sample")
            chosen = {field for field in results if (field == "logit_gradients") == (name == "backward")}
            run_on_gpu(f"multi_discrete_{name}", call, inputs, {field: results[field] for field in chosen})


WORKLOADS: dict[str, Callable[[int, int], None]] = {
    "step": step,
    "cubes": cubes,
    "agents": agents,
    "levels": levels,
    "policy": policy,
    "views": views,
    "level-views": level_views,
    "training": training,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload", choices=(*WORKLOADS, "all"))
    parser.add_argument("--worlds", type=int, default=70)
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    for workload in WORKLOADS if options.workload == "all" else (options.workload,):
        begin = time.monotonic()
        WORKLOADS[workload](options.worlds, options.steps)
        seconds = time.monotonic() - begin
        print(f"{workload}: {options.steps} steps of {options.worlds} worlds in {seconds:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
