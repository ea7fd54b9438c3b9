"""Prints how it was started, then leaves as its first argument says."""

# mypy: ignore-errors

import sys

import madrona_escape_room

CODES = {"normally": None, "zero": 0, "three": 3, "message": "a last word", "error": None, "key": None}


def leave(how):
    if how == "error":
        raise ValueError(f"left with an {how}")
    if how == "key":
        raise KeyboardInterrupt
    if CODES[how] is not None:
        sys.exit(CODES[how])


print(__name__, sys.argv, madrona_escape_room.SimManager.__name__, __file__)
if __name__ == "__main__":
    leave(sys.argv[1])
