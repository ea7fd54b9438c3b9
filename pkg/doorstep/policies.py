"""Policies: what chooses the agents' actions where a command steps a simulator.

A policy is any callable `observations -> actions`. It is called once before each step.

`observations` is a `Mapping[str, numpy.ndarray]` of every tensor of the simulator by name, as in `Simulator.tensors`:
`self_observations` float32 [N, A, 8], `lidar` float32 [N, A, 30, 2], `rewards`, `dones`, ..., for N worlds with A
agents. Every access returns a new copy in the host's memory, whatever the simulator's device: a policy may keep it,
change it, or hand it to `torch.from_numpy`.

The commands make their simulators with `flat_observations=True` for it: `observations["observations"]`, float32
[N, A, F], has everything that an agent observes.

The actions are integers [N, A, 4] of any integer dtype, in the host's memory: a numpy array, a PyTorch tensor, or
anything else with `__array__` or `__dlpack__`. `doorstep.ACTIONS` has the sizes of their components. The simulator
treats values out of range as its `action_check` says.

    def walk_ahead(observations):
        num_worlds, num_agents, _ = observations["self_observations"].shape
        return numpy.full((num_worlds, num_agents, 4), (1, 0, 2, 0))
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import nearest, refuse
from doorstep._native import ACTIONS, NEUTRAL_ACTION
from doorstep.errors import ArgumentError, LibraryError
from doorstep.simulator import Simulator
from doorstep.tensor import Tensor

__all__ = ["Observations", "Policy", "find_policy", "load_policy", "make_policy"]

# Tensors by name, as functions get them.
Observations = Mapping[str, NDArray[Any]]
# A name, a function or a network that chooses actions.
Policy = Callable[[Observations], Any]

_WEIGHTS = ".safetensors"  # files of checkpoints and of policies
_TRAINED = "trained"  # the policy that comes with doorstep
_FILE_MODULE = "__doorstep_policy__"  # name of a module that is loaded from a file, as "__main__" is


def find_policy(text: str) -> str | Policy:
    """The name of a built-in policy, or the policy that `load_policy()` finds; for `make_policy()`."""
    return text if isinstance(text, str) and text in _BUILT_IN else load_policy(text)


def make_policy(policy: str | Policy, sim: Simulator) -> Callable[[], None]:
    """Makes a function that sets `sim.actions` for the next step; call it before every `sim.step()`.

    >>> import doorstep
    >>> from doorstep.policies import make_policy
    >>> sim = doorstep.Simulator(2)
    >>> act = make_policy("idle", sim)
    >>> for _ in range(3):
    ...     act()
    ...     sim.step()
    >>> sim.actions.to_numpy()[1, 0].tolist()
    [0, 0, 2, 0]

    Args:
        policy: "random": all legal actions are equally likely, drawn from the simulator's seed; "idle": agents stand
            still; "scripted": agents solve the level, by planning on the simulator's state (`doorstep.planner`);
            another text as in `load_policy()`; or a callable. A `doorstep.Policy` whose sampling has no seed gets the
            simulator's.
        sim: whose actions are set, on any device.

    Returns:
        The function. It raises ArgumentError if the policy returns anything but integers [N, A, 4], and
        then leaves the actions as they were. Exceptions of the policy itself come out unchanged.

    Raises:
        ArgumentError: as in `load_policy()`.
    """
    if isinstance(policy, str) and policy in _BUILT_IN:
        return _BUILT_IN[policy](sim)
    name = policy if isinstance(policy, str) else getattr(policy, "__name__", type(policy).__name__)
    choose = _seeded(load_policy(policy) if isinstance(policy, str) else policy, sim.seed)

    def act() -> None:
        sim.actions = _checked_actions(name, choose(_HostCopies(sim.tensors)), sim.actions.shape)

    return act


def load_policy(text: str) -> Policy:
    """Imports a policy: a callable `observations -> actions`, see this module.

    >>> import pathlib, tempfile
    >>> from doorstep.policies import load_policy
    >>> path = pathlib.Path(tempfile.mkdtemp(), "train.py")
    >>> _ = path.write_text("def policy(observations): return [[[1, 0, 2, 0]] * 2]")
    >>> load_policy(f"{path}:policy")({})
    [[[1, 0, 2, 0], [1, 0, 2, 0]]]

    Args:
        text: "trained", the `doorstep.Policy` that comes with doorstep; "package.module:function",
            "path/to/file.py:function"; or the path of a checkpoint of `doorstep train`, "run/checkpoint.safetensors",
            or of a file of `doorstep.training.export_policy()`, whose policies are a `doorstep.Policy`. The current
            folder, and the folder of a Python file, are put first on the import path, as Python does for the program
            that it runs. `__name__` of such a file is not "__main__".

    Raises:
        ArgumentError: the text has no colon, the module or the function does not exist, importing the module raises,
            or the function cannot be called.
        StateError: the file is neither a checkpoint nor a policy, damaged, or cannot be played.
        OSError: the file cannot be read.
        LibraryError: a checkpoint is given, and PyTorch is missing.
    """
    names = (*_BUILT_IN, _TRAINED)
    forms = f"{', '.join(map(repr, (*names, 'module:function')))} or 'path/to/file.py:function'"
    if not isinstance(text, str):
        refuse("policy", forms, text)
    if text == _TRAINED:
        from doorstep.policy import load_trained  # here: commands without it do not pay for it

        return load_trained()
    if text.endswith(_WEIGHTS):
        from doorstep.policy.files import is_policy, read_policy

        return read_policy(text) if is_policy(text) else _load_checkpoint(text)
    source, _, name = text.rpartition(":")
    if not source or not name:
        refuse("policy", forms, text, nearest(text, names))
    module = _import(text, source)
    if not hasattr(module, name):
        _fail(text, f"{source!r} has no {name!r}", nearest(name, vars(module)))
    policy = getattr(module, name)
    if not callable(policy):
        what = f"{name!r} of {source!r} is of type {type(policy).__name__}"
        _fail(text, f"{what}; it must be a function: observations -> actions")
    return policy  # type: ignore[no-any-return]


def _load_checkpoint(path: str) -> Policy:
    try:
        from doorstep.training import load_policy as load  # here: it needs PyTorch
    except ModuleNotFoundError as error:
        hint = 'pip install "doorstep[train]"'
        raise LibraryError(f"checkpoints need PyTorch, which cannot be imported: {error}", hint=hint) from error
    return load(path)


def _seeded(policy: Policy, seed: int) -> Policy:
    from doorstep.policy import Policy as NativePolicy  # here: built-in policies do not pay for it

    return policy.seeded(seed) if isinstance(policy, NativePolicy) else policy


# ---- Importing ----


def _import(text: str, source: str) -> ModuleType:
    is_file = source.endswith(".py")
    if is_file and not Path(source).is_file():
        _fail(text, f"there is no file {source!r}", f"give a path that exists; the current folder is {os.getcwd()}")
    _put_on_import_path(os.getcwd())
    try:
        return _import_file(Path(source).resolve()) if is_file else importlib.import_module(source)
    except Exception as error:
        if not is_file and _is_missing(source, error):
            hint = "run from the folder that holds it, or give its path: path/to/file.py:function"
            _fail(text, f"there is no module {source!r}", hint)
        _fail(text, f"importing {source!r} raised {type(error).__name__}: {error}{_line_of(error)}", cause=error)


def _import_file(path: Path) -> ModuleType:
    """Runs a file as a module of a name of its own: its own name may be that of another module."""
    _put_on_import_path(str(path.parent))
    spec = importlib.util.spec_from_file_location(_FILE_MODULE, path)
    assert spec is not None  # paths that end in .py have a loader
    assert spec.loader is not None
    module = sys.modules[_FILE_MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _put_on_import_path(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


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


def _fail(text: str, problem: str, hint: str = "", cause: Exception | None = None) -> NoReturn:
    raise ArgumentError(f"policy is {text!r}; {problem}", argument="policy", hint=hint) from cause


# ---- Calling ----


class _HostCopies(Observations):
    """Tensors by name; every access copies one to the host."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._tensors:
            hint = nearest(name, self._tensors) or f"it has {', '.join(self._tensors)}"
            raise KeyError(f"{name!r} is not a tensor of the simulator; {hint}")
        return self._tensors[name].copy_to_host()

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def _checked_actions(name: str, returned: object, shape: tuple[int, ...]) -> NDArray[Any]:
    required = f"integers {list(shape)}"
    try:
        actions = _as_array(returned)
    except Exception as error:  # whatever an object raises when it cannot become an array
        _refuse_actions(name, type(returned).__name__, f"{required} in the host's memory", error)
    if actions.dtype.kind not in "iu" or actions.shape != shape:
        is_array = actions.dtype != object
        returned_as = f"{actions.dtype} {list(actions.shape)}" if is_array else type(returned).__name__
        _refuse_actions(name, returned_as, required)
    return actions


def _as_array(returned: Any) -> NDArray[Any]:
    if hasattr(returned, "__dlpack__") and not hasattr(returned, "__array__"):
        return np.from_dlpack(returned)
    return np.asarray(returned)


def _refuse_actions(name: str, returned: str, required: str, error: Exception | None = None) -> NoReturn:
    hint = "" if error is None else f"{type(error).__name__}: {error}"
    message = f"policy {name!r} returned {returned}; it must return {required}"
    raise ArgumentError(message, argument="policy", hint=hint) from error


# ---- Built-in policies ----


def _make_random(sim: Simulator) -> Callable[[], None]:
    generator, shape = np.random.default_rng(sim.seed), sim.actions.shape

    def act() -> None:
        sim.actions = generator.integers(0, ACTIONS, shape, np.int32)

    return act


def _make_idle(sim: Simulator) -> Callable[[], None]:
    actions = np.full(sim.actions.shape, NEUTRAL_ACTION, np.int32)

    def act() -> None:
        sim.actions = actions

    return act


def _make_scripted(sim: Simulator) -> Callable[[], None]:
    from doorstep.planner import ScriptedPolicy  # here: commands that do not plan do not pay for it

    policy = ScriptedPolicy(sim)

    def act() -> None:
        sim.actions = policy.actions()

    return act


_BUILT_IN: dict[str, Callable[[Simulator], Callable[[], None]]] = {
    "random": _make_random,
    "idle": _make_idle,
    "scripted": _make_scripted,
}
