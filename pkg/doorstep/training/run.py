"""`train()` and `resume()`: runs in a folder, which may stop at any time and go on later."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TypeAlias

from doorstep._files import checked_path, replaced_file
from doorstep.errors import ArgumentError
from doorstep.training.checkpoint import load_checkpoint, load_safetensors, save_checkpoint, save_tensors
from doorstep.training.config import TrainingConfig
from doorstep.training.errors import NonFiniteLossError
from doorstep.training.logs import JsonLines, Record, TensorBoardLog
from doorstep.training.trainer import Trainer

CHECKPOINT = "checkpoint.safetensors"
CONFIG = "config.json"
LOG = "log.jsonl"
TENSORBOARD = "tensorboard"
NONFINITE_BATCH = "nonfinite_batch.safetensors"

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
) -> Trainer:
    """Trains until the last update, in a new folder.

    The folder gets `config.json`, `log.jsonl` with a line for each update, and `checkpoint.safetensors`, which is
    replaced every `config.checkpoint_every` updates and at the end.

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
        on_begin: called before the first update.
        on_update: called after every update.
        should_stop: asked after every update; if true, a checkpoint is written and the run ends early.
        tensorboard: also write for TensorBoard, to the folder "tensorboard" in it.

    Raises:
        ArgumentError: the folder has a run already.
        LibraryError: safetensors, or TensorBoard, is missing: pip install "doorstep[train]".
        NonFiniteLossError: a loss or gradient was not finite; its data is in `nonfinite_batch.safetensors`.
        OSError: a file cannot be written; an older checkpoint is still there.
    """
    path = Path(checked_path(folder))
    if (path / CHECKPOINT).exists():
        raise ArgumentError(f"{path} has a run already", argument="folder", hint="resume it, or choose another folder")
    load_safetensors()  # now, not after the first updates
    path.mkdir(parents=True, exist_ok=True)
    return _run(Trainer(config), path, on_begin, on_update, should_stop, tensorboard)


def resume(
    folder: str | os.PathLike[str],
    changes: Iterable[str] = (),
    *,
    on_begin: OnBegin | None = None,
    on_update: OnUpdate | None = None,
    should_stop: Callable[[], bool] | None = None,
    tensorboard: bool = False,
) -> Trainer:
    """Goes on with the run of a folder, from its last checkpoint. Without changes, and on the CPU, it yields the bits
    that it would have yielded without the interruption.

    Args:
        folder: of the run.
        changes: of the config, "KEY=VALUE", such as "num_updates=2000". The network and the worlds must stay.
        on_begin, on_update, should_stop, tensorboard: as for `train()`.

    Raises:
        ArgumentError: the folder has no run, or a change is refused.
        StateError: the checkpoint is damaged, or does not fit the changed config.
        LibraryError, NonFiniteLossError, OSError: as `train()`.
    """
    path = Path(checked_path(folder))
    if not (path / CHECKPOINT).exists():
        raise ArgumentError(f"{path} has no {CHECKPOINT} to resume", argument="folder")
    checkpoint = load_checkpoint(path / CHECKPOINT)
    trainer = Trainer(checkpoint.config.changed(*changes))
    trainer.restore(checkpoint)
    return _run(trainer, path, on_begin, on_update, should_stop, tensorboard)


def _run(
    trainer: Trainer,
    folder: Path,
    on_begin: OnBegin | None,
    on_update: OnUpdate | None,
    should_stop: Callable[[], bool] | None,
    tensorboard: bool,
) -> Trainer:
    config = trainer.config
    with replaced_file(folder / CONFIG) as file:
        file.write(config.to_json(indent=2).encode() + b"\n")
    with ExitStack() as stack:
        logs: list[JsonLines | TensorBoardLog] = [JsonLines(folder / LOG, trainer.updates)]
        stack.enter_context(closing(logs[0]))
        if tensorboard:
            logs.append(TensorBoardLog(folder / TENSORBOARD, trainer.updates))
            stack.enter_context(closing(logs[1]))
        if on_begin is not None:
            on_begin(trainer)
        while trainer.updates < config.num_updates:
            record = _update(trainer, folder)
            for log in logs:
                log.write(record)
            if on_update is not None:
                on_update(record)
            is_last = record.update == config.num_updates or (should_stop is not None and should_stop())
            if is_last or record.update % config.checkpoint_every == 0:
                save_checkpoint(folder / CHECKPOINT, trainer.checkpoint())
            if is_last:
                break
    return trainer


def _update(trainer: Trainer, folder: Path) -> Record:
    """An update; if it fails, its data is kept."""
    try:
        return trainer.update()
    except NonFiniteLossError as error:
        save_tensors(folder / NONFINITE_BATCH, error.batch, {})
        error.hint = f"its data is in {folder / NONFINITE_BATCH}; {error.hint}"
        raise
