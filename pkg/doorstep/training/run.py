"""`train()` and `resume()`: runs in a folder, which may stop at any time and go on later."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TypeAlias

from doorstep._files import checked_path, read_regular, replaced_file
from doorstep.errors import ArgumentError
from doorstep.policy.files import CHECKPOINT as CHECKPOINT
from doorstep.training.checkpoint import (
    Checkpoint,
    parse_checkpoint,
    save_checkpoint,
    save_tensors,
)
from doorstep.training.config import TrainingConfig
from doorstep.training.distributed import Ranks
from doorstep.training.errors import NonFiniteLossError
from doorstep.training.logs import JsonLines, Record, TensorBoardLog
from doorstep.training.trainer import Trainer

CONFIG = "config.json"
LOG = "log.jsonl"
TENSORBOARD = "tensorboard"
NONFINITE_BATCH = "nonfinite_batch.safetensors"
NONFINITE_BATCH_OF_RANK = "nonfinite_batch.{}.safetensors"  # of ranks but the first

OnBegin: TypeAlias = Callable[[Trainer], object]
OnUpdate: TypeAlias = Callable[[Record], object]


def train(
    config: TrainingConfig,
    folder: str | os.PathLike[str],
    *,
    on_begin: OnBegin | None = None,
    on_update: OnUpdate | None = None,
    should_stop: Callable[[], bool] | None = None,
    tensorboard: bool = False,
    auto_resume: bool = False,
) -> Trainer:
    """Trains until the last update, in a new folder.

    The folder gets `config.json`, `log.jsonl` with a line for each update, and `checkpoint.safetensors`, which is
    replaced every `config.checkpoint_every` updates and at the end.

    In processes that torchrun started all of them train together, each with its share of the worlds. The first one
    reads and writes the folder.

    >>> import tempfile
    >>> from doorstep.training import preset, read_log, resume, train
    >>> small = preset("default").changed("simulator.num_worlds=8", "ppo.num_minibatches=1", "num_updates=2")
    >>> folder = tempfile.mkdtemp()
    >>> trainer = train(small, folder)
    >>> [record["world_steps"] for record in read_log(f"{folder}/log.jsonl")]
    [256, 512]
    >>> resume(folder, ["num_updates=3"]).updates
    3

    Args:
        config: what is trained, and how.
        folder: for the files of the run; made if it does not exist.
        on_begin: called before the first update, in the first process.
        on_update: called after every update, in the first process.
        should_stop: asked after every update; if true in any process, a checkpoint is written and the run ends early.
        tensorboard: also write for TensorBoard, to the folder "tensorboard" in it.
        auto_resume: if the folder has a run already, go on from its last checkpoint, with this config, instead of
            refusing: so the same call begins a run, and goes on with it after a crash.

    Raises:
        ArgumentError: the folder has a run already; or the number of worlds is not a multiple of that of processes.
        StateError: with auto_resume, the checkpoint is damaged, or does not fit the config.
        LibraryError: TensorBoard is missing: pip install "doorstep[train]".
        NonFiniteLossError: a loss or gradient was not finite; its data is in `nonfinite_batch.safetensors`.
        LostRankError: another process has ended, or does not answer.
        OSError: a file cannot be written; an older checkpoint is still there. It is raised in all processes.
    """
    path = Path(checked_path(folder))
    ranks = Ranks.join()
    checkpoint = read_on_first(path / CHECKPOINT, ranks)
    if checkpoint is not None and not auto_resume:
        raise ArgumentError(f"{path} has a run already", argument="folder", hint="resume it, or choose another folder")
    trainer = Trainer(config, ranks)
    if checkpoint is not None:
        trainer.restore(checkpoint)
    return _run(trainer, path, on_begin, on_update, should_stop, tensorboard)


def resume(
    folder: str | os.PathLike[str],
    changes: Iterable[str] = (),
    *,
    on_begin: OnBegin | None = None,
    on_update: OnUpdate | None = None,
    should_stop: Callable[[], bool] | None = None,
    tensorboard: bool = False,
) -> Trainer:
    """Goes on with the run of a folder, from its last checkpoint. Without changes, on the CPU and in as many processes,
    it yields the bits that it would have yielded without the interruption.

    Args:
        folder: of the run.
        changes: of the config, "KEY=VALUE", such as "num_updates=2000". The network and the worlds must stay.
        on_begin, on_update, should_stop, tensorboard: as for `train()`.

    Raises:
        ArgumentError: the folder has no run, or a change is refused.
        StateError: the checkpoint is damaged, or does not fit the changed config.
        LibraryError, NonFiniteLossError, LostRankError, OSError: as `train()`.
    """
    path = Path(checked_path(folder))
    ranks = Ranks.join()
    checkpoint = read_on_first(path / CHECKPOINT, ranks)
    if checkpoint is None:
        raise ArgumentError(f"{path} has no {CHECKPOINT} to resume", argument="folder")
    trainer = Trainer(checkpoint.config.changed(*changes), ranks)
    trainer.restore(checkpoint)
    return _run(trainer, path, on_begin, on_update, should_stop, tensorboard)


def read_on_first(path: Path, ranks: Ranks) -> Checkpoint | None:
    """Together: the checkpoint that the first rank finds at a path; None if it finds none."""
    data = None
    with ranks.together():
        if ranks.is_first and path.exists():
            data = read_regular(path)
    data = ranks.broadcast(data)
    return None if data is None else parse_checkpoint(path, data)


def _run(
    trainer: Trainer,
    folder: Path,
    on_begin: OnBegin | None,
    on_update: OnUpdate | None,
    should_stop: Callable[[], bool] | None,
    tensorboard: bool,
) -> Trainer:
    config, ranks = trainer.config, trainer.ranks
    with ExitStack() as stack:
        logs: list[JsonLines | TensorBoardLog] = []
        with ranks.together():
            if ranks.is_first:
                logs = _open_folder(trainer, folder, stack, tensorboard)
                if on_begin is not None:
                    on_begin(trainer)
        while trainer.updates < config.num_updates:
            record = _update(trainer, folder)
            with ranks.together():
                for log in logs:
                    log.write(record)
                if ranks.is_first and on_update is not None:
                    on_update(record)
            is_asked_to_stop = ranks.any(should_stop is not None and should_stop())
            is_last = is_asked_to_stop or record.update == config.num_updates
            if is_last or record.update % config.checkpoint_every == 0:
                _save(trainer, folder)
            if is_last:
                break
    return trainer


def _open_folder(
    trainer: Trainer, folder: Path, stack: ExitStack, tensorboard: bool
) -> list[JsonLines | TensorBoardLog]:
    """Makes the folder with its config; returns the logs, which the stack closes."""
    folder.mkdir(parents=True, exist_ok=True)
    with replaced_file(folder / CONFIG) as file:
        file.write(trainer.config.to_json(indent=2).encode() + b"\n")
    logs: list[JsonLines | TensorBoardLog] = [JsonLines(folder / LOG, trainer.updates)]
    stack.enter_context(closing(logs[0]))
    if tensorboard:
        logs.append(TensorBoardLog(folder / TENSORBOARD, trainer.updates))
        stack.enter_context(closing(logs[1]))
    return logs


def _save(trainer: Trainer, folder: Path) -> None:
    """Together: writes a checkpoint, in the first process."""
    checkpoint = trainer.checkpoint()
    with trainer.ranks.together():
        if trainer.ranks.is_first:
            save_checkpoint(folder / CHECKPOINT, checkpoint)


def _update(trainer: Trainer, folder: Path) -> Record:
    """An update; if it fails, this rank's part of its data is kept."""
    try:
        return trainer.update()
    except NonFiniteLossError as error:
        rank = trainer.ranks.rank
        path = folder / (NONFINITE_BATCH_OF_RANK.format(rank) if rank else NONFINITE_BATCH)
        folder.mkdir(parents=True, exist_ok=True)
        save_tensors(path, error.batch, {})
        error.hint = f"its data is in {path}; {error.hint}"
        raise
