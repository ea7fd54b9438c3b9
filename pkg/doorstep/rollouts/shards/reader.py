"""`open_shards()`: the episodes of a directory of shards, as views of the files."""

from __future__ import annotations

import bisect
import collections
import itertools
import mmap
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_integer, refuse
from doorstep._files import checked_path, open_regular
from doorstep.config import SimulatorConfig
from doorstep.errors import StateError
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import REASONS, EpisodeResult
from doorstep.rollouts.shards.layout import HEAD_BYTES, SUFFIX, checksum, damaged, read_head
from doorstep.rollouts.shards.text import parse_shard_text

ROWS = ("observations", "actions", "rewards", "last_observations")  # in the order of the file
_NAME = re.compile(rf"\d{{8}}{re.escape(SUFFIX)}")
_FINISHED = tuple(number for number, name in REASONS.items() if name in ("goal", "time"))
_MOST_MAPPED = 64  # files at a time: each takes a descriptor


def shard_names(directory: str) -> list[str]:
    """The shards of a directory, in order; other files are not looked at."""
    return sorted(name for name in os.listdir(directory) if _NAME.fullmatch(name))


@final
class ShardFile:
    """One shard: its rules, levels and index, which are read at once, and its arrays, which are mapped.

    Raises:
        StateError: it is damaged, or of a later version.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        descriptor = open_regular(path)
        try:
            size = os.fstat(descriptor).st_size
            self.layout, text_sum, index_sum = read_head(path, os.pread(descriptor, HEAD_BYTES, 0), size)
            text = os.pread(descriptor, self.layout.text_bytes, HEAD_BYTES)
            element, shape, at = part = self.layout.parts()["index"]
            index = os.pread(descriptor, part.end - at, at)
        finally:
            os.close(descriptor)
        if len(text) < self.layout.text_bytes or zlib.crc32(text) != text_sum:
            damaged(path, "the checksum of its text is wrong")
        if len(index) < part.end - at or zlib.crc32(index) != index_sum:
            damaged(path, "the checksum of its index is wrong")
        try:
            self.rules, self.levels = parse_shard_text(text)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StateError(f"{path} has rules or levels that are refused: {error}", argument="directory") from error
        self.index: NDArray[Any] = np.frombuffer(index, element).reshape(shape)
        self._check_index()

    def _check_index(self) -> None:
        index, lengths = self.index, self.index["length"].astype(np.uint64)
        if (lengths == 0).any() or (np.cumsum(lengths) - lengths != index["first_step"]).any():
            damaged(self.path, "the episodes of its index do not follow each other")
        if int(lengths.sum()) != self.layout.num_steps or self.rules.num_agents != self.layout.num_agents:
            damaged(self.path, "its index or its rules do not fit its first bytes")
        levels = index["level"]
        if (levels < -1).any() or (levels >= len(self.levels)).any() or not np.isin(index["reason"], _FINISHED).all():
            damaged(self.path, "its index has a level or a reason that it cannot have")

    def map(self) -> dict[str, NDArray[Any]]:
        """Its arrays, without reading them."""
        descriptor = open_regular(self.path)
        try:
            if os.fstat(descriptor).st_size != self.layout.num_bytes:
                damaged(self.path, "its size has changed since it was opened")
            mapped = mmap.mmap(descriptor, self.layout.num_bytes, access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)
        parts = self.layout.parts()
        return {
            name: np.frombuffer(mapped, element, int(np.prod(shape)), offset).reshape(shape)
            for name, (element, shape, offset) in parts.items()
            if name in ROWS
        }

    def result(self, episode: int, arrays: dict[str, NDArray[Any]]) -> EpisodeResult:
        """An episode as views of its rows, which are compared with their checksum."""
        entry = self.index[episode]
        first, length = int(entry["first_step"]), int(entry["length"])
        rows: dict[str, Any] = {name: arrays[name][first : first + length] for name in ROWS[:3]}
        rows["last_observations"] = arrays["last_observations"][episode]
        if checksum(list(rows.values())) != entry["checksum"]:
            damaged(self.path, f"the checksum of its episode {episode} is wrong")
        level = int(entry["level"])
        request = EpisodeRequest(
            seed=int(entry["seed"]),
            level=None if level < 0 else self.levels[level],
            policy=None,
            max_steps=int(entry["max_steps"]) or None,
            record="observations",
            tag=int(entry["tag"]),
        )
        return EpisodeResult(
            id=int(entry["id"]),
            request=request,
            reason=REASONS[int(entry["reason"])],
            returns=entry["returns"],
            length=length,
            max_y=entry["max_y"],
            state_hash=int(entry["state_hash"]),
            **rows,
            queued_seconds=float(entry["queued_seconds"]),
            played_seconds=float(entry["played_seconds"]),
            replica=int(entry["replica"]),
        )


@final
class TrajectoryShards(Sequence[EpisodeResult]):
    """The episodes of a directory of shards, in the order in which they were written. `open_shards()` makes it.

    An episode is the `EpisodeResult` that was written; its arrays are views of the mapped file, and cannot be written.
    Its request has the seed, level, max_steps and tag that it had; what chose the actions is not known any more, and
    its policy is None. Any thread may read; it can be pickled, and used in forked processes.

    Attributes:
        directory: of the shards.
        config: the rules of the episodes, for `write_recording()`.
    """

    def __init__(self, directory: str, names: Sequence[str]) -> None:
        self.directory = directory
        self._names = tuple(names)
        self._files = [ShardFile(os.path.join(directory, name)) for name in names]
        if not self._files:
            refuse("directory", f"one with files *{SUFFIX}", directory)
        first = self._files[0]
        self.config: SimulatorConfig = first.rules
        for file in self._files:
            if file.rules != first.rules or file.layout.num_inputs != first.layout.num_inputs:
                message = f"{file.path} has other rules than {first.path}"
                raise StateError(message, argument="directory", hint="keep them in directories of their own")
        self._ends = list(itertools.accumulate(len(file.index) for file in self._files))
        self._mapped: collections.OrderedDict[int, dict[str, NDArray[Any]]] = collections.OrderedDict()

    def __reduce__(self) -> Any:
        return TrajectoryShards, (self.directory, self._names)

    def __len__(self) -> int:
        return self._ends[-1]

    @property
    def num_shards(self) -> int:
        return len(self._files)

    @property
    def num_steps(self) -> int:
        """Of all episodes."""
        return sum(file.layout.num_steps for file in self._files)

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """uint32 [len(shards)], the steps of each episode."""
        return self._column("length")

    @property
    def seeds(self) -> NDArray[np.uint32]:
        """uint32 [len(shards)], of their requests."""
        return self._column("seed")

    @property
    def tags(self) -> NDArray[np.uint64]:
        """uint64 [len(shards)], of their requests."""
        return self._column("tag")

    def _column(self, name: str) -> NDArray[Any]:
        return np.concatenate([file.index[name] for file in self._files])

    @overload
    def __getitem__(self, episode: int) -> EpisodeResult: ...
    @overload
    def __getitem__(self, episode: slice) -> list[EpisodeResult]: ...
    def __getitem__(self, episode: int | slice) -> EpisodeResult | list[EpisodeResult]:
        """Raises StateError if the episode is damaged."""
        if isinstance(episode, slice):
            return [self[place] for place in range(*episode.indices(len(self)))]
        if not -len(self) <= episode < len(self):
            raise IndexError(f"{episode} is not one of {len(self)} episodes")
        place = check_integer("episode", episode, -len(self), len(self) - 1) % len(self)
        number = bisect.bisect_right(self._ends, place)
        file = self._files[number]
        return file.result(place - self._ends[number] + len(file.index), self._arrays(number))

    def __iter__(self) -> Iterator[EpisodeResult]:
        return map(self.__getitem__, range(len(self)))

    def _arrays(self, number: int) -> dict[str, NDArray[Any]]:
        """Mapped; the ones used least recently are forgotten, and unmapped with the last view of them."""
        arrays = self._mapped.pop(number, None) or self._files[number].map()
        self._mapped[number] = arrays
        if len(self._mapped) > _MOST_MAPPED:
            self._mapped.popitem(last=False)
        return arrays

    def verify(self) -> None:
        """Reads all episodes.

        Raises:
            StateError: one of them is damaged; the message names its shard.
        """
        for _ in self:
            pass


def open_shards(directory: str | os.PathLike[str]) -> TrajectoryShards:
    """Opens the shards of a directory, as `ShardWriter` writes them: reads their indices, and maps their arrays where
    they are used. Files that are added later are not seen. Do not shorten or overwrite files that are open.

    Raises:
        ArgumentError: the directory has no shards.
        StateError: a shard is damaged, of a later version, or has other rules than the others.
        OSError: a file cannot be read.
    """
    path = checked_path(directory)
    return TrajectoryShards(path, shard_names(path))
