"""The policies of the soak's requests: sound ones, slow ones, and all kinds of broken ones."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep.policy import load_policy

COMPONENTS = 4


class Walk:
    """Every row by itself, from its observations."""

    name, fails = "walk", False

    def __call__(self, rows: NDArray[np.float32]) -> NDArray[np.int32]:
        actions = np.zeros((len(rows), COMPONENTS), np.int32)
        actions[:, 0] = 3
        actions[:, 1] = (np.abs(rows[:, :5].sum(axis=1)) * 64).astype(np.int32) % 8
        actions[:, 2] = 2
        return actions


class Slow(Walk):
    """As `Walk`, but it takes its time."""

    def __call__(self, rows: NDArray[np.float32]) -> NDArray[np.int32]:
        time.sleep(0.002)
        return super().__call__(rows)


class Raising:
    """Raises at every third call, say: ordinary errors, and those that end programs and threads."""

    name, fails = "raising", True

    def __init__(self, error: type[BaseException], every: int) -> None:
        self._error, self._every, self._calls = error, every, 0

    def __call__(self, rows: NDArray[np.float32]) -> NDArray[np.int32]:
        self._calls += 1
        if self._calls % self._every == 0:
            raise self._error(f"injected at call {self._calls % 7}")
        return np.zeros((len(rows), COMPONENTS), np.int32)


class Returning:
    """Returns something that is not actions."""

    name, fails = "returning", True

    def __init__(self, returned: Any) -> None:
        self._returned = returned

    def __call__(self, rows: NDArray[np.float32]) -> Any:
        return self._returned(rows)


def sound_policies() -> list[Any]:
    """New ones each time: their numbers in the engine, and their native twins, come and go."""
    policies = ["random", "idle", Walk(), Slow()]
    return [*policies, native()] if _torch() else policies


def broken_policies() -> list[Any]:
    return [
        Raising(ValueError, 3),
        Raising(SystemExit, 2),
        Raising(KeyboardInterrupt, 5),
        Raising(MemoryError, 4),
        Returning(lambda rows: None),
        Returning(lambda rows: np.zeros((len(rows) + 1, COMPONENTS), np.int32)),
        Returning(lambda rows: np.zeros((len(rows), COMPONENTS), np.float32)),
        Returning(lambda rows: np.full((len(rows), COMPONENTS), 99, np.int64)),
        Returning(lambda rows: [[1, 2, 3], [1]]),
    ]


def native() -> Any:
    """A network that the library reads in place."""
    torch = _torch()
    torch.manual_seed(1)
    layers = torch.nn.Linear(94, 32), torch.nn.Tanh(), torch.nn.Linear(32, 19)
    return load_policy(torch.nn.Sequential(*layers))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch
