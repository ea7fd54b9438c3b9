"""`python -m doorstep.compat.madrona_escape_room SCRIPT ARGS...` runs a script against doorstep.

As `python SCRIPT ARGS...`, except that `import madrona_escape_room` finds doorstep's module, in this process only.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
import types
from types import TracebackType

from doorstep.compat import madrona_escape_room

_NAME = "madrona_escape_room"
_USAGE = "usage: python -m doorstep.compat.madrona_escape_room SCRIPT ARGS..."


def main() -> None:
    """Runs the script in place of this module; returns, exits or raises as the script does."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        asked = len(sys.argv) >= 2
        print(_USAGE, file=sys.stdout if asked else sys.stderr)
        sys.exit(0 if asked else 2)
    sys.modules[_NAME] = madrona_escape_room
    sys.modules[f"{_NAME}.madrona"] = madrona_escape_room.madrona
    run_script(sys.argv[1:])


def run_script(argv: list[str]) -> None:
    """Runs argv[0] as `__main__` with these arguments."""
    path = argv[0]
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    sys.argv = argv
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.abspath(path))
    script = types.ModuleType("__main__")
    script.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = script
    try:
        exec(compile(source, path, "exec", dont_inherit=True), script.__dict__)
    except Exception as error:
        error.__traceback__ = _frames_of_script(error.__traceback__, path)
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)


def _frames_of_script(traceback: TracebackType | None, path: str) -> TracebackType | None:
    """The traceback without the frames of this module; None for a syntax error."""
    while traceback and traceback.tb_frame.f_code.co_filename != path:
        traceback = traceback.tb_next
    return traceback


if __name__ == "__main__":
    main()
