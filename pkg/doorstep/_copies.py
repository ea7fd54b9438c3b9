"""`Owner`: the base of what cannot be copied, because both copies would release the same thing."""

from __future__ import annotations

from typing import Any, NoReturn

from doorstep.errors import CopyError


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
