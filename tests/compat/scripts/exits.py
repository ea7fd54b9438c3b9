"""Prints how it was started, then leaves as its first argument says."""

# mypy: ignore-errors

import sys

import madrona_escape_room

ENDS = {"three": SystemExit(3), "message": SystemExit("a last word"), "key": KeyboardInterrupt()}
ENDS["error"] = ValueError("left with an error")

print(__name__, sys.argv, madrona_escape_room.SimManager.__name__, __file__)
if __name__ == "__main__" and sys.argv[1] in ENDS:
    raise ENDS[sys.argv[1]]
