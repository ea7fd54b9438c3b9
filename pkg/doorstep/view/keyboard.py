"""Playing by hand: which keys are held, and what they make an agent do.

    W A S D   walk ahead, left, back, right; two of them: in between
    Q E       turn left, right
    Shift     faster
    G         grab or let go
    R         reset the world
"""

from __future__ import annotations

import threading
from typing import Literal, get_args

Key = Literal["W", "A", "S", "D", "Q", "E", "F", "G", "R"]
"""F is how the Shift key is called here."""
KEYS: tuple[Key, ...] = get_args(Key)

_DIRECTIONS: dict[Key, tuple[int, int]] = {"W": (0, 1), "A": (-1, 0), "S": (0, -1), "D": (1, 0)}
_TURNS: dict[Key, int] = {"Q": 1, "E": -1}

# (right, ahead) to the move angle of an action, which counts clockwise from ahead, in eighths of a turn
_ANGLES = {(0, 1): 0, (1, 1): 1, (1, 0): 2, (1, -1): 3, (0, -1): 4, (-1, -1): 5, (-1, 0): 6, (-1, 1): 7}
_WALK, _RUN = 1, 3
_STRAIGHT, _TURN, _FAST_TURN = 2, 1, 2


class Keyboard:
    """The keys of all who look at the page, together. Any thread may tell it about keys."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, set[Key]] = {}  # by whose keyboard it is
        self._tapped: set[Key] = set()
        self._grabs = 0

    def press(self, keyboard: int, key: Key) -> None:
        """A key went down."""
        with self._lock:
            if key == "G":
                self._grabs += 1
            else:
                self._held.setdefault(keyboard, set()).add(key)
                self._tapped.add(key)

    def release(self, keyboard: int, key: Key) -> None:
        """A key went up."""
        with self._lock:
            self._held.get(keyboard, set()).discard(key)

    def forget(self, keyboard: int) -> None:
        """Somebody has gone, with all keys held."""
        with self._lock:
            self._held.pop(keyboard, None)

    def clear(self) -> None:
        """Nothing is held, and nothing that was pressed counts any more."""
        with self._lock:
            self._held.clear()
            self._tapped.clear()
            self._grabs = 0

    def act(self) -> tuple[int, int, int, int]:
        """The action of one step: of what is held now, or was touched since the last step; a grab for each stroke."""
        with self._lock:
            keys = self._tapped.union(*self._held.values())
            self._tapped.clear()
            grab = min(self._grabs, 1)
            self._grabs -= grab
        return (*_walk(keys), _turn(keys), grab)


def _walk(keys: set[Key]) -> tuple[int, int]:
    right = sum(_DIRECTIONS[key][0] for key in keys & _DIRECTIONS.keys())
    ahead = sum(_DIRECTIONS[key][1] for key in keys & _DIRECTIONS.keys())
    if (right, ahead) == (0, 0):
        return 0, 0
    return _RUN if "F" in keys else _WALK, _ANGLES[right, ahead]


def _turn(keys: set[Key]) -> int:
    left = sum(_TURNS[key] for key in keys & _TURNS.keys())
    return _STRAIGHT + left * (_FAST_TURN if "F" in keys else _TURN)
