"""A small training loop: observations in, sampled actions out, rewards and dones into storage, a gradient step."""

# mypy: ignore-errors

import argparse

import madrona_escape_room
import torch
from madrona_escape_room.madrona import ExecMode
from torch import nn

CHOICES = (4, 8, 5, 2)
parser = argparse.ArgumentParser()
parser.add_argument("--num-worlds", type=int, required=True)
parser.add_argument("--num-updates", type=int, required=True)
arguments = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
sim = madrona_escape_room.SimManager(ExecMode.CPU, 0, arguments.num_worlds, 5, True)
steps_remaining = sim.steps_remaining_tensor().to_torch()
num_worlds, num_agents = steps_remaining.shape[:2]
agent_ids = torch.arange(num_agents, dtype=torch.float32).view(1, num_agents, 1).expand(num_worlds, -1, -1)
names = ("self_observation", "partner_observations", "room_entity_observations", "door_observation", "lidar")
parts = [getattr(sim, f"{name}_tensor")().to_torch() for name in names]
actions = sim.action_tensor().to_torch()
rewards, dones = sim.reward_tensor().to_torch(), sim.done_tensor().to_torch()


def observe():
    flat = [part.reshape(num_worlds, num_agents, -1) for part in parts]
    return torch.cat([*flat, steps_remaining.float() / 200, agent_ids], dim=2)


policy = nn.Linear(observe().shape[2], sum(CHOICES))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
for update in range(arguments.num_updates):
    loss, episodes = 0, 0
    for _ in range(40):
        heads = [torch.distributions.Categorical(logits=part) for part in policy(observe()).split(CHOICES, dim=2)]
        chosen = [head.sample() for head in heads]
        actions.copy_(torch.stack(chosen, dim=2))
        sim.step()
        log_probability = sum(head.log_prob(one) for head, one in zip(heads, chosen, strict=True))
        loss = loss - (log_probability.unsqueeze(2) * rewards).mean()
        episodes += int(dones.sum())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"update {update}: features {observe().shape[2]}, episodes {episodes}")
