"""One world over time: its moments, and the events that led from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from doorstep._native import EntityKind
from doorstep.render.objects import Objects, Snapshot, objects_of


@dataclass(frozen=True)
class Moment:
    """A world after a step."""

    snapshot: Snapshot
    objects: Objects
    rewards: NDArray[np.float32]  # [A]
    returns: NDArray[np.float32]  # [A], of the episode, as far as it was recorded
    final_rewards: NDArray[np.float32]  # [A], of the step after this moment if it ended the episode; else 0
    episode_length: int  # steps, as far as it was recorded
    episode_step: int
    is_out: bool  # all agents were out in this episode


@dataclass(frozen=True)
class Event:
    """Something that happened in the step that led to a moment, or in the one after it, which ended the episode."""

    moment: int  # its index
    step: int  # of the episode
    text: str


class WorldMoments:
    """A world after `see()` was called for each moment.

    With `until_out` it stops when all agents are out, or the episode ends; later moments are left out.
    """

    def __init__(self, until_out: bool) -> None:
        self.moments: list[Moment] = []
        self.events: list[Event] = []
        self._until_out = until_out
        self._stopped = False

    @property
    def level(self) -> str:
        """The name of the level, "" if it has none or several were played."""
        names = {moment.snapshot.level for moment in self.moments}
        return names.pop() if len(names) == 1 else ""

    def see(
        self, snapshot: Snapshot, rewards: NDArray[np.float32], terminated: bool, remaining: int, length: int | None
    ) -> None:
        """Takes the next moment.

        rewards: of the step, [A]; terminated: it ended an episode in a terminal state; remaining: steps of the episode;
        length: of all episodes, steps; None: each level has its own.
        """
        if self._stopped:
            return
        last = self.moments[-1] if self.moments else None
        if last and last.snapshot.episode_index != snapshot.episode_index:
            self._end_episode(last, rewards, terminated)
            last, self._stopped = None, self._until_out
            if self._stopped:
                return
        if length is None:
            length = last.episode_length if last else remaining
        rewards = rewards if self.moments else np.zeros_like(rewards)
        returns = last.returns + rewards if last else np.zeros_like(rewards)
        is_out = bool(last and (last.is_out or terminated)) or snapshot.agents_are_out()
        self.moments.append(
            Moment(
                snapshot=snapshot,
                objects=objects_of(snapshot),
                rewards=rewards,
                returns=returns,
                final_rewards=np.zeros_like(rewards),
                episode_length=length,
                episode_step=length - remaining,
                is_out=is_out,
            )
        )
        if last:
            self._add_events(last, self.moments[-1])
        self._stopped = self._until_out and is_out

    def _add_events(self, before: Moment, after: Moment) -> None:
        was, now = before.snapshot, after.snapshot
        is_door = now.static_kinds[now.door_static] == EntityKind.DOOR
        for door in np.flatnonzero(is_door & (now.door_open != 0) & (was.door_open == 0)):
            self._add(after.episode_step, f"door {door + 1} opened")
        if after.is_out and not before.is_out:
            self._add(after.episode_step, _out(now))

    def _end_episode(self, last: Moment, rewards: NDArray[np.float32], terminated: bool) -> None:
        is_out = last.is_out or terminated
        self.moments[-1] = replace(last, final_rewards=rewards, is_out=is_out)
        what = _out(last.snapshot) if is_out and not last.is_out else "episode ended"
        self._add(last.episode_step + 1, f"{what}, return {(last.returns + rewards).mean():.1f}")

    def _add(self, step: int, text: str) -> None:
        self.events.append(Event(len(self.moments) - 1, step, text))


def _out(snapshot: Snapshot) -> str:
    if snapshot.goal is not None:
        return "goal reached"
    return {1: "agent out", 2: "both agents out"}.get(snapshot.num_agents, f"all {snapshot.num_agents} agents out")
