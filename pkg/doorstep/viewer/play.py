"""What steps the simulator, and how fast: live play, a program, recorded play, and the pace.

A step that fails raises the simulator's or the policy's exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from doorstep.recording import Recording, Replay
from doorstep.simulator import Simulator

PlayerAction = Callable[[], tuple[int, int, int, int]]

_LONGEST_DELAY = 0.1  # seconds; steps that are later than this are dropped


class Play(Protocol):
    """A simulator with the actions of its steps."""

    @property
    def position(self) -> int:
        """Steps taken."""

    @property
    def length(self) -> int | None:
        """Number of steps; None: unlimited."""

    def step(self) -> None:
        """Takes one step; at the end it does nothing."""


class LivePlay:
    """A policy acts for all agents except the one that is played by hand, if any.

    Args:
        sim: what is stepped.
        act: sets the simulator's actions before a step, as `doorstep.policy.playing.Player.act()`.
    """

    length = None

    def __init__(self, sim: Simulator, act: Callable[[], None]) -> None:
        self.position = 0
        self.player: tuple[int, int, PlayerAction] | None = None  # world, agent, and its action in the next step
        self._sim = sim
        self._act = act

    def step(self) -> None:
        self._act()
        if self.player is not None:
            self._act_by_hand(*self.player)
        self._sim.step()
        self.position += 1

    def reset(self, *worlds: int) -> None:
        """Starts new episodes in worlds."""
        self._sim.reset(worlds)

    def _act_by_hand(self, world: int, agent: int, act: PlayerAction) -> None:
        actions = self._sim.actions.copy_to_host()
        actions[world, agent] = act()
        self._sim.actions = actions


class SteppedPlay:
    """A program has stepped the simulator where `is_due`; `step()` takes note of that."""

    length = None
    position = 0
    is_due = False

    def step(self) -> None:
        self.position += self.is_due
        self.is_due = False


_MOST_SNAPSHOT_BYTES = 256 << 20
_FEWEST_STEPS_BETWEEN_SNAPSHOTS = 20


class RecordedPlay:
    """A recording; `seek()` brings the simulator to any of its steps.

    A snapshot is kept every so many steps. A jump restores the last snapshot before its goal and steps from there, so
    that worlds, rewards and dones are exactly those of the recording.

    Args:
        sim: a new simulator with the rules of the recording.
        recording: stays open as long as it is played.
    """

    def __init__(self, sim: Simulator, recording: Recording) -> None:
        self._sim = sim
        self._replay = Replay(recording, sim)
        self.length = recording.num_steps
        self._snapshots = {0: sim.save()}
        most_snapshots = max(_MOST_SNAPSHOT_BYTES // len(self._snapshots[0]), 1)
        self._spacing = max(_FEWEST_STEPS_BETWEEN_SNAPSHOTS, -(-self.length // most_snapshots))

    @property
    def position(self) -> int:
        """Steps taken."""
        return self._replay.position

    def step(self) -> None:
        if self.position < self.length:
            self._replay.step()
            if self.position % self._spacing == 0 and self.position not in self._snapshots:
                self._snapshots[self.position] = self._sim.save()

    def seek(self, position: int) -> None:
        """Moves to the state after `position` steps; positions outside the recording become its nearest end."""
        position = min(max(position, 0), self.length)
        # strictly before, unless it is the beginning: only a step writes rewards
        start = max(at for at in self._snapshots if at < max(position, 1))
        if not start <= self.position <= position:
            self._sim.restore(self._snapshots[start])
            self._replay.position = start
        while self.position < position:
            self.step()


class Pace:
    """A clock that ticks `rate` times a second. The caller gives the current time, in seconds."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._next: float | None = None

    def restart(self) -> None:
        """Forgets when the last tick was; the next `take()` returns 1."""
        self._next = None

    def take(self, now: float) -> int:
        """The number of steps that have become due since the last call: 1 in the first call, always 0 at rate 0."""
        if self.rate <= 0:
            self._next = None
            return 0
        period = 1 / self.rate
        if self._next is None or now - self._next > max(_LONGEST_DELAY, period):
            self._next = now
        if now < self._next:
            return 0
        count = int((now - self._next) / period) + 1
        self._next += count * period
        return count

    def wait(self, now: float) -> float | None:
        """Seconds until the next step is due; None: never."""
        if self.rate <= 0:
            return None
        return 0.0 if self._next is None else max(self._next - now, 0.0)
