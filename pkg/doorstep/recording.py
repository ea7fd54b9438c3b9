"""Recordings: the rules and the actions of a run in one file, from which the same worlds result on every device.

`RecordingWriter` records while a simulator is stepped, `Recording` reads the file, `Replay` steps another simulator
through it, and `replay` does so to the end. docs/reference/recording_format.md describes the file.
"""

from __future__ import annotations

import bisect
import json
import os
from collections.abc import Iterator
from contextlib import closing
from types import TracebackType
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from doorstep import _recording_format as layout
from doorstep._arguments import WorldSelection, check_flag, check_integer, check_slots, refuse
from doorstep._native import VERSION_STRING
from doorstep._recording_format import Chunk, ChunkFile, PackedSteps
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError, ClosedError, ReplayError, SimulationError, StateError
from doorstep.simulator import Simulator

__all__ = ["Recording", "RecordingWriter", "Replay", "replay"]

# The fields of a configuration that change results; the others do not, and are not recorded.
_RULES = ("num_worlds", "seed", "num_agents", "episode_length", "auto_reset", "world_offset", "action_check")

_MOST_BUFFERED_STEPS = 64
_MOST_BUFFERED_BYTES = 4 << 20
_MOST_CONFIG_BYTES = 1 << 20
_WORLDS_COMPARED_AT_ONCE = 4096
_WORLDS_NAMED = 5


class _Written(NamedTuple):
    """How far a file has been written."""

    offset: int  # bytes
    num_chunks: int
    num_steps: int
    num_buffered: int  # further steps that are in memory only


@final
class RecordingWriter:
    """Records the steps of a simulator into a new file.

    The file begins with the rules of the simulator. If a new simulator with these rules would not have the same worlds
    (this one has been stepped, reset, restored or edited), they are followed by a save of the worlds.

    >>> import doorstep, os, tempfile
    >>> from doorstep.recording import Recording, RecordingWriter, replay
    >>> path = os.path.join(tempfile.mkdtemp(), "run.rec")
    >>> with doorstep.Simulator(4, seed=7) as sim, RecordingWriter(path, sim) as writer:
    ...     for _ in range(100):
    ...         sim.actions[:] = (1, 0, 2, 0)
    ...         writer.append()             # the actions and resets that the next step applies
    ...         sim.step()
    >>> with Recording(path) as recording:
    ...     recording.num_steps
    ...     replay(recording)               # raises ReplayError if the worlds come out differently
    100

    What happens between two steps must pass through the writer: `reset()`, or `checkpoint()` after `sim.restore()` or
    edits of `sim.state`. Resets and restores that did not are refused by the next `append()`. Edits of `sim.state`
    cannot be noticed: a replay of such a recording raises ReplayError at the next hashes.

    On a GPU each step waits for the actions. Steps of a CUDA graph cannot be recorded.

    Args:
        path: the file; one that exists is replaced.
        sim: what is recorded. Close the writer before the simulator.
        hash_interval: after every so many steps the hash of every world is written, 8 bytes each; a replay compares
            them. The hashes of the first and of the last moment are always written.

    Raises:
        ArgumentError: an argument is out of range.
        OSError: the file cannot be created or written. What was written before stays readable.
    """

    def __init__(self, path: str | os.PathLike[str], sim: Simulator, *, hash_interval: int = 64) -> None:
        if not isinstance(sim, Simulator):
            refuse("sim", "a doorstep.Simulator", sim)
        self._hash_interval = check_integer("hash_interval", hash_interval, 1, 2**31)
        self._sim = sim
        self._first_step = sim.step_count
        self._interventions = sim._interventions
        self._written = _Written(len(layout.head()), 0, 0, 0)
        self._hashed_at = -1  # the last position with hashes
        self._actions, self._resets = _step_buffers(sim)
        saved = b"" if _is_new(sim) else _save(sim)
        hashes = sim.world_hashes()
        self._file = layout.create(path)
        self._write_at(0, layout.head())
        self._write_chunk(layout.CONFIG, _config_text(sim.config))
        if saved:
            self._write_chunk(layout.SAVE, saved)
        self._write_hashes(hashes)

    @property
    def num_steps(self) -> int:
        """Steps recorded so far."""
        return self._written.num_steps + self._written.num_buffered

    def append(self) -> None:
        """Records the actions and pending resets of the next step; call it right before that step.

        Raises:
            StateError: the step of the last `append()` was not taken, a step was taken without one, or the simulator
                was reset or restored without the writer. Nothing was recorded.
            ClosedError: the writer or the simulator has been closed.
            OSError: the file cannot be written. The writer is closed.
        """
        self._settle()
        if self._written.num_buffered == len(self._actions):
            self._flush()
        index = self._written.num_buffered
        self._actions[index] = self._sim.actions.copy_to_host()
        self._resets[index] = self._sim.resets.copy_to_host().reshape(-1) != 0
        self._written = self._written._replace(num_buffered=index + 1)

    def step(self) -> None:
        """`append()` and `sim.step()`; a step that raises and was not taken is not recorded.

        Raises:
            StateError, ClosedError, OSError: as `append()`.
            ArgumentError, SimulationError, RendererError: as `Simulator.step()`.
        """
        self.append()
        try:
            self._sim.step()
        finally:
            self._forget_untaken()

    def reset(self, worlds: WorldSelection = None) -> None:
        """`sim.reset(worlds)`, recorded.

        Args:
            worlds: a boolean mask [N], distinct slots, or None for all.

        Raises:
            ArgumentError: `worlds` is none of these. Nothing has changed.
            StateError, ClosedError, OSError: as `append()`.
        """
        self._settle()
        self._sim.reset(worlds)
        chosen = np.zeros(self._sim.num_worlds, np.bool_)
        chosen[slice(None) if worlds is None else check_slots(worlds, self._sim.num_worlds)] = True
        self._flush()
        self._write_chunk(layout.RESET, np.packbits(chosen, bitorder="little").tobytes())
        self._interventions = self._sim._interventions

    def checkpoint(self) -> None:
        """Records the worlds as they are now, after edits of `sim.state` or `sim.restore()`; calls `sim.refresh()`.

        It takes about 1.5 kB per world with 2 agents. Only the version of doorstep that wrote a checkpoint can replay
        it.

        Raises:
            StateError: steps were taken without `append()`, or the step of the last one was not taken.
            ClosedError, OSError: as `append()`.
        """
        self._check_open()
        self._check_steps()
        saved = _save(self._sim)
        self._flush()
        self._write_chunk(layout.SAVE, saved)
        self._interventions = self._sim._interventions
        self._write_due_hashes()

    def close(self) -> None:
        """Writes the steps in memory, the hashes of the last moment and the end mark, and closes the file.

        A last `append()` whose step was not taken is not part of the recording.

        Raises:
            ClosedError: the simulator has been closed before. The file has no end mark.
            OSError: the file cannot be written.
        """
        if self._file.closed:
            return
        try:
            if self._sim.closed:
                raise ClosedError(
                    "The simulator was closed before its recording, which has no end mark.",
                    hint="Close the writer first.",
                )
            try:
                self._finish()
            except SimulationError:  # a strict simulator reports an error once, at any call
                self._finish()
                raise
        finally:
            self._file.close()

    def __enter__(self) -> RecordingWriter:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ---- What has happened since the last call

    def _settle(self) -> None:
        """Checks that exactly the recorded things have happened to the simulator, and writes hashes that are due."""
        self._check_open()
        self._check_steps()
        if self._sim._interventions != self._interventions:
            raise StateError(
                "The simulator was reset or restored between two steps without its recording.",
                argument="sim",
                hint="Call the writer's reset(); after sim.restore() call its checkpoint().",
            )
        self._write_due_hashes()

    def _check_open(self) -> None:
        if self._file.closed:
            raise ClosedError("This recording is closed.", hint="Make a new RecordingWriter.")

    def _check_steps(self) -> None:
        surplus = self._surplus()
        if surplus < 0:
            raise StateError(
                "The step of the last append() was not taken.",
                argument="sim",
                hint="Call append() once before each step, or the writer's step(); steps of CUDA graphs do not count.",
            )
        if surplus > 0:
            taken = "A step was" if surplus == 1 else f"{surplus} steps were"
            raise StateError(
                f"{taken} taken without append().", argument="sim", hint="Call append() once before each step."
            )

    def _surplus(self) -> int:
        """Steps taken but not recorded; -1: one was recorded but not taken."""
        return self._sim.step_count - self._first_step - self.num_steps

    def _forget_untaken(self) -> None:
        if self._written.num_buffered and self._surplus() < 0:
            self._written = self._written._replace(num_buffered=self._written.num_buffered - 1)

    # ---- Chunks

    def _finish(self) -> None:
        self._forget_untaken()
        as_recorded = self._surplus() == 0 and self._sim._interventions == self._interventions
        if as_recorded and self._hashed_at < self.num_steps:
            hashes = self._sim.world_hashes()
            self._flush()
            self._write_hashes(hashes)
        self._flush()
        self._write_chunk(layout.END, self._written.num_chunks.to_bytes(8, "little"))

    def _write_due_hashes(self) -> None:
        if self.num_steps % self._hash_interval == 0 and self._hashed_at < self.num_steps:
            hashes = self._sim.world_hashes()
            self._flush()
            self._write_hashes(hashes)

    def _write_hashes(self, hashes: NDArray[np.uint64]) -> None:
        self._write_chunk(layout.HASHES, hashes.astype("<u8", copy=False).tobytes())
        self._hashed_at = self.num_steps

    def _flush(self) -> None:
        count = self._written.num_buffered
        if count:
            self._write_chunk(layout.STEPS, layout.pack_steps(self._actions[:count], self._resets[:count]))

    def _write_chunk(self, kind: bytes, payload: bytes) -> None:
        """Only what the one assignment at the end says has been written: Ctrl-C may come at any time."""
        chunk = layout.chunk(kind, self.num_steps, payload)
        self._write_at(self._written.offset, chunk)
        self._written = _Written(
            self._written.offset + len(chunk),
            self._written.num_chunks + 1,
            self.num_steps if kind == layout.STEPS else self._written.num_steps,
            0 if kind == layout.STEPS else self._written.num_buffered,
        )

    def _write_at(self, offset: int, data: bytes) -> None:
        """A file that could not be written is not continued: what follows a part of a chunk could not be read."""
        rest = memoryview(data)
        try:
            if self._file.seekable() and self._file.tell() != offset:  # a part of a chunk, after Ctrl-C
                self._file.seek(offset)
                self._file.truncate()
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.close()
            raise


@final
class Recording:
    """A recording, open for reading.

    Opening reads the headers of its chunks; steps are read when they are asked for, so a recording may be larger than
    the memory. Steps are counted from 0.

    >>> import doorstep, os, tempfile
    >>> from doorstep.recording import Recording, RecordingWriter
    >>> path = os.path.join(tempfile.mkdtemp(), "run.rec")
    >>> with doorstep.Simulator(2, seed=7) as sim, RecordingWriter(path, sim, hash_interval=2) as writer:
    ...     for turn in range(5):
    ...         sim.actions[:] = (1, 0, turn, 0)
    ...         writer.step()
    >>> recording = Recording(path)
    >>> recording.config.num_worlds, recording.config.seed, recording.num_steps
    (2, 7, 5)
    >>> recording.actions(3).tolist()
    [[[1, 0, 3, 0], [1, 0, 3, 0]], [[1, 0, 3, 0], [1, 0, 3, 0]]]
    >>> recording.resets(3).tolist()
    [False, False]
    >>> recording.hashed_steps              # the moments with hashes: after so many steps
    (0, 2, 4, 5)
    >>> recording.hashes(4).shape
    (2,)
    >>> recording.close()

    Args:
        path: the file.
        incomplete: read a file without an end mark up to its last complete block of steps. Its writer died, or a part
            of the file is missing. Otherwise such a file is refused.

    Raises:
        ArgumentError: `path` is not a regular file.
        StateError: the file is not a recording, is truncated, was changed after it was written, or needs a newer
            version of doorstep; the message names the byte.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], *, incomplete: bool = False) -> None:
        self._incomplete = check_flag("incomplete", incomplete)
        self._blocks: list[Chunk] = []
        self._block_ends: list[int] = []  # the position after each block
        self._events: dict[int, list[Chunk]] = {}  # everything but steps, by position, in the order of the file
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
                return np.frombuffer(self._payload(chunk), "<u8").astype(np.uint64)
        return refuse("step", "one of hashed_steps", step)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
        self._unpacked = None

    def __enter__(self) -> Recording:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

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
        self._version, self._config = self._read_config(first)
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
                raise StateError(
                    f"{self.path} has a chunk {chunk.name!r} at byte {offset}, which this doorstep does not know.",
                    argument="path",
                    hint="Read it with a newer doorstep.",
                )
            grows = chunk.position > position
            if chunk.position < position or grows != (chunk.kind == layout.STEPS):
                self._file.damaged(
                    offset, f"a chunk {chunk.name} is at step {chunk.position}, after step {position}: one is missing"
                )
            yield chunk
            offset, position = chunk.offset + chunk.length, chunk.position

    def _add(self, chunk: Chunk) -> None:
        num_worlds = self._config.num_worlds
        if chunk.kind == layout.STEPS:
            self._check_length(chunk, 8, self._file.size)
            self._blocks.append(chunk)
            self._block_ends.append(chunk.position)
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
        readable = bool(self._block_ends)
        return StateError(
            f"{self.path} is truncated: it ends at byte {self._file.size} without an end mark; "
            + (f"{self.num_steps} steps are complete." if readable else "no step is complete."),
            argument="path",
            hint="Its writer died or a part is missing; "
            + ("Recording(path, incomplete=True) reads these steps." if readable else "record it again."),
        )

    def _read_config(self, chunk: Chunk) -> tuple[str, SimulatorConfig]:
        self._check_length(chunk, 2, _MOST_CONFIG_BYTES)
        try:
            content = json.loads(self._file.payload(chunk).decode())
            version, rules = str(content["doorstep"]), dict(content["config"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            self._file.damaged(chunk.offset, f"its configuration cannot be read: {error}")
        try:
            return version, _config_of(rules)
        except ArgumentError as error:
            raise StateError(
                f"{self.path} has rules of doorstep {version} that doorstep {VERSION_STRING} does not have: {error}.",
                argument="path",
                hint=f"Read it with doorstep {version}.",
            ) from error

    # ---- Payloads

    def _find(self, step: int) -> tuple[int, PackedSteps]:
        """The block of a step, and its place there. The block that was read last is kept."""
        self._check_open()
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

    def _payload(self, chunk: Chunk) -> bytes:
        self._check_open()
        return self._file.payload(chunk)

    def _check_open(self) -> None:
        if self._file.closed:
            raise ClosedError(f"The recording {self.path} is closed.", hint="Open it again.")


@final
class Replay:
    """Steps a simulator through a recording, and compares its worlds wherever the recording has their hashes.

    After each step, the resets and restored worlds that were recorded before the next one are applied too.

    >>> import doorstep, os, tempfile
    >>> from doorstep.recording import Recording, RecordingWriter, Replay
    >>> path = os.path.join(tempfile.mkdtemp(), "run.rec")
    >>> with doorstep.Simulator(2, seed=7) as sim, RecordingWriter(path, sim) as writer:
    ...     for _ in range(5):
    ...         writer.step()
    >>> with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
    ...     play = Replay(recording, sim)
    ...     while play.position < recording.num_steps:
    ...         play.step()
    ...     play.comparisons
    2

    Args:
        recording: an open recording.
        sim: a new simulator with the rules of `recording.config`, on any device. Cameras and everything else that does
            not change results are free. If the recording begins with saved worlds, they are restored.

    Raises:
        ArgumentError: the simulator has other rules.
        StateError: the recording has saved worlds and was written by another version of doorstep.
        ReplayError: the worlds differ from those at the beginning of the recording.
    """

    def __init__(self, recording: Recording, sim: Simulator) -> None:
        if not isinstance(recording, Recording):
            refuse("recording", "a doorstep.recording.Recording", recording)
        if not isinstance(sim, Simulator):
            refuse("sim", "a doorstep.Simulator", sim)
        _check_rules(recording, sim)
        _check_version(recording)
        self.position = 0
        """Steps replayed. Set it after you have restored the simulator to a moment of this replay."""
        self.comparisons = 0
        """How many times the hashes of all worlds were compared."""
        self._equal_at: int | None = None
        self._recording = recording
        self._sim = sim
        self._apply_events()

    def step(self) -> None:
        """Takes the next step.

        Raises:
            ArgumentError: all steps have been taken.
            ReplayError: the worlds differ from the recorded ones; the step has been taken.
            StateError: the file is damaged there.
            SimulationError, RendererError: as `Simulator.step()`.
        """
        if self.position >= self._recording.num_steps:
            raise ArgumentError(f"{self._recording.path} has no further step.", argument="position")
        actions, resets = self._recording.actions(self.position), self._recording.resets(self.position)
        self._sim.actions = actions
        self._sim.resets = resets.astype(np.int32)
        self._sim.step()
        self.position += 1
        self._apply_events()

    def _apply_events(self) -> None:
        """What the file says between the last step and the next one, in its order."""
        for chunk in self._recording._events.get(self.position, ()):
            payload = self._recording._payload(chunk)
            if chunk.kind == layout.HASHES:
                self._compare(np.frombuffer(payload, "<u8"))
            elif chunk.kind == layout.RESET:
                bits = np.unpackbits(np.frombuffer(payload, np.uint8), bitorder="little")
                self._sim.reset(bits[: self._sim.num_worlds] != 0)
            elif chunk.kind == layout.SAVE:
                self._restore(payload)

    def _restore(self, saved: bytes) -> None:
        try:
            self._sim.restore(saved)
        except StateError as error:
            path = self._recording.path
            raise StateError(f"{path}: the worlds saved at step {self.position} cannot be restored: {error}") from error

    def _compare(self, recorded: NDArray[np.uint64]) -> None:
        different = np.flatnonzero(self._sim.world_hashes() != recorded)
        if not different.size:
            self._equal_at = self.position
            self.comparisons += 1
            return
        error = ReplayError(self._difference(different), argument="recording", hint=self._reason())
        error.equal_step, error.different_step = self._equal_at, self.position
        error.worlds = tuple(different.tolist())
        raise error

    def _difference(self, different: NDArray[np.intp]) -> str:
        named = ", ".join(map(str, different[:_WORLDS_NAMED].tolist()))
        more = f" and {different.size - _WORLDS_NAMED} more" if different.size > _WORLDS_NAMED else ""
        verb = f"world {named} differs" if different.size == 1 else f"worlds {named}{more} differ"
        differs = f"{self._recording.path}: {verb} from the recording"
        if self.position == 0:
            return f"{differs} before the first step."
        if self._equal_at is None:
            return f"{differs} after step {self.position}, the first that is compared."
        return f"{differs} after step {self.position}; after step {self._equal_at} all were equal."

    def _reason(self) -> str:
        recorded = self._recording.version
        if recorded != VERSION_STRING:
            return f"doorstep {recorded} recorded it; results of doorstep {VERSION_STRING} may differ, see its changes."
        if self.position == 0:
            return "Replay it with a new simulator."
        return "The file was changed, or sim.state was edited during the recording without a checkpoint()."


def replay(
    recording: Recording, sim: Simulator | None = None, *, device: str | None = None, num_threads: int | None = None
) -> None:
    """Replays a recording to its end and compares the worlds wherever it has their hashes.

    The results are exact: equal on the CPU and on GPUs, with any number of threads.

    >>> import doorstep, os, tempfile
    >>> from doorstep.recording import Recording, RecordingWriter, replay
    >>> path = os.path.join(tempfile.mkdtemp(), "run.rec")
    >>> with doorstep.Simulator(8) as sim, RecordingWriter(path, sim) as writer:
    ...     for _ in range(20):
    ...         writer.step()
    ...     final = sim.hash()
    >>> with Recording(path) as recording, doorstep.Simulator(8, num_threads=1) as sim:
    ...     replay(recording, sim)
    ...     sim.hash() == final
    True

    Args:
        recording: an open recording.
        sim: the simulator that is stepped, as for `Replay`; None: one that this function makes and closes.
        device: device of the simulator that it makes; None: "cpu".
        num_threads: its threads; None: as many as this process may use.

    Raises:
        ReplayError: the worlds differ; its attributes say between which steps, and which worlds.
        StateError: the file is damaged, or has saved worlds and was written by another version of doorstep.
        ArgumentError: the simulator has other rules, or both a simulator and its device or threads are given.
        DeviceError: the device cannot be used.
    """
    if not isinstance(recording, Recording):
        refuse("recording", "a doorstep.recording.Recording", recording)
    if sim is not None:
        if device is not None or num_threads is not None:
            given = "num_threads" if device is None else "device"
            raise ArgumentError(f"{given} is given together with sim, which has its own.", argument=given)
        _replay_all(recording, sim)
        return
    _check_version(recording)
    config = recording.config.replace(device="cpu" if device is None else device, num_threads=num_threads)
    with closing(Simulator.from_config(config)) as made:
        _replay_all(recording, made)


def _replay_all(recording: Recording, sim: Simulator) -> None:
    play = Replay(recording, sim)
    while play.position < recording.num_steps:
        play.step()


def _check_rules(recording: Recording, sim: Simulator) -> None:
    for name in _RULES:
        recorded, given = getattr(recording.config, name), getattr(sim.config, name)
        if recorded != given:
            raise ArgumentError(
                f"sim has {name} {given!r}, but {recording.path} was recorded with {recorded!r}.",
                argument="sim",
                hint="Make it with Simulator.from_config(recording.config).",
            )


def _check_version(recording: Recording) -> None:
    if recording.version != VERSION_STRING and recording.same_version_only:
        raise StateError(
            f"{recording.path} has saved worlds of doorstep {recording.version}, which doorstep {VERSION_STRING} "
            "cannot restore.",
            argument="recording",
            hint=f"Replay it with doorstep {recording.version}.",
        )


# ---- The beginning of a recording


def _step_buffers(sim: Simulator) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Actions [S, N, A, 4] and resets [S, N] of as many steps as a block may have."""
    num_steps = min(max(_MOST_BUFFERED_BYTES // sim.actions.nbytes, 1), _MOST_BUFFERED_STEPS)
    return np.empty((num_steps, *sim.actions.shape), np.int32), np.empty((num_steps, sim.num_worlds), np.bool_)


def _config_of(rules: dict[str, object]) -> SimulatorConfig:
    """All rules must be there and no others: one that is unknown would change the results."""
    for name in _RULES:
        if name not in rules:
            raise ArgumentError(f"{name} is absent", argument=name)
    for name in rules:
        if name not in _RULES:
            raise ArgumentError(f"{name!r} is unknown", argument=name)
    return SimulatorConfig.from_dict(rules)


def _config_text(config: SimulatorConfig) -> bytes:
    rules = {name: getattr(config, name) for name in _RULES}
    return json.dumps({"doorstep": VERSION_STRING, "config": rules}).encode()


def _save(sim: Simulator) -> bytes:
    """A save in which edits of the state are complete, as they are in the worlds that are restored from it."""
    sim.refresh()
    return sim.save()


def _is_new(sim: Simulator) -> bool:
    """Whether a new simulator of the same rules has these worlds; compared in pieces, so that memory stays small."""
    if sim.step_count or sim._interventions:
        return False
    hashes = sim.world_hashes()
    config = sim.config
    for begin in range(0, config.num_worlds, _WORLDS_COMPARED_AT_ONCE):
        count = min(_WORLDS_COMPARED_AT_ONCE, config.num_worlds - begin)
        piece = SimulatorConfig(
            count,
            seed=config.seed,
            num_agents=config.num_agents,
            episode_length=config.episode_length,
            auto_reset=config.auto_reset,
            world_offset=config.world_offset + begin,
            num_threads=config.num_threads,
        )
        with Simulator.from_config(piece) as new:
            if (new.world_hashes() != hashes[begin : begin + count]).any():
                return False
    return True
