"""What programs make of the GPU's worlds: engines, training, worlds in tensors of PyTorch and JAX, as tables.

    python -m tests.benchmarks.gpu_programs [--rounds 3] [--worlds 65536 8192] [--seconds 50]

Times are elapsed, until the GPU has done all work; figures are medians over the rounds. What needs a PyTorch or a JAX
that can use the GPU is left out where they cannot, which is said, and so are programs that would begin after
`--seconds`.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from tests.cuda import stand_in_driver as driver
from tests.cuda.twins import some_levels
from tests.gpu.frameworks import why_not_jax, why_not_torch
from tests.gpu.sizes import sized
from tests.gpu.workloads import NETWORK, policy_on
from tests.pkg.policy.networks import mlp
from tests.scenes import random_actions

import doorstep
from doorstep import RolloutConfig, RolloutEngine, SimulatorConfig, cuda
from doorstep.levels.files import AnyLevel

WORLDS = sized((65536, 8192, 262144), (5,))
STEPS = sized(200, 4)  # of an episode, and of a round
UPDATES = sized(5, 1)
UPDATE_STEPS = 32


def median_speed(rounds: int, work: Callable[[], int]) -> float:
    """Of what `work` counts, per second, once it has been done once."""
    work()
    speeds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        count = work()
        speeds.append(count / (time.perf_counter() - begin))
    return statistics.median(speeds)


def row(program: str, worlds: int, speed: float) -> None:
    print(f"| {program} | {worlds:,} | {speed / 1e6:.2f} M |", flush=True)


# ---- Engines


def measure_engine(name: str, plays_levels: bool, worlds: int, rounds: int) -> None:
    config = SimulatorConfig(worlds, max_levels=int(plays_levels))
    table = some_levels(2) if plays_levels else [None]
    with driver.users_stream() as stream, policy_on(stream, mlp(*NETWORK)) as (network, _):
        policy = network if name == "3 x 256" else name
        with RolloutEngine(RolloutConfig(config, devices=("cuda",))) as engine:
            work = functools.partial(play, engine, policy, worlds, table)
            row(f"engine, {name}{', levels' if plays_levels else ''}", worlds, median_speed(rounds, work))
            del work
        del network, policy


def play(engine: RolloutEngine, policy: Any, worlds: int, table: Sequence[AnyLevel | None]) -> int:
    """Plays two episodes in every world; their steps."""
    share = 2 * worlds // len(table) + 1
    for number, level in enumerate(table):
        seeds = range(number * share, (number + 1) * share)
        engine.submit_batch(seeds, policy=policy, level=level, max_steps=STEPS)
    return sum(result.length for result in engine)


# ---- Training


def measure_training(graph: bool, worlds: int, rounds: int) -> None:
    from doorstep.training import Trainer, preset

    changes = [
        f"simulator.num_worlds={worlds}",
        "simulator.device=cuda",
        f"experience.num_steps={UPDATE_STEPS}",
        "experience.retries=0",  # the host draws them in every step, so that no graph would be recorded
        f"experience.cuda_graph={str(graph).lower()}",
    ]
    trainer = Trainer(preset("default").changed(*changes))

    def update() -> int:
        for _ in range(UPDATES):
            trainer.update()
        return UPDATES * UPDATE_STEPS * worlds

    row(f"training{'' if graph else ', no graph'}", worlds, median_speed(rounds, update))


# ---- Worlds in tensors


def measure_torch(worlds: int, rounds: int) -> None:
    import torch

    import doorstep.torch as doorstep_torch

    rooms = doorstep_torch.make(worlds, device="cuda")
    actions = torch.from_numpy(random_actions(0, 1, worlds)[0]).cuda()
    state = rooms.init(0)

    def steps() -> int:
        for _ in range(STEPS):
            rooms.step(state, actions)
        torch.cuda.synchronize()
        return STEPS * worlds

    row("steps of PyTorch", worlds, median_speed(rounds, steps))


def measure_jax(worlds: int, rounds: int) -> None:
    import jax

    import doorstep.jax

    rooms = doorstep.jax.make(worlds, device="cuda", outputs=("observations", "rewards"))
    actions = jax.numpy.asarray(random_actions(0, 1, worlds)[0])

    def scan(state: Any) -> Any:
        return jax.lax.scan(lambda state, _: (rooms.step(state, actions), None), state, length=STEPS)[0]

    compiled, state = jax.jit(scan), rooms.init(0)

    def steps() -> int:
        compiled(state).worlds.block_until_ready()
        return STEPS * worlds

    row("steps of JAX", worlds, median_speed(rounds, steps))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worlds", type=int, nargs="+", default=WORLDS)
    parser.add_argument("--seconds", type=float, default=math.inf)
    options = parser.parse_args()
    begin = time.monotonic()
    print(f"{cuda.Device().name}, doorstep {doorstep.__version__}, NumPy {np.__version__}\n")
    print("| program | worlds | world-steps/s |\n|---|---|---|")
    for count in options.worlds:
        for measure in programs():
            if time.monotonic() - begin > options.seconds:
                print(f"the rest is left out after {options.seconds:.0f} s")
                return 0
            measure(count, options.rounds)
    return 0


def programs() -> Iterator[Callable[[int, int], None]]:
    """What measures a number of worlds; says what is absent."""
    for plays_levels in (False, True):
        for policy in ("random", "3 x 256"):
            yield functools.partial(measure_engine, policy, plays_levels)
    if absent := why_not_torch():
        print(f"left out: {absent}")
    else:
        for graph in (True, False):
            yield functools.partial(measure_training, graph)
        yield measure_torch
    if absent := why_not_jax():
        print(f"left out: {absent}")
    else:
        yield measure_jax


if __name__ == "__main__":
    sys.exit(main())
