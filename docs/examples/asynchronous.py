"""Chooses actions for one half of the worlds while the other half is simulated.

pip install "doorstep[gymnasium]"
"""

import time

import doorstep.envs

NUM_ENVS, STEPS, POLICY_SECONDS = 4096, 50, 0.01


def policy(observations, space):
    """Stands for a network on another device: this processor only waits for its answer."""
    time.sleep(POLICY_SECONDS * len(observations) / NUM_ENVS)
    return space.sample()


one = doorstep.envs.EscapeRoomVectorEnv(NUM_ENVS, seed=1)
observations, info = one.reset()
begin = time.perf_counter()
for _ in range(STEPS):
    observations, rewards, terminations, truncations, info = one.step(policy(observations, one.action_space))
one_after_the_other = time.perf_counter() - begin
one.close()

groups = doorstep.envs.AsyncEscapeRooms(NUM_ENVS, num_groups=2, seed=1)
groups.async_reset()
begin = time.perf_counter()
for _ in range(STEPS * groups.num_groups):
    observations, rewards, terminations, truncations, info = groups.recv()
    groups.send(policy(observations, groups.action_space), info["env_id"])
overlapping = time.perf_counter() - begin
groups.close()

print(f"one after the other: {1000 * one_after_the_other / STEPS:.2f} ms per step of {NUM_ENVS} worlds")
print(f"overlapping:         {1000 * overlapping / STEPS:.2f} ms")
