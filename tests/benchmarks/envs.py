"""What a step of gymnasium's vector environments costs beside a step of the simulator: `make bench-envs`.

    python -m tests.benchmarks.envs [--rounds 25] [--worlds 4096]

Every figure is CPU time, the median over rounds in which all sides take turns, because machines are shared and noisy:
read the ratios, each the median of those of the rounds. All sides take the same actions; no episode ends.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from tests.benchmarks.interop.measuring import Side, each_round, per_call
from tests.scenes import random_actions

import doorstep
from doorstep.envs import EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv

LENGTH = 1_000_000  # steps of an episode
CALLS = 4
AT_MOST = 1.1  # what a step may cost that copies flat observations, compared with the simulator's
FEW = 64  # environments of gymnasium's own vector
NATIVE = "Simulator.step()"
EMPTY = f"SyncVectorEnv of {FEW} empty environments, scaled"


class EmptyEnv(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """An environment that does nothing: what remains are its spaces, and what gymnasium does."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.observation = np.zeros(observation_space.shape, observation_space.dtype)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation, 0.0, False, False, {}


def simulator_side(worlds: int) -> Side:
    """Actions and a step, with the flat observations that environments show."""
    sim = doorstep.Simulator(worlds, episode_length=LENGTH, flat_observations=True)
    actions = random_actions(1, 1, worlds)[0]

    def step() -> None:
        sim.actions = actions
        sim.step()

    return per_call(step, CALLS)


def environment_side(make: Callable[..., Any], worlds: int, **arguments: Any) -> Side:
    rows = worlds * (2 if arguments.get("agents") == "rows" else 1)
    env = make(rows, episode_length=LENGTH, **arguments)
    env.reset()
    actions = random_actions(1, 1, worlds)[0].reshape(env.action_space.shape)
    if make is TorchEscapeRoomVectorEnv:
        actions = torch.from_numpy(actions)
    kept: list[Any] = [None]  # as in a loop over steps: the last ones are dropped when the next ones are there

    def step() -> None:
        kept[0] = env.step(actions)

    return per_call(step, CALLS)


def empty_side(worlds: int) -> Side:
    env = EscapeRoomVectorEnv(1)
    spaces = env.single_observation_space, env.single_action_space
    env.close()
    vector = gymnasium.vector.SyncVectorEnv([lambda: EmptyEnv(*spaces) for _ in range(FEW)])
    vector.reset()
    actions = np.ones(vector.action_space.shape, np.int64)
    side = per_call(lambda: vector.step(actions), CALLS)
    return lambda: side() * worlds / FEW


def sides(worlds: int) -> dict[str, Side]:
    flat, tensors = EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv
    return {
        NATIVE: simulator_side(worlds),
        "numpy, joint": environment_side(flat, worlds),
        "numpy, joint, same_step": environment_side(flat, worlds, autoreset_mode="same_step"),
        "numpy, rows": environment_side(flat, worlds, agents="rows"),
        "numpy, joint, copy=False": environment_side(flat, worlds, copy=False),
        "numpy, rows, dict": environment_side(flat, worlds, agents="rows", observations="dict"),
        "torch, joint": environment_side(tensors, worlds),
        "torch, rows": environment_side(tensors, worlds, agents="rows"),
        "torch, rows, copy=False": environment_side(tensors, worlds, agents="rows", copy=False),
        EMPTY: empty_side(worlds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--worlds", type=int, default=4096)
    options = parser.parse_args()
    torch.set_num_threads(1)
    taken = each_round(options.rounds, sides(options.worlds))
    print("| step of | CPU time | of the simulator's | asked |\n|---|---|---|---|")
    for name, column in taken.items():
        ratio = statistics.median(mine / native for mine, native in zip(column, taken[NATIVE], strict=True))
        print(f"| {name} | {statistics.median(column) / 1e6:.3f} ms | {ratio:.3f} | {asked(name, ratio)} |")


def asked(name: str, ratio: float) -> str:
    if name in (NATIVE, EMPTY):
        return ""
    return f"at most {AT_MOST:g}" + ("" if ratio <= AT_MOST else " (missed)")


if __name__ == "__main__":
    main()
