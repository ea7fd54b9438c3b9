"""Draws worlds while they are stepped: the last moment, a video of all moments, or a page that plays them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np

from doorstep._arguments import check_choice, check_flag, check_slots, count, refuse
from doorstep._files import check_ending
from doorstep.recording.grid import WHOLE, Glide, Grid, Window
from doorstep.recording.panel import Image, Panel, with_border
from doorstep.recording.replay_page import ReplayPage
from doorstep.render import look, write_png
from doorstep.render.camera import CameraPose
from doorstep.render.drawing import Drawing
from doorstep.render.lettering import put_text, text_width
from doorstep.simulator import Simulator
from doorstep.video import FRAMES_PER_SECOND, VIDEO_ENDINGS, load_av, write_video

Moments: TypeAlias = Iterator[int]  # the number of steps taken; the next step is taken when the next one is asked for

_LEAST_CAPTIONED = 240  # pixels: width of a world of a grid that has a caption
_HEADER = 1 / 18  # height of the counter above worlds, in parts of theirs
_LEAST_HEADER = 28  # pixels

Until: TypeAlias = Literal["out", "end"]
UNTIL: tuple[Until, ...] = ("out", "end")


@final
@dataclass(frozen=True)
class Film:
    """What is drawn of worlds, and how; see `Recording.render()`.

    Args:
        worlds: slots of the worlds, side by side.
        camera, agent, width, height, samples, shadows: of the picture of each world, as for `Simulator.render()`.
        fps: moments shown per second.
        caption: write in each picture which world it is, its step, its return and its open doors; with a counter only
            where pictures are large enough.
        until: "out": each world stops when all of its agents are out, or its episode ends, and the film when all have;
            "end": no world does.
        skip: moments that come before the first one that is shown.
        columns: of worlds; None: as many as make the whole about as wide as high.
        counter: write above the worlds how many have all agents out, which then have a border.
        glide: a video begins close at the first world and moves away until it shows all. It goes on until then.
    """

    worlds: Sequence[int] = (0,)
    camera: str | CameraPose = "top"
    agent: int | None = None
    width: int = 640
    height: int = 480
    samples: int = 2
    shadows: bool = True
    fps: float = FRAMES_PER_SECOND
    caption: bool = True
    until: Until = "end"
    skip: int = 0
    columns: int | None = None
    counter: bool = False
    glide: bool = False

    def check(self, path: str | os.PathLike[str], sim: Simulator) -> None:
        """Refuses what `write()` would refuse after the steps.

        Raises:
            ArgumentError: no such file, world or picture can be.
            LibraryError: PyAV is missing.
        """
        if check_ending(path, ENDINGS) in VIDEO_ENDINGS:
            load_av()
        elif self.glide:
            refuse("glide", f"False, unless the file is a video ({', '.join(VIDEO_ENDINGS)})", self.glide)
        slots = check_slots(self.worlds, sim.num_worlds).tolist()
        if not slots or len(set(slots)) < len(slots) or slots != list(self.worlds):
            refuse("worlds", "distinct slots of worlds, at least one", self.worlds)
        check_flag("caption", self.caption)
        check_choice("until", self.until, UNTIL)
        self._drawing(sim)

    def write(self, path: str | os.PathLike[str], sim: Simulator, moments: Moments, title: str) -> str:
        """Takes the steps, writes the file and returns a description of it. title: of a page.

        Raises:
            RendererError: the renderer or the encoder cannot be used.
            OSError: the file cannot be written; an older one is unchanged.
        """
        shooting = _Shooting(self, sim, self._drawing(sim))
        return _WRITERS[check_ending(path, ENDINGS)](self, path, shooting, moments, title)

    def _drawing(self, sim: Simulator) -> Drawing:
        names = ("camera", "agent", "width", "height", "samples", "shadows")
        return Drawing(num_agents=sim.num_agents, **{name: getattr(self, name) for name in names})

    def _write_picture(self, path: str | os.PathLike[str], shooting: _Shooting, moments: Moments, _: str) -> str:
        for step in shooting.shown(moments):
            last = step
        image = shooting.image()
        write_png(path, image)
        return f"{image.shape[1]} x {image.shape[0]} pixels, after step {last:,}"

    def _write_video(self, path: str | os.PathLike[str], shooting: _Shooting, moments: Moments, _: str) -> str:
        written = write_video(path, shooting.images(moments), self.fps)
        return f"{count(written, 'frame')}, {self.fps:g} a second"

    def _write_page(self, path: str | os.PathLike[str], shooting: _Shooting, moments: Moments, title: str) -> str:
        page: ReplayPage | None = None
        for _ in shooting.shown(moments):
            if page is None:
                page = ReplayPage(shooting.sim, self.worlds, title, until_out=self.until == "out")
            else:
                page.record()
        assert page is not None, "there is a moment before the first step"
        page.save(path)
        return f"{count(len(page), 'moment')} of {count(len(self.worlds), 'world')}"


class _Shooting:
    """The worlds of a film while it is made."""

    def __init__(self, film: Film, sim: Simulator, drawing: Drawing) -> None:
        self.sim = sim
        self._film = film
        self._drawing = drawing
        until_out = film.until == "out"
        self._panels = [Panel(str(sim.world_offset + slot), until_out) for slot in film.worlds]
        self._grid = Grid.of(len(self._panels), film.width, film.height, film.columns)

    def shown(self, moments: Moments) -> Iterator[int]:
        """The moments that are shown, by the number of steps taken."""
        for step in moments:
            self._see()
            if step >= self._film.skip:
                yield step
            if all(panel.stopped for panel in self._panels):
                return

    def images(self, moments: Moments) -> Iterator[Image]:
        """All moments that are shown, and the last one again until a glide has ended."""
        shown = self.shown(moments)
        glide = Glide(self._grid, self._film.fps) if self._film.glide else None
        for frame in itertools.count():
            if next(shown, None) is None and (glide is None or frame >= glide.frames):
                return
            yield self.image(glide.window(frame) if glide else WHOLE)

    def image(self, window: Window = WHOLE) -> Image:
        """The worlds as they are now; all of them, unless a window is given."""
        worlds = self._grid.draw(self._panel_image, window)
        if not self._film.counter:
            return worlds
        out = sum(panel.is_out for panel in self._panels)
        step = max(panel.step for panel in self._panels)
        return _under_header(worlds, f"{out} of {len(self._panels)} out", f"step {step}")

    def _panel_image(self, number: int, width: int, height: int) -> Image:
        panel, counter = self._panels[number], self._film.counter
        caption = self._film.caption and (not counter or width >= _LEAST_CAPTIONED)
        image = panel.image(self._drawing.resized(width, height), caption)
        return with_border(image) if counter and panel.is_out else image

    def _see(self) -> None:
        slots = list(self._film.worlds)
        rewards = self.sim.rewards.copy_to_host()[:, :, 0].mean(axis=1)
        terminations = self.sim.terminations.copy_to_host()
        for slot, panel, snapshot in zip(slots, self._panels, self.sim._snapshots(slots), strict=True):
            agent = self._drawing.agent_of(snapshot)
            panel.see(snapshot, float(rewards[slot]), bool(terminations[slot].any()), agent)


def _under_header(worlds: Image, text: str, more: str) -> Image:
    height = max(_LEAST_HEADER, round(worlds.shape[0] * _HEADER))
    header: Image = np.full((height, worlds.shape[1], 3), 255, np.uint8)
    size = height * 0.4
    put_text(header, text, size, size, height * 0.3, look.OPEN)
    put_text(header, more, size, header.shape[1] - text_width(more, size) - size, height * 0.3, look.MUTED)
    return np.concatenate([header, worlds])


_WRITERS: dict[str, Callable[[Film, str | os.PathLike[str], _Shooting, Moments, str], str]] = {
    ".png": Film._write_picture,
    ".html": Film._write_page,
    **dict.fromkeys(VIDEO_ENDINGS, Film._write_video),
}
ENDINGS = tuple(_WRITERS)
