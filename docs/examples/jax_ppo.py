"""Trains agents by PPO in one compiled program: worlds, policy and learning are all JAX.

pip install "doorstep[jax]"
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

import doorstep.envs

WORLDS, STEPS, UPDATES, EPOCHS, MINIBATCHES = 128, 40, 60, 2, 4
DISCOUNT, TRACE, CLIP, ENTROPY, RATE, HIDDEN = 0.98, 0.95, 0.2, 0.01, 3e-3, 64

env = doorstep.envs.EscapeRoomJaxEnv(agents="rows", episode_length=80)
sizes = np.asarray(env.action_space().nvec[0])  # choices of each component of an agent's action
reset, step = jax.vmap(env.reset), jax.vmap(env.step)


def make_networks(key):
    widths = [env.observation_space().shape[-1], HIDDEN, HIDDEN, sizes.sum() + 1]
    keys, make = jax.random.split(key, 3), jax.nn.initializers.orthogonal
    return [(make(1.0)(keys[i], (widths[i], widths[i + 1])), jnp.zeros(widths[i + 1])) for i in range(3)]


def evaluate(networks, observations):
    """Logarithms of probabilities, an array for each component, and the value."""
    for weights, bias in networks[:-1]:
        observations = jnp.tanh(observations @ weights + bias)
    outputs = observations @ networks[-1][0] + networks[-1][1]
    *scores, value = jnp.split(outputs, np.cumsum(sizes), axis=-1)
    return [jax.nn.log_softmax(part) for part in scores], value[..., 0]


def log_probability(components, actions):
    chosen = [jnp.take_along_axis(part, actions[..., i, None], -1) for i, part in enumerate(components)]
    return jnp.concatenate(chosen, -1).sum(-1)


def act(carry, key):
    """One step of all worlds."""
    networks, states, observations = carry
    components, values = evaluate(networks, observations)
    keys = jax.random.split(key, len(sizes))
    actions = jnp.stack([jax.random.categorical(keys[i], part) for i, part in enumerate(components)], -1)
    following, states, rewards, terminated, truncated, info = step(None, states, actions)
    # What an episode would still have given that the time ended
    _, final_values = evaluate(networks, info["final_observation"])
    rewards = rewards + DISCOUNT * final_values * (truncated & ~terminated)
    ended = terminated | truncated
    told = (observations, actions, log_probability(components, actions), values, rewards, ended)
    return (networks, states, following), (told, (info["episode_returns"], ended))


def advantage(carry, told):
    """One step of generalised advantage estimation, backwards in time."""
    following_advantage, following_value = carry
    value, reward, ended = told
    error = reward + DISCOUNT * following_value * ~ended - value
    estimate = error + DISCOUNT * TRACE * following_advantage * ~ended
    return (estimate, value), estimate


def loss(networks, batch):
    observations, actions, old_log_probabilities, targets, advantages = batch
    components, values = evaluate(networks, observations)
    ratio = jnp.exp(log_probability(components, actions) - old_log_probabilities)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    gain = jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantages).mean()
    entropy = -sum((jnp.exp(part) * part).sum(-1).mean() for part in components)
    return 0.5 * ((values - targets) ** 2).mean() - gain - ENTROPY * entropy


def descend(carry, batch):
    """One step of Adam."""
    networks, first, second, count = carry
    tree_map, count = jax.tree_util.tree_map, count + 1
    gradient = jax.grad(loss)(networks, batch)
    first = tree_map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    rate = RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    networks = tree_map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), networks, first, second)
    return (networks, first, second, count), None


def update(carry, key):
    """A rollout, and learning from it."""
    optimizer, states, observations = carry
    act_key, *shuffle_keys = jax.random.split(key, 1 + EPOCHS)
    start = (optimizer[0], states, observations)
    (networks, states, observations), (told, (returns, ended)) = jax.lax.scan(
        act, start, jax.random.split(act_key, STEPS)
    )
    seen, actions, log_probabilities, values, *_ = told
    last = (jnp.zeros_like(values[0]), evaluate(networks, observations)[1])
    _, advantages = jax.lax.scan(advantage, last, told[3:], reverse=True)
    batch = (seen, actions, log_probabilities, values + advantages, advantages)
    batch = jax.tree_util.tree_map(lambda array: array.reshape(-1, *array.shape[3:]), batch)  # steps, worlds, agents
    for shuffle_key in shuffle_keys:
        order = jax.random.permutation(shuffle_key, batch[-1].size).reshape(MINIBATCHES, -1)
        optimizer, _ = jax.lax.scan(lambda c, rows: descend(c, [array[rows] for array in batch]), optimizer, order)
    return (optimizer, states, observations), (returns * ended).sum() / ended.sum()


@jax.jit
def train(key):
    network_key, reset_key, update_key = jax.random.split(key, 3)
    networks = make_networks(network_key)
    zeros = jax.tree_util.tree_map(jnp.zeros_like, networks)
    observations, states = reset(jax.random.split(reset_key, WORLDS))
    start = ((networks, zeros, zeros, 0), states, observations)
    (optimizer, *_), returns = jax.lax.scan(update, start, jax.random.split(update_key, UPDATES))
    return optimizer[0], returns


begin = time.perf_counter()
networks, returns = train(jax.random.key(0))
returns = np.asarray(returns)
for count in range(10, UPDATES + 1, 10):
    print(f"update {count:3}: mean return {np.nanmean(returns[count - 10 : count]):.2f}")
print(f"{UPDATES * STEPS * WORLDS:,} steps of worlds in {time.perf_counter() - begin:.0f} s")
