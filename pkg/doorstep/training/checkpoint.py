"""Checkpoints: one file with everything that a run needs to go on as if it had never stopped.

The file is in the safetensors format, which holds tensors and a JSON header and runs no code. Its metadata has the
config, the counters of the run and a checksum of all tensors.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, final

import torch

from doorstep._files import checked_path, open_regular, replaced_file
from doorstep._native import VERSION_STRING
from doorstep._optional import import_optional
from doorstep.errors import DoorstepError, StateError
from doorstep.training.config import TrainingConfig

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
    """

    config: TrainingConfig
    update: int
    world_steps: int
    seconds: float
    tensors: Mapping[str, torch.Tensor]

    def part(self, prefix: str) -> dict[str, torch.Tensor]:
        """The tensors whose names begin with `prefix` and a dot, without these."""
        start = f"{prefix}."
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}


def save_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Writes a checkpoint; an older one at `path` is replaced at the very end, or stays as it is.

    Raises:
        LibraryError: safetensors is missing: pip install "doorstep[train]".
        OSError: the file cannot be written.
    """
    header = {
        "config": checkpoint.config.to_dict(),
        "update": checkpoint.update,
        "world_steps": checkpoint.world_steps,
        "seconds": checkpoint.seconds,
    }
    save_tensors(path, checkpoint.tensors, header)


def save_tensors(path: str | os.PathLike[str], tensors: Mapping[str, torch.Tensor], header: Mapping[str, Any]) -> None:
    """Writes tensors and a header, with checksum and versions, whole or not at all."""
    safetensors = load_safetensors()
    on_host = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    about = {"format": FORMAT, "version": VERSION_STRING, "checksum": checksum(on_host)}
    data = safetensors.save(on_host, {METADATA_KEY: json.dumps({**about, **header})})
    with replaced_file(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # on the disk before the older one is gone


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint, onto the CPU.

    Raises:
        StateError: the file is not a checkpoint, damaged, or of another version of the format.
        LibraryError: safetensors is missing: pip install "doorstep[train]".
        OSError: the file cannot be read.
    """
    with open(open_regular(checked_path(path)), "rb") as file:
        return parse_checkpoint(path, file.read())


def parse_checkpoint(path: str | os.PathLike[str], data: bytes) -> Checkpoint:
    """The checkpoint that the bytes of a file are.

    Raises:
        StateError, LibraryError: as `load_checkpoint()`; the message has the path.
    """
    safetensors = load_safetensors()
    header = _read_header(path, data)
    if header.get("format") != FORMAT:
        written_by = header.get("version", "an unknown version")
        _refuse(path, f"has format {header.get('format')}, written by doorstep {written_by}; this one reads {FORMAT}")
    try:
        tensors = safetensors.load(data)
    except Exception as error:  # of safetensors, whose class is its own
        raise StateError(f"{os.fsdecode(path)} is damaged: {error}") from error
    if checksum(tensors) != header.get("checksum"):
        _refuse(path, "is damaged: its checksum differs")
    try:
        config = TrainingConfig.from_dict(header["config"])
        return Checkpoint(config, header["update"], header["world_steps"], header["seconds"], tensors)
    except (DoorstepError, KeyError, TypeError) as error:
        raise StateError(f"{os.fsdecode(path)} has a config that this version refuses: {error}") from error


def checksum(tensors: Mapping[str, torch.Tensor]) -> int:
    """CRC-32 of all names and bytes, in the order of the names."""
    crc = 0
    for name in sorted(tensors):
        crc = zlib.crc32(name.encode(), crc)
        crc = zlib.crc32(tensors[name].reshape(-1).view(torch.uint8).numpy(), crc)
    return crc


def load_safetensors() -> Any:
    """safetensors' module for PyTorch.

    Raises:
        LibraryError: it is missing.
    """
    return import_optional("safetensors.torch", "checkpoints need safetensors", 'pip install "doorstep[train]"')


def _read_header(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    """The metadata: a length in 8 bytes, then JSON (https://github.com/huggingface/safetensors#format)."""
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][METADATA_KEY])
    except (ValueError, KeyError, TypeError, RecursionError):
        _refuse(path, "is no checkpoint of doorstep")
    return header if isinstance(header, dict) else _refuse(path, "is no checkpoint of doorstep")


def _refuse(path: str | os.PathLike[str], problem: str) -> NoReturn:
    raise StateError(f"{os.fsdecode(path)} {problem}")
