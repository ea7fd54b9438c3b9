"""Uses everything the module offers, the way scripts do, and prints what it saw as JSON."""

# mypy: ignore-errors

import argparse
import json

import madrona_escape_room
import torch
from madrona_escape_room import madrona

parser = argparse.ArgumentParser()
parser.add_argument("--num-worlds", type=int, required=True)
parser.add_argument("--gpu-sim", action="store_true")
arguments = parser.parse_args()

mode = madrona.ExecMode.CUDA if arguments.gpu_sim else madrona.ExecMode.CPU
sizes = {"gpu_id": 0, "num_worlds": arguments.num_worlds}
sim = madrona_escape_room.SimManager(exec_mode=mode, rand_seed=5, auto_reset=True, **sizes)
names = [name for name in dir(sim) if name.endswith("_tensor") and name not in ("rgb_tensor", "depth_tensor")]
tensors = {name: getattr(sim, name)().to_torch() for name in names}
tensors["action_tensor"][:, 0] = torch.tensor([3, 0, 2, 0], dtype=torch.int32)
before = tensors["self_observation_tensor"].clone()
for _ in range(3):
    sim.step()

moved = (tensors["self_observation_tensor"] - before)[:, :, 2:4].norm(dim=2)
seen = {
    "tensors": {name: [list(tensor.shape), str(tensor.dtype)] for name, tensor in tensors.items()},
    "agents_moved": (moved > 0.9 / 40).all(dim=0).tolist(),
    "wrapped": madrona.Tensor(torch.arange(6).reshape(2, 3)).to_torch().tolist(),
    "modes": [madrona.ExecMode.CPU.name, madrona.ExecMode.CUDA.name],
}
print(json.dumps(seen))
