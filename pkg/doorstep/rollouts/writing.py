"""Requests as arrays of records, which the library reads in place."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import refuse
from doorstep._native import rollouts as native
from doorstep._native._generated import EpisodeRecord
from doorstep._native.handle import Handle
from doorstep._native.session import create_saved_state
from doorstep.levels.files import AnyLevel
from doorstep.levels.native import to_native
from doorstep.policy import Policy
from doorstep.rollouts.policies import BUILT_IN, InUse, PolicyTable
from doorstep.rollouts.request import AnyRequests, EpisodeColumns, EpisodeRequest, chosen_sampling, kinds_of


@final
class WrittenRequests:
    """Requests as records. These are made where there may be room for them, so that memory grows with what is accepted.

    Args:
        rows: records with what columns do not have.
        row_of: which of them each request has; None: its own.
        columns: values of some fields, for each request.
        policies: the numbers of those that they name.
        kept: what must live until they are submitted.
    """

    def __init__(
        self,
        rows: NDArray[Any],
        row_of: NDArray[Any] | None,
        columns: dict[str, NDArray[Any]],
        policies: frozenset[int],
        kept: list[Handle],
    ) -> None:
        self._rows, self._row_of, self._columns, self.policies, self._kept = rows, row_of, columns, policies, kept

    def part(self, start: int, stop: int, first_tag: int = 0) -> NDArray[Any]:
        """The records of the requests from one place to another; first_tag: of all."""
        places: Any = slice(start, stop) if self._row_of is None else self._row_of[start:stop]
        records: NDArray[Any] = np.array(self._rows[places])
        for name, values in self._columns.items():
            records[name] = values[start:stop]
        is_own = records["sampling_seed"] < 0
        records["sampling_seed"][is_own] = records["seed"][is_own]
        records["tag"] = np.arange(first_tag + start, first_tag + stop, dtype=np.uint64)
        return records


@final
class RequestWriter:
    """Writes requests as records.

    Args:
        num_agents: of an episode.
        policies: numbers for their policies.
        chosen: what gives a request the values of some fields of its record, by their names; None: the library does.
    """

    def __init__(
        self, num_agents: int, policies: PolicyTable, **chosen: Callable[[EpisodeRequest], float] | None
    ) -> None:
        self._num_agents, self._policies = num_agents, policies
        self._chosen = {name: choose for name, choose in chosen.items() if choose is not None}
        self._levels: weakref.WeakKeyDictionary[AnyLevel, Handle] = weakref.WeakKeyDictionary()

    def write(self, requests: AnyRequests, in_use: InUse) -> WrittenRequests:
        """in_use: as of `PolicyTable.numbers_of()`."""
        rows, policies, kept = self._write_rows(kinds_of(requests), in_use)
        row_of, columns = None, {}
        if isinstance(requests, EpisodeColumns):
            levels = np.zeros(len(requests.levels), np.uint64)
            kept += _write_handles(levels, requests.levels, self._shared)
            row_of, columns = requests.kind_of, {"seed": requests.seed, "max_steps": requests.max_steps}
            columns["level"] = levels[requests.level_of]
        for name, choose in self._chosen.items():
            columns[name] = np.array([choose(request) for request in requests])
        return WrittenRequests(rows, row_of, columns, policies, kept)

    def _write_rows(
        self, requests: Sequence[EpisodeRequest], in_use: InUse
    ) -> tuple[NDArray[Any], frozenset[int], list[Handle]]:
        rows = np.zeros(len(requests), native.REQUEST_DTYPE)
        held: set[int] = set()  # policies, until the requests are unanswered ones
        kinds: dict[Any, tuple[Any, ...]] = {}  # most requests are alike
        keys = [(id(one.policy), one.record, one.sampling) for one in requests]
        for key, one in zip(keys, requests, strict=True):
            if key not in kinds:
                kinds[key] = self._kind_of(one, held, in_use)
        if requests:
            numbers, record, sampling, seed = zip(*map(kinds.__getitem__, keys), strict=True)
            rows["policies"][:, : self._num_agents] = numbers
            rows["record"], rows["sampling"], rows["sampling_seed"] = record, list(sampling), seed
        for name in ("seed", "priority", "n"):
            rows[name] = [getattr(one, name) for one in requests]
        now = native.monotonic_ns()
        rows["max_steps"] = [one.max_steps or 0 for one in requests]
        rows["deadline_ns"] = [0 if one.deadline is None else now + int(one.deadline * 1e9) for one in requests]
        levels = _write_handles(rows["level"], [one.level for one in requests], self._shared)
        states = _write_handles(rows["state"], [one.state for one in requests], create_saved_state)
        return rows, frozenset(held), [*levels, *states]

    def _kind_of(self, request: EpisodeRequest, held: set[int], in_use: InUse) -> tuple[Any, ...]:
        """The numbers of its policies, what it records, and how policies choose, with which seed; -1: its own."""
        numbers = self._policies.numbers_of(request.policy, held, in_use)
        policies = [self._policies[number] for number in numbers]
        _check_recorded(request.record, policies)
        sampling = chosen_sampling(request, policies)
        record = sum(EpisodeRecord[name.upper()] for name in request.record)
        return numbers, record, sampling.native_row(), -1 if sampling.seed is None else sampling.seed

    def _shared(self, level: AnyLevel) -> Handle:
        handle = self._levels.get(level)
        if handle is None:
            handle = self._levels[level] = native.create_shared_level(to_native(level), self._num_agents)
        return handle


def _check_recorded(record: Sequence[str], policies: Sequence[Any]) -> None:
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
