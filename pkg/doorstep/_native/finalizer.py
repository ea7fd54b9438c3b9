"""`Finalizer`: what is done when an object goes, all of it, and without losing Ctrl-C."""

from __future__ import annotations

import _thread
import atexit
import weakref
from collections.abc import Callable, Generator
from typing import Any, final


@final
class Finalizer:
    """Calls a function when its owner is collected, or when it is called itself; then no more.

    Python drops exceptions of functions that it calls when an object goes. With `weakref.finalize` a KeyboardInterrupt
    that is raised there is lost, and so is what the function had still to do. Here the function is called again, and
    Ctrl-C comes again as soon as Python goes on with the code that let the object go.

    Args:
        function: is called with the arguments; twice if Ctrl-C comes meanwhile, so that this must do no harm.
        at_exit: also when the interpreter exits. Other objects live on then: other code may still use what they own,
            and the operating system frees everything anyway.
    """

    __slots__ = ("_arguments", "_function", "at_exit")

    def __init__(self, owner: Any, function: Callable[..., object], *arguments: Any, at_exit: bool = False) -> None:
        self._function, self._arguments, self.at_exit = function, arguments, at_exit
        calling = _call(self)
        next(calling)
        _pending[self] = weakref.ref(owner, calling.send)
        if at_exit:  # before all that is registered now
            atexit.unregister(_end_all)
            atexit.register(_end_all)

    @property
    def alive(self) -> bool:
        """It has not been called."""
        return self in _pending

    def detach(self) -> None:
        """It is not called any more."""
        _pending.pop(self, None)

    def __call__(self) -> None:
        if self.alive:
            self._function(*self._arguments)
            self.detach()


class _Pressed:
    """Ctrl-C, when this goes."""

    __del__ = _thread.interrupt_main


def _call(finalizer: Finalizer) -> Generator[_Pressed | None, object, None]:
    """Is sent the reference to an owner that has gone. A function would begin with an instruction that may raise
    KeyboardInterrupt; a generator goes on within its `try`. What it yields goes when no code of this runs any more."""
    is_pressed = False
    try:
        yield None
        finalizer()
    except KeyboardInterrupt:
        is_pressed = True
        finalizer()
    yield _Pressed() if is_pressed else None


_pending: dict[Finalizer, weakref.ref[Any]] = {}


@atexit.register
def _end_all() -> None:
    for finalizer in reversed(list(_pending)):
        if finalizer.at_exit:
            finalizer()
    _pending.clear()
