"""What the episodes of a policy in a level amount to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from doorstep._arguments import refuse
from doorstep._configs import Checked, Integer, Items, Part
from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.episodes import Episodes
from doorstep.evaluation.statistics import Estimate, estimate_mean, estimate_share
from doorstep.levels.generated import ROOM_ENDS

ROOMS = ("second room", "third room", "out")


@final
@dataclass(frozen=True)
class RoomScore(Checked):
    """How often agents got into a room of the reference's levels.

    Attributes:
        room: "second room", "third room" or "out", which is beyond the third.
        one: share of episodes in which at least one agent got there.
        all: share of episodes in which all agents did, at any time of the episode.
    """

    room: str
    one: Estimate
    all: Estimate


@final
@dataclass(frozen=True)
class Score(Checked):
    """A policy in a level.

    Attributes:
        policy, level: their names.
        episodes: how many were played.
        mean_return: of an episode's return, which is the mean of its agents' sums of rewards.
        mean_length: of an episode, steps.
        success: share of episodes that ended because the goal was reached; None in levels without a goal.
        rooms: how far agents got, in the reference's levels and others of its generator; empty in others.
    """

    policy: str
    level: str
    episodes: Annotated[int, Integer(low=0)]
    mean_return: Estimate
    mean_length: Estimate
    success: Estimate | None
    rooms: Annotated[tuple[RoomScore, ...], Items(Part(RoomScore), "scores of rooms")]

    def _check(self) -> None:
        rooms = tuple(score.room for score in self.rooms)
        if rooms not in ((), ROOMS):
            refuse("rooms", f"none, or {', '.join(ROOMS)}", rooms)


def score(policy: str, arena: Arena, played: Episodes, seed: int) -> Score:
    """The score of played episodes; seed: of the resamples for the intervals."""
    count = len(played.lengths)
    return Score(
        policy=policy,
        level=arena.name,
        episodes=count,
        mean_return=estimate_mean(played.returns.mean(axis=1, dtype=np.float64), seed),
        mean_length=estimate_mean(played.lengths, seed),
        success=estimate_share(int(played.reached_goal.sum()), count) if arena.has_goal else None,
        rooms=_rooms(played) if arena.has_three_rooms else (),
    )


def _rooms(played: Episodes) -> tuple[RoomScore, ...]:
    count = len(played.lengths)
    scores = []
    for room, end in zip(ROOMS, ROOM_ENDS, strict=True):
        got_there = played.max_y > end
        by_one, by_all = int(got_there.any(axis=1).sum()), int(got_there.all(axis=1).sum())
        scores.append(RoomScore(room, estimate_share(by_one, count), estimate_share(by_all, count)))
    return tuple(scores)
