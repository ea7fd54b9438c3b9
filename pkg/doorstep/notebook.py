"""Pictures and videos for notebooks: as the last value of a cell, or as an argument of `display()`, they are displayed.

A `doorstep.recording.Recording` displays a page that plays it in the same way.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterable
from pathlib import Path

from numpy.typing import ArrayLike

from doorstep.render.png import encode_png
from doorstep.video import FRAMES_PER_SECOND, Frame, write_video


class Picture:
    """A picture that a notebook displays.

    >>> import doorstep
    >>> from doorstep.notebook import Picture
    >>> with doorstep.Simulator(1) as sim:
    ...     picture = Picture(sim.render())

    Args:
        frame: uint8 [H, W, 3], [H, W, 4] or [H, W].

    Raises:
        ArgumentError: `frame` has another dtype or shape.
    """

    def __init__(self, frame: ArrayLike) -> None:
        self._png = encode_png(frame)

    def _repr_png_(self) -> bytes:
        return self._png


class Video:
    """A video that a notebook displays and stores; needs PyAV, as `doorstep.video.write_video` does.

    Args:
        frames: pictures of one size, uint8 [H, W, 3].
        fps: frames per second.

    Raises:
        ArgumentError: there are no frames, or one is not a picture of the size of the first.
        LibraryError: PyAV is missing: pip install "doorstep[video]".
    """

    def __init__(self, frames: Iterable[Frame], fps: float = FRAMES_PER_SECOND) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "video.mp4"
            write_video(path, frames, fps)
            self._mp4 = path.read_bytes()

    def _repr_html_(self) -> str:
        data = base64.b64encode(self._mp4).decode("ascii")
        return f'<video controls autoplay loop muted src="data:video/mp4;base64,{data}"></video>'
