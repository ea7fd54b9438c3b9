"""`EpisodeRequest`: an episode to be played."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, final

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
        n: how many episodes to play that differ in the random numbers of their policies only, each with a result, an id
            and a number of its own, `EpisodeResult.continuation`. The first of them is that of n = 1.
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
