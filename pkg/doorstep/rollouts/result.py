"""What an engine answers: the result of an episode, and its steps where they are streamed."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import refuse
from doorstep._native import ACTIONS
from doorstep._native._generated import EpisodeReason, EpisodeRecord, OutputKind
from doorstep.config import SimulatorConfig
from doorstep.errors import StateError
from doorstep.levels.generated import ROOM_ENDS
from doorstep.recording import Recording
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.recorded import record_episode
from doorstep.rollouts.request import EpisodeRequest, made_of

Reason: TypeAlias = Literal["goal", "time", "cancelled", "expired", "failed"]
REASONS: dict[int, Reason] = {int(reason): reason.name.lower() for reason in EpisodeReason}  # type: ignore[misc]


@final
@dataclass(frozen=True, eq=False)
class EpisodeResult:
    """The last answer to a request. It pickles, without policies that are no names, which it then says are None.

    What is recorded are views of one block of memory, which lives as long as one of them. `pad_trajectories()` makes a
    batch of many results.

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
        actions: int32 [length, A, 4] if the request records "actions" or any of what follows, else None; also None if
            no step was played, or if the episode was interrupted (see `PriorityScheduler`) when it was cancelled.
        observations: float32 [length, A, F], those before each step, if it records "observations", else None.
        rewards: float32 [length, A], likewise.
        last_observations: float32 [A, F], those after the last step, likewise.
        log_probs: float32 [length, A], if it records "log_probs", else None: the logarithms of the probabilities with
            which the actions were drawn, by temperature and top_p too. Of greedy and idle actions 0; NaN of functions,
            which alone know them.
        versions: int32 [length, A], likewise: which weights chose the action. An engine numbers the weights of modules
            of PyTorch on the CPU in the order in which it sees them, from 0: a policy's version rises when its module's
            weights have changed, and stays as long as they do. 0 of all other policies, also of modules on a GPU, whose
            weights are read in place.
        values: float32 [length, A], if it records "values", else None: the estimates of the value heads, before each
            step. NaN of policies that have none.
        states: float32 [length, A, S], if it records "states", else None: the recurrent states of `doorstep.Policy`
            objects from before each action, as training needs them: zeros where an episode begins. S is the largest
            `state_size` among the agents' policies; smaller states, and those of other policies, end with zeros.
        last_states: float32 [A, S], those after the last step, likewise.
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
    log_probs: NDArray[np.float32] | None
    versions: NDArray[np.int32] | None
    values: NDArray[np.float32] | None
    states: NDArray[np.float32] | None
    last_states: NDArray[np.float32] | None
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
            refuse("record", "'actions' in the request", self.request, 'pass record=("actions",) to the request')
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
        log_probs, versions, values: [A], and states, [A, S], as in `EpisodeResult`, if the request records them.
    """

    id: int
    request: EpisodeRequest
    continuation: int
    step: int
    actions: NDArray[np.int32]
    observations: NDArray[np.float32] | None
    rewards: NDArray[np.float32] | None
    log_probs: NDArray[np.float32] | None
    versions: NDArray[np.int32] | None
    values: NDArray[np.float32] | None
    states: NDArray[np.float32] | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "request": _without_objects(self.request)}


def _without_objects(request: EpisodeRequest) -> EpisodeRequest:
    """The request without policies that are no names: functions and networks may be large, or not pickle."""
    policies = request.policy if isinstance(request.policy, tuple) else (request.policy,)
    named = tuple(policy if isinstance(policy, str) else None for policy in policies)
    return replace(request, policy=named if isinstance(request.policy, tuple) else named[0])


@final
class Rows(NamedTuple):
    """What is recorded in an output: arrays with a row per step, and those after the last step; or None."""

    actions: NDArray[np.int32] | None = None
    observations: NDArray[np.float32] | None = None
    rewards: NDArray[np.float32] | None = None
    last_observations: NDArray[np.float32] | None = None
    log_probs: NDArray[np.float32] | None = None
    versions: NDArray[np.int32] | None = None
    values: NDArray[np.float32] | None = None
    states: NDArray[np.float32] | None = None
    last_states: NDArray[np.float32] | None = None

    def of_step(self) -> dict[str, Any]:
        """The arrays of the only row."""
        return {name: None if rows is None else rows[0] for name, rows in self._asdict().items() if name not in _LAST}


_LAST = ("last_observations", "last_states")
NO_ROWS = Rows()


def view_rows(output: Any, data: NDArray[np.uint8]) -> Rows:
    """Those of an output, in the bytes that go with it; see ds_episode_output in the C API."""
    agents, record, state_size = int(output["num_agents"]), int(output["record"]), int(output["state_size"])
    steps, ends = (1, 0) if output["kind"] == OutputKind.STEP else (int(output["length"]), 1)
    numbers, found, last = data.view(np.int32), {}, {}
    begin = 0

    def take(name: str, dtype: Any, rows: int, *shape: int) -> NDArray[Any]:
        nonlocal begin
        first, begin = begin, begin + rows * agents * math.prod(shape)
        taken: NDArray[Any] = numbers[first:begin].view(dtype).reshape(rows, agents, *shape)
        found[name] = taken[:steps]
        return taken

    take("actions", np.int32, steps, len(ACTIONS))
    if record & EpisodeRecord.LOG_PROBS:
        take("log_probs", np.float32, steps)
        take("versions", np.int32, steps)
    if record & EpisodeRecord.VALUES:
        take("values", np.float32, steps)
    if record & EpisodeRecord.STATES:
        states = take("states", np.float32, steps + ends, state_size)
        last["last_states"] = states[steps] if ends else None
    if record & EpisodeRecord.OBSERVATIONS:
        inputs = (len(numbers) - begin - steps * agents) // ((steps + ends) * agents)
        observations = take("observations", np.float32, steps + ends, inputs)
        last["last_observations"] = observations[steps] if ends else None
        take("rewards", np.float32, steps)
    return Rows(**found, **last)


def make_result(output: Any, request: EpisodeRequest, rows: Rows, error: str) -> EpisodeResult:
    told = dict(zip(output.dtype.names, output.item(), strict=True))
    agents = told["num_agents"]
    started = told["started_ns"] or told["ended_ns"]
    fields = {
        "id": told["id"],
        "request": request,
        "continuation": told["continuation"],
        "reason": REASONS[told["reason"]],
        "returns": told["returns"][:agents].copy(),
        "length": told["length"],
        "max_y": told["max_y"][:agents].copy(),
        "state_hash": told["state_hash"],
        **rows._asdict(),
        "queued_seconds": (started - told["submitted_ns"]) / 1e9,
        "played_seconds": (told["ended_ns"] - started) / 1e9,
        "replica": told["replica"],
        "error": error,
    }
    return made_of(EpisodeResult, fields)


def make_unplayed(
    request_id: int, request: EpisodeRequest, continuation: int, reason: Reason, num_agents: int, error: str
) -> EpisodeResult:
    """The result of a request of which no step was played."""
    return EpisodeResult(
        id=request_id,
        request=request,
        continuation=continuation,
        reason=reason,
        returns=np.zeros(num_agents, np.float32),
        length=0,
        max_y=np.zeros(num_agents, np.float32),
        state_hash=0,
        **NO_ROWS._asdict(),
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
        **rows.of_step(),
    )


def record_bits(request: EpisodeRequest) -> int:
    return sum(EpisodeRecord[name.upper()] for name in request.record) if request.record else 0
