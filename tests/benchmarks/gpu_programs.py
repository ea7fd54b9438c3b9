"""What programs make of a GPU: engines, training, worlds in tensors of PyTorch and JAX, calls of policies, as tables.

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
from tests.benchmarks.measure_gpu import Table, print_tables
from tests.cuda import stand_in_driver as driver
from tests.cuda.twins import some_levels
from tests.gpu.frameworks import has_bf16, why_not_jax, why_not_torch
from tests.gpu.sizes import sized
from tests.gpu.workloads import NETWORK, policy_on
from tests.pkg.policy.networks import NUM_INPUTS, mlp
from tests.scenes import random_actions

import doorstep
from doorstep import RolloutConfig, RolloutEngine, SimulatorConfig, cuda
from doorstep.levels.files import AnyLevel
from doorstep.policy import SamplingParams
from doorstep.rollouts import EpisodeColumns

WORLDS = sized((65536, 8192, 262144), (5,))
STEPS = sized(200, 4)  # of an episode, and of a round
UPDATES = sized(5, 1)
UPDATE_STEPS = 32
ROWS = sized((16384, 131072, 2048), (64,))  # of calls of a policy: one an agent


def median_speed(rounds: int, work: Callable[[], int]) -> float:
    """Of what `work` counts, per second, once it has been done once."""
    work()
    speeds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        count = work()
        speeds.append(count / (time.perf_counter() - begin))
    return statistics.median(speeds)


def row(program: str, worlds: int, speed: float) -> str:
    return f"| {program} | {worlds:,} | {speed / 1e6:.2f} M |"


# ---- Engines


def measure_engine(name: str, plays_levels: bool, worlds: int, rounds: int) -> str:
    config = SimulatorConfig(worlds, max_levels=int(plays_levels))
    table = some_levels(2) if plays_levels else [None]
    with driver.users_stream() as stream, policy_on(stream, mlp(*NETWORK)) as (network, _):
        policy = network if name == "3 x 256" else name
        with RolloutEngine(RolloutConfig(config, devices=("cuda",))) as engine:
            work = functools.partial(play, engine, policy, worlds, table)
            speed = median_speed(rounds, work)
            del work
        del network, policy
    return row(f"engine, {name}{', levels' if plays_levels else ''}", worlds, speed)


def play(engine: RolloutEngine, policy: Any, worlds: int, table: Sequence[AnyLevel | None]) -> int:
    """Plays two episodes in every world; their steps."""
    share = 2 * worlds // len(table) + 1
    for number, level in enumerate(table):
        seeds = range(number * share, (number + 1) * share)
        engine.submit(EpisodeColumns(seeds, policy=policy, level=level, max_steps=STEPS))
    return sum(result.length for result in engine)


# ---- Training


def measure_training(graph: bool, worlds: int, rounds: int) -> str:
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

    return row(f"training{'' if graph else ', no graph'}", worlds, median_speed(rounds, update))


# ---- Worlds in tensors


def measure_torch(worlds: int, rounds: int) -> str:
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

    return row("steps of PyTorch", worlds, median_speed(rounds, steps))


def measure_jax(worlds: int, rounds: int) -> str:
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

    return row("steps of JAX", worlds, median_speed(rounds, steps))


# ---- Calls of policies


def measure_calls(rows: int, rounds: int) -> str:
    """A row: milliseconds of a call of a policy, beside a graph of what PyTorch would do."""
    import torch

    module = mlp(*NETWORK).cuda().eval()
    policy = doorstep.load_policy(module, sampling=SamplingParams(temperature=0.8, top_p=0.95, seed=4))
    observations = torch.randn(rows // 2, 2, NUM_INPUTS, device="cuda")

    def by_pytorch() -> None:
        with torch.no_grad():
            for logits in module(observations).split(list(doorstep.ACTIONS), -1):
                (logits - torch.empty_like(logits).exponential_().log_()).argmax(-1)

    call = functools.partial(policy.act, observations, step=0)
    works: list[Callable[[], object]] = [replay_of(by_pytorch), replay_of(call), call]
    if has_bf16():
        rounded = doorstep.load_policy(policy, precision="bfloat16")
        works.append(functools.partial(rounded.act, observations, step=0))
    return f"| {rows:,} | {' | '.join(f'{milliseconds(work, 20 * rounds):.4f}' for work in works)} |"


def replay_of(work: Callable[[], object]) -> Callable[[], object]:
    """The same work, recorded in a graph of PyTorch."""
    import torch

    work()  # libraries initialise themselves outside the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return lambda: graph.replay()


def milliseconds(work: Callable[[], object], repetitions: int) -> float:
    """The median of the GPU's time between two events."""
    import torch

    work()
    times = []
    for _ in range(repetitions):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return float(statistics.median(times))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worlds", type=int, nargs="+", default=WORLDS)
    parser.add_argument("--seconds", type=float, default=math.inf)
    options = parser.parse_args()
    print(f"{cuda.Device().name}, doorstep {doorstep.__version__}, NumPy {np.__version__}")
    print_tables(tables(options), options.seconds)
    for reason in filter(None, (why_not_torch(), why_not_jax())):
        print(f"left out: {reason}")
    return 0


def tables(options: argparse.Namespace) -> Iterator[Table]:
    programs: list[Callable[[int, int], str]] = [
        functools.partial(measure_engine, policy, plays_levels)
        for plays_levels in (False, True)
        for policy in ("random", "3 x 256")
    ]
    if not why_not_torch():
        programs += [*(functools.partial(measure_training, graph) for graph in (True, False)), measure_torch]
    if not why_not_jax():
        programs.append(measure_jax)
    yield (
        "| program | worlds | world-steps/s |",
        [functools.partial(measure, count, options.rounds) for count in options.worlds for measure in programs],
    )
    if not why_not_torch():
        yield (
            "| rows of a policy, 3 x 256 | graph of PyTorch, ms | our graph | our call | in bfloat16 |",
            [functools.partial(measure_calls, rows, options.rounds) for rows in ROWS],
        )


if __name__ == "__main__":
    sys.exit(main())
