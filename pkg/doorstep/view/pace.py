"""How many steps are due: real time, in steps per second."""

from __future__ import annotations

_LONGEST_DELAY = 0.1  # seconds; whoever is later than that does not catch up


class Pace:
    """A clock that ticks `rate` times a second; the caller says what time it is."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._next: float | None = None

    def restart(self) -> None:
        """Forgets the past: the next question is answered as the first one was."""
        self._next = None

    def take(self, now: float) -> int:
        """Steps that are due by now and have not been taken: one at the first question, none at rate 0."""
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
        """Seconds until a step is due; None: never."""
        if self.rate <= 0:
            return None
        return 0.0 if self._next is None else max(self._next - now, 0.0)
