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
parser.add_argument("--gpu-id", type=int, default=0)
arguments = parser.parse_args()

sim = madrona_escape_room.SimManager(
    exec_mode=madrona.ExecMode.CUDA if arguments.gpu_sim else madrona.ExecMode.CPU,
    gpu_id=arguments.gpu_id,
    num_worlds=arguments.num_worlds,
    rand_seed=5,
    auto_reset=True,
)
names = [
    "reset_tensor",
    "action_tensor",
    "reward_tensor",
    "done_tensor",
    "self_observation_tensor",
    "partner_observations_tensor",
    "room_entity_observations_tensor",
    "door_observation_tensor",
    "lidar_tensor",
    "steps_remaining_tensor",
]
tensors = {name: getattr(sim, name)().to_torch() for name in names}
addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
tensors["action_tensor"][:, 0] = torch.tensor([3, 0, 2, 0], dtype=torch.int32)
before = tensors["self_observation_tensor"].clone()
for _ in range(3):
    sim.step()

moved = (tensors["self_observation_tensor"] - before)[:, :, 2:4].norm(dim=2)
wrapped = madrona.Tensor(torch.arange(6).reshape(2, 3)).to_torch()
print(
    json.dumps(
        {
            "tensors": {name: [list(tensor.shape), str(tensor.dtype)] for name, tensor in tensors.items()},
            "in_place": all(getattr(sim, name)().to_torch().data_ptr() == addresses[name] for name in names),
            "agents_moved": (moved > 0.9 / 40).all(dim=0).tolist(),
            "wrapped": wrapped.tolist(),
            "modes": [madrona.ExecMode.CPU.name, madrona.ExecMode.CUDA.name],
        }
    )
)
