"""`Replay`: steps a simulator through a recording, and compares its worlds."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_integer, refuse, showing
from doorstep._native import VERSION_STRING
from doorstep.errors import ArgumentError, ReplayError, StateError
from doorstep.levels import reference
from doorstep.recording import layout
from doorstep.recording.layout import Chunk
from doorstep.recording.reader import RecordingFile
from doorstep.recording.rules import RULES
from doorstep.simulator import Simulator

_WORLDS_NAMED = 5


@final
class Replay:
    """Steps a simulator through a recording, and compares its worlds wherever the recording has their hashes.

    After each step, the levels, resets and restored worlds that were recorded before the next one are applied too.

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
        sim: a new simulator with the rules of `recording.config` and with `recording.reward`, on any device. Cameras
            and everything else that does not change results are free. If the recording begins with saved worlds, they
            are restored.

    Raises:
        ArgumentError: the simulator has other rules, or another reward.
        StateError: the recording has saved worlds and was written by another version of doorstep, or it has levels that
            this version does not take.
        ReplayError: the worlds differ from those at the beginning of the recording.
    """

    __repr__ = showing("_recording", "position")

    def __init__(self, recording: RecordingFile, sim: Simulator) -> None:
        if not isinstance(recording, RecordingFile):
            refuse("recording", "a doorstep.recording.Recording", recording)
        if not isinstance(sim, Simulator):
            refuse("sim", "a doorstep.Simulator", sim)
        _check_rules(recording, sim)
        check_version(recording)
        self._position = 0
        self._levels_text = b""  # of the levels that were set last
        self.comparisons = 0
        """How many times the hashes of all worlds were compared."""
        self._equal_at: int | None = None
        self._recording = recording
        self._sim = sim
        self._apply_events()

    @property
    def position(self) -> int:
        """Steps replayed. Set it after you have restored the simulator to a moment of this replay; this sets the levels
        and weights of that moment."""
        return self._position

    @position.setter
    def position(self, value: int) -> None:
        self._position = check_integer("position", value, 0, self._recording.num_steps)
        chunk = self._recording._levels_at(self._position)
        if chunk is not None:
            self._set_levels(chunk)

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
        self._position += 1
        self._apply_events()

    def _apply_events(self) -> None:
        """What the file says between the last step and the next one, in its order."""
        for chunk in self._recording._events.get(self.position, ()):
            if chunk.kind == layout.LEVELS:
                self._set_levels(chunk)
                continue
            payload = self._recording._file.payload(chunk)
            if chunk.kind == layout.HASHES:
                self._compare(np.frombuffer(payload, "<u8"))
            elif chunk.kind == layout.RESET:
                bits = np.unpackbits(np.frombuffer(payload, np.uint8), bitorder="little")
                self._sim.reset(bits[: self._sim.num_worlds] != 0)
            elif chunk.kind == layout.SAVE:
                self._restore(payload)

    def _set_levels(self, chunk: Chunk) -> None:
        text, weights = self._recording._levels_of(chunk)
        if text != self._levels_text:
            levels = self._recording._parse_levels(chunk, text)
            levels += [reference()] * (len(self._sim.levels) - len(levels))  # in place of levels set before
            try:
                self._sim.set_levels(levels)
            except ArgumentError as error:
                raise self._recording._unfit_levels(chunk, error) from error
            self._levels_text = text
        self._sim.level_weights.copy_from_host(weights)

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


def _check_rules(recording: RecordingFile, sim: Simulator) -> None:
    rules = [(name, getattr(recording.config, name), getattr(sim.config, name)) for name in RULES]
    for name, recorded, given in (*rules, ("reward", recording.reward, sim.reward)):  # hashes contain returns
        if recorded != given:
            raise ArgumentError(
                f"sim has {name} {given!r}, but {recording.path} was recorded with {recorded!r}.",
                argument="sim",
                hint="Make it with Simulator.from_config(recording.config, reward=recording.reward).",
            )


def check_version(recording: RecordingFile) -> None:
    if recording.version != VERSION_STRING and recording.same_version_only:
        raise StateError(
            f"{recording.path} has saved worlds of doorstep {recording.version}, which doorstep {VERSION_STRING} "
            "cannot restore.",
            argument="recording",
            hint=f"Replay it with doorstep {recording.version}.",
        )
