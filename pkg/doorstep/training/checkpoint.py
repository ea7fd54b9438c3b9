"""Checkpoints: one file with everything that a run needs to go on as if it had never stopped.

The file is in the safetensors format, which holds tensors and a JSON header and runs no code. Its metadata has the
config, the counters of the run and a checksum of everything. It is also the file of a policy, which plays it without
PyTorch and without the config's classes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn, final

import torch

from doorstep._arguments import check_integer, check_text, is_number, refuse
from doorstep._files import read_regular
from doorstep._native import VERSION_STRING
from doorstep._safetensors import METADATA, read_arrays, split, write_arrays
from doorstep.errors import DoorstepError, StateError
from doorstep.policy import files as policy_files
from doorstep.training.config import CurriculumConfig, TrainingConfig, UniformCurriculum
from doorstep.training.trained import stored_policy

FORMAT = 1
METADATA_KEY = "doorstep"


@final
@dataclass(frozen=True)
class Checkpoint:
    """A run after an update.

    Attributes:
        config: of the run.
        update: how many updates were made.
        world_steps: steps of worlds so far.
        seconds: that it took so far.
        tensors: weights, optimiser, running moments, random numbers and worlds, by name.
        absent_curriculum: module.Class of a curriculum's config that this process has not registered, and in whose
            place `config` has the uniform one; "" if there is none. It is not needed to play.
        reward_function: module.name of the function that gave the rewards; "" if there was none.
    """

    config: TrainingConfig
    update: int
    world_steps: int
    seconds: float
    tensors: Mapping[str, torch.Tensor]
    absent_curriculum: str = ""
    reward_function: str = ""

    def part(self, prefix: str) -> dict[str, torch.Tensor]:
        """The tensors whose names begin with `prefix` and a dot, without these."""
        start = f"{prefix}."
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}

    def check(self, parts: Mapping[str, Mapping[str, torch.Tensor]], any_size: Set[str] = frozenset()) -> None:
        """Compares its tensors with those of these parts of a run, by name, shape and dtype.

        Args:
            any_size: names of tensors of which only the number of dimensions matters.

        Raises:
            StateError: they do not fit; the message names the first one.
        """
        expected = named(parts)
        for name, tensor in expected.items():
            found = self.tensors.get(name)
            fits = found is not None and (
                found.ndim == tensor.ndim if name in any_size else found.shape == tensor.shape
            )
            if found is None or not fits:
                has = "there is none in it" if found is None else f"it is {list(found.shape)} there"
                _refuse_tensor(f"{name} has shape {list(tensor.shape)} here, and {has}")
            if found.dtype != tensor.dtype:
                _refuse_tensor(f"{name} is of {tensor.dtype} here, and it is of {found.dtype} there")
        for name in self.tensors:
            if name not in expected and parts.get(name.partition(".")[0]):
                _refuse_tensor(f"{name} is in it, and there is none here")

    def check_finite(self) -> None:
        """Refuses numbers from which no run can go on.

        Raises:
            StateError: a tensor has numbers that are infinite or NaN.
        """
        for name, tensor in self.tensors.items():
            if not torch.isfinite(tensor).all():
                _refuse_tensor(f"{name} has numbers there that are not finite")


def named(parts: Mapping[str, Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Tensors by "part.name"."""
    return {f"{part}.{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def misfit(problem: str, hint: str = "restore a checkpoint that save_checkpoint() wrote") -> StateError:
    """The error of a checkpoint that a run cannot go on from."""
    return StateError(f"the checkpoint does not fit: {problem}", hint=hint)


def _refuse_tensor(problem: str) -> NoReturn:
    raise misfit(problem, "use the network and the worlds of the checkpoint's own config")


def check_checkpoint(value: object) -> None:
    if not isinstance(value, Checkpoint):
        refuse("checkpoint", "a doorstep.training.Checkpoint", value, "read one with load_checkpoint()")


def save_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Writes a checkpoint; an older one at `path` is replaced at the very end, or stays as it is.

    Raises:
        ArgumentError: it is no `Checkpoint`.
        OSError: the file cannot be written.
    """
    check_checkpoint(checkpoint)
    curriculum = type(checkpoint.config.curriculum)
    header = {
        "config": checkpoint.config.to_dict(),
        "curriculum": f"{curriculum.__module__}.{curriculum.__qualname__}",
        "update": checkpoint.update,
        "world_steps": checkpoint.world_steps,
        "seconds": checkpoint.seconds,
        "reward_function": checkpoint.reward_function,
    }
    tensors, metadata = dict(checkpoint.tensors), {}
    if not checkpoint.config.sees_pixels:  # which no policy can
        policy = stored_policy(checkpoint)
        metadata[policy_files.METADATA_KEY] = policy_files.description_of(policy)
        tensors.update({name: torch.from_numpy(array) for name, array in policy_files.arrays_of(policy.layers).items()})
    save_tensors(path, tensors, header, metadata)


def save_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, torch.Tensor],
    header: Mapping[str, Any],
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Writes tensors and a header, with checksum and versions, whole or not at all. metadata: further entries."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    about = {"format": FORMAT, "version": VERSION_STRING}
    write_arrays(path, arrays, {**metadata, METADATA_KEY: json.dumps({**about, **header})})


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint, onto the CPU.

    Raises:
        StateError: the file is not a checkpoint, damaged, or of another version of the format.
        OSError: the file cannot be read.
    """
    return parse_checkpoint(path, read_regular(path))


def parse_checkpoint(path: str | os.PathLike[str], data: bytes) -> Checkpoint:
    """The checkpoint that the bytes of a file are.

    Raises:
        StateError: as `load_checkpoint()`; the message has the path.
    """
    try:
        contents, stored = split(data)
        header = json.loads(contents[METADATA][METADATA_KEY])
        format_of_file, written_by = header.get("format"), header.get("version", "an unknown version")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        _refuse(path, "is no checkpoint of doorstep")
    if format_of_file != FORMAT:
        _refuse(path, f"has format {format_of_file}, written by doorstep {written_by}; this one reads {FORMAT}")
    try:
        arrays = read_arrays(contents, stored)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StateError(f"{os.fsdecode(path)} is damaged: {error}") from error
    try:
        values, absent = header["config"], ""
        if values["curriculum"]["type"] not in CurriculumConfig.registry:
            values, absent = {**values, "curriculum": UniformCurriculum.type}, header["curriculum"]
        config = TrainingConfig.from_dict(values)
        own = {name: one for name, one in arrays.items() if not policy_files.is_array_of_policy(name)}
        tensors = {name: torch.from_numpy(array) for name, array in own.items()}
        function = check_text("reward_function", header["reward_function"])
        return Checkpoint(config, *_counters_of(header), tensors, check_text("curriculum", absent), function)
    except (DoorstepError, KeyError, TypeError) as error:
        raise StateError(f"{os.fsdecode(path)} has a config that this version refuses: {error}") from error


def _counters_of(header: Mapping[str, Any]) -> tuple[int, int, float]:
    """Updates, steps of worlds, and seconds."""
    update, steps = (check_integer(name, header[name], 0, 2**63 - 1) for name in ("update", "world_steps"))
    seconds = header["seconds"]
    if not is_number(seconds) or not 0 <= seconds <= sys.float_info.max:
        refuse("seconds", "a number, at least 0", seconds)
    return update, steps, float(seconds)


def _refuse(path: str | os.PathLike[str], problem: str) -> NoReturn:
    raise StateError(f"{os.fsdecode(path)} {problem}")
