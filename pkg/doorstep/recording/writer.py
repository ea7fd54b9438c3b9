"""`RecordingWriter`: records the steps of a simulator."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import WorldSelection, check_integer, check_slots, refuse, showing
from doorstep._copies import ClosingOwner
from doorstep._files import replaced_file
from doorstep.errors import ClosedError, SimulationError, StateError
from doorstep.levels.files import AnyLevel
from doorstep.recording import layout
from doorstep.recording.rules import RULES, config_text, levels_text
from doorstep.simulator import Simulator

_MOST_BUFFERED_STEPS = 64
_MOST_BUFFERED_BYTES = 4 << 20
_WORLDS_COMPARED_AT_ONCE = 4096


class _Written(NamedTuple):
    """How far a file has been written."""

    offset: int  # bytes
    num_chunks: int
    num_steps: int
    num_buffered: int  # further steps that are in memory only


class _Table(NamedTuple):
    """Levels as they were written last."""

    levels: tuple[AnyLevel, ...]
    text: bytes
    weights: NDArray[np.float32]  # [N, L]


@final
class RecordingWriter(ClosingOwner, remedy="send the path, and read the file when the writer is closed"):
    """Records the steps of a simulator into a new file.

    Until it is closed the file is `path` with ".0.part"; if the process dies, its complete steps can be read there. A
    writer that is dropped without `close()` leaves nothing.

    The file begins with the rules and the reward of the simulator and, if it has `max_levels`, its levels and their
    weights. If a new simulator with these rules would not have the same worlds (this one has been stepped, reset,
    restored or edited), they are followed by a save of the worlds.

    >>> import doorstep, os, tempfile
    >>> from doorstep.recording import Recording, RecordingWriter
    >>> path = os.path.join(tempfile.mkdtemp(), "run.rec")
    >>> with doorstep.Simulator(4, seed=7) as sim, RecordingWriter(path, sim) as writer:
    ...     for _ in range(100):
    ...         sim.actions[:] = (1, 0, 2, 0)
    ...         writer.append()             # the actions and resets that the next step applies
    ...         sim.step()
    >>> with Recording(path) as recording:
    ...     recording.num_steps
    ...     recording.replay()              # raises ReplayError if the worlds come out differently
    100

    What happens between two steps must pass through the writer: `reset()`, or `checkpoint()` after `sim.restore()` or
    edits of `sim.state`. Resets and restores that did not are refused by the next `append()`. Edits of `sim.state`
    cannot be noticed: a replay of such a recording raises ReplayError at the next hashes.

    `append()`, `step()` and `reset()` notice and record what `sim.set_levels()` and edits of `sim.level_weights` have
    changed. Levels that were set through the C API are not noticed.

    On a GPU each step waits for the actions. Steps of a CUDA graph cannot be recorded.

    Args:
        path: the file; one that exists is replaced when the writer is closed.
        sim: what is recorded. Close the writer before the simulator.
        hash_interval: after every so many steps the hash of every world is written, 8 bytes each; a replay compares
            them. The hashes of the first and of the last moment are always written.

    Raises:
        ArgumentError: an argument is out of range.
        OSError: the file cannot be created or written. An older one is unchanged, and nothing else is left.
    """

    __repr__ = showing("num_steps")

    def __init__(self, path: str | os.PathLike[str], sim: Simulator, *, hash_interval: int = 64) -> None:
        if not isinstance(sim, Simulator):
            refuse("sim", "a doorstep.Simulator", sim)
        self._hash_interval = check_integer("hash_interval", hash_interval, 1, 2**31)
        self._sim = sim
        self._first_step = sim.step_count
        self._interventions = sim._interventions
        self._written = _Written(len(layout.head()), 0, 0, 0)
        self._hashed_at = -1  # the last position with hashes
        num_steps = min(max(_MOST_BUFFERED_BYTES // sim.actions.nbytes, 1), _MOST_BUFFERED_STEPS)
        self._actions = np.empty((num_steps, *sim.actions.shape), np.int32)  # [S, N, A, 4] of a block
        self._resets = np.empty((num_steps, sim.num_worlds), np.bool_)
        saved = b"" if _is_new(sim) else _save(sim)
        hashes = sim.world_hashes()
        self._table: _Table | None = None
        self._replacing = ExitStack()
        self._file = self._replacing.enter_context(replaced_file(path, grows=True))
        self._write_at(0, layout.head())
        self._write_chunk(layout.CONFIG, config_text(sim.config, sim.reward))
        self._write_changed_levels()
        if saved:
            self._write_chunk(layout.SAVE, saved)
        self._write_hashes(hashes)

    @property
    def num_steps(self) -> int:
        """Steps recorded so far."""
        return self._written.num_steps + self._written.num_buffered

    def append(self) -> None:
        """Records the actions, pending resets and changed levels of the next step; call it right before that step.

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
            ArgumentError: `worlds` is of another kind. Nothing has changed.
            StateError, ClosedError, OSError: as `append()`.
        """
        self._settle()
        self._sim.reset(worlds)
        chosen = np.zeros(self._sim.num_worlds, np.bool_)
        chosen[slice(None) if worlds is None else check_slots(worlds, self._sim.num_worlds)] = True
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
        self._write_chunk(layout.SAVE, saved)
        self._interventions = self._sim._interventions
        self._write_due_hashes()

    def close(self) -> None:
        """Writes the steps in memory, the hashes of the last moment and the end mark, and closes the file.

        A last `append()` whose step was not taken is not part of the recording.

        Raises:
            ClosedError: the simulator has been closed before. An older file is unchanged.
            OSError: the file cannot be written; likewise.
        """
        if self._file.closed:
            return
        reported = None
        with self._replacing:
            if self._sim.closed:
                raise ClosedError(
                    "The simulator was closed before its recording, which was dropped.", hint="Close the writer first."
                )
            try:
                self._finish()
            except SimulationError as error:  # a strict simulator reports an error once, at any call
                reported = error
                self._finish()
        if reported is not None:
            raise reported

    # ---- What has happened since the last call

    def _settle(self) -> None:
        """Checks that exactly the recorded things have happened to the simulator, and writes what is due."""
        self._check_open()
        self._check_steps()
        if self._sim._interventions != self._interventions:
            what = "The simulator was reset or restored between two steps without its recording."
            remedy = "Call the writer's reset(); after sim.restore() call its checkpoint()."
            raise StateError(what, argument="sim", hint=remedy)
        self._write_due_hashes()
        self._write_changed_levels()

    def _check_open(self) -> None:
        if self._file.closed:
            raise ClosedError("This recording is closed.", hint="Make a new RecordingWriter.")

    def _check_steps(self) -> None:
        surplus = self._surplus()
        what = f"{'A step was' if surplus == 1 else f'{surplus} steps were'} taken without append()."
        if surplus < 0:
            what = "The step of the last append() was not taken."
        if surplus:
            remedy = "Call append() once before each step, or the writer's step(); steps of CUDA graphs do not count."
            raise StateError(what, argument="sim", hint=remedy)

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
            self._write_hashes(self._sim.world_hashes())
        self._flush()  # before the chunks are counted
        self._write_chunk(layout.END, self._written.num_chunks.to_bytes(8, "little"))

    def _write_due_hashes(self) -> None:
        if self.num_steps % self._hash_interval == 0 and self._hashed_at < self.num_steps:
            self._write_hashes(self._sim.world_hashes())

    def _write_hashes(self, hashes: NDArray[np.uint64]) -> None:
        self._write_chunk(layout.HASHES, hashes.astype("<u8", copy=False).tobytes())
        self._hashed_at = self.num_steps

    def _write_changed_levels(self) -> None:
        if not self._sim.config.max_levels:
            return
        levels, weights, last = self._sim.levels, self._sim.level_weights.copy_to_host(), self._table
        if last is None or levels is not last.levels:
            text = levels_text(levels)
        elif np.array_equal(weights.view(np.uint32), last.weights.view(np.uint32)):  # bits: a NaN equals itself
            return
        else:
            text = last.text
        self._write_chunk(layout.LEVELS, layout.pack_levels(text, weights))
        self._table = _Table(levels, text, weights)  # last: after Ctrl-C before it the chunk is written again

    def _flush(self) -> None:
        count = self._written.num_buffered
        if count:
            self._write_chunk(layout.STEPS, layout.pack_steps(self._actions[:count], self._resets[:count]))

    def _write_chunk(self, kind: bytes, payload: bytes) -> None:
        """Only what the one assignment at the end says has been written: Ctrl-C may come at any time."""
        if kind != layout.STEPS:
            self._flush()
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
        except OSError as error:
            self._drop(error)
            raise

    def _drop(self, error: Exception) -> None:
        """Closes the writer; an older file stays."""
        self._replacing.__exit__(type(error), error, error.__traceback__)


@contextmanager
def whole_recording(
    path: str | os.PathLike[str], sim: Simulator, *, hash_interval: int = 64
) -> Iterator[RecordingWriter]:
    """A writer whose file replaces an older one only if the block ends, or is ended by Ctrl-C."""
    with RecordingWriter(path, sim, hash_interval=hash_interval) as writer:
        try:
            yield writer
        except Exception as error:
            writer._drop(error)
            raise


# ---- The beginning of a recording


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
        rules = {name: getattr(config, name) for name in RULES}
        piece = {**rules, "num_worlds": count, "world_offset": config.world_offset + begin}
        with Simulator(**piece, num_threads=config.num_threads) as new:
            if (new.world_hashes() != hashes[begin : begin + count]).any():
                return False
    return True
