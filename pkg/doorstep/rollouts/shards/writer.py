"""`ShardWriter`: the trajectories of an engine's results, as files that are read without copies."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import Any, BinaryIO, final

import numpy as np

from doorstep._arguments import check_integer, refuse
from doorstep._files import add_file, checked_path
from doorstep.config import SimulatorConfig
from doorstep.errors import ClosedError
from doorstep.levels.files import AnyLevel
from doorstep.rollouts.result import REASONS, EpisodeResult
from doorstep.rollouts.shards.layout import MOST_TEXT_BYTES, SUFFIX, Layout, checksum, index_dtype
from doorstep.rollouts.shards.reader import ROWS, ShardFile, shard_names
from doorstep.rollouts.shards.text import rules_of, shard_text

_MOST_SHARD_BYTES = 1 << 34
_REASON_NUMBERS = {name: number for number, name in REASONS.items()}


@final
class ShardWriter:
    """Writes results with their trajectories into the shards of a directory, one file after the other.

    Results are kept in memory until they fill a shard, which is then written as a whole: a shard that can be seen is
    complete. A directory that has shards gets further ones: to go on after an interruption, submit the requests whose
    tags `open_shards(directory).tags` does not have.

    >>> import doorstep, tempfile
    >>> from doorstep.rollouts import ShardWriter, open_shards
    >>> config, directory = doorstep.SimulatorConfig(16), tempfile.mkdtemp()
    >>> requests = [doorstep.EpisodeRequest(seed=seed, record="observations", max_steps=50) for seed in range(100)]
    >>> with doorstep.RolloutEngine(config) as engine, ShardWriter(directory, config) as writer:
    ...     ids = engine.submit(requests)
    ...     writer.extend(result for result in engine if result.finished)
    >>> len(open_shards(directory)), open_shards(directory)[0].observations.shape
    (100, (50, 2, 94))

    Args:
        directory: of the shards; made if there is none.
        config: the engine's `config.simulator`.
        shard_bytes: a shard is written when its trajectories have so many bytes, at least. The writer uses about so
            much memory.

    Raises:
        ArgumentError: an argument is out of range, or the directory has shards of other rules.
        StateError: a shard of the directory is damaged, or of a later version.
        OSError: the directory cannot be made or read.
    """

    def __init__(
        self, directory: str | os.PathLike[str], config: SimulatorConfig, *, shard_bytes: int = 64 << 20
    ) -> None:
        self._directory = checked_path(directory)
        if not isinstance(config, SimulatorConfig):
            refuse("config", "a doorstep.SimulatorConfig", config)
        self._rules = rules_of(config)
        self._shard_bytes = check_integer("shard_bytes", shard_bytes, 1, _MOST_SHARD_BYTES)
        os.makedirs(self._directory, exist_ok=True)
        self._num_inputs = 0  # not known yet
        self._next = 0
        if names := shard_names(self._directory):
            last = ShardFile(os.path.join(self._directory, names[-1]))
            if last.rules != self._rules:
                refuse("config", f"the rules of the shards in {self._directory}", config, "use a new directory")
            self._num_inputs = last.layout.num_inputs
            self._next = int(names[-1].removesuffix(SUFFIX)) + 1
        self._closed = False
        self._start_shard()

    def append(self, result: EpisodeResult) -> None:
        """Adds a result; writes a shard if it is full.

        Raises:
            ArgumentError: the result is not one of a finished episode with observations of these rules.
            ClosedError: the writer has been closed.
            OSError: a shard cannot be written. The result was added, and the shard is written with the next one.
        """
        if self._closed:
            raise ClosedError("this writer is closed", hint="make a new ShardWriter")
        self._check(result)
        self._results.append(result)
        level = result.request.level
        if level is not None and level not in self._levels:
            self._levels[level] = len(self._levels)
            self._text_bytes += len(shard_text(self._rules, [level]))
        self._bytes += sum(getattr(result, name).nbytes for name in ROWS)
        if self._bytes >= self._shard_bytes or self._text_bytes >= MOST_TEXT_BYTES // 2:
            self.flush()

    def extend(self, results: Iterable[EpisodeResult]) -> None:
        """`append()` for each."""
        for result in results:
            self.append(result)

    def flush(self) -> None:
        """Writes what is in memory as a shard, if it is anything.

        Raises:
            OSError: it cannot be written. Nothing is lost or left behind.
        """
        if self._results:
            path_of = os.path.join(self._directory, "{:08}" + SUFFIX).format
            number = add_file(path_of, self._next, self._write)
            self._next = number + 1
            self._start_shard()

    def close(self) -> None:
        """`flush()`; further results are refused."""
        if not self._closed:
            self.flush()
            self._closed = True

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _start_shard(self) -> None:
        self._results: list[EpisodeResult] = []
        self._levels: dict[AnyLevel, int] = {}
        self._bytes = self._text_bytes = 0

    def _write(self, file: BinaryIO) -> None:
        text = shard_text(self._rules, list(self._levels))
        index = _index_of(self._results, self._levels)
        num_steps = int(index["length"].sum(dtype=np.uint64))
        layout = Layout(self._rules.num_agents, self._num_inputs, len(text), len(index), num_steps)
        parts = layout.parts()
        file.write(layout.head(text, index.tobytes()))
        file.write(text)
        file.seek(parts["index"].offset)
        file.write(index.tobytes())
        for name in ROWS:
            file.seek(parts[name].offset)
            for result in self._results:
                file.write(np.ascontiguousarray(getattr(result, name), parts[name].element).data)

    def _check(self, result: Any) -> None:
        if not isinstance(result, EpisodeResult):
            refuse("result", "a doorstep.EpisodeResult", result)
        if not result.finished:
            refuse("result", "of an episode that was played to its end", result.reason, "leave out others")
        if result.observations is None:
            refuse("result", "of a request that records observations", result.request, 'use record="observations"')
        _, agents, inputs = result.observations.shape
        if agents != self._rules.num_agents or inputs != (self._num_inputs or inputs):
            expected = f"of {self._rules.num_agents} agents that observe {self._num_inputs or 'some'} numbers"
            refuse("result", expected, (agents, inputs), "pass engine.config.simulator of the engine that played it")
        self._num_inputs = inputs


def _index_of(results: list[EpisodeResult], levels: dict[AnyLevel, int]) -> Any:
    index = np.zeros(len(results), index_dtype(len(results[0].returns)))
    index["first_step"] = np.cumsum([0, *(result.length for result in results[:-1])])
    for name in ("id", "state_hash", "queued_seconds", "played_seconds", "length", "replica", "returns", "max_y"):
        index[name] = [getattr(result, name) for result in results]
    for name in ("tag", "seed"):
        index[name] = [getattr(result.request, name) for result in results]
    index["max_steps"] = [result.request.max_steps or 0 for result in results]
    index["level"] = [-1 if result.request.level is None else levels[result.request.level] for result in results]
    index["reason"] = [_REASON_NUMBERS[result.reason] for result in results]
    index["checksum"] = [checksum([getattr(result, name) for name in ROWS]) for result in results]
    return index
