"""Plays episodes of a parallel environment of PettingZoo.

pip install "doorstep[pettingzoo]"
"""

import numpy as np

import doorstep.envs

env = doorstep.envs.EscapeRoomParallelEnv(num_agents=3, episode_length=100, render_mode="rgb_array")

for episode in range(3):
    observations, infos = env.reset(seed=episode)
    while env.agents:
        # This is where you would insert the policies, and give them observations[agent].
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        observations, rewards, terminations, truncations, infos = env.step(actions)

    for agent, info in infos.items():
        print(f"episode {episode}: {agent} has a return of {info['episode_returns']:.2f}")

state = env.state()
print(f"the state of the world has {state.size} numbers; an observation, {observations['agent_0'].size}")
print("a picture:", np.asarray(env.render()).shape)
env.close()
