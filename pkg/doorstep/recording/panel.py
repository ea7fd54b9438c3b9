"""A world of a film: what happened in its episode so far, and the picture of it with its caption."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from doorstep._native import EntityKind
from doorstep.render import look
from doorstep.render.drawing import Drawing
from doorstep.render.lettering import put_label, text_width
from doorstep.render.objects import Snapshot

Image = NDArray[np.uint8]  # [H, W, 3]

_TEXT_SIZES = 6.0, 14.0  # least and most, pixels
_TEXT_PER_HEIGHT = 1 / 52
_GLIDE = 0.12  # share of its way to its agent that the camera goes in a step
_BORDER = 1 / 40  # of the height, around a world whose agents are out


@dataclass
class Panel:
    """A world of a film, after `see()` was called for each moment.

    With `until_out` it stops when all agents are out, or the episode ends.
    """

    name: str  # of the world
    until_out: bool
    step: int = 0  # of the episode
    returns: float = 0.0  # mean over the agents
    is_out: bool = False
    stopped: bool = False
    _snapshot: Snapshot | None = None
    _anchor: NDArray[np.float64] | None = None
    _image: Image | None = field(default=None, repr=False)

    def see(self, snapshot: Snapshot, reward: float, terminated: bool, camera_agent: int) -> None:
        """Takes the next moment. reward: of the step, mean over the agents; terminated: the episode ended in it."""
        if self.stopped:
            return
        before, place = self._snapshot, snapshot.body_positions[camera_agent].astype(np.float64)
        if before is not None and before.episode_index != snapshot.episode_index:
            self.is_out = self.is_out or terminated
            self.stopped = self.until_out
            if self.stopped:
                return
            self.step, self.returns, self.is_out, before = 0, 0.0, False, None
        if before is not None:
            self.step, self.returns = self.step + 1, self.returns + reward
        anchor = place if before is None or self._anchor is None else self._anchor
        self._anchor = anchor + _GLIDE * (place - anchor)
        self._snapshot, self._image = snapshot, None
        self.is_out = self.is_out or (terminated and before is not None) or snapshot.agents_are_out()
        self.stopped = self.until_out and self.is_out

    def image(self, drawing: Drawing, caption: bool) -> Image:
        """The picture of its latest moment; not to be changed."""
        if self._image is None or self._image.shape != drawing.shape:
            assert self._snapshot is not None, "see() comes first"
            self._image = drawing.draw(self._snapshot, self._anchor)
            if caption:
                self._write_caption(self._image)
        return self._image

    def _write_caption(self, image: Image) -> None:
        height, width = image.shape[:2]
        size = float(np.clip(height * _TEXT_PER_HEIGHT, *_TEXT_SIZES))
        text, room = "", width - 4 * size
        for part in self._parts():
            longer = f"{text}   {part}" if text else part
            text = longer if text_width(longer, size) <= room else text
        if text:
            put_label(image, text, size, size / 2, size / 2)

    def _parts(self) -> list[str]:
        """Of the caption; the last are left out where there is little room."""
        assert self._snapshot is not None
        kinds, doors = self._snapshot.static_kinds, self._snapshot.door_static
        used = kinds[doors] == EntityKind.DOOR
        opened = int((self._snapshot.door_open[used] != 0).sum())
        parts = [f"world {self.name}", f"step {self.step}", f"return {self.returns:.2f}"]
        parts += [f"doors {opened}/{int(used.sum())}"] * bool(used.any())
        return [*parts, *["out"] * self.is_out, self._snapshot.level]


def with_border(image: Image) -> Image:
    """A copy with a border that says: all agents are out."""
    width = max(2, round(image.shape[0] * _BORDER))
    framed = np.empty_like(image)
    framed[:] = np.rint(np.array(look.rgb(look.OPEN)) * 255)
    framed[width:-width, width:-width] = image[width:-width, width:-width]
    return framed
