"""Imported before everything else: refuses subinterpreters, which neither numpy nor the library can serve."""

from __future__ import annotations

from doorstep.errors import LibraryError

HINT = "import doorstep in the main interpreter; for work in parallel use threads or processes"

try:
    import ctypes
except ImportError as error:  # as Python 3.12 has it in interpreters with a GIL of their own
    raise LibraryError(f"doorstep cannot be imported in this interpreter: {error}", hint=HINT) from error


def check_interpreter() -> None:
    """Raises LibraryError in every interpreter but the first."""
    python = ctypes.PyDLL(None)
    current = getattr(python, "PyInterpreterState_Get", None)
    number = getattr(python, "PyInterpreterState_GetID", None)
    if current is None or number is None:  # libpython is visible to its own program alone, which has one interpreter
        return
    current.restype = ctypes.c_void_p
    number.argtypes = (ctypes.c_void_p,)
    number.restype = ctypes.c_int64
    if number(current()) != 0:
        raise LibraryError("doorstep cannot be imported in a subinterpreter", hint=HINT)


check_interpreter()
