"""Bases of what cannot be copied, because both copies would release the same thing."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from doorstep.errors import CopyError

Self = TypeVar("Self", bound="ClosingOwner")


class Owner:
    """Owns or views memory, a file, a thread or a handle by its number, which is another's in a copy or a pickle.

    remedy: what users do instead, as an argument of the class.
    """

    __slots__ = ()
    _remedy = "make another one"

    def __init_subclass__(cls, remedy: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        if remedy:
            cls._remedy = remedy

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise CopyError(f"a {name} belongs to this process and cannot be copied or pickled", hint=self._remedy)


class ClosingOwner(Owner):
    """An owner with `close()`, which the end of a `with` block calls."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def _check_open(self) -> None:
        """Raises ClosedError where a closed one must not be entered."""

    def __enter__(self: Self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
