"""Steps an environment of PufferLib 3 with a policy that walks ahead; its buffers are the simulator's memory.

pip install doorstep pufferlib
"""

import time

import numpy as np

from doorstep.envs import EscapeRoomPufferEnv

WORLDS, STEPS = 512, 200

env = EscapeRoomPufferEnv(WORLDS, episode_length=100)  # also: pufferlib.vector.make(EscapeRoomPufferEnv, ...)
generator = np.random.default_rng(0)
observations, _ = env.reset(seed=1)
kept = observations.copy()  # the next step overwrites the buffer

returns = []
begin = time.perf_counter()
for _ in range(STEPS):
    # This is where a policy would read env.observations and write env.actions: neither is copied.
    env.actions[:] = (3, 0, 2, 0)
    env.actions[:, 1] = generator.choice([0, 1, 7], env.num_agents)  # ahead, or a little to a side
    observations, rewards, terminals, truncations, infos = env.step(env.actions)
    returns += [info["episode_return"] for info in infos]
seconds = time.perf_counter() - begin

print(f"{env.num_agents} rows of {observations.shape[1]} numbers; observations changed: {(kept != observations).any()}")
print(f"{WORLDS * STEPS / seconds:,.0f} steps of worlds per second; mean return {np.mean(returns):.2f}")
env.close()
