"""What an engine answers: results of episodes, and their steps where they are streamed."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final, overload

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import refuse
from doorstep._native import ACTIONS
from doorstep._native._generated import EpisodeReason, EpisodeRecord, OutputKind
from doorstep._native.rollouts import OUTPUT_DTYPE
from doorstep.config import SimulatorConfig
from doorstep.errors import StateError
from doorstep.levels.generated import ROOM_ENDS
from doorstep.recording import Recording
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.failures import error_of, have_failed
from doorstep.rollouts.recorded import record_episode
from doorstep.rollouts.request import MOST_AT_ONCE, AnyRequests, EpisodeColumns, EpisodeRequest, Made, made_of

Reason: TypeAlias = Literal["goal", "time", "cancelled", "expired", "failed"]
REASONS: tuple[Reason, ...] = tuple(reason.name.lower() for reason in EpisodeReason)  # type: ignore[misc]

# Requests are found by the tags that the library gives back with their outputs: the number of their submission, and
# the index in it. So nothing is kept for each of many requests.
INDEX_BITS = MOST_AT_ONCE.bit_length() - 1
INDEX_MASK = MOST_AT_ONCE - 1


@final
@dataclass(frozen=True, eq=False)
class EpisodeResult:
    """The last answer to a request. It pickles, without policies that are no names, which it then says are None.

    What is recorded are views of one block of memory, which lives as long as one of them. `pad_trajectories()` makes a
    batch of many results.

    Attributes:
        id: of the request, as `submit()` returned it; that of all of its `n` episodes.
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
            no step was played.
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
class EpisodeResults(Sequence[Any]):
    """Results, and steps where they are streamed: objects, which are made when they are asked for, and columns of all
    results. It pickles as a list.

    Attributes:
        records: the results as an array of records, with `returns_0`, `max_y_0`, ... by agent, and times on
            `time.monotonic_ns()`; `pandas.DataFrame(results.records)` is a table of them. `reason` is the place in
            `EpisodeResult`'s list.
        id, tag, continuation, reason, length, returns, max_y, state_hash, replica, queued_seconds, played_seconds:
            columns, an array each of what the results have, in their order; steps have none.
    """

    def __init__(
        self,
        outputs: NDArray[Any],
        data: dict[int, NDArray[np.uint8]],
        failures: dict[int, tuple[str, str]],
        submissions: dict[int, AnyRequests],
        num_agents: int,
    ) -> None:
        """outputs: of the library; data: what some of them record, by place; failures: likewise, their texts;
        submissions: by number."""
        self._outputs, self._data, self._failures = outputs, data, failures
        self._submissions, self._num_agents = submissions, num_agents

    @staticmethod
    def join(parts: Sequence[EpisodeResults], num_agents: int) -> EpisodeResults:
        """The results of all parts in the order of their requests, which were submitted together."""
        tags, numbers = (
            np.concatenate([np.empty(0, OUTPUT_DTYPE)[name], *(part._outputs[name] for part in parts)])
            for name in ("tag", "continuation")
        )
        places = np.argsort(np.lexsort((numbers, tags)))
        joined, begin = EpisodeResults(np.empty(len(places), OUTPUT_DTYPE), {}, {}, {}, num_agents), 0
        for part in parts:
            own = places[begin : begin + len(part)]
            begin += len(part)
            joined._outputs[own] = part._outputs
            joined._data |= {int(own[place]): data for place, data in part._data.items()}
            joined._failures |= {int(own[place]): texts for place, texts in part._failures.items()}
            joined._submissions |= part._submissions
        return joined

    def _pick(self, places: NDArray[np.intp]) -> EpisodeResults:
        data, failures = _at_places(self._data, places), _at_places(self._failures, places)
        return EpisodeResults(self._outputs[places], data, failures, self._submissions, self._num_agents)

    # ---- Objects

    def __len__(self) -> int:
        return len(self._outputs)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> EpisodeResults: ...
    def __getitem__(self, index: int | slice) -> Any:
        """An `EpisodeResult` or `EpisodeStep`, or a part of all."""
        if isinstance(index, slice):
            return self._pick(np.arange(len(self))[index])
        place = range(len(self))[index]
        output = dict(zip(OUTPUT_DTYPE.names or (), self._outputs[place].item(), strict=True))
        tag, started = output["tag"], output["started_ns"] or output["ended_ns"]
        request = self._submissions[tag >> INDEX_BITS][tag & INDEX_MASK]
        fields = {"id": output["id"], "request": request, "continuation": output["continuation"]}
        arrays = _view(output, self._data[place]) if place in self._data else dict.fromkeys(_ARRAYS)
        if output["kind"] == OutputKind.STEP:
            rows = {name: None if array is None else array[-1] for name, array in arrays.items() if name not in _LAST}
            return made_of(EpisodeStep, {**fields, "step": output["length"], **rows})
        fields |= {
            "reason": REASONS[output["reason"]],
            "returns": output["returns"][: self._num_agents].copy(),
            "length": output["length"],
            "max_y": output["max_y"][: self._num_agents].copy(),
            "state_hash": output["state_hash"],
            **arrays,
            "queued_seconds": (started - output["submitted_ns"]) / 1e9,
            "played_seconds": (output["ended_ns"] - started) / 1e9,
            "replica": output["replica"],
            "error": self._failures.get(place, ("",))[0],
        }
        return made_of(EpisodeResult, fields)

    def is_result(self, place: int) -> bool:
        return bool(self._outputs["kind"][place] == OutputKind.RESULT)

    @property
    def native_tags(self) -> list[int]:
        """The library's, of the requests."""
        tags: list[int] = self._outputs["tag"].tolist()
        return tags

    @functools.cached_property
    def failed(self) -> list[int]:
        """The places of results of episodes that failed."""
        places: list[int] = np.flatnonzero(have_failed(self._outputs)).tolist()
        return places

    def error(self, place: int) -> StateError:
        """Of an episode that failed."""
        return error_of(self[place], self._failures[place][1])

    def __reduce__(self) -> Any:
        return list, (list(self),)

    def __repr__(self) -> str:
        return f"EpisodeResults({len(self)} outputs)"

    # ---- Columns

    @functools.cached_property
    def _results(self) -> NDArray[Any]:
        results: NDArray[Any] = self._outputs[self._outputs["kind"] == OutputKind.RESULT]
        return results

    @functools.cached_property
    def records(self) -> NDArray[Any]:
        records: NDArray[Any] = self._results.copy()
        records["tag"] = [self._tag(tag) for tag in records["tag"].tolist()]
        return records.view(_columns_of(self._num_agents))

    def _tag(self, tag: int) -> int:
        """That the caller gave a request."""
        requests = self._submissions[tag >> INDEX_BITS]
        if isinstance(requests, EpisodeColumns):
            return requests.kinds[0].tag
        return requests[tag & INDEX_MASK].tag

    id = property(lambda self: self._results["id"])
    tag = property(lambda self: self.records["tag"])
    continuation = property(lambda self: self._results["continuation"])
    reason = property(lambda self: np.array(REASONS)[self._results["reason"]])
    length = property(lambda self: self._results["length"])
    returns = property(lambda self: self._results["returns"][:, : self._num_agents])
    max_y = property(lambda self: self._results["max_y"][:, : self._num_agents])
    state_hash = property(lambda self: self._results["state_hash"])
    replica = property(lambda self: self._results["replica"])
    queued_seconds = property(lambda self: (self._started - self._results["submitted_ns"]) / 1e9)
    played_seconds = property(lambda self: (self._results["ended_ns"] - self._started) / 1e9)

    @property
    def _started(self) -> NDArray[np.int64]:
        return np.where(self._results["started_ns"] == 0, self._results["ended_ns"], self._results["started_ns"])


def _at_places(of: dict[int, Made], places: NDArray[np.intp]) -> dict[int, Made]:
    return {new: of[old] for new, old in enumerate(places.tolist()) if old in of} if of else {}


@functools.lru_cache
def _columns_of(num_agents: int) -> np.dtype[Any]:
    """Of records of results, in place: a number in each, as tables have them."""
    fields: Any = OUTPUT_DTYPE.fields
    names = ("id", "tag", "continuation", "reason", "length", "replica", "state_hash")
    columns = {name: fields[name] for name in (*names, "submitted_ns", "started_ns", "ended_ns")}
    for name in ("returns", "max_y"):
        row, start = fields[name]
        columns |= {f"{name}_{agent}": (row.base, start + agent * row.base.itemsize) for agent in range(num_agents)}
    formats, offsets = zip(*columns.values(), strict=True)
    told: Any = {"names": list(columns), "formats": formats, "offsets": offsets, "itemsize": OUTPUT_DTYPE.itemsize}
    columns_type: np.dtype[Any] = np.dtype(told)
    return columns_type


_LAST = ("last_observations", "last_states")
_ARRAYS = ("actions", "observations", "rewards", "log_probs", "versions", "values", "states", *_LAST)


def _view(output: dict[str, Any], data: NDArray[np.uint8]) -> dict[str, NDArray[Any] | None]:
    """The arrays that an output records, in the bytes that go with it; see ds_episode_output in the C API."""
    agents, steps, room, record = (output[name] for name in ("num_agents", "length", "capacity", "record"))
    numbers, begin = data.view(np.int32), 0
    found: dict[str, NDArray[Any] | None] = dict.fromkeys(_ARRAYS)

    def take(name: str, dtype: Any, rows: int, *shape: int) -> NDArray[Any]:
        nonlocal begin
        first, begin = begin, begin + rows * agents * math.prod(shape)
        taken: NDArray[Any] = numbers[first:begin].view(dtype).reshape(rows, agents, *shape)
        found[name] = taken[:steps]
        return taken

    take("actions", np.int32, room, len(ACTIONS))
    if record & EpisodeRecord.LOG_PROBS:
        take("log_probs", np.float32, room)
        take("versions", np.int32, room)
    if record & EpisodeRecord.VALUES:
        take("values", np.float32, room)
    if record & EpisodeRecord.STATES:
        found["last_states"] = take("states", np.float32, room + 1, output["state_size"])[steps]
    if record & EpisodeRecord.OBSERVATIONS:
        inputs = (len(numbers) - begin - room * agents) // ((room + 1) * agents)
        found["last_observations"] = take("observations", np.float32, room + 1, inputs)[steps]
        take("rewards", np.float32, room)
    return found
