"""Trains a linear policy by policy gradients (REINFORCE), with numpy alone, in gymnasium's vector environment.

pip install "doorstep[gymnasium]"
"""

import gymnasium
import numpy as np

WORLDS, AGENTS, STEPS, UPDATES, DISCOUNT, RATE = 128, 2, 60, 30, 0.9, 0.5

env = gymnasium.make_vec(
    "doorstep.envs:doorstep/EscapeRoom-v0",
    num_envs=WORLDS * AGENTS,
    agents="rows",  # one policy controls all agents: each is a row
    num_agents=AGENTS,
    seed=0,
    episode_length=STEPS,
)
sizes = env.single_action_space.nvec
# Each output of the policy is the score of a value that a component of the action can have.
component = np.repeat(np.arange(len(sizes)), sizes)
value = np.concatenate([np.arange(size) for size in sizes])
weights = np.zeros((env.single_observation_space.shape[0], sizes.sum()))
generator = np.random.default_rng(0)


def choose(observations):
    """Actions, and the gradients of their log-probabilities by the policy's outputs."""
    scores = np.exp(np.clip(observations @ weights, -20, 20))
    parts = np.split(scores, np.cumsum(sizes)[:-1], axis=1)
    probabilities = [part / part.sum(1, keepdims=True) for part in parts]
    actions = [(part.cumsum(1) < generator.random((len(part), 1))).sum(1) for part in probabilities]
    actions = np.minimum(np.stack(actions, 1), sizes - 1)
    chosen = actions[:, component] == value
    return actions, chosen - np.concatenate(probabilities, 1)


for update in range(UPDATES):
    observations, info = env.reset()  # one episode of every world: other levels each time
    seen, gradients, rewards = [], [], []
    while len(rewards) < STEPS:
        actions, gradient_of_step = choose(observations)
        seen.append(observations)
        gradients.append(gradient_of_step)
        observations, reward, terminations, truncations, info = env.step(actions)
        rewards.append(reward)

    returns = np.array(rewards)  # from each step on
    for step in reversed(range(STEPS - 1)):
        returns[step] += DISCOUNT * returns[step + 1]
    advantages = (returns - returns.mean(1, keepdims=True)) / returns.std()
    gradient = np.einsum("tri,tro,tr->io", np.array(seen), np.array(gradients), advantages, optimize=True)
    weights += RATE * gradient / advantages.size
    if update % 5 == 0 or update == UPDATES - 1:
        print(f"update {update:2}: mean return of an episode {info['episode_returns'].mean():.3f}")

env.close()
