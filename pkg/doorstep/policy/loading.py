"""`load_policy()`: whatever can choose actions, as a policy."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from doorstep._arguments import nearest, refuse
from doorstep._observations import OBSERVATIONS, AnyObservations, shown_parts
from doorstep.errors import ArgumentError
from doorstep.policy.built_in import IdlePolicy, RandomPolicy
from doorstep.policy.files import CHECKPOINT, read_policy
from doorstep.policy.imported import import_member
from doorstep.policy.policy import Policy, check_precision
from doorstep.policy.sampling import SamplingParams, check_sampling

if TYPE_CHECKING:
    import torch

# What load_policy() takes.
AnyPolicy: TypeAlias = (
    "str | os.PathLike[str] | torch.nn.Module | Sequence[torch.nn.Module] | Policy | Callable[..., Any]"
)

OBSERVES = ("flat", "tensors", "simulator")

_WEIGHTS = ".safetensors"
_PACKAGED = {name: Path(__file__).with_name(f"{name}.safetensors") for name in ("trained", "general")}
_NAMES = ("random", "idle", "scripted", *_PACKAGED)
_FORMS = (
    f"{', '.join(map(repr, _NAMES))}, 'module:function', 'path/to/file.py:function', the folder of a run, a checkpoint "
    "or a policy file"
)


def load_policy(
    policy: AnyPolicy, *, sampling: SamplingParams | None = None, precision: str | None = None
) -> Any:
    """A policy of anything that can choose actions. What plays worlds (commands, `evaluate()`, `EpisodeRequest`,
    `view()`) takes what this function takes.

    A policy is called before each step: `actions = policy(observations)`, and one with memory `actions, state =
    policy(observations, state)`. The state is None in the first call, then what the policy returned, an array whose
    first dimensions are those of the observations; it is 0 for agents whose episode begins.

    >>> import doorstep
    >>> sim = doorstep.Simulator(16)
    >>> policy = doorstep.load_policy("random", sampling=doorstep.policy.SamplingParams(seed=1))
    >>> for _ in range(10):
    ...     sim.actions = policy(sim.observations)
    ...     sim.step()

    Observations are float32 [..., F], an agent in each row: [N, A, F] of N worlds with A agents in loops, [R, F] of R
    agents in a rollout engine. Actions are integers [..., 4], as in `doorstep.ACTIONS`. Both are on the device of the
    worlds: numpy arrays on the CPU, `doorstep.Tensor` and what CUDA libraries make on a GPU. A policy that was trained
    with other `observations` than the default ones says so by an attribute of that name, as those of files do: commands
    and `evaluate()` then make them, and simulators and engines with others refuse it. A policy that needs more says so
    by an attribute `observes`: "tensors", the simulator's tensors by name (`policy(sim.tensors)`), or
    "simulator" (`policy(sim)`), as the scripted one.

    >>> def walk_ahead(tensors):
    ...     return numpy.full((*tensors["lidar"].shape[:2], 4), (1, 0, 2, 0))
    >>> walk_ahead.observes = "tensors"
    >>> import numpy
    >>> doorstep.load_policy(walk_ahead)(sim.tensors).shape
    (16, 2, 4)

    Args:
        policy: one of

            - "random": all legal actions are equally likely; "idle": agents stand still; "scripted": agents solve the
              level, by planning (`doorstep.planner`); "trained" and "general": the networks that come with doorstep,
              for two agents, one for the reference's levels, one for rooms of all types;
            - "package.module:name" or "path/to/file.py:name" of anything in this list. The current folder, and that of
              the file, are put first on the import path, as Python does for the program that it runs. `__name__` of
              such a file is not "__main__";
            - the path of a folder or a checkpoint of `doorstep train`, or of a file of `export_policy()`. Neither
              needs PyTorch;
            - a module of PyTorch, or several that are evaluated one after the other: a `torch.nn.Sequential`, nested as
              you like, of `Linear`, `LayerNorm`, `LSTM`, `GRU`, `LSTMCell`, `GRUCell`, `ReLU`, `LeakyReLU`, `ELU`,
              `SiLU`, `Sigmoid`, `Tanh`, `GELU` and `Identity`, which ends with 19 logits: a `Linear`, or
              `doorstep.policy.Heads`; or the `policy` of a PPO, A2C or DQN of Stable-Baselines3. Its weights stay the
              module's and are read in place. It is what the module is in evaluation mode; what is read is compared with
              what the module computes of 8 random rows. One that ends with 320 logits, as that of a DQN that learned in
              an environment with `actions="discrete"`, is evaluated by PyTorch: it has no memory, and its action is
              that of the largest logit, the first of equal ones;
            - a `doorstep.Policy`, or any other callable.
        sampling: how a network chooses by its logits. None: as a file says, otherwise `SamplingParams()`. Of the other
            policies "random" takes its seed, and the rest choose by themselves.
        precision: how a network multiplies values with weights. "float32": in single precision, with the same bits on
            every device. "bfloat16": on the tensor cores of a GPU of compute capability 8.0 or newer, which multiply
            both rounded to bfloat16 and add in single precision: results are near the others. None: "float32", and of a
            `doorstep.Policy` its own.

    Returns:
        A `doorstep.Policy` for networks, which the library evaluates; for those of 320 logits a function of PyTorch; a
        callable as it is.

    Raises:
        ArgumentError: it is nothing of these; a module or file cannot be imported or has no such name; or a network has
            modules, sizes, hooks or a `forward()` that a policy cannot evaluate; the message names what. Or it has no
            such precision where its weights are.
        StateError: the file holds no policy, is damaged, or has a network that sees pixels.
        OSError: the file cannot be read.
    """
    check_sampling(sampling)
    if precision is not None:
        check_precision(precision)
    if isinstance(policy, (str, os.PathLike)):
        loaded = _named(os.fspath(policy), sampling)
    else:
        loaded = _made_of(policy, sampling, _FORMS)
    return loaded if precision is None else _in_precision(loaded, precision)


def _in_precision(policy: Any, precision: str) -> Any:
    if isinstance(policy, Policy):
        return policy if policy.precision == precision else policy.with_precision(precision)
    if precision != "float32":
        refuse("precision", "'float32' of what is no network", precision)
    return policy


def _named(text: str, sampling: SamplingParams | None) -> Any:
    if text == "random":
        return RandomPolicy(None if sampling is None else sampling.seed)
    if text == "idle":
        return IdlePolicy()
    if text == "scripted":
        from doorstep.planner import ScriptedPolicy  # here: commands that do not plan do not pay for it

        return ScriptedPolicy()
    if text in _PACKAGED:
        return read_policy(_PACKAGED[text], sampling)
    if os.path.isdir(text):
        return read_policy(os.path.join(text, CHECKPOINT), sampling)
    if text.endswith(_WEIGHTS):
        return read_policy(text, sampling)
    check_name(text)
    source, _, name = text.rpartition(":")
    member = import_member(text)
    if isinstance(member, (str, os.PathLike)):
        return load_policy(member, sampling=sampling)
    what = f"{name!r} of {source!r} is of type {type(member).__name__}"
    return _made_of(member, sampling, f"a function: observations -> actions, but {what}", text)


def imports_code(text: str) -> bool:
    """Whether a policy of this text is a member of a module or file, which `load_policy()` imports."""
    source, _, name = text.rpartition(":")
    return bool(source and name) and not (text.endswith(_WEIGHTS) or os.path.isdir(text))


def check_name(text: str, names: Iterable[str] = ()) -> None:
    """Refuses a text that cannot name a policy, without loading one. names: of an engine's policies, which are told.

    Raises:
        ArgumentError: it is no name, no member of a module, and no path of a run or file.
    """
    if text in _NAMES:
        return
    source, _, name = text.rpartition(":")
    if not ((source and name) or text.endswith(_WEIGHTS) or os.path.isdir(text)):
        forms = ", ".join([*map(repr, names), _FORMS])
        refuse("policy", forms, text, nearest(text, [*names, *_NAMES]))


def _made_of(policy: Any, sampling: SamplingParams | None, requirement: str, name: str = "") -> Any:
    """name: the text that named it."""
    if isinstance(policy, Policy):
        return policy if sampling is None else policy.with_sampling(sampling)
    if isinstance(policy, RandomPolicy):
        return policy if sampling is None or sampling.seed is None else RandomPolicy(sampling.seed)
    if _is_network(policy):
        from doorstep.policy.torch_policy import policy_of  # here: it imports torch

        return policy_of(policy, sampling)
    if not callable(policy):
        refuse("policy", requirement, name or policy)
    if observed_by(policy) not in OBSERVES:
        raise ArgumentError(
            f"policy.observes is {policy.observes!r}; it must be {', '.join(map(repr, OBSERVES))}", argument="policy"
        )
    return policy


def _is_network(policy: Any) -> bool:
    torch: Any = sys.modules.get("torch")  # who has none of its modules does not pay for its import
    if torch is None:
        return False
    parts = policy if isinstance(policy, (list, tuple)) and policy else [policy]
    return all(isinstance(part, torch.nn.Module) for part in parts)


def observed_by(policy: Any) -> Any:
    """What a policy is called with, one of OBSERVES."""
    return getattr(policy, "observes", "flat")


def observations_for(policy: Any) -> AnyObservations:
    """The observations of a simulator in which a policy acts: those that it was trained with, or the default ones."""
    return getattr(policy, "observations", None) or OBSERVATIONS


def check_observations(policy: Any, name: str, given: AnyObservations) -> None:
    """Refuses to let a policy act on other observations than those that it was trained with, if it says which.

    Raises:
        ArgumentError: they differ.
    """
    known = getattr(policy, "observations", None)
    if known is not None and known != given:
        raise ArgumentError(
            f"policy {name!r} was trained with observations {shown_parts(known)}; here they are {shown_parts(given)}",
            argument="policy",
            hint="make the simulator with observations=policy.observations",
        )
