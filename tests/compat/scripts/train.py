"""A small training loop: observations in, sampled actions out, rewards and dones into storage, a gradient step."""

# mypy: ignore-errors

import argparse

import madrona_escape_room
import torch
from madrona_escape_room.madrona import ExecMode
from policy import Policy  # lies beside this script

parser = argparse.ArgumentParser()
parser.add_argument("--num-worlds", type=int, required=True)
parser.add_argument("--num-updates", type=int, required=True)
parser.add_argument("--steps-per-update", type=int, default=40)
arguments = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
sim = madrona_escape_room.SimManager(ExecMode.CPU, 0, arguments.num_worlds, 5, True)
steps_remaining = sim.steps_remaining_tensor().to_torch()
num_worlds, num_agents = steps_remaining.shape[:2]
agent_ids = torch.arange(num_agents, dtype=torch.float32).view(1, num_agents, 1).expand(num_worlds, -1, -1)
parts = [
    sim.self_observation_tensor().to_torch(),
    sim.partner_observations_tensor().to_torch(),
    sim.room_entity_observations_tensor().to_torch(),
    sim.door_observation_tensor().to_torch(),
    sim.lidar_tensor().to_torch(),
]
actions = sim.action_tensor().to_torch()
rewards, dones = sim.reward_tensor().to_torch(), sim.done_tensor().to_torch()


def observe() -> torch.Tensor:
    flat = [part.reshape(num_worlds, num_agents, -1) for part in parts]
    return torch.cat([*flat, steps_remaining.float() / 200, agent_ids], dim=2)


policy = Policy(observe().shape[2])
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
for update in range(arguments.num_updates):
    log_probabilities, stored_rewards, stored_dones = [], [], []
    for _ in range(arguments.steps_per_update):
        chosen, log_probability = policy.act(observe())
        actions.copy_(chosen)
        sim.step()
        log_probabilities.append(log_probability)
        stored_rewards.append(rewards.clone())
        stored_dones.append(dones.clone())
    loss = -(torch.stack(log_probabilities) * torch.stack(stored_rewards)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"update {update}: features {observe().shape[2]}, episodes {int(torch.stack(stored_dones).sum())}")
