"""Takes the place of packages that can hardly be installed."""

import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def pufferlib_or_stand_in():
    """PufferLib can be imported, also by programs that get `sys.path`; without it the stand-in is there meanwhile."""
    if importlib.util.find_spec("pufferlib") is not None:
        yield
        return
    folder = str(Path(__file__).parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        for name in ("pufferlib", "doorstep.envs.pufferlib"):
            sys.modules.pop(name, None)
