"""Requests as arrays, which the native queue reads in place."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import refuse
from doorstep._native import MAX_EPISODE_LENGTH, MAX_SEED
from doorstep._native import rollouts as native
from doorstep._native.handle import Handle
from doorstep._native.session import create_saved_state
from doorstep.levels.files import AnyLevel
from doorstep.levels.native import to_native
from doorstep.policy import Policy, SamplingParams
from doorstep.rollouts.policies import BUILT_IN, PolicyTable
from doorstep.rollouts.request import MOST_AT_ONCE, EpisodeRequest, chosen_sampling, made_of
from doorstep.rollouts.result import record_bits


@final
@dataclass(frozen=True, eq=False)
class RequestBatch:
    """Requests that differ in their seeds, and in some numbers, only.

    Attributes:
        template: everything that is equal.
        seeds, max_steps: int64 [n]; 0 steps: no limit.
        levels: as in `with_levels()`.
    """

    template: EpisodeRequest
    seeds: NDArray[np.int64]
    max_steps: NDArray[np.int64]
    levels: Sequence[AnyLevel] = ()

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, index: int) -> EpisodeRequest:
        seed, steps = int(self.seeds[index]), int(self.max_steps[index])
        level = self.levels[seed % len(self.levels)] if self.levels else self.template.level
        own = {"seed": seed, "level": level, "max_steps": steps or None}
        return made_of(EpisodeRequest, {**vars(self.template), **own})


def with_levels(
    requests: Sequence[EpisodeRequest] | RequestBatch, levels: Sequence[AnyLevel]
) -> Sequence[EpisodeRequest] | RequestBatch:
    """The requests; those without a level and a state get the level of number `seed % len(levels)`, if there are
    levels."""
    if not levels:
        return requests
    if isinstance(requests, RequestBatch):
        return replace(requests, levels=levels) if _has_no_level(requests.template) else requests
    return [
        replace(one, level=levels[one.seed % len(levels)])
        if isinstance(one, EpisodeRequest) and _has_no_level(one)
        else one
        for one in requests
    ]


def _has_no_level(request: EpisodeRequest) -> bool:
    return request.level is None and request.state is None


@final
class Episodes:
    """The episodes of requests, `n` of each, in the order of the requests.

    Args:
        continuations: which of its episodes is played of each request; None: all.

    Raises:
        ArgumentError: one of them is no request, or there are too many.
    """

    def __init__(
        self, requests: Sequence[EpisodeRequest] | RequestBatch, continuations: Sequence[int] | None = None
    ) -> None:
        self.requests, self._continuations = requests, continuations
        self._ends: NDArray[np.int64] | None = None  # behind the last episode of each request; None: each has one
        if isinstance(requests, RequestBatch):
            counts: Any = requests.template.n
        else:
            for request in requests:
                if not isinstance(request, EpisodeRequest):
                    refuse("request", "a doorstep.EpisodeRequest, or a sequence of them", request)
            counts = [request.n if continuations is None else 1 for request in requests]
        total = int(np.sum(np.broadcast_to(counts, len(requests))))
        if total > MOST_AT_ONCE:
            refuse("requests", f"at most {MOST_AT_ONCE} episodes at a time", total)
        if total > len(requests):
            self._ends = np.cumsum(np.broadcast_to(counts, len(requests)), dtype=np.int64)
        self._total = total

    def __len__(self) -> int:
        return self._total

    def __getitem__(self, index: int) -> EpisodeRequest:
        return self.requests[index if self._ends is None else int(self._ends.searchsorted(index, "right"))]

    def tags(self, indices: NDArray[Any]) -> Any:
        """Those that the caller gave the requests of these episodes."""
        if isinstance(self.requests, RequestBatch):
            return self.requests.template.tag
        return [self[index].tag for index in indices.tolist()]

    def continuation(self, index: int) -> int:
        """Which of its request's episodes this is."""
        if self._ends is None:
            return 0 if self._continuations is None else self._continuations[index]
        return int(self.places(index, index + 1)[1][0])

    def places(self, start: int, stop: int) -> tuple[Any, Any]:
        """Those of the requests of some episodes, and which of its request's episodes each is."""
        if self._ends is None:
            return slice(start, stop), 0 if self._continuations is None else self._continuations[start:stop]
        episodes = np.arange(start, stop)
        places = self._ends.searchsorted(episodes, "right")
        return places, episodes - np.where(places > 0, self._ends[places - 1], 0)


def make_batch(template: EpisodeRequest, seeds: Any, max_steps: Any) -> RequestBatch:
    """Checks the numbers of a batch; max_steps: None, a number, or one for each seed."""
    checked = _integers("seeds", seeds, 0, MAX_SEED)
    of_all = not isinstance(max_steps, Sized) or getattr(max_steps, "ndim", 1) == 0
    steps = np.zeros(1, np.int64)
    if max_steps is not None:
        steps = _integers("max_steps", [max_steps] if of_all else max_steps, 1, MAX_EPISODE_LENGTH)
    if of_all:
        steps = np.broadcast_to(steps, len(checked))
    if len(steps) != len(checked):
        refuse("max_steps", f"an integer, or one for each of {len(checked)} seeds", max_steps)
    return RequestBatch(template, checked, steps)


def _integers(name: str, values: Any, low: int, high: int) -> NDArray[np.int64]:
    if isinstance(values, Sized) and getattr(values, "shape", None) != () and len(values) > MOST_AT_ONCE:
        refuse(name, f"at most {MOST_AT_ONCE} of them", f"{len(values)} of them")
    array = np.asarray(values)
    requirement = f"a sequence of integers, {low} to {high}"
    if array.shape == (0,):  # an empty list is an array of floats
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        refuse(name, requirement, values)
    outside = np.flatnonzero((array < low) | (array > high))
    if outside.size:
        refuse(f"{name}[{outside[0]}]", f"an integer, {low} to {high}", int(array[outside[0]]))
    return array.astype(np.int64)


@final
class WrittenRequests:
    """Requests as records of the native queue. Those of their episodes are made where there may be room for them, so
    that memory grows with what is accepted.

    Args:
        array: a record for each request, or one for all.
        policies: that they name.
        kept: what must live until they are submitted.

    Attributes:
        fields: values of some fields, for each request.
    """

    def __init__(self, episodes: Episodes, array: NDArray[Any], policies: frozenset[int], kept: list[Any]) -> None:
        self._episodes, self.array, self.policies, self._kept = episodes, array, policies, kept
        self.fields: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self._episodes)

    def part(self, start: int, stop: int, first_tag: int) -> NDArray[Any]:
        """The records of some episodes; first_tag: of all."""
        places, continuations = self._episodes.places(start, stop)
        records = np.array(np.broadcast_to(self.array, len(self._episodes.requests))[places])
        records["continuation"] = continuations
        records["tag"] = np.arange(first_tag + start, first_tag + stop, dtype=np.uint64)
        for name, values in self.fields.items():
            records[name] = values[places]
        return records


@final
class RequestWriter:
    """Writes requests as records of the native queue.

    Args:
        num_agents: of an episode.
        policies: numbers for their policies.
        are_loaded: whether these are what plays: then it is known what they tell.
        chosen: what gives a request the values of some fields of its record, by their names; None: the library does.
    """

    def __init__(
        self,
        num_agents: int,
        policies: PolicyTable,
        *,
        are_loaded: bool = True,
        **chosen: Callable[[EpisodeRequest], float] | None,
    ) -> None:
        self._num_agents, self._policies, self._are_loaded = num_agents, policies, are_loaded
        self._chosen = {name: choose for name, choose in chosen.items() if choose is not None}
        self._levels: weakref.WeakKeyDictionary[AnyLevel, Handle] = weakref.WeakKeyDictionary()

    def write(self, episodes: Episodes) -> WrittenRequests:
        requests = episodes.requests
        if isinstance(requests, RequestBatch):
            written = WrittenRequests(episodes, *self._write_all([requests.template]))
            written.fields = self._fields_of(requests, written)
        else:
            written = WrittenRequests(episodes, *self._write_all(requests))
        for name, choose in self._chosen.items():
            written.fields[name] = np.array([choose(requests[place]) for place in range(len(requests))])
        return written

    def _fields_of(self, batch: RequestBatch, written: WrittenRequests) -> dict[str, NDArray[Any]]:
        fields: dict[str, NDArray[Any]] = {"seed": batch.seeds, "max_steps": batch.max_steps}
        if self._chosen_sampling([batch.template], written.array)[0].seed is None:
            fields["sampling_seed"] = batch.seeds
        if batch.levels:
            handles = list(map(self._shared, batch.levels))  # which live as long as their levels
            fields["level"] = np.array([handle.value for handle in handles], np.uint64)[batch.seeds % len(handles)]
        return fields

    def _write_all(self, requests: Sequence[EpisodeRequest]) -> tuple[NDArray[Any], frozenset[int], list[Any]]:
        array = np.zeros(len(requests), native.REQUEST_DTYPE)
        now = native.monotonic_ns()
        array["seed"] = [request.seed for request in requests]
        array["max_steps"] = [request.max_steps or 0 for request in requests]
        array["priority"] = [request.priority for request in requests]
        array["deadline_ns"] = [
            0 if request.deadline is None else now + int(request.deadline * 1e9) for request in requests
        ]
        array["record"] = [record_bits(request) for request in requests]
        policies = self._write_policies(array, requests)
        if self._are_loaded:
            self._check_recorded(array, requests)
        self._write_sampling(array, requests)
        levels = _write_handles(array["level"], [request.level for request in requests], self._shared)
        states = _write_handles(array["state"], [request.state for request in requests], create_saved_state)
        return array, policies, [*levels, *states]

    def _write_policies(self, array: NDArray[Any], requests: Sequence[EpisodeRequest]) -> frozenset[int]:
        written = array["policies"][:, : self._num_agents]
        held: set[int] = set()  # until the requests are unanswered ones
        if len({id(request.policy) for request in requests}) == 1:  # as in most sequences
            written[:] = self._policies.numbers_of(requests[0].policy, held)
        else:
            for row, request in zip(written, requests, strict=True):
                row[:] = self._policies.numbers_of(request.policy, held)
        return frozenset(held)

    def _check_recorded(self, array: NDArray[Any], requests: Sequence[EpisodeRequest]) -> None:
        numbers = array["policies"][:, : self._num_agents].tolist()
        asked = {(one.record, tuple(its)) for one, its in zip(requests, numbers, strict=True) if one.record}
        for record, given in asked:
            check_recorded(record, [self._policies[number] for number in given])

    def _write_sampling(self, array: NDArray[Any], requests: Sequence[EpisodeRequest]) -> None:
        params = self._chosen_sampling(requests, array)
        array["sampling_seed"] = [
            request.seed if sampling.seed is None else sampling.seed
            for request, sampling in zip(requests, params, strict=True)
        ]
        array["sampling"] = [sampling.native_row() for sampling in params]

    def _chosen_sampling(self, requests: Sequence[EpisodeRequest], array: NDArray[Any]) -> list[SamplingParams]:
        """How the policies of each request choose, whose numbers are written."""
        chosen: dict[tuple[Any, ...], SamplingParams] = {}  # most requests are alike
        keys = [
            (request.sampling, *numbers)
            for request, numbers in zip(requests, array["policies"][:, : self._num_agents].tolist(), strict=True)
        ]
        for request, key in zip(requests, keys, strict=True):
            if key not in chosen:
                chosen[key] = chosen_sampling(request, map(self._policies.__getitem__, key[1:]))
        return [chosen[key] for key in keys]

    def _shared(self, level: AnyLevel) -> Handle:
        handle = self._levels.get(level)
        if handle is None:
            handle = self._levels[level] = native.create_shared_level(to_native(level), self._num_agents)
        return handle


def check_recorded(record: Sequence[str], policies: Sequence[Any]) -> None:
    """Refuses to record what no policy of a request gives.

    Raises:
        ArgumentError: names it.
    """
    if "values" in record and not any(getattr(policy, "has_value", False) for policy in policies):
        hint = "pass a module with one: doorstep.policy.Heads(heads, value=torch.nn.Linear(width, 1))"
        refuse("record", "without 'values' where no policy has a value head", record, hint)
    if "log_probs" in record and not any(isinstance(policy, Policy) or type(policy) in BUILT_IN for policy in policies):
        hint = "functions know them alone: keep them there"
        refuse("record", "without 'log_probs' where all policies are functions", record, hint)


def _write_handles(column: NDArray[Any], objects: Sequence[Any], make: Callable[[Any], Handle]) -> list[Handle]:
    """What each of them is in the library; None: nothing."""
    handles: dict[int, Handle] = {}
    for index, one in enumerate(objects):
        if one is not None:
            handles[id(one)] = handles.get(id(one)) or make(one)
            column[index] = handles[id(one)].value
    return list(handles.values())
