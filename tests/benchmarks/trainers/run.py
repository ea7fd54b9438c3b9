"""One run of one trainer, in a process of its own: its points as JSON.

    python -m tests.benchmarks.trainers.run TRAINER WORLDS WORLD_STEPS SEED
"""

from __future__ import annotations

import importlib
import json
import sys

import torch
from tests.benchmarks.trainers.meter import Meter, make_config


def main() -> None:
    trainer, *numbers = sys.argv[1:]
    worlds, world_steps, seed = map(int, numbers)
    torch.set_num_threads(1)
    config = make_config(worlds, world_steps, seed)
    meter = Meter(config)
    importlib.import_module(f"tests.benchmarks.trainers.{trainer}_ppo").train(config, meter)
    print(json.dumps(meter.points))


if __name__ == "__main__":
    main()
