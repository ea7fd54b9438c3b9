"""Draws worlds while they are stepped: the last moment, a video of all moments, or a page that plays them."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_slots, refuse
from doorstep._files import check_ending
from doorstep.recording.replay_page import ReplayPage
from doorstep.render import write_png
from doorstep.render.camera import CameraPose
from doorstep.render.drawing import Drawing
from doorstep.simulator import Simulator
from doorstep.video import FRAMES_PER_SECOND, VIDEO_ENDINGS, load_av, write_video

Image: TypeAlias = NDArray[np.uint8]  # [H, W, 3]
Moments: TypeAlias = Iterator[int]  # the number of steps taken; the next step is taken when the next one is asked for

_GAP = 4  # pixels between worlds side by side
_GAP_COLOUR = (16, 21, 29)


@final
@dataclass(frozen=True)
class Film:
    """What is drawn of worlds, and how; see `Recording.render()`."""

    worlds: Sequence[int] = (0,)
    camera: str | CameraPose = "top"
    agent: int | None = None
    width: int = 640
    height: int = 480
    samples: int = 2
    shadows: bool = True
    fps: float = FRAMES_PER_SECOND

    def check(self, path: str | os.PathLike[str], sim: Simulator) -> None:
        """Refuses what `write()` would refuse after the steps.

        Raises:
            ArgumentError: no such file, world or picture can be.
            LibraryError: PyAV is missing.
        """
        if check_ending(path, ENDINGS) in VIDEO_ENDINGS:
            load_av()
        slots = check_slots(self.worlds, sim.num_worlds).tolist()
        if not slots or len(set(slots)) < len(slots) or slots != list(self.worlds):
            refuse("worlds", "distinct slots of worlds, at least one", self.worlds)
        Drawing(num_agents=sim.num_agents, **self._view())

    def write(self, path: str | os.PathLike[str], sim: Simulator, moments: Moments, title: str) -> str:
        """Takes the steps, writes the file and returns a description of it. title: of a page.

        Raises:
            RendererError: the renderer or the encoder cannot be used.
            OSError: the file cannot be written; an older one is unchanged.
        """
        return _WRITERS[check_ending(path, ENDINGS)](self, path, sim, moments, title)

    def _view(self) -> dict[str, Any]:
        """The arguments of `Simulator.render()` but the world."""
        return {name: getattr(self, name) for name in ("camera", "agent", "width", "height", "samples", "shadows")}

    def _draw(self, sim: Simulator) -> Image:
        return side_by_side([sim.render(world, **self._view()) for world in self.worlds])

    def _write_picture(self, path: str | os.PathLike[str], sim: Simulator, moments: Moments, _: str) -> str:
        for step in moments:
            last = step
        image = self._draw(sim)
        write_png(path, image)
        return f"{image.shape[1]} x {image.shape[0]} pixels, after step {last:,}"

    def _write_video(self, path: str | os.PathLike[str], sim: Simulator, moments: Moments, _: str) -> str:
        written = write_video(path, (self._draw(sim) for _ in moments), self.fps)
        return f"{_count(written, 'frame')}, {self.fps:g} a second"

    def _write_page(self, path: str | os.PathLike[str], sim: Simulator, moments: Moments, title: str) -> str:
        next(moments)
        page = ReplayPage(sim, self.worlds, title)
        for _ in moments:
            page.record()
        page.save(path)
        return f"{_count(len(page), 'moment')} of {_count(len(self.worlds), 'world')}"


_WRITERS: dict[str, Callable[[Film, str | os.PathLike[str], Simulator, Moments, str], str]] = {
    ".png": Film._write_picture,
    ".html": Film._write_page,
    **dict.fromkeys(VIDEO_ENDINGS, Film._write_video),
}
ENDINGS = tuple(_WRITERS)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"


def side_by_side(images: list[Image]) -> Image:
    """Images of one size in rows, so that the whole is about as wide as high."""
    height, width = images[0].shape[:2]
    columns = min(len(images), math.ceil(math.sqrt(len(images) * height / width)))
    rows = math.ceil(len(images) / columns)
    shape = (rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3)
    whole: Image = np.full(shape, _GAP_COLOUR, np.uint8)
    places = itertools.product(range(0, shape[0], height + _GAP), range(0, shape[1], width + _GAP))
    for image, (top, left) in zip(images, places, strict=False):
        whole[top : top + height, left : left + width] = image
    return whole
