"""`Player`: a policy that acts in a simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import nearest, shown
from doorstep._beginnings import Beginnings
from doorstep._native._generated import MAX_AGENTS
from doorstep._observations import BY_NAME, AnyObservations, flat_size, part_names, part_size
from doorstep.errors import ArgumentError
from doorstep.policy.built_in import IdlePolicy, RandomPolicy
from doorstep.policy.loading import check_observations, observed_by
from doorstep.policy.policy import Policy
from doorstep.simulator import Simulator
from doorstep.tensor import Tensor

PARTNERS = "partner_observations"
NATIVE = (Policy, RandomPolicy, IdlePolicy)  # they keep nothing of what they observe, and return actions


@final
class Player:
    """Sets the actions of a simulator by a policy, and keeps the policy's state.

    Random numbers of a policy without a seed follow from the simulator's.

    Args:
        policy: what `load_policy()` returned.
        sim: on any device.
        name: of the policy in messages.

    Raises:
        ArgumentError: a network was made for another number of agents, or other observations.
    """

    def __init__(self, policy: Any, sim: Simulator, name: str = "") -> None:
        self._sim = sim
        self._policy: Any = policy.seeded(sim.seed) if isinstance(policy, (Policy, RandomPolicy)) else policy
        self._name = name or getattr(policy, "__name__", type(policy).__name__)
        check_inputs(policy, sim.config.observations, sim.num_agents, self._name)
        self._state: Any = None
        self._began = Beginnings(sim)

    def act(self) -> None:
        """Call it once before each step.

        Raises:
            ArgumentError: the policy returned anything but integers [N, A, 4]; the actions are as they were. What the
                policy raises comes out unchanged.
        """
        returned, state = self._call(), None
        if isinstance(returned, tuple):
            returned, state = self._with_state(returned)
        self._sim.actions = returned if isinstance(self._policy, NATIVE) else self._checked(returned)
        self._state = state

    def forget(self, worlds: NDArray[np.int64]) -> None:
        """Tells of worlds that have begun an episode in another way than by a step or a reset."""
        if self._state is not None:
            self._state[worlds] = 0
        forget = getattr(self._policy, "forget", None)  # of the scripted one
        if forget is not None:
            forget(worlds)

    def _call(self) -> Any:
        observations = self._observe()
        if self._state is None:
            return self._policy(observations)
        self._state[self._began()] = 0
        return self._policy(observations, self._state)

    def _with_state(self, returned: tuple[Any, ...]) -> tuple[Any, Any]:
        if len(returned) != 2:
            self._refuse(f"{len(returned)} values", "actions, or actions and a state")
        if self._state is None:
            self._began()  # later calls tell what has begun since this one
        return returned

    def _observe(self) -> Any:
        sim, policy = self._sim, self._policy
        observes, on_host = observed_by(policy), sim.device == "cpu"
        if observes == "simulator":
            return sim
        if observes == "tensors":
            return _HostCopies(sim.tensors) if on_host else sim.tensors
        if isinstance(policy, NATIVE):
            needs_copy = not on_host and getattr(policy, "device", sim.device) == "cpu"
        else:
            needs_copy = on_host  # which the policy may keep and change
        return sim.observations.copy_to_host() if needs_copy else sim.observations

    # ---- What a policy returned

    def _checked(self, returned: Any) -> Any:
        shape = self._sim.actions.shape
        required = f"integers {list(shape)}"
        where = "in the host's memory" + (f" or on {self._sim.device}" if self._sim.device != "cpu" else "")
        try:
            actions = _as_actions(returned, self._sim)
        except Exception as error:  # whatever an object raises when it cannot become an array
            self._refuse(type(returned).__name__, f"{required} {where}", error)
        kind = str(actions.dtype)
        if "int" not in kind or tuple(actions.shape) != shape:
            is_array = kind != "object"
            self._refuse(f"{kind} {list(actions.shape)}" if is_array else type(returned).__name__, required)
        return actions

    def _refuse(self, returned: str, required: str, error: Exception | None = None) -> NoReturn:
        hint = "" if error is None else f"{type(error).__name__}: {error}"
        message = f"policy {self._name!r} returned {returned}; it must return {required}"
        raise ArgumentError(message, argument="policy", hint=hint) from error


def check_inputs(policy: Any, observations: AnyObservations, num_agents: int, name: str) -> None:
    """Refuses before the first step what every step would refuse.

    Raises:
        ArgumentError: the network was made for another number of agents, or other observations.
    """
    check_observations(policy, name, observations)
    width = flat_size(observations, num_agents)
    if not isinstance(policy, Policy) or policy.num_inputs == width or observations == BY_NAME:
        return
    of_partner = part_size(PARTNERS, 2) if PARTNERS in part_names(observations) else policy.num_inputs
    more_agents, rest = divmod(policy.num_inputs - width, of_partner)
    made_for = num_agents + more_agents
    hint = f"it was made for worlds with num_agents={made_for}" if not rest and 1 <= made_for <= MAX_AGENTS else ""
    message = f"policy {shown(name)} reads {policy.num_inputs} numbers; agents observe {width}"
    raise ArgumentError(message, argument="policy", hint=hint)


def _as_actions(returned: Any, sim: Simulator) -> Any:
    """On the simulator's GPU as they are; otherwise an array of numpy."""
    if sim.device != "cpu" and hasattr(returned, "__cuda_array_interface__"):
        return returned
    if hasattr(returned, "__dlpack__") and not hasattr(returned, "__array__"):
        return np.from_dlpack(returned)
    return np.asarray(returned)


class _HostCopies(Mapping[str, NDArray[Any]]):
    """Tensors by name; every access copies one, which the policy may keep and change."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._tensors:
            raise KeyError(f"{shown(name)} is not a tensor of the simulator; {nearest(name, self._tensors, 'it has')}")
        return self._tensors[name].copy_to_host()

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)
