"""Requests as arrays, which the native queue reads in place."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

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
        self._places: NDArray[np.intp] | None = None  # those of their requests; None: each has one
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
            self._places = np.repeat(np.arange(len(requests)), counts)

    def __len__(self) -> int:
        return len(self.requests) if self._places is None else len(self._places)

    def __getitem__(self, index: int) -> EpisodeRequest:
        return self.requests[index if self._places is None else self._places[index]]

    def tags(self, indices: NDArray[Any]) -> Any:
        """Those that the caller gave the requests of these episodes."""
        if isinstance(self.requests, RequestBatch):
            return self.requests.template.tag
        return [self[index].tag for index in indices.tolist()]

    def continuation(self, index: int) -> int:
        """Which of its request's episodes this is."""
        if self._continuations is not None:
            return self._continuations[index]
        return 0 if self._places is None else index - int(np.searchsorted(self._places, self._places[index]))

    def spread(self, array: NDArray[Any]) -> NDArray[Any]:
        """Records of the requests as records of the episodes, with their numbers."""
        if self._continuations is not None:
            array["continuation"] = self._continuations
        if self._places is None:
            return array
        first = np.searchsorted(self._places, np.arange(len(array)))
        spread = array[self._places]
        spread["continuation"] = np.arange(len(spread)) - first[self._places]
        return spread


def make_batch(template: EpisodeRequest, seeds: Any, max_steps: Any) -> RequestBatch:
    """Checks the numbers of a batch; max_steps: None, a number, or one for each seed."""
    checked = _integers("seeds", seeds, 0, MAX_SEED)
    if max_steps is None:
        return RequestBatch(template, checked, np.zeros_like(checked))
    steps = _integers("max_steps", [max_steps] if np.ndim(max_steps) == 0 else max_steps, 1, MAX_EPISODE_LENGTH)
    if np.ndim(max_steps) == 0:
        steps = np.repeat(steps, len(checked))
    if len(steps) != len(checked):
        refuse("max_steps", f"an integer, or one for each of {len(checked)} seeds", max_steps)
    return RequestBatch(template, checked, steps)


def _integers(name: str, values: Any, low: int, high: int) -> NDArray[np.int64]:
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
class WrittenRequests(NamedTuple):
    """Records of the native queue, the policies that they name, and what must live until they are submitted."""

    array: NDArray[Any]
    policies: frozenset[int]
    kept: list[Any]


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
        written = self._write_batch(requests) if isinstance(requests, RequestBatch) else self._write_all(requests)
        array = episodes.spread(written.array)
        for name, choose in self._chosen.items():
            array[name] = [choose(episodes[index]) for index in range(len(episodes))]
        return written._replace(array=array)

    def _write_batch(self, batch: RequestBatch) -> WrittenRequests:
        one = self._write_all([batch.template])
        array = np.repeat(one.array, len(batch))
        array["seed"], array["max_steps"] = batch.seeds, batch.max_steps
        if self._chosen_sampling([batch.template], one.array)[0].seed is None:
            array["sampling_seed"] = batch.seeds
        if not batch.levels:
            return WrittenRequests(array, one.policies, one.kept)
        handles = list(map(self._shared, batch.levels))
        array["level"] = np.array([handle.value for handle in handles], np.uint64)[batch.seeds % len(handles)]
        return WrittenRequests(array, one.policies, [*one.kept, *handles])

    def _write_all(self, requests: Sequence[EpisodeRequest]) -> WrittenRequests:
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
        kept = [*self._write_levels(array, requests), *_write_states(array, requests)]
        return WrittenRequests(array, policies, kept)

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

    def _write_levels(self, array: NDArray[Any], requests: Sequence[EpisodeRequest]) -> list[Any]:
        handles: dict[int, Handle] = {}
        for index, level in enumerate(request.level for request in requests):
            if level is None:
                continue
            if id(level) not in handles:
                handles[id(level)] = self._shared(level)
            array["level"][index] = handles[id(level)].value
        return list(handles.values())

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
    if "log_probs" in record and not any(_tells_log_probs(policy) for policy in policies):
        hint = "functions know them alone: keep them there"
        refuse("record", "without 'log_probs' where all policies are functions", record, hint)


def _write_states(array: NDArray[Any], requests: Sequence[EpisodeRequest]) -> list[Handle]:
    handles: dict[int, Handle] = {}
    for index, state in enumerate(request.state for request in requests):
        if state is None:
            continue
        if id(state) not in handles:
            handles[id(state)] = create_saved_state(state)
        array["state"][index] = handles[id(state)].value
    return list(handles.values())


def _tells_log_probs(policy: Any) -> bool:
    return isinstance(policy, Policy) or type(policy) in BUILT_IN
