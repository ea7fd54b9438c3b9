"""What a step of environments costs beside a step of the simulator, and beside others' empty ones: `make bench-envs`.

    python -m tests.benchmarks.envs [--framework gymnasium|pufferlib] [--rounds 25] [--worlds 4096]

Every figure is CPU time of all threads, the median over rounds. In each round every environment takes a turn right
after a simulator of its own, because machines are shared and noisy: read the ratios, each the median of those of the
rounds. All take the same random actions from the same start, because steps cost more as agents come to the walls; no
episode ends.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
from collections.abc import Callable
from itertools import cycle
from typing import Any, NamedTuple

from tests.benchmarks import empty_environments
from tests.benchmarks.interop.measuring import Side, per_call
from tests.scenes import random_actions

import doorstep

LENGTH = 1_000_000  # steps of an episode
CALLS = 4
STEPS = 16  # of actions, which are repeated
AT_MOST = 1.1  # what a step may cost, compared with the simulator's


class Contest(NamedTuple):
    """A step of an environment, and of the simulator that does the same work."""

    native: Side
    environment: Side
    limit: float | None  # of the ratio


def simulator_side(worlds: int, *, flat: bool = True) -> Side:
    """Actions and a step, with the observations that environments show."""
    sim = doorstep.Simulator(worlds, episode_length=LENGTH, observations=doorstep.OBSERVATIONS if flat else "by_name")
    actions = cycle(random_actions(1, STEPS, worlds))

    def step() -> None:
        sim.actions = next(actions)
        sim.step()

    return per_call(step, CALLS)


def environment_side(make: Callable[..., Any], worlds: int, **arguments: Any) -> Side:
    rows = worlds * (2 if arguments.get("agents") == "rows" else 1)
    env = make(rows, episode_length=LENGTH, seed=0, **arguments)
    env.reset()
    taken: Any = random_actions(1, STEPS, worlds).reshape(STEPS, *env.action_space.shape)
    if env.metadata.get("torch"):
        import torch

        taken = torch.from_numpy(taken)
    actions = cycle(taken)
    kept: list[Any] = [None]  # as in a loop over steps: the last ones are dropped when the next ones are there

    def step() -> None:
        kept[0] = env.step(next(actions))

    return per_call(step, CALLS)


def puffer_side(worlds: int) -> Side:
    env = doorstep.envs.EscapeRoomPufferEnv(worlds, episode_length=LENGTH, seed=0)
    env.reset()
    actions = cycle(random_actions(1, STEPS, worlds).reshape(STEPS, -1, len(doorstep.ACTIONS)))
    return per_call(lambda: env.step(next(actions)), CALLS)


def gymnasium_contests(worlds: int) -> dict[str, Contest]:
    import torch

    from doorstep.envs import EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv

    torch.set_num_threads(1)

    def of(make: Callable[..., Any], **arguments: Any) -> Contest:
        native = simulator_side(worlds, flat=arguments.get("observations") != "by_name")
        return Contest(native, environment_side(make, worlds, **arguments), AT_MOST)

    contests: dict[str, Contest] = {}
    for name, make in (("numpy", EscapeRoomVectorEnv), ("torch", TorchEscapeRoomVectorEnv)):
        contests |= {
            f"{name}, joint": of(make),
            f"{name}, joint, same_step": of(make, autoreset_mode="same_step"),
            f"{name}, rows": of(make, agents="rows"),
            f"{name}, rows, by name": of(make, agents="rows", observations="by_name"),
            f"{name}, joint, copy=False": of(make, copy=False),
        }
    one = EscapeRoomVectorEnv(1)
    empty = empty_environments.gymnasium_side(worlds, one.single_observation_space, one.single_action_space)
    one.close()
    contests["gymnasium's SyncVectorEnv, empty"] = Contest(simulator_side(worlds), empty, None)
    if importlib.util.find_spec("envpool"):
        cart = empty_environments.envpool_side(worlds)
        contests["EnvPool, CartPole-v1"] = Contest(simulator_side(worlds), cart, None)
    return contests


def pufferlib_contests(worlds: int) -> dict[str, Contest]:
    from doorstep.envs import EscapeRoomPufferEnv

    one = EscapeRoomPufferEnv(1)
    spaces = one.single_observation_space, one.single_action_space
    one.close()
    empty = empty_environments.pufferlib_side(2 * worlds, *spaces)
    return {
        "EscapeRoomPufferEnv": Contest(simulator_side(worlds), puffer_side(worlds), AT_MOST),
        "PufferLib, empty": Contest(simulator_side(worlds), empty, None),
    }


FRAMEWORKS = {"gymnasium": gymnasium_contests, "pufferlib": pufferlib_contests}  # their pins exclude each other


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--framework", choices=FRAMEWORKS, default="gymnasium")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--worlds", type=int, default=4096)
    options = parser.parse_args()
    if not importlib.util.find_spec(options.framework):
        print(f"{options.framework} is not installed here: nothing of it is measured")
        return
    print("| step of | CPU time | of the simulator's | asked |\n|---|---|---|---|")
    contests = FRAMEWORKS[options.framework](options.worlds)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in contests}
    for _ in range(options.rounds):
        for name, contest in contests.items():
            taken[name].append((contest.native(), contest.environment()))
    for name, pairs in taken.items():
        print(row(name, pairs, contests[name].limit), flush=True)
    natives = [native for pairs in taken.values() for native, _ in pairs]
    print(f"| Simulator.step() | {statistics.median(natives) / 1e6:.2f} ms | 1 | |")


def row(name: str, pairs: list[tuple[float, float]], limit: float | None) -> str:
    ratio = statistics.median(mine / native for native, mine in pairs)
    time = statistics.median(mine for _, mine in pairs)
    asked = "" if limit is None else f"at most {limit:g}" + ("" if ratio <= limit else " (missed)")
    return f"| {name} | {time / 1e6:.2f} ms | {ratio:.3f} | {asked} |"


if __name__ == "__main__":
    main()
