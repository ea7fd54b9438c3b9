"""`Recording`: a recording that is read, replayed and drawn."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from typing import final

from doorstep.errors import ArgumentError
from doorstep.recording.film import Film, Until
from doorstep.recording.reader import RecordingFile
from doorstep.recording.replay_page import ReplayPage
from doorstep.recording.replaying import Replay, check_version
from doorstep.render.camera import CameraPose
from doorstep.simulator import Simulator
from doorstep.video import FRAMES_PER_SECOND


@final
class Recording(RecordingFile):
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
    >>> recording.replay()                  # raises ReplayError if the worlds come out differently
    >>> recording.render(f"{path}.png", camera="follow")
    >>> recording.close()

    As the last value of a notebook's cell it is a page that plays world 0.

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

    def replay(
        self, sim: Simulator | None = None, *, device: str | None = None, num_threads: int | None = None
    ) -> None:
        """Replays to the end and compares the worlds wherever there are their hashes.

        The results are exact: equal on the CPU and on GPUs, with any number of threads.

        Args:
            sim: the simulator that is stepped, as for `Replay`; None: one that this function makes and closes.
            device: device of the simulator that it makes; None: "cpu".
            num_threads: its threads; None: as many as this process may use.

        Raises:
            ReplayError: the worlds differ; its attributes say between which steps, and which worlds.
            StateError: the file is damaged, or has saved worlds or levels of a version of doorstep that does not fit.
            ArgumentError: the simulator has other rules or another reward, or its device or threads are given too.
            DeviceError: the device cannot be used.
        """
        if sim is not None:
            if device is not None or num_threads is not None:
                given = "num_threads" if device is None else "device"
                raise ArgumentError(f"{given} is given together with sim, which has its own.", argument=given)
            deque(self._moments(sim), 0)
            return
        with self._simulator(device, num_threads) as made:
            deque(self._moments(made), 0)

    def render(
        self,
        path: str | os.PathLike[str],
        *,
        worlds: Sequence[int] = (0,),
        camera: str | CameraPose = "top",
        agent: int | None = None,
        width: int = 640,
        height: int = 480,
        samples: int = 2,
        shadows: bool = True,
        fps: float = FRAMES_PER_SECOND,
        caption: bool = True,
        until: Until = "end",
        device: str | None = None,
        num_threads: int | None = None,
    ) -> None:
        """Replays and draws: a picture of the last moment (.png), a video of all moments (.mp4, .gif, .webp), or a page
        that plays them in a browser without a network (.html), which has all cameras.

        Args:
            path: the file; one that exists is replaced.
            worlds: slots of the worlds to show, side by side.
            camera, agent, width, height, samples, shadows: of the picture of each world, as for `Simulator.render()`.
            fps: moments shown per second; 25 is real time.
            caption: write into each picture which world it is, its step, return, open doors and level.
            until: "end": of the recording; "out": each world stops when all of its agents are out or its episode ends.
            device, num_threads: as for `replay()`.

        Raises:
            ArgumentError: an argument is out of range, or `path` has another ending.
            ReplayError, StateError, DeviceError: as `replay()`.
            LibraryError: a video needs PyAV: pip install "doorstep[video]".
            RendererError: the renderer or the encoder cannot be used.
            OSError: the file cannot be written; an older one is unchanged.
        """
        film = Film(worlds, camera, agent, width, height, samples, shadows, fps, caption, until)
        with self._simulator(device, num_threads) as sim:
            film.check(path, sim)
            film.write(path, sim, self._moments(sim), self._title())

    def _repr_html_(self) -> str:
        with self._simulator(None, None) as sim:
            moments = self._moments(sim)
            next(moments)
            page = ReplayPage(sim, [0], self._title())
            for _ in moments:
                page.record()
        return page.in_frame()

    def _title(self) -> str:
        return f"{os.path.basename(self.path)}, seed {self.config.seed}"

    def _simulator(self, device: str | None, num_threads: int | None) -> Simulator:
        self._check_open()
        check_version(self)  # before memory is allocated
        device = "cpu" if device is None else device
        config = self.config.replace(device=device, num_threads=num_threads)
        return Simulator.from_config(config, reward=self.reward)

    def _moments(self, sim: Simulator) -> Iterator[int]:
        """The number of steps taken; the next step is taken when the next one is asked for."""
        play = Replay(self, sim)
        yield 0
        while play.position < self.num_steps:
            play.step()
            yield play.position
