"""`EpisodeRequest`: an episode to be played; `EpisodeColumns`: many of them."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Iterable, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_bytes, check_integer, is_number, named, refuse
from doorstep._native import MAX_EPISODE_LENGTH, MAX_SEED
from doorstep.levels.files import AnyLevel
from doorstep.levels.generated import GeneratedLevel
from doorstep.levels.level import Level
from doorstep.policy import Policy
from doorstep.policy.loading import AnyPolicy, observed_by
from doorstep.policy.sampling import SamplingParams, check_sampling

Recorded: TypeAlias = Literal["actions", "observations", "log_probs", "values", "states", "stream", "trace"]
Made = TypeVar("Made")

RECORDED: tuple[Recorded, ...] = ("actions", "observations", "log_probs", "values", "states", "stream", "trace")

MOST_AT_ONCE = 2**24  # episodes of one call

_MAX_PRIORITY = 2**62
_LONGEST_DEADLINE = 1e9  # seconds, three decades, which int64 holds as nanoseconds
_DEFAULT_SAMPLING = SamplingParams()  # of policies that have none


@final
@named
@dataclass(frozen=True)
class EpisodeRequest:
    """An episode to be played: its level, who chooses the actions, and what shall be told about it.

    The result depends on these fields alone: not on the worlds, threads and replicas of the engine, nor on what else it
    plays. It is the first episode of `Simulator(1, seed=seed)`, or, with a level, of such a simulator that has only
    this level; or, with a state, the rest of the episode that a simulator was in when it was saved.

    >>> import doorstep
    >>> doorstep.EpisodeRequest(seed=7, policy="random", max_steps=50).max_steps
    50

    Attributes:
        seed: of the level's random choices, 0 to 2**32 - 1; with a state, of the policies' alone.
        level: a level to play; None: one of the engine's `levels`, and without these the reference's.
        state: where the episode goes on, in place of the beginning of a level: a save of one world,
            `sim.save([world])`, of a simulator with the `num_agents` and `episode_length` of the engine's, and with
            levels if it has levels; its device, `auto_reset` and observations may be others. Pending resets and actions
            are no part of it. Policies with a memory begin with an empty one.
        n: how many episodes to play that differ in the random numbers of their policies only, each with a result and a
            number of its own, `EpisodeResult.continuation`. The first of them is that of n = 1.
        policy: chooses the actions: a name in the engine's `policies`, or what `load_policy()` takes, if it observes
            "flat"; or a tuple of that, one for each agent. Each engine loads an object once while requests have it, and
            a text once. The scripted policy plans on the state of a simulator, which engines do not give:
            `doorstep.evaluate()` plays it.
        sampling: how each `doorstep.Policy` chooses; None: as its own `sampling` says, which must then be the same for
            all of a tuple. Without a seed there, random numbers follow from that of the episode.
        max_steps: steps after which the episode ends at the latest; None: the simulator's or the level's length. With a
            state: steps from there on, and policies see the time that its episode has left.
        priority: for the priority scheduler; larger ones are played earlier.
        deadline: seconds from the submission, at most 1e9, after which the episode is not played, or is ended; None:
            none.
        record: what comes back with the result, each of every step and together with the actions: "actions";
            "observations", and rewards; "log_probs" of the actions, and the versions of the policies that chose them;
            "values" that policies expected; "states" of policies with memory: see `EpisodeResult`. "stream": an output
            after each step; "trace": the way of the request is shown in the engine's trace.
        tag: a number of yours, 0 to 2**64 - 1, that comes back with the outputs.

    Raises:
        ArgumentError: a value is out of range; the message names the field, its value and the range.
    """

    _: KW_ONLY
    seed: int = 0
    level: AnyLevel | None = None
    state: bytes | None = field(default=None, repr=False)
    n: int = 1
    policy: AnyPolicy | tuple[AnyPolicy, ...] = "random"
    sampling: SamplingParams | None = None
    max_steps: int | None = None
    priority: int = 0
    deadline: float | None = None
    record: tuple[Recorded, ...] | Recorded = ()
    tag: int = 0

    def __post_init__(self) -> None:
        check_integer("seed", self.seed, 0, MAX_SEED)
        if self.level is not None and not isinstance(self.level, (Level, GeneratedLevel)):
            refuse("level", "a doorstep.Level, a GeneratedLevel or None", self.level)
        if self.state is not None:
            object.__setattr__(self, "state", check_bytes("state", self.state).tobytes())
            if self.level is not None:
                refuse("level", "None where a state is given, which has its own", self.level)
        check_integer("n", self.n, 1, MOST_AT_ONCE)
        check_sampling(self.sampling)
        for policy in self.policy if isinstance(self.policy, tuple) else (self.policy,):
            if policy is not None:  # which is that of results from files, where it is not known
                check_policy(policy)
        if self.max_steps is not None:
            check_integer("max_steps", self.max_steps, 1, MAX_EPISODE_LENGTH)
        check_integer("priority", self.priority, -_MAX_PRIORITY, _MAX_PRIORITY)
        deadline = self.deadline
        if deadline is not None and not (is_number(deadline) and 0 < deadline <= _LONGEST_DEADLINE):
            refuse("deadline", "None or a number of seconds, more than 0 and at most 1e9", self.deadline)
        object.__setattr__(self, "record", _check_record(self.record))
        check_integer("tag", self.tag, 0, 2**64 - 1)


def made_of(kind: type[Made], fields: dict[str, Any]) -> Made:
    """An instance of a frozen dataclass whose fields need no check. Its constructor takes ten times as long, which is
    most of the time of many short episodes."""
    made = object.__new__(kind)
    vars(made).update(fields)
    return made


@final
class EpisodeColumns(Sequence[EpisodeRequest]):
    """Many requests, at the cost of no object for each: arrays of what differs among them.

    >>> import doorstep
    >>> from doorstep.rollouts import EpisodeColumns
    >>> requests = EpisodeColumns(range(1000), max_steps=20, policy="idle")
    >>> len(requests), requests[7].seed
    (1000, 7)

    Args:
        seed: integers [n], a request for each.
        max_steps: as in `EpisodeRequest`, of all, or a sequence with one for each.
        level: likewise.
        policy: likewise; one for each are a list, since a tuple is a policy for each agent.
        fields: others of `EpisodeRequest`, of all.

    Raises:
        ArgumentError: a value is out of range, or a sequence has not n elements; the message names the field.
    """

    def __init__(
        self,
        seed: Sequence[int] | NDArray[Any],
        *,
        max_steps: int | Sequence[int] | NDArray[Any] | None = None,
        level: AnyLevel | Sequence[AnyLevel | None] | None = None,
        policy: AnyPolicy | tuple[AnyPolicy, ...] | list[Any] = "random",
        **fields: Any,
    ) -> None:
        self.seed = _integers("seed", seed, 0, MAX_SEED)
        if max_steps is None:
            self.max_steps = np.broadcast_to(np.int64(0), len(self.seed))  # no limit
        elif isinstance(max_steps, Sized) and getattr(max_steps, "shape", None) != ():
            self.max_steps = _integers("max_steps", max_steps, 1, MAX_EPISODE_LENGTH)
            self._check_length("max_steps", max_steps)
        else:
            steps = check_integer("max_steps", max_steps, 1, MAX_EPISODE_LENGTH)
            self.max_steps = np.broadcast_to(np.int64(steps), len(self.seed))
        self.levels, self.level_of = self._distinct("level", level, isinstance(level, (list, tuple)))
        policies, self.kind_of = self._distinct("policy", policy, isinstance(policy, list))
        self.kinds = tuple(EpisodeRequest(policy=one, **fields) for one in policies)  # what else there is to say
        for one in self.levels:
            EpisodeRequest(level=one, state=fields.get("state"))  # which checks it

    def _distinct(self, name: str, given: Any, is_sequence: bool) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
        """The different values of a field, and which of them each request has."""
        if not is_sequence:
            return (given,), np.broadcast_to(np.int64(0), len(self.seed))
        self._check_length(name, given)
        values = {id(one): one for one in given}
        places = {key: place for place, key in enumerate(values)}
        return tuple(values.values()), np.array([places[id(one)] for one in given], np.int64)

    def _check_length(self, name: str, given: Sized) -> None:
        if len(given) != len(self.seed):
            refuse(name, f"one, or one for each of {len(self.seed)} seeds", given)

    def __len__(self) -> int:
        return len(self.seed)

    @overload
    def __getitem__(self, index: int) -> EpisodeRequest: ...
    @overload
    def __getitem__(self, index: slice) -> list[EpisodeRequest]: ...
    def __getitem__(self, index: int | slice) -> EpisodeRequest | list[EpisodeRequest]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        level, steps = self.levels[self.level_of[index]], int(self.max_steps[index])
        own = {"seed": int(self.seed[index]), "level": level, "max_steps": steps or None}
        return made_of(EpisodeRequest, {**vars(self.kinds[self.kind_of[index]]), **own})

    def __repr__(self) -> str:
        return f"EpisodeColumns({len(self)} requests)"


AnyRequests: TypeAlias = list[EpisodeRequest] | EpisodeColumns


def requests_of(given: Any) -> AnyRequests:
    """The requests of a call, which has one, some, or columns.

    Raises:
        ArgumentError: it has something else, or too many.
    """
    requests: AnyRequests
    if isinstance(given, EpisodeColumns):
        requests = given
    elif isinstance(given, EpisodeRequest):
        requests = [given]
    else:
        hint = "a doorstep.EpisodeRequest, a sequence of them, or EpisodeColumns"
        try:
            requests = list(itertools.islice(given, MOST_AT_ONCE + 1))  # of which one is too many
        except TypeError:
            refuse("requests", hint, given)
        for request in requests:
            if not isinstance(request, EpisodeRequest):
                refuse("requests", hint, request)
    if (total := num_episodes(requests)) > MOST_AT_ONCE:
        refuse("requests", f"at most {MOST_AT_ONCE} episodes at a time", total)
    return requests


def kinds_of(requests: AnyRequests) -> Sequence[EpisodeRequest]:
    """Some of which each of them has all fields but those that columns have."""
    return requests.kinds if isinstance(requests, EpisodeColumns) else requests


def num_episodes(requests: AnyRequests) -> int:
    if isinstance(requests, EpisodeColumns):
        return requests.kinds[0].n * len(requests) if len(requests) else 0
    return sum(request.n for request in requests)


def with_levels(requests: AnyRequests, levels: Sequence[AnyLevel]) -> AnyRequests:
    """The requests; those without a level and a state get the level of number `seed % len(levels)`, if there are
    levels."""
    if not levels:
        return requests
    if not isinstance(requests, EpisodeColumns):
        return [
            made_of(EpisodeRequest, {**vars(one), "level": levels[one.seed % len(levels)]})
            if one.level is None and one.state is None
            else one
            for one in requests
        ]
    if any(one.state is not None for one in requests.kinds):
        return requests
    given, has_none = copy.copy(requests), np.array([level is None for level in requests.levels])
    given.levels = (*requests.levels, *levels)
    drawn = len(requests.levels) + requests.seed % len(levels)
    given.level_of = np.where(has_none[requests.level_of], drawn, requests.level_of)
    return given


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


def chosen_sampling(request: EpisodeRequest, policies: Iterable[Any]) -> SamplingParams:
    """How the policies of a request choose, once they are loaded: by its `sampling`, or by their own.

    Raises:
        ArgumentError: they have several.
    """
    if request.sampling is not None:
        return request.sampling
    own = {policy.sampling for policy in policies if isinstance(policy, Policy)}
    if len(own) > 1:
        refuse("sampling", "given where the policies of a tuple have several", None, f"they have {own}")
    return own.pop() if own else _DEFAULT_SAMPLING


def check_policy(policy: Any) -> None:
    """Refuses what no engine can play, as far as that is known before it is loaded.

    Raises:
        ArgumentError: it is nothing that chooses actions, or observes more than an engine gives.
    """
    if isinstance(policy, (str, os.PathLike)):
        observed = "simulator" if policy == "scripted" else "flat"  # engines have names of their own
    elif callable(policy) or (isinstance(policy, list) and policy and all(map(callable, policy))):
        observed = observed_by(policy)
    else:
        refuse("policy", "what load_policy() takes, or a tuple of it", policy)
    if observed != "flat":
        hint = "doorstep.evaluate() plays it, and so do loops: sim.actions = policy(...)"
        refuse("policy", f'one that observes "flat" and not "{observed}", of which an engine has none', policy, hint)


def _check_record(record: Any) -> tuple[Recorded, ...]:
    names = (record,) if isinstance(record, str) else record
    if not isinstance(names, (tuple, list, set, frozenset)) or not all(name in RECORDED for name in names):
        refuse("record", "some of " + ", ".join(map(repr, RECORDED)), record)
    return tuple(name for name in RECORDED if name in names)
