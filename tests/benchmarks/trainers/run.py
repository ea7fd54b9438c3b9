"""One run of one trainer, in a process of its own: its points, and the score of what it trained, as JSON.

    python -m tests.benchmarks.trainers.run TRAINER ORDER

ORDER: JSON of `Order`.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from typing import Any, TypedDict

import torch
from tests.benchmarks.trainers.meter import Meter
from tests.benchmarks.trainers.task import make_config

import doorstep

EVALUATION_SEED = 2026


class Order(TypedDict):
    """worlds: None for the preset's. updates: at most; None for the preset's. cpu_seconds: of training, at most.
    episodes: of the evaluation; 0 for none."""

    worlds: int | None
    updates: int | None
    seed: int
    cpu_seconds: float
    episodes: int


def main() -> None:
    trainer = sys.argv[1]
    order: Order = json.loads(sys.argv[2])
    torch.set_num_threads(1)
    config = make_config(order["worlds"], order["seed"])
    config = config.changed(num_updates=order["updates"] or config.num_updates)
    meter = Meter(config, order["cpu_seconds"])
    policy = importlib.import_module(f"tests.benchmarks.trainers.{trainer}_ppo").train(config, meter)
    rooms = score(policy, order["episodes"]) if order["episodes"] else []
    print(json.dumps({"points": meter.points, "rooms": rooms}))


def score(policy: Any, episodes: int) -> list[dict[str, Any]]:
    """How often agents pass each door in the reference's levels."""
    torch.manual_seed(EVALUATION_SEED)
    evaluation = doorstep.evaluate({"policy": policy}, episodes=episodes, seed=EVALUATION_SEED, num_threads=1)
    return [dataclasses.asdict(room) for room in evaluation.score("policy").rooms]


if __name__ == "__main__":
    main()
