"""What an engine answers: the result of an episode, and its steps where they are streamed."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import refuse
from doorstep._native import ACTIONS
from doorstep._native._generated import EpisodeReason, EpisodeRecord, OutputKind
from doorstep._native.rollouts import output_data
from doorstep.config import SimulatorConfig
from doorstep.errors import StateError
from doorstep.levels.generated import ROOM_ENDS
from doorstep.recording import Recording
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.recorded import record_episode
from doorstep.rollouts.request import EpisodeRequest

Reason: TypeAlias = Literal["goal", "time", "cancelled", "expired", "failed"]
REASONS: dict[int, Reason] = {int(reason): reason.name.lower() for reason in EpisodeReason}  # type: ignore[misc]


@final
@dataclass(frozen=True, eq=False)
class EpisodeResult:
    """The last answer to a request. It pickles, without policies that are no names, which it then says are None.

    Attributes:
        id: what `submit()` returned.
        request: the request.
        continuation: which of the request's `n` episodes this is, from 0.
        reason: why the episode ended: "goal", "time" (its length, or max_steps), "cancelled", "expired" (its deadline
            passed) or "failed" (its policy raised: see `error`; or the engine was closed).
        returns: float32 [A], the sum of each agent's rewards in the episode, with those that it had got before a state
            from which it went on.
        length: steps that were played, from the state on if there is one.
        max_y: float32 [A], the largest y of each agent, metres.
        state_hash: of the world at the end, as `Simulator.world_hashes()`; 0 if no step was played.
        actions: int32 [length, A, 4] if the request records "actions" or "observations", else None; also None if no
            step was played, or if the episode was interrupted (see `PriorityScheduler`) when it was cancelled.
        observations: float32 [length, A, F], those before each step, if it records "observations", else None.
        rewards: float32 [length, A], likewise.
        last_observations: float32 [A, F], those after the last step, likewise.
        queued_seconds: from the submission until the episode began, or ended without.
        played_seconds: from then until its end.
        replica: number of the replica that played it; -1: none.
        error: why it failed, as what the policy raised; or "".
    """

    id: int
    request: EpisodeRequest
    continuation: int
    reason: Reason
    returns: NDArray[np.float32]
    length: int
    max_y: NDArray[np.float32]
    state_hash: int
    actions: NDArray[np.int32] | None
    observations: NDArray[np.float32] | None
    rewards: NDArray[np.float32] | None
    last_observations: NDArray[np.float32] | None
    queued_seconds: float
    played_seconds: float
    replica: int
    error: str = ""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "request": _without_objects(self.request)}

    @property
    def finished(self) -> bool:
        """Whether the episode was played to its end."""
        return self.reason in ("goal", "time")

    @property
    def passed_rooms(self) -> NDArray[np.bool_]:
        """bool [R, A]: whether each agent was beyond the end of each of the level's R rooms at any time.

        Raises:
            StateError: the episode went on from a state, whose level is not known.
        """
        if self.request.state is not None:
            hint = "compare max_y with the level's room_ends"
            raise StateError("the level of a saved state is not known", argument="passed_rooms", hint=hint)
        level = self.request.level
        ends = np.array(ROOM_ENDS if level is None else level.room_ends)
        return self.max_y > ends[:, None]

    def record(self, path: str | os.PathLike[str], config: RolloutConfig | SimulatorConfig) -> Recording:
        """Writes the episode as a recording of one world, and opens it.

        The episode is stepped again with its actions, and must come out the same. A recording of an episode without a
        level has no saved world, and can be replayed by later versions; one with a level or a state begins with a saved
        world, which only the same version of doorstep can replay.

        >>> import doorstep, os, tempfile
        >>> config, path = doorstep.SimulatorConfig(8), os.path.join(tempfile.mkdtemp(), "episode.rec")
        >>> with doorstep.RolloutEngine(config) as engine:
        ...     result = engine.future(doorstep.EpisodeRequest(seed=3, record=("actions",))).result()
        >>> result.record(path, config).num_steps
        200

        Args:
            path: the file; one that exists is replaced.
            config: the engine's `config`, or what it was made with.

        Raises:
            ArgumentError: the request records no actions, or an argument is of another kind.
            ReplayError: the episode comes out differently: `config` is not that of the engine. Nothing was written.
            OSError: the file cannot be written.
        """
        if self.actions is None:
            hint = 'pass record=("actions",) to the request'
            refuse("record", "'actions' or 'observations' in the request", self.request, hint)
        return record_episode(path, self.request, self.actions, self.state_hash, config)


@final
@dataclass(frozen=True, eq=False)
class EpisodeStep:
    """A step of an episode whose request records "stream". It pickles as an `EpisodeResult` does.

    Attributes:
        id, request, continuation: as in `EpisodeResult`.
        step: 1 for the first.
        actions: int32 [A, 4].
        observations: float32 [A, F] before the step, if the request records "observations", else None.
        rewards: float32 [A] of the step, likewise.
    """

    id: int
    request: EpisodeRequest
    continuation: int
    step: int
    actions: NDArray[np.int32]
    observations: NDArray[np.float32] | None
    rewards: NDArray[np.float32] | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "request": _without_objects(self.request)}


def _without_objects(request: EpisodeRequest) -> EpisodeRequest:
    """The request without policies that are no names: functions and networks may be large, or not pickle."""
    policies = request.policy if isinstance(request.policy, tuple) else (request.policy,)
    named = tuple(policy if isinstance(policy, str) else None for policy in policies)
    return replace(request, policy=named if isinstance(request.policy, tuple) else named[0])


@final
class Rows(NamedTuple):
    """What is recorded in an output: arrays with a row per step, and what is behind them; or None."""

    actions: NDArray[np.int32] | None = None
    observations: NDArray[np.float32] | None = None
    rewards: NDArray[np.float32] | None = None
    last_observations: NDArray[np.float32] | None = None


NO_ROWS = Rows()


def copy_rows(output: Any) -> Rows:
    """Those of an output with data."""
    agents, components = int(output["num_agents"]), len(ACTIONS)
    num_rows, rows_behind = (1, 0) if output["kind"] == OutputKind.STEP else (int(output["length"]), 1)
    data = output_data(output)
    numbers = len(data) // (4 * agents)  # of an agent: actions, observation and reward of each row, observation
    if numbers == num_rows * components:  # actions alone
        return Rows(data.view(np.int32).reshape(num_rows, agents, components).copy())
    inputs = (numbers - num_rows * (components + 1)) // (num_rows + rows_behind)
    row = np.dtype([
        ("actions", np.int32, (agents, components)),
        ("observations", np.float32, (agents, inputs)),
        ("rewards", np.float32, (agents,)),
    ])  # fmt: skip
    cut = num_rows * row.itemsize
    rows, last = data[:cut].view(row), data[cut:].view(np.float32).reshape(rows_behind, agents, inputs)
    return Rows(
        actions=rows["actions"].copy(),
        observations=rows["observations"].copy(),
        rewards=rows["rewards"].copy(),
        last_observations=last[0].copy() if rows_behind else None,
    )


def make_result(output: Any, request: EpisodeRequest, rows: Rows, error: str) -> EpisodeResult:
    agents = int(output["num_agents"])
    started = int(output["started_ns"]) or int(output["ended_ns"])
    return EpisodeResult(
        id=int(output["id"]),
        request=request,
        continuation=int(output["continuation"]),
        reason=REASONS[int(output["reason"])],
        returns=output["returns"][:agents].copy(),
        length=int(output["length"]),
        max_y=output["max_y"][:agents].copy(),
        state_hash=int(output["state_hash"]),
        actions=rows.actions,
        observations=rows.observations,
        rewards=rows.rewards,
        last_observations=rows.last_observations,
        queued_seconds=(started - int(output["submitted_ns"])) / 1e9,
        played_seconds=(int(output["ended_ns"]) - started) / 1e9,
        replica=int(output["replica"]),
        error=error,
    )


def make_unplayed(
    request_id: int, request: EpisodeRequest, reason: Reason, num_agents: int, error: str
) -> EpisodeResult:
    """The result of a request of which no step was played."""
    return EpisodeResult(
        id=request_id,
        request=request,
        continuation=0,
        reason=reason,
        returns=np.zeros(num_agents, np.float32),
        length=0,
        max_y=np.zeros(num_agents, np.float32),
        state_hash=0,
        actions=None,
        observations=None,
        rewards=None,
        last_observations=None,
        queued_seconds=0.0,
        played_seconds=0.0,
        replica=-1,
        error=error,
    )


def make_step(output: Any, request: EpisodeRequest, rows: Rows) -> EpisodeStep:
    assert rows.actions is not None
    return EpisodeStep(
        id=int(output["id"]),
        request=request,
        continuation=int(output["continuation"]),
        step=int(output["length"]),
        actions=rows.actions[0],
        observations=None if rows.observations is None else rows.observations[0],
        rewards=None if rows.rewards is None else rows.rewards[0],
    )


def record_bits(request: EpisodeRequest) -> int:
    return sum(EpisodeRecord[name.upper()] for name in request.record) if request.record else 0
