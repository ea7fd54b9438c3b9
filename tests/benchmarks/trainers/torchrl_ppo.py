"""PPO of TorchRL: its collector, advantage estimator and loss. `VecNormV2` normalises observations."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from tests.benchmarks.trainers.meter import Meter, TimeIsUpError
from tests.benchmarks.trainers.task import learning_rate_factor, rules
from torch.optim.lr_scheduler import LambdaLR
from torchrl.collectors import Collector
from torchrl.envs import ExplorationType, TransformedEnv, VecNormV2, set_exploration_type
from torchrl.modules import ActorValueOperator, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from doorstep.envs import EscapeRoomTorchRLEnv, MultiDiscrete
from doorstep.training import TrainingConfig
from doorstep.training.networks import ActorCritic

OBSERVATION, ACTION, LOGITS = ("agents", "observation"), ("agents", "action"), ("agents", "logits")
FEATURES, VALUE, LOG_PROBABILITY = ("agents", "features"), ("agents", "value"), ("agents", "action_log_prob")
KEYS = {name: ("agents", name) for name in ("reward", "done", "terminated", "value")}


class Rooms(EscapeRoomTorchRLEnv):
    """Episodes that run out of time have ended for good, as for the other trainers: agents observe the time."""

    def __init__(self, config: TrainingConfig, meter: Meter) -> None:
        super().__init__(config.simulator.num_worlds, **rules(config))
        self._meter = meter

    def _step(self, tensordict: Any) -> Any:
        self._meter.before_step()
        stepped = super()._step(tensordict)
        stepped["agents", "terminated"] = stepped["agents", "done"]
        return stepped


def make_model(config: TrainingConfig, env: Any) -> ActorValueOperator:
    """The policy and the values of all agents, with the same hidden layers."""
    network = ActorCritic(config.network, env.observation_spec[OBSERVATION].shape[-1:])
    actor = ProbabilisticActor(
        TensorDictModule(network.actor, in_keys=[FEATURES], out_keys=[LOGITS]),
        in_keys=[LOGITS],
        out_keys=[ACTION],
        distribution_class=MultiDiscrete,
        return_log_prob=True,
        log_prob_key=LOG_PROBABILITY,
    )
    return ActorValueOperator(
        TensorDictModule(network.encoder, in_keys=[OBSERVATION], out_keys=[FEATURES]),
        actor,
        TensorDictModule(network.critic, in_keys=[FEATURES], out_keys=[VALUE]),
    )


def train(config: TrainingConfig, meter: Meter) -> Any:
    torch.manual_seed(config.seed)
    ppo, frames = config.ppo, config.steps_per_update
    env = TransformedEnv(Rooms(config, meter), VecNormV2([OBSERVATION], decay=0.9999, reduce_batch_dims=True))
    model = make_model(config, env)
    policy, critic = model.get_policy_operator(), model.get_value_operator()
    estimate = GAE(gamma=ppo.gamma, lmbda=ppo.gae_lambda, value_network=critic)
    estimate.set_keys(**KEYS)
    loss = ClipPPOLoss(
        policy,
        critic,
        clip_epsilon=ppo.clip_range,
        entropy_coeff=ppo.entropy_coefficient,
        critic_coeff=ppo.value_coefficient / 2,  # of the squared error; ours is of half of it
        loss_critic_type="l2",
        normalize_advantage=True,
    )
    loss.set_keys(**KEYS, action=ACTION, sample_log_prob=LOG_PROBABILITY)
    optimizer = torch.optim.Adam(loss.parameters(), lr=ppo.learning_rate, eps=1e-5, fused=True)
    schedule = LambdaLR(optimizer, learning_rate_factor(config))
    collector = Collector(env, policy, frames_per_batch=frames, total_frames=config.num_updates * frames)
    with suppress(TimeIsUpError):
        for data in collector:
            with torch.no_grad():
                estimate(data)
            update(config, loss, optimizer, data.reshape(-1))
            schedule.step()
    normalize = env.transform.to_observation_norm()
    return lambda observations: act(policy, normalize, torch.from_numpy(observations))


def update(config: TrainingConfig, loss: ClipPPOLoss, optimizer: torch.optim.Optimizer, steps: Any) -> None:
    ppo = config.ppo
    for _ in range(ppo.num_epochs):
        for rows in torch.randperm(len(steps)).chunk(ppo.num_minibatches):
            losses = loss(steps[rows])
            optimizer.zero_grad()
            (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
            torch.nn.utils.clip_grad_norm_(loss.parameters(), ppo.max_gradient_norm)
            optimizer.step()


@torch.no_grad()  # type: ignore[untyped-decorator]
def act(policy: Any, normalize: Any, observations: torch.Tensor) -> Any:
    data = normalize(TensorDict({"agents": {"observation": observations}}))
    with set_exploration_type(ExplorationType.RANDOM):
        return policy(data)[ACTION].numpy()
