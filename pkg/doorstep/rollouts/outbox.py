"""Outputs that have come, until calls have returned them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar, final

from doorstep.rollouts.changes import SLICE_SECONDS, Changes, TimeLimit

Part = TypeVar("Part")  # a sequence of outputs, which can be sliced
Returned = TypeVar("Returned")

# What a call makes of its part: something to return, or to raise, or neither; and the rest, which goes back.
Reading: TypeAlias = tuple[Returned | None, Exception | None, Part | None]


@final
class Delivery(Generic[Part]):
    """What one call is about to return. It is in the outbox again if the call is over and has not returned it."""

    __slots__ = ("is_over", "part")

    def __init__(self) -> None:
        self.part: Part | None = None
        self.is_over = False


class Outbox(Generic[Part]):
    """What has come in order, less what calls have returned. Its user guards it with a lock.

    Python raises KeyboardInterrupt in the main thread, when a function begins, after a call, and at a jump back: never
    within an assignment, nor between two that follow each other. So what belongs together is changed by one assignment,
    and what a call leaves undone that Ctrl-C ends, the next one does.

    Args:
        join: makes one part of several.
        count: the results in a part.

    Attributes:
        num_taken: results that calls have returned, or are about to.
        incoming: what brings the next part, and has its length; None: nothing.
        changes: in the outbox, and in what is to come.
    """

    def __init__(self, join: Callable[[list[Part]], Part], count: Callable[[Part], int]) -> None:
        self._join, self._count = join, count
        self._parts: list[Part] = []
        self._deliveries: list[Delivery[Part]] = []
        self.num_taken = 0
        self.incoming: Any = None
        self.changes = Changes()

    def hand_out(
        self,
        fill: Callable[[Delivery[Part]], bool],
        wait: Callable[[int, float], None],
        read: Callable[[Part], Reading[Returned, Part]],
        timeout: float | None,
    ) -> Returned | None:
        """What is read from outputs; None if none is to come, or the time is over. Those of which nothing is read are
        dropped.

        Args:
            fill: calls `fill()` with the lock; whether there was something, or nothing is to come.
            wait: waits for changes since a count, at most some seconds.
            read: makes of a part what the call returns or raises, and what goes back.
        """
        limit = TimeLimit(timeout)
        while True:
            delivery: Delivery[Part] = Delivery()
            try:
                is_late = False
                while True:
                    before = self.changes.count
                    if fill(delivery) or is_late:
                        break
                    left = limit.left(SLICE_SECONDS)
                    is_late = left == 0
                    wait(before, left)
                if delivery.part is None:
                    return None
                value, error, delivery.part = read(delivery.part)
                if error is not None:
                    raise error
                if value is not None:
                    return value
            finally:
                delivery.is_over = True
                error = None  # whose traceback refers to this frame

    # ---- With the lock

    def put(self, part: Part) -> None:
        """Adds a part, and forgets what has brought it."""
        added: list[Part] = [part] if len(part) else []  # type: ignore[arg-type]
        end = len(self._parts)
        self._parts[end:], self.incoming = added, None

    def fill(self, delivery: Delivery[Part], most: int) -> None:
        """Moves up to `most` outputs into a delivery, if there are any."""
        self.take_back()
        used = outputs = 0
        while used < len(self._parts) and outputs < most:
            outputs += len(self._parts[used])  # type: ignore[arg-type]
            used += 1
        if not used:
            return
        whole: Any = self._parts[0] if used == 1 else self._join(self._parts[:used])
        head, rest = whole[:most], [whole[most:]] if outputs > most else []
        num_taken, deliveries = self.num_taken + self._count(head), [*self._deliveries, delivery]
        self._parts[:used], delivery.part, self.num_taken, self._deliveries = rest, head, num_taken, deliveries

    def take_back(self) -> None:
        """What calls did not return that are over."""
        for delivery in self._deliveries:
            if delivery.is_over:
                back = [] if delivery.part is None else [delivery.part]
                num_taken = self.num_taken - sum(map(self._count, back))
                others = [other for other in self._deliveries if other is not delivery]
                self._parts[:0], self.num_taken, self._deliveries = back, num_taken, others

    # ---- Without it

    @property
    def is_coming(self) -> bool:
        return self.incoming is not None and len(self.incoming) > 0

    def __len__(self) -> int:
        """Outputs that are here, or have been taken and will be."""
        back = [one.part for one in self._deliveries if one.is_over and one.part is not None]
        coming = [self.incoming] if self.is_coming else []
        return sum(map(len, [*self._parts, *back, *coming]))
