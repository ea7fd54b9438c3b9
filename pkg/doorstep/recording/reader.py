"""`RecordingFile`: reads the file of a recording."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_flag, check_integer, refuse
from doorstep._copies import ClosingOwner
from doorstep._native import VERSION_STRING
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError, ClosedError, StateError
from doorstep.levels import Rewards
from doorstep.levels.files import AnyLevel
from doorstep.recording import layout
from doorstep.recording.layout import Chunk, ChunkFile, PackedSteps
from doorstep.recording.rules import config_of, parse_config_text, parse_levels_text

_MOST_CONFIG_BYTES = 1 << 20


class RecordingFile(ClosingOwner, remedy="open its `path` again"):
    """A recording, open for reading; `Recording` is the class for users, and says what its arguments are."""

    def __init__(self, path: str | os.PathLike[str], *, incomplete: bool = False) -> None:
        self._incomplete = check_flag("incomplete", incomplete)
        self._blocks: list[Chunk] = []
        self._block_ends: list[int] = []  # the position after each block
        self._events: dict[int, list[Chunk]] = {}  # everything but steps, by position, in the order of the file
        self._levels: list[Chunk] = []
        self._unpacked: tuple[int, PackedSteps] | None = None
        self._file = ChunkFile(path)
        try:
            self._read_index()
        except BaseException:
            self._file.close()
            raise

    @property
    def path(self) -> str:
        """The file."""
        return self._file.path

    @property
    def version(self) -> str:
        """The version of doorstep that wrote the file."""
        return self._version

    @property
    def config(self) -> SimulatorConfig:
        """The rules of the recorded simulator. What does not change results (device, threads, cameras, strictness, flat
        observations) is not recorded and has its default."""
        return self._config

    @property
    def reward(self) -> Rewards | None:
        """What replaced the rewards of the levels, as `Simulator.reward`; None: nothing did."""
        return self._reward

    @property
    def num_steps(self) -> int:
        """Steps that can be replayed."""
        return self._block_ends[-1] if self._block_ends else 0

    @property
    def complete(self) -> bool:
        """Whether the file has its end mark; False only if it was opened with `incomplete=True`."""
        return self._complete

    @property
    def same_version_only(self) -> bool:
        """Whether the file has saved worlds (see `RecordingWriter`), which only the version that wrote it restores."""
        return any(chunk.kind == layout.SAVE for chunks in self._events.values() for chunk in chunks)

    @property
    def hashed_steps(self) -> tuple[int, ...]:
        """The moments with hashes: after so many steps, ascending; 0 is the first moment."""
        return tuple(at for at, chunks in self._events.items() if any(chunk.kind == layout.HASHES for chunk in chunks))

    def actions(self, step: int) -> NDArray[np.int32]:
        """int32 [N, A, 4]: the actions that a step applied, a new array.

        Raises:
            ArgumentError: `step` is not 0 to `num_steps - 1`.
            StateError: the file is damaged there.
            ClosedError: the recording has been closed.
        """
        index, steps = self._find(step)
        return steps.actions(index, self._config.num_agents)

    def resets(self, step: int) -> NDArray[np.bool_]:
        """bool [N]: the worlds that a step regenerated because `sim.resets` asked for it; errors as `actions()`."""
        index, steps = self._find(step)
        resets = steps.resets(index)
        return np.zeros(self._config.num_worlds, np.bool_) if resets is None else resets

    def hashes(self, step: int) -> NDArray[np.uint64]:
        """uint64 [N]: `sim.world_hashes()` after so many steps.

        Raises:
            ArgumentError: `step` is not one of `hashed_steps`.
            StateError: the file is damaged there.
            ClosedError: the recording has been closed.
        """
        position = check_integer("step", step, 0, self.num_steps)
        for chunk in self._events.get(position, ()):
            if chunk.kind == layout.HASHES:
                return np.frombuffer(self._file.payload(chunk), "<u8").astype(np.uint64)
        return refuse("step", "one of hashed_steps", step)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
        self._unpacked = None

    def __repr__(self) -> str:
        config = self._config
        worlds = f"{config.num_worlds} worlds, {config.num_agents} agents"
        return f"Recording({self.path!r}, {worlds}, {self.num_steps} steps)"

    # ---- The index

    def _read_index(self) -> None:
        chunks = self._chunks()
        first = next(chunks, None)
        if first is None:
            raise self._truncated()
        if first.kind != layout.CONFIG or first.position:
            self._file.damaged(first.offset, f"it begins with a chunk {first.name} instead of CONF")
        self._version, self._config, self._reward = self._read_config(first)
        self._complete = False
        for count, chunk in enumerate(chunks, 1):
            if chunk.kind == layout.END:
                self._check_end(chunk, count)
                self._complete = True
                return
            self._add(chunk)
        if not self._incomplete:
            raise self._truncated()

    def _chunks(self) -> Iterator[Chunk]:
        """The chunks in order, with positions that fit each other; ends with the last complete one."""
        offset, position = self._file.read_head(), 0
        while (chunk := self._file.read_header(offset)) is not None:
            if chunk.kind not in layout.KINDS and not chunk.kind[:1].islower():
                what = f"has a chunk {chunk.name!r} at byte {offset}, which this doorstep does not know"
                raise self._file.error(what, "Read it with a newer doorstep.")
            grows = chunk.position > position
            if chunk.position < position or grows != (chunk.kind == layout.STEPS):
                what = f"a chunk {chunk.name} is at step {chunk.position}, after step {position}: one is missing"
                self._file.damaged(offset, what)
            yield chunk
            offset, position = chunk.offset + chunk.length, chunk.position

    def _add(self, chunk: Chunk) -> None:
        num_worlds = self._config.num_worlds
        if chunk.kind == layout.STEPS:
            self._check_length(chunk, 8, self._file.size)
            if self._config.max_levels and not self._levels:
                self._file.damaged(chunk.offset, "a chunk STEP comes before the first chunk LEVL")
            self._blocks.append(chunk)
            self._block_ends.append(chunk.position)
        elif chunk.kind == layout.LEVELS:
            if not self._config.max_levels:
                self._file.damaged(chunk.offset, "it has a chunk LEVL, but its rules have no levels")
            self._check_length(chunk, 8, self._file.size)
            self._levels.append(chunk)
            self._events.setdefault(chunk.position, []).append(chunk)
        elif chunk.kind in (layout.HASHES, layout.RESET, layout.SAVE):
            exact = {layout.HASHES: 8 * num_worlds, layout.RESET: (num_worlds + 7) // 8}.get(chunk.kind)
            if exact is not None:
                self._check_length(chunk, exact, exact)
            self._events.setdefault(chunk.position, []).append(chunk)
        elif chunk.kind == layout.CONFIG:
            self._file.damaged(chunk.offset, "it has a second chunk CONF")

    def _check_length(self, chunk: Chunk, least: int, most: int) -> None:
        if not least <= chunk.length <= most:
            self._file.damaged(chunk.offset, f"a chunk {chunk.name} cannot have {chunk.length} bytes")

    def _check_end(self, end: Chunk, count: int) -> None:
        self._check_length(end, 8, 8)
        counted = int.from_bytes(self._file.payload(end), "little")
        if counted != count:
            self._file.damaged(end.offset, f"it has {count} chunks, but {counted} were written")
        behind = end.offset + end.length
        if behind != self._file.size:
            self._file.damaged(behind, f"{self._file.size - behind} bytes follow its end mark")

    def _truncated(self) -> StateError:
        steps, remedy = "no step is complete", "record it again"
        if self._block_ends:
            steps, remedy = f"{self.num_steps} steps are complete", "Recording(path, incomplete=True) reads these steps"
        what = f"is truncated: it ends at byte {self._file.size} without an end mark; {steps}"
        return self._file.error(what, f"Its writer died or a part is missing; {remedy}.")

    def _read_config(self, chunk: Chunk) -> tuple[str, SimulatorConfig, Rewards | None]:
        self._check_length(chunk, 2, _MOST_CONFIG_BYTES)
        try:
            version, rules = parse_config_text(self._file.payload(chunk))
        except ValueError as error:
            self._file.damaged(chunk.offset, f"its configuration cannot be read: {error}")
        try:
            return version, *config_of(rules)
        except ArgumentError as error:
            what = f"has rules of doorstep {version} that doorstep {VERSION_STRING} does not have: {error}"
            raise self._file.error(what, f"Read it with doorstep {version}.") from error

    # ---- Payloads

    def _find(self, step: int) -> tuple[int, PackedSteps]:
        """The block of a step, and its place there. The block that was read last is kept."""
        if not self.num_steps:
            raise ArgumentError(f"{self.path} has no steps.", argument="step")
        position = check_integer("step", step, 0, self.num_steps - 1)
        block = bisect.bisect_right(self._block_ends, position)
        first = self._block_ends[block - 1] if block else 0
        if self._unpacked is None or self._unpacked[0] != block:
            num_steps = self._block_ends[block] - first
            config = self._config
            self._unpacked = None  # frees the last block first
            steps = self._file.steps(self._blocks[block], num_steps, config.num_worlds, config.num_agents)
            self._unpacked = (block, steps)
        return position - first, self._unpacked[1]

    def _levels_at(self, position: int) -> Chunk | None:
        """The chunk LEVL that applies to the step after so many."""
        later = bisect.bisect_right(self._levels, position, key=lambda chunk: chunk.position)
        return self._levels[later - 1] if later else None

    def _levels_of(self, chunk: Chunk) -> tuple[bytes, NDArray[np.float32]]:
        """JSON of the levels, and their weights [N, L]."""
        return self._file.levels(chunk, self._config.num_worlds, self._config.max_levels)

    def _parse_levels(self, chunk: Chunk, text: bytes) -> list[AnyLevel]:
        try:
            return parse_levels_text(text)
        except ArgumentError as error:
            raise self._unfit_levels(chunk, error) from error
        except ValueError as error:
            self._file.damaged(chunk.offset, f"the levels of a chunk LEVL cannot be read: {error}")

    def _unfit_levels(self, chunk: Chunk, error: ArgumentError) -> StateError:
        what = f"has levels of doorstep {self.version} that doorstep {VERSION_STRING} does not take, in the chunk LEVL"
        return self._file.error(f"{what} at byte {chunk.offset}: {error}", f"Read it with doorstep {self.version}.")

    def _check_open(self) -> None:
        if self._file.closed:
            raise ClosedError(f"The recording {self.path} is closed.", hint="Open it again.")
