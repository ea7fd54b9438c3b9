"""Policies and rewards that a text names as a member of a module or of a Python file."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from doorstep._arguments import nearest, shown
from doorstep.errors import ArgumentError

_folders: set[Path] = set()  # of the files that were imported


def import_member(text: str, argument: str = "policy") -> Any:
    """What "package.module:name" or "path/to/file.py:name" names.

    Args:
        argument: the name of the argument that the text is of, for messages.

    Raises:
        ArgumentError: the module or the name does not exist, or importing the module raises.
    """
    source, _, name = text.rpartition(":")
    fail = functools.partial(_fail, argument, text)
    module = _import(source, fail)
    if not hasattr(module, name):
        fail(f"{shown(source)} has no {shown(name)}", nearest(name, vars(module)))
    return getattr(module, name)


def _import(source: str, fail: Callable[..., NoReturn]) -> ModuleType:
    is_file = source.endswith(".py")
    if is_file and not Path(source).is_file():
        fail(f"there is no file {shown(source)}", f"give a path that exists; the current folder is {os.getcwd()}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return _import_file(Path(source).resolve()) if is_file else importlib.import_module(source)
    except Exception as error:
        if not is_file and _is_missing(source, error):
            hint = "run from the folder that holds it, or give its path: path/to/file.py:function"
            fail(f"there is no module {shown(source)}", hint)
        raised = f"{type(error).__name__}: {str(error)[:1000]}{_line_of(error)}"
        fail(f"importing {shown(source)} raised {raised}", cause=error)


def _import_file(path: Path) -> ModuleType:
    """Runs a file as a module of a name of its own: the file's may be that of another module."""
    _make_way_for(path.parent)
    spec = importlib.util.spec_from_file_location(module_name(path), path)
    assert spec is not None  # paths that end in .py have a loader
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def module_name(path: Path) -> str:
    """In `sys.modules`, where pickle and dataclasses look for it."""
    return f"__doorstep_policy_{zlib.crc32(os.fsencode(path)):08x}__"


def _make_way_for(folder: Path) -> None:
    """Files import what is in their folder, as programs do, although files in other folders have imported modules of
    the same names. Those keep the modules that they have."""
    others = {name for name, module in sys.modules.items() if _folder_of(module) in _folders - {folder}}
    for name in list(sys.modules):
        top = name.partition(".")[0]
        if top in others and _has(folder, top):
            del sys.modules[name]
    sys.path[:] = [str(folder), *(path for path in sys.path if path != str(folder))]  # last: it moves some packages
    importlib.invalidate_caches()
    _folders.add(folder)


def _folder_of(module: ModuleType) -> Path | None:
    """The folder that a module or a package is in."""
    names = vars(module) if isinstance(module, ModuleType) else {}
    places = [*(names.get("__path__") or ()), names.get("__file__")]
    return Path(places[0]).parent if places[0] else None


def _has(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").exists() or (folder / name).is_dir()


def _is_missing(source: str, error: Exception) -> bool:
    """Whether the module, or a package around it, was not found, rather than one that it imports."""
    relative = source.startswith(".")
    return relative or (isinstance(error, ModuleNotFoundError) and f"{source}.".startswith(f"{error.name}."))


def _line_of(error: Exception) -> str:
    """The line that raised, for a one-line message. The text of a SyntaxError has it already."""
    if isinstance(error, SyntaxError):
        return ""
    *_, frame = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frame.filename).name}, line {frame.lineno})"


def _fail(argument: str, text: str, problem: str, hint: str = "", cause: Exception | None = None) -> NoReturn:
    raise ArgumentError(f"{argument} is {shown(text)}; {problem}", argument=argument, hint=hint) from cause
