"""An environment of TorchRL, with tensors on the simulator's device, grouped as its multi-agent losses expect."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Bounded, Categorical, Composite, MultiCategorical, Unbounded
from torchrl.envs import EnvBase

from doorstep._action_forms import NO_TUPLES, ActionForm
from doorstep._arguments import check_choice, check_integer, refuse
from doorstep._native import MAX_SEED
from doorstep._observations import OBSERVATIONS
from doorstep.envs._arrays import Arrays, torch_arrays
from doorstep.envs._rooms import FLAT_OBSERVATION, Element, EnvObservations, OverRooms, Rooms, integers, rows_of_worlds
from doorstep.errors import StateError

AGENTS = "agents"  # the group of all agents
DONES = ("done", "terminated", "truncated")


class EscapeRoomTorchRLEnv(OverRooms, EnvBase):  # type: ignore[misc]
    """A batch of escape rooms as an environment of TorchRL, with the batch size [num_envs].

    For N worlds of A agents, where F is the length of one agent's observation (94 for two agents):

    | key | shape | dtype |
    |---|---|---|
    | ("agents", "observation") | [N, A, F] | float32 |
    | ("agents", "action") | [N, A, 4] | int64 |
    | ("agents", "reward") | [N, A, 1] | float32 |
    | "done", "terminated", "truncated" | [N, 1] | bool |
    | the same in "agents" | [N, A, 1] | bool |

    Agents of a world end their episode together: the flags of the group repeat those of the world, in the shape of the
    rewards, as advantage estimators want them. What `reset()` and `step()` return has memory of its own.

    Ended episodes are followed by others where TorchRL resets them, as `rollout(break_when_any_done=False)` and
    collectors do; so ("next", "agents", "observation") is the last observation of an ended episode. `set_seed()`
    chooses the levels of the next reset of all worlds.

    On a GPU, a step does not wait for the device, but a reset of some worlds does, as does TorchRL itself when it looks
    for ended episodes.

    >>> import doorstep.envs
    >>> env = doorstep.envs.EscapeRoomTorchRLEnv(4, seed=3)
    >>> rollout = env.rollout(10)
    >>> rollout["agents", "observation"].shape, rollout["next", "agents", "reward"].shape
    (torch.Size([4, 10, 2, 94]), torch.Size([4, 10, 2, 1]))
    >>> env.close()

    Args:
        num_envs: worlds.
        actions: the form of an agent's action. "multi_discrete": its four components. "discrete": one number, 0 to 319,
            as for `EscapeRoomVectorEnv`: ("agents", "action") is int64 [N, A].
        observations: parts, as for `Simulator`: one vector for each agent, ("agents", "observation"). "by_name": the
            parts by name, ("agents", "lidar") and so on. "pixels": the views of `cameras` by name, ("agents", "rgb")
            and so on.
        rules: of the simulator, by name: `seed`, `device`, `num_agents`, `episode_length`, `cameras`, ... as for
            `doorstep.SimulatorConfig`.

    Raises:
        ArgumentError: an argument is out of range; the message names it.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        actions: ActionForm = "multi_discrete",
        observations: EnvObservations = OBSERVATIONS,
        **rules: Any,
    ) -> None:
        check_choice("actions", actions, NO_TUPLES)
        rooms = Rooms(
            rows_of_worlds(num_envs, rules),
            agents="rows",
            actions=actions,
            observations=observations,
            autoreset="disabled",
            arrays=_arrays,
            rules=rules,
        )
        super().__init__(device=torch.device(rooms.device), batch_size=[num_envs])
        self._rooms = rooms
        self._seed: int | None = None  # of the next reset of all worlds; None: that of the simulator
        # What the parts of an agent's observation are called in its group
        self._keys = tuple("observation" if name == FLAT_OBSERVATION else name for name in rooms.elements)
        self._asks = rooms.device == "cpu"
        self.group_map = {AGENTS: [f"agent_{agent}" for agent in range(rooms.num_agents)]}
        with self.device:  # TorchRL makes tensors for them on the default one
            self._make_specs()
        self._flags = self._no_flags()

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Closes the simulator."""
        EnvBase.close(self, raise_if_closed=raise_if_closed)
        self._rooms.close()

    def to(self, device: Any) -> EscapeRoomTorchRLEnv:
        """The environment itself: a simulator stays on its device.

        Raises:
            ArgumentError: another device than the simulator's.
        """
        if torch.device(device) not in (self.device, torch.device(self.device.type)):
            hint = "make the environment with device=..., or cast its data with DeviceCastTransform"
            refuse("device", f"{str(self.device)!r}, where the simulator is", str(device), hint)
        return self

    # ---- What TorchRL calls ----

    def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: Any) -> TensorDictBase:
        worlds = None if tensordict is None else self._worlds_to_reset(tensordict)
        if worlds is None:
            seed, self._seed = self._seed, None
            observation = self._rooms.start(seed)
            self._flags = self._no_flags()
        else:
            observation = self._rooms.start(rows=worlds.repeat_interleave(self._rooms.num_agents))
            self._flags = {name: flags & ~worlds for name, flags in self._flags.items()}
        return self._gather(self._parts(observation))

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        actions = tensordict.get((AGENTS, "action"))
        integers("actions", actions, (*self.batch_size, self._rooms.num_agents, *self._rooms.action_shape))
        # Where TorchRL steps only some worlds, it drops what the others return.
        stepped = tensordict.get("_step", None)
        stepped = None if stepped is None else stepped.reshape(self.batch_size)
        self._check_stepped(stepped)
        outcome = self._rooms.step(actions.flatten(0, 1))
        flags = dict(zip(DONES, (outcome.ended, outcome.terminations, outcome.truncations), strict=True))
        flags = {name: self._by_world(values)[:, 0] for name, values in flags.items()}
        if stepped is not None:
            flags = {name: torch.where(stepped, values, self._flags[name]) for name, values in flags.items()}
        self._flags = flags
        return self._gather({**self._parts(outcome.observation), "reward": self._by_world(outcome.rewards)[..., None]})

    def _set_seed(self, seed: int | None) -> None:
        if seed is not None:
            self._seed = check_integer("seed", seed, 0, MAX_SEED)

    # ---- Steps of these ----

    def _make_specs(self) -> None:
        shape = (*self.batch_size, self._rooms.num_agents)
        sizes = self._rooms.action_sizes
        action: Any = MultiCategorical(nvec=sizes, shape=(*shape, len(sizes)), device=self.device)
        if not self._rooms.action_shape:
            action = Categorical(*sizes, shape=torch.Size(shape), device=self.device)
        self.observation_spec = self._group(
            {key: self._spec(*part) for key, part in zip(self._keys, self._rooms.elements.items(), strict=True)}
        )
        self.action_spec = self._group({"action": action})
        reward = Unbounded(shape=(*shape, 1), dtype=torch.float32, device=self.device)
        self.reward_spec = self._group({"reward": reward})
        self.done_spec = Composite(
            {
                **{name: self._flag((*self.batch_size, 1)) for name in DONES},
                AGENTS: Composite({name: self._flag((*shape, 1)) for name in DONES}, shape=shape, device=self.device),
            },
            shape=self.batch_size,
            device=self.device,
        )

    def _spec(self, name: str, element: Element) -> Any:
        """Of a tensor of observations, with the bounds that it has in spaces of gymnasium."""
        shape = (*self.batch_size, self._rooms.num_agents, *element.shape)
        empty = torch.from_numpy(np.empty(0, element.dtype))
        low, high = (torch.as_tensor(bound, dtype=empty.dtype) for bound in self._rooms.bounds(name))
        if not bool(torch.isfinite(high).all()):
            return Unbounded(shape=shape, dtype=empty.dtype, device=self.device)
        low, high = (bound.to(self.device).expand(shape) for bound in (low, high))
        return Bounded(low, high, shape=shape, dtype=empty.dtype, device=self.device)

    def _flag(self, shape: tuple[int, ...]) -> Any:
        return Categorical(n=2, shape=torch.Size(shape), dtype=torch.bool, device=self.device)

    def _group(self, specs: dict[str, Any]) -> Any:
        shape = (*self.batch_size, self._rooms.num_agents)
        group = Composite(specs, shape=shape, device=self.device)
        return Composite({AGENTS: group}, shape=self.batch_size, device=self.device)

    def _gather(self, of_agents: dict[str, Any]) -> TensorDictBase:
        """A tensordict of the agents' tensors and of the current flags."""
        shape = (*self.batch_size, self._rooms.num_agents)
        of_worlds = {name: flags[:, None].clone() for name, flags in self._flags.items()}
        repeated = {name: flags[:, None, None].repeat(1, shape[1], 1) for name, flags in self._flags.items()}
        group = TensorDict({**of_agents, **repeated}, batch_size=shape, device=self.device)
        return TensorDict({AGENTS: group, **of_worlds}, batch_size=self.batch_size, device=self.device)

    def _parts(self, observation: Any) -> dict[str, Any]:
        if not isinstance(observation, dict):
            (name,) = self._keys
            observation = {name: observation}
        return {name: self._by_world(part) for name, part in observation.items()}

    def _by_world(self, array: Any) -> Any:
        return array.reshape(*self.batch_size, self._rooms.num_agents, *array.shape[1:])

    def _no_flags(self) -> dict[str, Any]:
        return {name: torch.zeros(self.batch_size, dtype=torch.bool, device=self.device) for name in DONES}

    def _worlds_to_reset(self, tensordict: TensorDictBase) -> Any:
        """Booleans [N], or None: all."""
        worlds = tensordict.get("_reset", None)
        if worlds is None:
            worlds = tensordict.get((AGENTS, "_reset"), None)
            worlds = None if worlds is None else worlds.any(-2)
        if worlds is None:
            return None
        worlds = worlds.reshape(self.batch_size)
        return None if self._asks and bool(worlds.all()) else worlds

    def _check_stepped(self, stepped: Any) -> None:
        if not self._asks:
            return
        ended = self._flags["done"]
        refused = ended if stepped is None else ended & stepped
        if bool(refused.any()):
            world = int(refused.nonzero()[0, 0])
            raise StateError(
                f"the episode of world {world} has ended", argument="actions", hint='reset it: its "_reset" is True'
            )
        if stepped is not None and bool((~ended & ~stepped).any()):
            world = int((~ended & ~stepped).nonzero()[0, 0])
            raise StateError(
                f'"_step" leaves out world {world}, whose episode goes on',
                argument="_step",
                hint="all worlds are stepped at once; only those whose episode has ended can be left out",
            )


def _arrays(device: str) -> Arrays:
    """The check of ended episodes is `_check_stepped`, which knows of "_step"."""
    return dataclasses.replace(torch_arrays(device), may_ask=False)
