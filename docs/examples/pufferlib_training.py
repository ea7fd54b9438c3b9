"""Trains a linear policy by policy gradients (REINFORCE), with numpy alone, in the buffers of PufferLib 3.

pip install doorstep pufferlib
"""

import numpy as np

from doorstep.envs import EscapeRoomPufferEnv

WORLDS, STEPS, UPDATES, DISCOUNT, RATE = 128, 60, 30, 0.9, 0.5

env = EscapeRoomPufferEnv(WORLDS, episode_length=STEPS)  # also: pufferlib.vector.make(EscapeRoomPufferEnv, ...)
sizes = env.single_action_space.nvec
# Each output of the policy is the score of a value that a component of the action can have.
component = np.repeat(np.arange(len(sizes)), sizes)
value = np.concatenate([np.arange(size) for size in sizes])
weights = np.zeros((env.single_observation_space.shape[0], sizes.sum()))
generator = np.random.default_rng(0)


def choose():
    """Writes actions for env.observations, and returns the gradients of their log-probabilities by the outputs."""
    scores = np.exp(np.clip(env.observations @ weights, -20, 20))
    parts = np.split(scores, np.cumsum(sizes)[:-1], axis=1)
    probabilities = [part / part.sum(1, keepdims=True) for part in parts]
    actions = [(part.cumsum(1) < generator.random((len(part), 1))).sum(1) for part in probabilities]
    env.actions[:] = np.minimum(np.stack(actions, 1), sizes - 1)  # the simulator reads them there
    return (env.actions[:, component] == value) - np.concatenate(probabilities, 1)


env.reset(seed=1)
for update in range(UPDATES):
    seen, gradients, rewards = [], [], []
    while len(rewards) < STEPS:  # one episode of every world; its last step begins the next one
        seen.append(env.observations.copy())  # the step overwrites the buffers
        gradients.append(choose())
        *_, infos = env.step(env.actions)
        rewards.append(env.rewards.copy())

    returns = np.array(rewards)  # from each step on
    for step in reversed(range(STEPS - 1)):
        returns[step] += DISCOUNT * returns[step + 1]
    advantages = (returns - returns.mean(1, keepdims=True)) / returns.std()
    gradient = np.einsum("tri,tro,tr->io", np.array(seen), np.array(gradients), advantages, optimize=True)
    weights += RATE * gradient / advantages.size
    if update % 5 == 0 or update == UPDATES - 1:
        print(f"update {update:2}: mean return of an episode {infos[0]['episode_return']:.3f}")

env.close()
