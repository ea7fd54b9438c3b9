"""A benchmark with positional arguments: random actions, frames per second, an action dump on the side."""

# mypy: ignore-errors

import sys
import time

import madrona_escape_room.madrona as madrona
import torch
from madrona_escape_room import SimManager

num_worlds, num_steps, dump_path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
sim = SimManager(madrona.ExecMode.CPU, 0, num_worlds, 5, False, enable_batch_renderer=False)
actions = sim.action_tensor().to_torch()
torch.manual_seed(1)
started = time.time()
with open(dump_path, "wb") as dump:
    for _ in range(num_steps):
        actions[..., 0] = torch.randint_like(actions[..., 0], 0, 4)
        actions[..., 1] = torch.randint_like(actions[..., 1], 0, 8)
        actions[..., 2] = torch.randint_like(actions[..., 2], 0, 5)
        actions[..., 3] = torch.randint_like(actions[..., 3], 0, 2)
        actions.numpy().tofile(dump)
        sim.step()
print("FPS", num_worlds * num_steps / (time.time() - started))
print("position", *sim.self_observation_tensor().to_torch()[0, 0, 2:4].tolist())
