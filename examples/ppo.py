"""Trains the agents with PPO (Schulman et al., 2017): one file to read, copy and change. Needs PyTorch.

    python ppo.py                                   # trains and writes ppo.pt: minutes on two cores
    doorstep view --policy ppo.py:trained_policy    # plays it in a browser
"""

import argparse
import functools
import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import doorstep
from doorstep.torch import generalized_advantages, multi_discrete_evaluate, multi_discrete_sample

NUM_OBSERVATIONS = 94  # of one of two agents, in sim.observations
NUM_STEPS, NUM_EPOCHS, NUM_MINIBATCHES = 32, 2, 4
GAMMA, GAE_LAMBDA, CLIP, LEARNING_RATE = 0.99, 0.95, 0.2, 1e-3
VALUE_WEIGHT, ENTROPY_WEIGHT, MAX_GRADIENT_NORM = 0.5, 0.01, 0.5
READ = ("observations", "final_observations", "rewards", "dones")
CHECKPOINT = "ppo.pt"


class ActorCritic(nn.Module):
    """Logits of the four action components, and the value, of observations [..., 94]. All agents share it."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(NUM_OBSERVATIONS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor = nn.Linear(width, sum(doorstep.ACTIONS))
        self.critic = nn.Linear(width, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)  # at first all actions are nearly equally likely
        nn.init.zeros_(self.actor.bias)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(observations)
        return self.actor(features), self.critic(features)


def roll_out(sim: doorstep.Simulator, network: ActorCritic) -> dict[str, torch.Tensor]:
    """NUM_STEPS steps of every world: tensors [T, N * A, ...], one row per agent."""
    # Views of the simulator's memory, which every step overwrites.
    read = {name: sim.tensors[name].to_torch().flatten(0, 1) for name in READ}
    steps = []
    with torch.no_grad():
        for _ in range(NUM_STEPS):
            observations = read["observations"].clone()
            logits, values = network(observations)
            actions, log_probabilities, _ = multi_discrete_sample(logits, doorstep.ACTIONS)
            sim.actions = actions
            sim.step()
            # Episodes only run out of time: value their last observation, not the first one of the next episode.
            done = read["dones"].bool()
            following = torch.where(done, read["final_observations"], read["observations"])
            kept = (observations, actions, log_probabilities, values, network(following)[1], read["rewards"], done)
            steps.append([tensor.clone() for tensor in kept])
    names = ("observations", "actions", "log_probabilities", "values", "next_values", "rewards", "truncations")
    data = dict(zip(names, map(torch.stack, zip(*steps, strict=True)), strict=True))
    data["advantages"], data["targets"] = generalized_advantages(
        data["rewards"], data["values"], data["next_values"], torch.zeros_like(data["truncations"]),
        data["truncations"], gamma=GAMMA, gae_lambda=GAE_LAMBDA,
    )  # fmt: skip
    return data


def update(network: ActorCritic, optimizer: torch.optim.Optimizer, data: dict[str, torch.Tensor]) -> None:
    """NUM_EPOCHS passes over the data of a rollout, whose rows are shuffled."""
    rows = {name: tensor.flatten(0, 1) for name, tensor in data.items()}
    for _ in range(NUM_EPOCHS):
        for chosen in torch.randperm(len(rows["rewards"])).chunk(NUM_MINIBATCHES):
            batch = {name: tensor[chosen] for name, tensor in rows.items()}
            logits, values = network(batch["observations"])
            log_probabilities, entropies = multi_discrete_evaluate(logits, batch["actions"], doorstep.ACTIONS)
            ratios = (log_probabilities - batch["log_probabilities"]).exp()
            advantages = batch["advantages"].flatten()
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            gains = torch.minimum(ratios * advantages, ratios.clamp(1 - CLIP, 1 + CLIP) * advantages)
            value_loss = (values - batch["targets"]).square().mean()
            loss = VALUE_WEIGHT * value_loss - gains.mean() - ENTROPY_WEIGHT * entropies.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), MAX_GRADIENT_NORM)
            optimizer.step()


def train(num_updates: int, num_worlds: int, seed: int, device: str = "cpu") -> tuple[ActorCritic, list[float]]:
    """The trained network, and the mean return of the worlds' latest episodes, printed too, after every 20 updates."""
    torch.manual_seed(seed)
    sim = doorstep.Simulator(num_worlds, seed=seed, device=device)
    network = ActorCritic().to(device)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE, eps=1e-5)
    returns, start = [], time.monotonic()
    for number in range(1, num_updates + 1):
        update(network, optimizer, roll_out(sim, network))
        if number % 20 == 0:
            returns.append(sim.episode_returns.to_torch().mean().item())
            furthest = sim.final_self_observations.to_torch()[..., 5] * 3  # y in rooms
            passed = ", ".join(f"{(furthest > room).float().mean():.0%}" for room in (1, 2, 3))
            seconds, steps = time.monotonic() - start, number * NUM_STEPS * num_worlds
            print(f"{seconds:4.0f} s {steps:10,} steps  return {returns[-1]:+.2f}  past the doors {passed}", flush=True)
    return network, returns


@functools.cache
def load_network() -> ActorCritic:
    """The network of the checkpoint in the current folder."""
    network = ActorCritic()
    network.load_state_dict(torch.load(CHECKPOINT, weights_only=True))
    return network


def trained_policy(observations: NDArray[np.float32]) -> torch.Tensor:
    """Actions [N, A, 4] of the trained network: a policy for `doorstep view --policy`."""
    rows = torch.from_numpy(observations)
    with torch.no_grad():
        logits, _ = load_network()(rows.flatten(0, 1))
    actions, _, _ = multi_discrete_sample(logits, doorstep.ACTIONS)
    return actions.unflatten(0, rows.shape[:2])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    trained, _ = train(arguments.updates, arguments.worlds, arguments.seed, arguments.device)
    torch.save(trained.state_dict(), CHECKPOINT)
