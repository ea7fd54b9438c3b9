"""`train()` and `resume()`: runs in a folder, which may stop at any time and go on later."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from doorstep._arguments import check_between, check_flag, check_functions, refuse
from doorstep._files import checked_path, read_regular, write_text
from doorstep._reward import AnyReward, RewardFunction, split_reward
from doorstep._run_log import CONFIG, LOG
from doorstep.errors import ArgumentError, StateError
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
from doorstep.training.presets import preset
from doorstep.training.trainer import Trainer

LOCK = ".lock"
TENSORBOARD = "tensorboard"
NONFINITE_BATCH = "nonfinite_batch.safetensors"
NONFINITE_BATCH_OF_RANK = "nonfinite_batch.{}.safetensors"  # of ranks but the first

OnBegin: TypeAlias = Callable[[Trainer], object]
OnUpdate: TypeAlias = Callable[[Record], object]
ShouldStop: TypeAlias = Callable[[], bool]

MOST_MINUTES = 1e7  # 19 years


def train(
    folder: str | os.PathLike[str],
    *,
    config: TrainingConfig | None = None,
    reward: AnyReward = None,
    minutes: float | None = None,
    on_begin: OnBegin | None = None,
    on_update: OnUpdate | None = None,
    should_stop: ShouldStop | None = None,
    tensorboard: bool = False,
    auto_resume: bool = False,
    **changes: Any,
) -> Trainer:
    """Trains in a new folder, until the last update or the end of the time.

    The folder gets `config.json`, `log.jsonl` with a line for each update, and `checkpoint.safetensors`, which is
    replaced every `config.checkpoint_every` updates and at the end.

    In processes that torchrun started all of them train together, each with its share of the worlds. The first one
    reads and writes the folder.

    >>> import tempfile
    >>> import doorstep
    >>> from doorstep.training import read_log
    >>> folder = tempfile.mkdtemp()
    >>> trainer = doorstep.train(folder, levels="curated", num_worlds=8, num_minibatches=1, num_updates=2)
    >>> [record["world_steps"] for record in read_log(f"{folder}/log.jsonl")]
    [256, 512]
    >>> doorstep.resume(folder, gamma=0.99, num_updates=3).updates
    3

    Args:
        folder: for the files of the run; made if it does not exist.
        config: what is trained, and how; None: `preset("default")`.
        reward: in place of the config's: `Rewards`, or a function of a step's tensors, which are PyTorch's, that
            returns what agents learn from, floats [N, A] in any form, as a tensor, an array or a list:
            `lambda step: step.rewards + 0.1 * step.terminations`. Logs keep the returns of the worlds. None: as the
            config says.
        minutes: of the clock, after which this call writes a checkpoint and returns, more than 0. Schedules follow
            `num_updates`, whether or not it is reached. None: no limit.
        on_begin: called before the first update, in every process.
        on_update: called after every update, in the first process.
        should_stop: asked after every update; if true in any process, a checkpoint is written and the run ends early.
        tensorboard: also write for TensorBoard, to the folder "tensorboard" in it.
        auto_resume: if the folder has a run already, go on from its last checkpoint, with this config, instead of
            refusing: so the same call begins a run, and goes on with it after a crash. A run that ended before its
            first checkpoint begins anew, and so does its log.
        **changes: other values of fields of the config, as `TrainingConfig.changed()` takes them: `levels`, `gamma`,
            `num_worlds`, ..., or as files have them: `simulator={"num_worlds": 16}`.

    Raises:
        ArgumentError: the folder has a run already, or the log of one that ended before its first checkpoint; or a
            change is refused; or the number of worlds is not a multiple of that of processes.
        StateError: another run goes on in the folder; or, with auto_resume, the checkpoint is damaged, or does not fit
            the config.
        LibraryError: TensorBoard is missing: pip install "doorstep[train]".
        NonFiniteLossError: a loss or gradient was not finite; its data is in `nonfinite_batch.safetensors`.
        LostRankError: another process has ended, or does not answer.
        OSError: a file cannot be written; an older checkpoint is still there. It is raised in all processes.
    """
    path = Path(checked_path(folder))
    check_functions(on_begin=on_begin, on_update=on_update, should_stop=should_stop)
    check_flag("tensorboard", tensorboard)
    check_flag("auto_resume", auto_resume)
    if config is not None and not isinstance(config, TrainingConfig):
        refuse("config", "None or a TrainingConfig", config, "pass other values of fields by name")
    ranks = Ranks.join()
    changed, function = with_reward(changes, reward)
    trainer = Trainer((config or preset("default")).changed(**changed), ranks, function)
    stops = with_limit(should_stop, minutes)
    with own_folder(path, ranks, may_begin=True, may_go_on=auto_resume) as checkpoint:
        if checkpoint is not None:
            trainer.restore(checkpoint)
        return _run(trainer, path, on_begin, on_update, stops, tensorboard)


def resume(
    folder: str | os.PathLike[str],
    *,
    reward: AnyReward = None,
    minutes: float | None = None,
    on_begin: OnBegin | None = None,
    on_update: OnUpdate | None = None,
    should_stop: ShouldStop | None = None,
    tensorboard: bool = False,
    **changes: Any,
) -> Trainer:
    """Goes on with the run of a folder, from its last checkpoint. Without changes, on the CPU and in as many processes,
    it yields the bits that it would have yielded without the interruption.

    Args:
        folder: of the run.
        reward: as for `train()`. A run with a function needs it again.
        minutes, on_begin, on_update, should_stop, tensorboard: as for `train()`.
        **changes: other values of fields of the config, as for `train()`, such as `num_updates`. The network and the
            worlds must stay.

    Raises:
        ArgumentError: the folder has no run, or one that has made all its updates; or a change is refused.
        StateError: another run goes on in the folder; or the checkpoint is damaged, does not fit the changed config, or
            has a curriculum whose module was not imported.
        LibraryError, NonFiniteLossError, LostRankError, OSError: as `train()`.
    """
    path = Path(checked_path(folder))
    check_functions(on_begin=on_begin, on_update=on_update, should_stop=should_stop)
    check_flag("tensorboard", tensorboard)
    ranks, stops = Ranks.join(), with_limit(should_stop, minutes)
    with own_folder(path, ranks, may_begin=False, may_go_on=True) as checkpoint:
        assert checkpoint is not None
        trainer = _resumed(checkpoint, path, ranks, changes, reward)
        return _run(trainer, path, on_begin, on_update, stops, tensorboard)


def _resumed(
    checkpoint: Checkpoint, path: Path, ranks: Ranks, changes: Mapping[str, Any], reward: AnyReward
) -> Trainer:
    if checkpoint.absent_curriculum:
        module, _, name = checkpoint.absent_curriculum.rpartition(".")
        message = f"the run in {path} has the curriculum {name}, which no module has registered"
        raise StateError(message, hint=f"import {module} first")
    changed, function = with_reward(changes, reward)
    if reward is None and checkpoint.reward_function:
        message = (
            f"the run in {path} is rewarded by the function {checkpoint.reward_function}, which it does not contain"
        )
        raise StateError(message, hint="pass it again, or Rewards, as reward=")
    config = checkpoint.config.changed(**changed)
    if checkpoint.update >= config.num_updates:
        raise ArgumentError(
            f"the run in {path} has made {checkpoint.update:,} updates, and num_updates is {config.num_updates:,}",
            argument="num_updates",
            hint=f"give more, such as num_updates={2 * checkpoint.update}",
        )
    trainer = Trainer(config, ranks, function)
    trainer.restore(checkpoint)
    return trainer


def with_reward(changes: Mapping[str, Any], reward: AnyReward | str) -> tuple[dict[str, Any], RewardFunction | None]:
    """Changes of the config that have a reward's terms, or their text, as commands have them; and its function."""
    if reward is None:
        return {**changes}, None
    terms, function = (reward, None) if isinstance(reward, str) else split_reward(reward)
    return {**changes, "reward": terms}, function


def with_limit(should_stop: ShouldStop | None, minutes: float | None) -> ShouldStop:
    """Whether a run that begins now should stop, as is asked or when the minutes are over."""
    if minutes is None:
        return should_stop or (lambda: False)
    end = time.monotonic() + 60 * check_between("minutes", minutes, MOST_MINUTES, "minutes")
    return lambda: time.monotonic() >= end or (should_stop is not None and should_stop())


@contextmanager
def own_folder(folder: Path, ranks: Ranks, *, may_begin: bool, may_go_on: bool) -> Iterator[Checkpoint | None]:
    """Together: the folder of a run, which no other run writes to meanwhile, with its checkpoint; None if it has none.

    The lock is the kernel's, so that it ends with the process, however that ends.
    """
    path, data = folder / CHECKPOINT, None
    with ExitStack() as stack:
        with ranks.together():
            if ranks.is_first:
                if not (may_begin or path.exists()):
                    raise ArgumentError(f"{folder} has no {CHECKPOINT} to resume", argument="folder")
                folder.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(open(folder / LOCK, "ab"))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    hint = "wait until it has ended, stop it, or choose another folder"
                    raise StateError(f"another run goes on in {folder}", argument="folder", hint=hint) from None
                except OSError:  # a file system without locks
                    pass
                if not may_go_on:
                    _check_new(folder)
                data = read_regular(path) if path.exists() else None
        data = ranks.broadcast(data)
        yield None if data is None else parse_checkpoint(path, data)


def _check_new(folder: Path) -> None:
    """Refuses what a run would replace or mix with its own."""
    message, hint = "a run already", "resume it, or choose another folder"
    if not (folder / CHECKPOINT).exists():
        message = "the log of a run that ended before its first checkpoint"
        hint = "remove it, choose another folder, or pass auto_resume=True, which begins the run anew"
        if not any(one.exists() and one.stat().st_size for one in (folder / LOG, folder / TENSORBOARD)):
            return
    raise ArgumentError(f"{folder} has {message}", argument="folder", hint=hint)


def _run(
    trainer: Trainer,
    folder: Path,
    on_begin: OnBegin | None,
    on_update: OnUpdate | None,
    should_stop: ShouldStop,
    tensorboard: bool,
) -> Trainer:
    config, ranks = trainer.config, trainer.ranks
    with ExitStack() as stack:
        logs: list[JsonLines | TensorBoardLog] = []
        with ranks.together():
            if ranks.is_first:
                write_text(folder / CONFIG, config.to_json(indent=2) + "\n")
                logs.append(stack.enter_context(JsonLines(folder / LOG, trainer.updates)))
                if tensorboard:
                    logs.append(stack.enter_context(TensorBoardLog(folder / TENSORBOARD, trainer.updates)))
            if on_begin is not None:
                on_begin(trainer)
        while trainer.updates < config.num_updates:
            record = _update(trainer, folder)
            with ranks.together():
                for log in logs:
                    log.write(record)
                if ranks.is_first and on_update is not None:
                    on_update(record)
            is_asked_to_stop = ranks.any(should_stop())
            is_last = is_asked_to_stop or record.update == config.num_updates
            if is_last or record.update % config.checkpoint_every == 0:
                checkpoint = trainer.checkpoint()
                with ranks.together():
                    if ranks.is_first:
                        save_checkpoint(folder / CHECKPOINT, checkpoint)
            if is_last:
                break
    return trainer


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
