"""An environment of rsl_rl, and the distribution of discrete actions that rsl_rl lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.modules.distribution import Distribution
from tensordict import TensorDict
from torch import nn

from doorstep._arguments import refuse
from doorstep._native import ACTIONS
from doorstep._observations import OBSERVATIONS, Parts
from doorstep.envs._arrays import torch_arrays
from doorstep.envs._rooms import AgentsView, EnvObservations, OverRooms, Rooms, refuse_pixels
from doorstep.envs.distributions import MultiDiscrete


class EscapeRoomRslRlEnv(OverRooms, VecEnv):  # type: ignore[misc]
    """A vector environment of rsl_rl; its tensors stay on the simulator's device, and no step waits for a GPU.

    A step that ends an episode begins the next one, and returns its first observation. Episodes that the time ended
    are in `extras["time_outs"]`, for which rsl_rl adds the value of the observation before to the reward.

    rsl_rl has no discrete distribution: give its actor `MultiDiscreteDistribution`.

    >>> import torch, doorstep.envs
    >>> env = doorstep.envs.EscapeRoomRslRlEnv(8, seed=3)    # 4 worlds of 2 agents
    >>> env.get_observations()["policy"].shape
    torch.Size([8, 94])
    >>> actions = torch.zeros(env.num_envs, env.num_actions)
    >>> observations, rewards, dones, extras = env.step(actions)
    >>> rewards.shape, dones.shape, extras["time_outs"].shape
    (torch.Size([8]), torch.Size([8]), torch.Size([8]))
    >>> env.close()

    Args:
        num_envs: environments.
        agents: what an environment is. "rows": an agent of a world, so that one policy controls all agents; `num_envs`
            is then a multiple of `num_agents`. "joint": a world; its action is the actions of all agents side by side,
            its reward their mean.
        observations: parts, as for `Simulator`: the group "policy", float32 [num_envs, features]. "by_name": a group
            for each part, "lidar" and so on, each float32 [num_envs, features].
        critic_observations: further parts, such as ("physics",): the group "critic" has these after those of "policy".
        rules: of the simulator, by name: `seed`, `device`, `num_agents`, `episode_length`, ... as for
            `doorstep.SimulatorConfig`.

    Attributes:
        num_envs: environments.
        num_actions: components of an environment's action.
        max_episode_length: steps of an episode.
        device: of all tensors.

    Raises:
        ArgumentError: an argument is out of range; the message names it.
    """

    def __init__(
        self,
        num_envs: int = 2,
        *,
        agents: AgentsView = "rows",
        observations: EnvObservations = OBSERVATIONS,
        critic_observations: Parts | None = None,
        **rules: Any,
    ) -> None:
        refuse_pixels(observations)
        self._rooms = Rooms(
            num_envs,
            agents=agents,
            observations=observations,
            critic_observations=critic_observations,
            autoreset="same_step",
            arrays=torch_arrays,
            rules=rules,
        )
        self.num_envs = num_envs
        self.num_actions = len(self._rooms.action_sizes)
        self.max_episode_length = self._rooms.config.episode_length
        self.device = torch.device(self._rooms.device)
        self._show_worlds()
        self.reset()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._show_worlds()

    def __getstate__(self) -> dict[str, Any]:
        views = ("_steps_remaining", "_resets")  # of the simulator's memory
        return {name: value for name, value in vars(self).items() if name not in views}

    def _show_worlds(self) -> None:
        tensors = self._rooms.simulator.tensors
        self._steps_remaining = tensors["steps_remaining"].to_torch()[:, 0, 0]
        self._resets = tensors["resets"].to_torch()[:, 0]

    @property
    def cfg(self) -> dict[str, Any]:
        """The rules by name, with the seed of the levels."""
        return self._rooms.config.to_dict()

    @property
    def unwrapped(self) -> EscapeRoomRslRlEnv:
        """The environment itself."""
        return self

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """int64 [num_envs]: steps of the current episodes.

        Setting it moves episodes ahead in time, never back: they are cut off so many steps earlier.
        `OnPolicyRunner.learn(..., init_at_random_ep_len=True)` does that, so that not all episodes end at once. Agents
        of one world have the same episode: of their numbers the first counts.
        """
        return (self._elapsed() + self._ahead).repeat_interleave(self._rooms.rows_per_world)

    @episode_length_buf.setter
    def episode_length_buf(self, lengths: torch.Tensor) -> None:
        if not isinstance(lengths, torch.Tensor) or tuple(lengths.shape) != (self.num_envs,):
            shown = list(lengths.shape) if isinstance(lengths, torch.Tensor) else lengths
            refuse("episode_length_buf", f"a tensor of the shape {[self.num_envs]}", shown)
        by_world = lengths.to(self.device, torch.int64)[:: self._rooms.rows_per_world]
        self._ahead = (by_world - self._elapsed()).clamp(min=0)
        self._is_ahead = True

    def reset(self, seed: int | None = None) -> tuple[TensorDict, dict[str, Any]]:
        """Begins new episodes everywhere.

        Args:
            seed: of the levels, 0 to 2**32 - 1. None: the levels that follow those seen.

        Returns:
            Observations, and an empty dictionary.
        """
        self._observations = self._by_group(self._rooms.start(seed))
        self._ahead = torch.zeros_like(self._elapsed())
        self._is_ahead = False
        self._was_ended = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        return self._observations, {}

    def get_observations(self) -> TensorDict:
        """The current observations."""
        return self._observations

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Steps every environment once.

        Args:
            actions: [num_envs, num_actions], numbers of choices, of any dtype.

        Returns:
            Observations; rewards, float32 [num_envs]; dones, bool [num_envs]; extras:

            - "time_outs": bool [num_envs], where the time ended the episode, not the task.
            - "final_observations": the last observations of the episodes that ended in this step; 0 elsewhere.
            - "log": the mean return and length of the latest episode of each environment that has ended one; 0 before
              the first episode ends.

        Raises:
            ArgumentError: the actions have another shape.
        """
        if isinstance(actions, torch.Tensor) and actions.is_floating_point():
            actions = actions.to(torch.int32)
        expired = self._expired()
        try:
            outcome = self._rooms.step(actions)
        except BaseException:
            self._resets.zero_()
            raise
        time_outs, dones = outcome.truncations, outcome.ended
        if expired is not None:
            time_outs = time_outs | (expired & ~outcome.terminations)
            dones = dones | expired
            ended_worlds = dones[:: self._rooms.rows_per_world]
            self._ahead = torch.where(ended_worlds, 0, self._ahead)
        self._was_ended = self._was_ended | dones
        self._observations = self._by_group(outcome.observation)
        final = self._by_group(self._rooms.final_observation(dones))
        extras = {"time_outs": time_outs, "final_observations": final, "log": self._log()}
        return self._observations, outcome.rewards, dones, extras

    # ---- Steps of these ----

    def _elapsed(self) -> torch.Tensor:
        """int64 [worlds]: steps of the current episodes of the simulator."""
        return self.max_episode_length - self._steps_remaining.long()

    def _expired(self) -> torch.Tensor | None:
        """Booleans by row: whose time ends with the next step, though the simulator's would not. Resets them."""
        if not self._is_ahead:
            return None
        worlds = (self._ahead > 0) & (self._elapsed() + self._ahead + 1 >= self.max_episode_length)
        self._resets.copy_(worlds)
        return worlds.repeat_interleave(self._rooms.rows_per_world)

    def _by_group(self, observation: Any) -> TensorDict:
        parts = observation if isinstance(observation, dict) else {"policy": observation}
        if hidden := self._rooms.num_critic_inputs:
            parts = {"policy": observation[..., :-hidden], "critic": observation}
        groups = {name: part.reshape(self.num_envs, -1).float() for name, part in parts.items()}
        return TensorDict(groups, batch_size=[self.num_envs], device=self.device)

    def _log(self) -> dict[str, torch.Tensor]:
        weights = self._was_ended.float() / self._was_ended.sum().clamp(min=1)
        returns, lengths = self._rooms.final_returns(), self._rooms.final_lengths()
        return {"Episode/return": (returns * weights).sum(), "Episode/length": (lengths * weights).sum()}


class MultiDiscreteDistribution(Distribution):  # type: ignore[misc]
    """rsl_rl's distribution of `EscapeRoomRslRlEnv`'s actions: independent choices, each with logits of its own.

    rsl_rl finds it by name:

        "actor": {
            "class_name": "MLPModel",
            "distribution_cfg": {"class_name": "doorstep.envs:MultiDiscreteDistribution"},
        }

    Args:
        output_dim: components of an action.
        sizes: number of choices of each component. None: those of an agent's action, for as many agents as the
            components suffice.

    Raises:
        ArgumentError: the number of sizes is not `output_dim`.
    """

    def __init__(self, output_dim: int, sizes: Sequence[int] | None = None) -> None:
        super().__init__(output_dim)
        self.sizes = list(ACTIONS) * (output_dim // len(ACTIONS)) if sizes is None else list(sizes)
        if len(self.sizes) != output_dim:
            refuse("sizes", f"{output_dim} numbers of choices, as output_dim says", self.sizes)
        self._distribution: MultiDiscrete | None = None

    @property
    def input_dim(self) -> int:
        """Logits that the network computes."""
        return sum(self.sizes)

    def update(self, mlp_output: torch.Tensor) -> None:
        """Sets the logits, [..., input_dim]."""
        self._distribution = MultiDiscrete(mlp_output, self.sizes, validate_args=False)

    def sample(self) -> torch.Tensor:
        """Actions, int64 [..., output_dim]."""
        return self._current.sample()

    def deterministic_output(self, mlp_output: torch.Tensor) -> torch.Tensor:
        """The likeliest actions, int64 [..., output_dim]."""
        return MultiDiscrete(mlp_output, self.sizes, validate_args=False).mode

    def as_deterministic_output_module(self) -> nn.Module:
        """`deterministic_output()` as a module for exports."""
        return _Likeliest(self.sizes)

    def log_prob(self, outputs: torch.Tensor) -> torch.Tensor:
        """[...]: of actions [..., output_dim] of any dtype."""
        return self._current.log_prob(outputs)

    @property
    def mean(self) -> torch.Tensor:
        """[..., output_dim]: the mean number of each component."""
        return self._current.mean

    @property
    def std(self) -> torch.Tensor:
        """[..., output_dim]: the standard deviation of each component's number."""
        return self._current.stddev

    @property
    def entropy(self) -> torch.Tensor:
        """[...]: summed over the components."""
        return self._current.entropy()

    @property
    def params(self) -> tuple[torch.Tensor, ...]:
        """The logits."""
        return (self._current.logits,)

    def kl_divergence(self, old_params: tuple[torch.Tensor, ...], new_params: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """[...]: of the new logits from the old ones, summed over the components."""
        old, new = (MultiDiscrete(logits, self.sizes, validate_args=False) for (logits,) in (old_params, new_params))
        return torch.distributions.kl_divergence(old, new)

    @property
    def _current(self) -> MultiDiscrete:
        assert self._distribution is not None, "update() comes first"
        return self._distribution


class _Likeliest(nn.Module):  # type: ignore[misc]
    """The likeliest choice of each component, for TorchScript and ONNX."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        return torch.stack([part.argmax(-1) for part in torch.split(logits, self.sizes, -1)], -1)
