"""The log of a run: a record of each update, in a file of lines of JSON, and for TensorBoard."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import torch

from doorstep._arguments import showing
from doorstep._copies import ClosingOwner
from doorstep._files import replaced_file
from doorstep._optional import import_optional
from doorstep._run_log import read_log
from doorstep.levels.generated import ROOM_ENDS
from doorstep.training.distributed import Ranks
from doorstep.training.level_sampler import LevelRecord
from doorstep.training.levels import TrainingLevels
from doorstep.training.rollout import Rollout

__all__ = ["EpisodeSummary", "JsonLines", "Record", "TensorBoardLog", "read_log", "summarize_episodes"]


@final
@dataclass(frozen=True)
class Record:
    """An update, and the episodes that ended in its rollout.

    Attributes:
        update: counts from 1.
        world_steps: steps of worlds so far.
        seconds: that the run took so far.
        world_steps_per_second: of this update, everything included.
        episodes: that ended. Retries do not count, here and in what follows.
        mean_return: of an episode's return, which is the mean of its agents' sums of rewards, as the config's `reward`
            shapes them, if it has one; None if none ended.
        rooms_one: share of the episodes in levels with the reference's rooms in which at least one agent passed the
            first, second and third door; empty if none ended.
        rooms_all: the same for all agents, at any time of the episode.
        losses: means over the minibatches of the update, by name; and `explained_variance`, the share of the variance
            of what the critic should have predicted that it did predict.
        success: of runs with a table of levels: the mean over all levels, each with the same weight, of how often
            episodes succeeded lately; None in other runs.
        levels: of such runs: the levels in which episodes ended, by name.
    """

    update: int
    world_steps: int
    seconds: float
    world_steps_per_second: float
    episodes: int
    mean_return: float | None
    rooms_one: tuple[float, ...]
    rooms_all: tuple[float, ...]
    losses: Mapping[str, float]
    success: float | None = None
    levels: Mapping[str, LevelRecord] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, in values that JSON can hold."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class EpisodeSummary:
    """The fields of a `Record` that tell of episodes."""

    episodes: int
    mean_return: float | None
    rooms_one: tuple[float, ...]
    rooms_all: tuple[float, ...]


def summarize_episodes(rollout: Rollout, levels: TrainingLevels, num_agents: int, ranks: Ranks) -> EpisodeSummary:
    """Together: the means over the episodes that ended in the rollouts of all ranks, without retries."""
    ended = rollout.ended.unflatten(1, (-1, num_agents))[..., 0] & rollout.natural
    returns = rollout.returns.unflatten(1, (-1, num_agents))[ended]
    has_doors = ended & levels.has_reference_rooms[rollout.levels]
    doors = torch.tensor(ROOM_ENDS, dtype=torch.float32, device=returns.device)
    passed = rollout.largest_y.unflatten(1, (-1, num_agents))[has_doors][..., None] > doors
    counts = torch.stack((ended.sum(), has_doors.sum()))
    sums = torch.cat((counts, returns.double().sum()[None], passed.any(1).sum(0), passed.all(1).sum(0)))
    ranks.sum(sums)
    episodes, with_doors, all_returns, *passings = sums.tolist()
    mean_return = all_returns / (episodes * num_agents) if episodes else None
    shares = tuple(passing / with_doors for passing in passings) if with_doors else ()
    return EpisodeSummary(int(episodes), mean_return, shares[: len(ROOM_ENDS)], shares[len(ROOM_ENDS) :])


@final
class JsonLines(ClosingOwner):
    """A file with a line for each record. A run that goes on after an update first drops the lines of later ones.

    resumed_at: the update; 0: a new run, whose file is empty.
    """

    __repr__ = showing("_path")

    def __init__(self, path: Path, resumed_at: int = 0) -> None:
        kept = [record for record in read_log(path) if record["update"] <= resumed_at] if path.exists() else []
        with replaced_file(path) as file:
            file.writelines(_line(record) for record in kept)
        self._path = path
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by close())

    def write(self, record: Record) -> None:
        """Appends a record, at once.

        Raises:
            OSError: the file cannot be written.
        """
        try:
            self._file.write(_line(record.to_dict()))
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(self._path)) from None

    def close(self) -> None:
        self._file.close()


@final
class TensorBoardLog(ClosingOwner):
    """The same records for TensorBoard, below `folder`. Of a run that goes on, or begins anew, TensorBoard drops the
    points of later updates, as `JsonLines` its lines."""

    __repr__ = showing("_writer.log_dir")

    def __init__(self, folder: Path, resumed_at: int = 0) -> None:
        tensorboard = import_optional("torch.utils.tensorboard", "curves for TensorBoard need it", "train")
        self._writer = tensorboard.SummaryWriter(os.fspath(folder), purge_step=resumed_at + 1)

    def write(self, record: Record) -> None:
        """Adds a point to each curve."""
        numbers = {f"loss/{name}": value for name, value in record.losses.items()}
        numbers["speed/world_steps_per_second"] = record.world_steps_per_second
        if record.mean_return is not None:
            numbers["episode/return"] = record.mean_return
        if record.success is not None:
            numbers["levels/success"] = record.success
        numbers |= {f"level_weight/{name}": level.weight for name, level in record.levels.items()}
        for name, shares in (("one", record.rooms_one), ("all", record.rooms_all)):
            numbers |= {f"door_{door}/{name}": share for door, share in enumerate(shares, 1)}
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, record.update)

    def close(self) -> None:
        self._writer.close()


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"
