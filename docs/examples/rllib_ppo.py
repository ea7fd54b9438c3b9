"""Trains agents by PPO of RLlib. One policy controls all agents; two agents are two rows of the environment.

pip install "doorstep[rllib]"
"""

from ray.rllib.algorithms.ppo import PPOConfig

from doorstep.envs import EscapeRoomRLlibEnv

config = (
    PPOConfig()
    .environment(EscapeRoomRLlibEnv, env_config={"num_agents": 2, "episode_length": 40})
    # 0 runners: the process itself steps 32 worlds. More are actors of Ray with as many worlds each.
    .env_runners(num_env_runners=0, num_envs_per_env_runner=64, gym_env_vectorize_mode="vector_entry_point")
    .training(train_batch_size_per_learner=2560, minibatch_size=512, num_epochs=4, lr=1e-3, gamma=0.98)
    .debugging(seed=1)
)
algorithm = config.build_algo()

for iteration in range(5):
    runners = algorithm.train()["env_runners"]
    print(
        f"iteration {iteration}: return {runners['episode_return_mean']:.3f},"
        f" steps of an episode {runners['episode_len_mean']:.1f}"
    )

algorithm.stop()
