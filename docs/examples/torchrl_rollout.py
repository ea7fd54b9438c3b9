"""Trains agents with TorchRL's PPO for a few seconds.

pip install "doorstep[torchrl]"
"""

import torch
from tensordict.nn import TensorDictModule
from torchrl.modules import MLP, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss, ValueEstimators

import doorstep.envs

torch.manual_seed(0)
torch.set_num_threads(1)  # networks this small are no work for two
env = doorstep.envs.EscapeRoomTorchRLEnv(32, episode_length=40, seed=0)

# All agents have the same policy. Its keys are those of the group "agents".
features, choices = env.observation_spec["agents", "observation"].shape[-1], sum(doorstep.ACTIONS)
logits = MLP(features, choices, num_cells=[64, 64])
policy = ProbabilisticActor(
    TensorDictModule(logits, in_keys=[("agents", "observation")], out_keys=[("agents", "logits")]),
    in_keys=[("agents", "logits")],
    out_keys=[("agents", "action")],
    distribution_class=doorstep.envs.MultiDiscrete,
    return_log_prob=True,
    log_prob_key=("agents", "action_log_prob"),
)
critic = TensorDictModule(
    MLP(features, 1, num_cells=[64, 64]), in_keys=[("agents", "observation")], out_keys=[("agents", "value")]
)

loss = ClipPPOLoss(
    policy, critic, entropy_coeff=0.001, normalize_advantage=True, normalize_advantage_exclude_dims=(-2,)
)
keys = {name: ("agents", name) for name in ("reward", "action", "done", "terminated", "value")}
loss.set_keys(**keys, sample_log_prob=("agents", "action_log_prob"))
loss.make_value_estimator(ValueEstimators.GAE, gamma=0.97, lmbda=0.95)
optimizer = torch.optim.Adam(loss.parameters(), lr=2e-3)

for iteration in range(13):
    with torch.no_grad():
        data = env.rollout(40, policy, break_when_any_done=False)  # one episode of every world
        loss.value_estimator(data, params=loss.critic_network_params, target_params=loss.target_critic_network_params)
    if iteration % 4 == 0:
        returns = data["next", "agents", "reward"].sum(1)
        print(f"iteration {iteration}: mean return {returns.mean():.2f}")
    steps = data.reshape(-1)
    for _ in range(4):
        for rows in torch.randperm(len(steps)).chunk(4):
            losses = loss(steps[rows])
            total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
            optimizer.zero_grad()
            total.backward()
            torch.nn.utils.clip_grad_norm_(loss.parameters(), 1.0)
            optimizer.step()

env.close()
