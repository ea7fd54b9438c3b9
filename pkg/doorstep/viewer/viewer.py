"""The viewer: steps a simulator at the chosen speed and updates the page."""

from __future__ import annotations

import time
import traceback

import viser

from doorstep._copies import Owner
from doorstep.errors import DoorstepError
from doorstep.simulator import Simulator
from doorstep.viewer.agent_panel import AgentCamera, RewardHistory
from doorstep.viewer.keyboard import Keyboard
from doorstep.viewer.outcomes import Outcomes
from doorstep.viewer.page import Page, place_behind
from doorstep.viewer.play import LivePlay, Pace, Play, RecordedPlay
from doorstep.viewer.requests import Requests, is_collision
from doorstep.viewer.world_arrays import Layout, Trails, read

_SCENE_PERIOD = 1 / 25  # seconds between two updates of the scene, at least: a step in real time; likewise below
_NUMBERS_PERIOD = 1 / 3
_PICTURE_PERIOD = 1 / 3
_LONGEST_BURST = 0.03  # seconds of stepping without serving requests


class Viewer(Owner):
    """Steps a simulator, shows it in the page, and carries out the page's commands (`requests.Commands`).

    All methods are called by one thread; other threads post to `requests`.

    Args:
        sim: the simulator.
        play: steps it.
        page: shows it.
        layout: one cell for each world that is shown at once.
        keyboard: acts for the agent that is played by hand.
        rate: steps per second.
        keep_running: also step while no browser shows the page.
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
        self._history = RewardHistory()
        self._outcomes = Outcomes(sim)
        self._trails = Trails(sim.num_agents)
        self._following = False
        self._agent_camera: AgentCamera | None = None
        self._player: int | None = None
        self._scene_due = _Due(_SCENE_PERIOD)
        self._numbers_due = _Due(_NUMBERS_PERIOD)
        self._picture_due = _Due(_PICTURE_PERIOD)
        self._all_due = (self._scene_due, self._numbers_due, self._picture_due)

    # ---- Stepping ----

    def prepare(self) -> None:
        """Shows the worlds as they begin before any browser does, so that the first one gets them with the page."""
        self._show_or_fail(time.monotonic())

    def run(self) -> None:
        """Runs until KeyboardInterrupt."""
        while True:
            self.requests.wait(self.tick(time.monotonic()))

    def tick(self, now: float) -> float | None:
        """Does what is due at the time `now`.

        Returns:
            Seconds until more is due; None: nothing is until a request is posted.
        """
        self._serve()
        watched = self._page.watched
        running = not self.paused and (watched or self._keep_running)
        if running:
            self._step(self._pace.take(now))
        else:
            self._pace.restart()
        waits = [self._pace.wait(now)] if running else []
        if watched:
            if any(due.wait(now) == 0 for due in self._all_due):
                self._show_or_fail(now)
            waits += [due.wait(now) for due in self._all_due]
        return min((wait for wait in waits if wait is not None), default=None)

    def close(self) -> None:
        """Releases what the viewer created; the simulator stays open."""
        self.show_picture(False)

    def _serve(self) -> None:
        try:
            if self.requests.serve():
                self._changed()
        except Exception as error:
            self._fail(error)
            self.requests.post(self._changed)  # wakes this thread for the requests after the one that failed

    def _step(self, count: int) -> None:
        began = time.monotonic()
        for _ in range(count):
            self._step_or_fail()
            if self.paused or time.monotonic() - began > _LONGEST_BURST:
                return

    def _step_or_fail(self) -> None:
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
        """What has happened in the last step; an episode whose agents are all out ends."""
        self._outcomes.add()
        reward = float(read(self._sim.rewards)[self.world, self.agent, 0])
        if isinstance(self._play, LivePlay) and (out := self._outcomes.all_out()):
            self._play.reset(*out)
            self._outcomes.add_successes(out)
        ended = bool(self._outcomes.ended[self.world])
        self._history.add(reward, ended)
        if ended:
            self._trails.clear()
        self._trails.add(self._sim, self.world)

    def _forget(self) -> None:
        """Another world, agent or time is shown."""
        self._history.clear()
        self._trails.clear()

    def _fail(self, error: Exception) -> None:
        """Shows the error in the page and pauses; no exception ends the viewer.

        Errors that are not doorstep's own are also printed, with their traceback.
        """
        message = f"{type(error).__name__}: {error}"
        if not (self.paused and self.error == message):  # otherwise it has been reported
            if not isinstance(error, DoorstepError):
                traceback.print_exception(error)
            self.error = message
            self._pause(True)

    # ---- Showing ----

    def _changed(self) -> None:
        for due in self._all_due:
            due.changed = True

    @property
    def _shown(self) -> range:
        """The worlds on the page: as many as there are cells, the current one among them."""
        cells = self._layout.cells
        first = min(self.world // cells * cells, self._sim.num_worlds - cells)
        return range(first, first + cells)

    def _show_or_fail(self, now: float) -> None:
        try:
            with self._page.at_once():
                self._show(now)
        except Exception as error:
            if is_collision(error):
                self._changed()  # to be sent again
            else:
                self._fail(error)

    def _show(self, now: float) -> None:
        if self._scene_due.take(now):
            names = [self._name(world) for world in self._shown]
            self._page.stage.show(self._shown, self.world, names, self._trails)
            if self._following:
                offset = self._layout.offsets[self.world - self._shown.start]
                turning = self._player is not None
                self._page.look(place_behind(self._sim, self.world, self.agent, offset, turning))
        if self._numbers_due.take(now):
            self._page.controls.show_paused(self.paused)
            self._page.controls.show_status(self._status(), self._score(), self.error)
            self._page.controls.show_position(self._play.position)
            self._page.controls.show_numbers(self.world, self.agent, self._history)
        if self._picture_due.take(now) and self._agent_camera is not None:
            self._draw(self._agent_camera)

    def _draw(self, camera: AgentCamera) -> None:
        try:
            self._page.controls.show_image(camera.draw(self.world, self.agent))
        except Exception:
            self.show_picture(False)
            raise

    def _status(self) -> str:
        length = "" if self._play.length is None else f" of {self._play.length:,}"
        state = "paused" if self.paused else "running"
        clamped = self._sim.health.clamped_actions
        note = f"; {clamped:,} action values out of range, clamped" if clamped else ""
        return f"step {self._play.position:,}{length}, {state}; {self._worlds()} on {self._sim.device}{note}"

    def _name(self, world: int) -> str:
        """What is written at a world: its number, its level, and how its last episode ended."""
        level = self._outcomes.level(world).name if self._sim.config.max_levels else ""
        mark = {None: "", True: " \u2714", False: " \u2718"}[self._outcomes.of(world)]
        return f"{self._sim.world_offset + world}{f' {level}' if level else ''}{mark}"

    def _score(self) -> str:
        outcomes = self._outcomes
        if not outcomes.episodes:
            return ""
        return f"{outcomes.successes:,} of {outcomes.episodes:,} episodes succeeded"

    def _worlds(self) -> str:
        count, shown = self._sim.num_worlds, self._shown
        if len(shown) < count:
            return f"worlds {shown.start:,}-{shown.stop - 1:,} of {count:,}"
        return "1 world" if count == 1 else f"{count:,} worlds"

    # ---- Commands ----

    def toggle_pause(self) -> None:
        self._pause(not self.paused)

    def step_once(self) -> None:
        self._pause(True)
        self._step_or_fail()

    def reset_world(self) -> None:
        if isinstance(self._play, LivePlay):
            self._play.reset(self.world)
            self._forget()

    def press_reset_key(self) -> None:
        """Resets the world if an agent is played by hand."""
        if self._player is not None:
            self.reset_world()

    def set_rate(self, rate: float) -> None:
        self._pace.rate = rate
        self._pace.restart()

    def seek(self, position: int) -> None:
        if isinstance(self._play, RecordedPlay) and position != self._play.position:
            self._pause(True)
            self._forget()
            self._outcomes.clear()
            self._play.seek(position)

    def choose_world(self, world: int) -> None:
        self.world = min(max(world, 0), self._sim.num_worlds - 1)
        self._forget()
        self.choose_player(self._player)

    def choose_agent(self, agent: int) -> None:
        self.agent = agent
        self._forget()

    def choose_player(self, agent: int | None) -> None:
        if isinstance(self._play, LivePlay):
            self._player = agent
            self._keyboard.clear()
            self._play.player = None if agent is None else (self.world, agent, self._keyboard.act)
            self._page.controls.show_playing(agent is not None)
            if agent is not None:
                self.agent = agent
                self.follow(True)
                self._page.controls.show_following(True)

    def follow(self, on: bool) -> None:
        self._following = on

    def look_from(self, preset: str, client: viser.ClientHandle) -> None:
        self._following = False
        self._page.controls.show_following(False)
        self._page.look_from(preset, self.world - self._shown.start, client)

    def show_lidar(self, on: bool) -> None:
        self._page.stage.lidar.visible = on

    def show_trails(self, on: bool) -> None:
        self._page.stage.trails.visible = on

    def zoom(self, cell: int, client: viser.ClientHandle) -> None:
        """Chooses the world of a cell and places the camera of a browser so that it fits the picture."""
        self._page.controls.show_world(self._shown.start + cell)
        self.choose_world(self._shown.start + cell)
        self.look_from("world", client)

    def show_grabs(self, on: bool) -> None:
        self._page.stage.grabs.visible = on

    def show_picture(self, on: bool) -> None:
        if self._agent_camera is not None:
            self._agent_camera.close()
            self._agent_camera = None
        try:
            self._agent_camera = AgentCamera(self._sim) if on else None
        except Exception as error:
            self._fail(error)
        if self._agent_camera is None:
            self._page.controls.show_image(None)

    def _pause(self, paused: bool) -> None:
        self.paused = paused
        self._numbers_due.hurry()


class _Due:
    """When to show something that changes: at most once in a period, in seconds."""

    def __init__(self, period: float) -> None:
        self.changed = True
        self._period = period
        self._next = 0.0

    def take(self, now: float) -> bool:
        """Whether to show it now. If so, it counts as shown."""
        if not self.changed or now < self._next:
            return False
        self.changed = False
        self._next = now + self._period
        return True

    def hurry(self) -> None:
        """It has changed and is shown at the next `take()`."""
        self.changed = True
        self._next = 0.0

    def wait(self, now: float) -> float | None:
        """Seconds until it will be shown; None: it has not changed."""
        return max(self._next - now, 0.0) if self.changed else None
