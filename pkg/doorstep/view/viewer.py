"""The viewer: steps a simulator at the speed that was chosen, and keeps the page current."""

from __future__ import annotations

import time
import traceback

import viser

from doorstep.errors import DoorstepError
from doorstep.simulator import Simulator
from doorstep.view import cameras
from doorstep.view.first_person import FirstPerson
from doorstep.view.history import History
from doorstep.view.keyboard import Keyboard
from doorstep.view.layout import Layout
from doorstep.view.pace import Pace
from doorstep.view.page import Page
from doorstep.view.play import LivePlay, Play, Replay
from doorstep.view.reading import read
from doorstep.view.requests import Requests, is_collision

_SCENE_PERIOD = 1 / 32  # seconds between two pictures of the scene, at least
_NUMBERS_PERIOD = 1 / 4
_IMAGE_PERIOD = 1 / 4
_LONGEST_BURST = 0.03  # seconds of stepping without looking whether somebody wants something


class Viewer:
    """What is shown of a simulator, and how it goes on. One thread calls it; other threads go through `requests`.

    Args:
        sim: what is watched.
        play: what steps it.
        page: where it is shown.
        layout: room for as many worlds as are shown at once.
        keyboard: what moves the agent that is played by hand.
        rate: steps per second.
        keep_running: also step while nobody looks.
    """

    def __init__(
        self,
        sim: Simulator,
        play: Play,
        page: Page,
        layout: Layout,
        keyboard: Keyboard,
        rate: float,
        keep_running: bool,
    ) -> None:
        self.requests = Requests()
        self.paused = False
        self.world = 0
        self.agent = 0
        self.error = ""
        self._sim = sim
        self._play = play
        self._page = page
        self._layout = layout
        self._keyboard = keyboard
        self._keep_running = keep_running
        self._pace = Pace(rate)
        self._history = History()
        self._following = False
        self._first_person: FirstPerson | None = None
        self._player: int | None = None
        self._scene_due = _Due(_SCENE_PERIOD)
        self._numbers_due = _Due(_NUMBERS_PERIOD)
        self._image_due = _Due(_IMAGE_PERIOD)

    # ---- Going on ----

    def run(self) -> None:
        """Goes on until it is interrupted."""
        while True:
            self.requests.wait(self.tick(time.monotonic()))

    def tick(self, now: float) -> float | None:
        """Does what is due. Returns after how many seconds something will be; None: when there is a request."""
        self._serve()
        watched = self._page.watched
        running = not self.paused and (watched or self._keep_running)
        if running:
            self._step(self._pace.take(now))
        else:
            self._pace.restart()
        waits = [self._pace.wait(now)] if running else []
        if watched:
            self._show_unless_broken(now)
            waits += [due.wait(now) for due in (self._scene_due, self._numbers_due, self._image_due)]
        return min((wait for wait in waits if wait is not None), default=None)

    def close(self) -> None:
        """Ends what it began; the simulator stays."""
        self.show_picture(False)

    def _serve(self) -> None:
        try:
            if self.requests.serve():
                self._changed()
        except Exception as error:
            self._fail(error)
            self.requests.post(self._changed)  # and what else was asked for

    def _step(self, count: int) -> None:
        began = time.monotonic()
        for _ in range(count):
            self._step_unless_broken()
            if self.paused or time.monotonic() - began > _LONGEST_BURST:
                return

    def _step_unless_broken(self) -> None:
        before = self._play.position
        try:
            self._play.step()
            if self._play.position != before:
                self._remember()
            self.error = ""
        except Exception as error:
            self._fail(error)
        if self._play.position == self._play.length:
            self._pause(True)
        self._changed()

    def _remember(self) -> None:
        reward = float(read(self._sim.rewards)[self.world, self.agent, 0])
        done = bool(read(self._sim.dones)[self.world, self.agent, 0])
        self._history.add(reward, done)

    def _fail(self, error: Exception) -> None:
        """Says so in the page, and stops there. Nothing ends the viewer while people look."""
        said = f"{type(error).__name__}: {error}"
        if is_collision(error):
            self._changed()
        elif not (self.paused and self.error == said):  # else it is shown, or cannot be
            if not isinstance(error, DoorstepError):
                traceback.print_exception(error)
            self.error = said
            self._pause(True)

    # ---- Showing ----

    def _changed(self) -> None:
        for due in (self._scene_due, self._numbers_due, self._image_due):
            due.changed = True

    @property
    def _shown(self) -> range:
        """The worlds on the page: those of one sheet, the current one among them."""
        cells = self._layout.cells
        first = min(self.world // cells * cells, self._sim.num_worlds - cells)
        return range(first, first + cells)

    def _show_unless_broken(self, now: float) -> None:
        try:
            with self._page.at_once():
                self._show(now)
        except Exception as error:
            self._fail(error)

    def _show(self, now: float) -> None:
        if self._scene_due.take(now):
            self._page.stage.show(self._shown, self.world)
            if self._following:
                offset = self._layout.offsets[self.world - self._shown.start]
                self._page.look(cameras.behind(self._sim, self.world, self.agent, offset))
        if self._numbers_due.take(now):
            self._page.controls.show_paused(self.paused)
            self._page.controls.show_status(self._status(), self.error)
            self._page.controls.show_position(self._play.position)
            self._page.controls.show_numbers(self.world, self.agent, self._history)
        if self._image_due.take(now) and self._first_person is not None:
            self._draw(self._first_person)

    def _draw(self, first_person: FirstPerson) -> None:
        try:
            self._page.controls.show_image(first_person.draw(self.world, self.agent))
        except Exception:
            self.show_picture(False)
            raise

    def _status(self) -> str:
        length = "" if self._play.length is None else f" of {self._play.length:,}"
        state = "paused" if self.paused else "running"
        return f"step {self._play.position:,}{length}, {state}; {self._worlds()} on {self._sim.device}"

    def _worlds(self) -> str:
        count, shown = self._sim.num_worlds, self._shown
        if len(shown) < count:
            return f"worlds {shown.start:,}-{shown.stop - 1:,} of {count:,}"
        return "1 world" if count == 1 else f"{count:,} worlds"

    # ---- What people ask for: see Commands ----

    def toggle_pause(self) -> None:
        self._pause(not self.paused)

    def step_once(self) -> None:
        self._pause(True)
        self._step_unless_broken()

    def reset_world(self) -> None:
        if isinstance(self._play, LivePlay):
            self._play.reset(self.world)
            self._history.clear()

    def press_reset_key(self) -> None:
        """The key resets only while an agent is played."""
        if self._player is not None:
            self.reset_world()

    def set_rate(self, rate: float) -> None:
        self._pace.rate = rate
        self._pace.restart()

    def seek(self, position: int) -> None:
        if isinstance(self._play, Replay) and position != self._play.position:
            self._pause(True)
            self._history.clear()
            self._play.seek(position)

    def choose_world(self, world: int) -> None:
        self.world = min(max(world, 0), self._sim.num_worlds - 1)
        self._history.clear()
        self.choose_player(self._player)

    def choose_agent(self, agent: int) -> None:
        self.agent = agent
        self._history.clear()

    def choose_player(self, agent: int | None) -> None:
        if isinstance(self._play, LivePlay):
            self._player = agent
            self._keyboard.clear()
            self._play.player = None if agent is None else (self.world, agent, self._keyboard.act)
            self._page.controls.show_playing(agent is not None)

    def follow(self, on: bool) -> None:
        self._following = on

    def look_from(self, preset: str, client: viser.ClientHandle) -> None:
        self._following = False
        self._page.controls.show_following(False)
        self._page.look_from(preset, self.world - self._shown.start, client)

    def show_lidar(self, on: bool) -> None:
        self._page.stage.lidar.visible = on

    def show_grabs(self, on: bool) -> None:
        self._page.stage.grabs.visible = on

    def show_picture(self, on: bool) -> None:
        if self._first_person is not None:
            self._first_person.close()
            self._first_person = None
        try:
            self._first_person = FirstPerson(self._sim) if on else None
        except Exception as error:
            self._fail(error)
        if self._first_person is None:
            self._page.controls.show_image(None)

    def _pause(self, paused: bool) -> None:
        self.paused = paused
        self._numbers_due.hurry()


class _Due:
    """Something that is shown after it has changed, but not too often."""

    def __init__(self, period: float) -> None:
        self.changed = True
        self._period = period
        self._next = 0.0

    def take(self, now: float) -> bool:
        """Whether to show it now."""
        if not self.changed or now < self._next:
            return False
        self.changed = False
        self._next = now + self._period
        return True

    def hurry(self) -> None:
        """It has changed, and is shown as soon as possible."""
        self.changed = True
        self._next = 0.0

    def wait(self, now: float) -> float | None:
        """Seconds until it is to be shown; None: it has not changed."""
        return max(self._next - now, 0.0) if self.changed else None
