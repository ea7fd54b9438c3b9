"""The panel beside the picture: buttons, menus, numbers, plots."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import viser
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.view import cameras, numbers, page_keys, values
from doorstep.view.history import History
from doorstep.view.play import Play
from doorstep.view.plots import Plots
from doorstep.view.requests import Requests

FLY, FOLLOW = "fly", "follow"
POLICY = "policy"
_HIGHEST_RATE = 1000  # steps per second
_HIGHEST_SPEED = 3.0  # the slider has powers of ten
_NO_POSITION = -1
_SPEED_MARKS = tuple((float(power), str(10**power)) for power in range(4))

# A slider of viser shows its value in a field beside it; here that would be the power, so the field is hidden.
_SPEED_STYLE = """
<style class="doorstep-speed">
  div:has(> .doorstep-speed) + div .mantine-Slider-root { margin-right: 0.7em }
  div:has(> .doorstep-speed) + div .mantine-Slider-root + * { display: none }
</style>
"""

_Command = Callable[[Any], None]


class Commands(Protocol):
    """What the controls can ask for; the names say it."""

    def toggle_pause(self) -> None: ...
    def step_once(self) -> None: ...
    def reset_world(self) -> None: ...
    def set_rate(self, rate: float) -> None: ...
    def seek(self, position: int) -> None: ...
    def choose_world(self, world: int) -> None: ...
    def choose_agent(self, agent: int) -> None: ...
    def choose_player(self, agent: int | None) -> None: ...
    def follow(self, on: bool) -> None: ...
    def look_from(self, preset: str, client: viser.ClientHandle) -> None: ...
    def show_lidar(self, on: bool) -> None: ...
    def show_grabs(self, on: bool) -> None: ...
    def show_picture(self, on: bool) -> None: ...


class Controls:
    """The panel. It tells a `Commands`, by way of `Requests`, what people do, and shows what it is given."""

    def __init__(self, server: viser.ViserServer, sim: Simulator, play: Play, rate: float) -> None:
        self._sim = sim
        self._agents = [f"agent {agent}" for agent in range(sim.num_agents)]
        self._last_step = play.length or 0
        self._sought = False  # since the position was shown
        self._add_run(server.gui, play, rate)
        self._add_look(server.gui)
        self._add_input(server.gui, play)
        self._add_numbers(server.gui)

    def _add_run(self, gui: viser.GuiApi, play: Play, rate: float) -> None:
        self.status = gui.add_html("")
        self.pause = gui.add_button("pause")
        self.step = gui.add_button("single step")
        gui.add_html(_SPEED_STYLE)
        self.speed = gui.add_slider("speed", 0.0, _HIGHEST_SPEED, 0.1, _speed(rate), marks=_SPEED_MARKS)
        self.rate = gui.add_number("steps per second", float(rate), min=0.0, max=float(_HIGHEST_RATE), step=1.0)
        if play.length is None:
            self.reset: viser.GuiButtonHandle | None = gui.add_button("reset world")
            self.position: viser.GuiSliderHandle[int] | None = None
        else:
            self.reset = None
            self.position = gui.add_slider("step", min=0, max=max(play.length, 1), step=1, initial_value=0)

    def _add_look(self, gui: viser.GuiApi) -> None:
        with gui.add_folder("look"):
            self.world = gui.add_number(
                "world", 0, min=0, max=self._sim.num_worlds - 1, step=1, disabled=self._sim.num_worlds == 1
            )
            self.agent = gui.add_dropdown("agent", self._agents)
            self.camera = gui.add_dropdown("camera", (FLY, FOLLOW))
            self.look_from = gui.add_button_group("look from", cameras.PRESETS)
            self.lidar = gui.add_checkbox("lidar rays", False)
            self.grabs = gui.add_checkbox("grab rays", False)
            self.picture = gui.add_checkbox("what the agent sees", False)
            self._image = gui.add_image(np.zeros((1, 1, 3), np.uint8), format="jpeg", jpeg_quality=85, visible=False)

    def _add_input(self, gui: viser.GuiApi, play: Play) -> None:
        self.player: viser.GuiDropdownHandle[str] | None = None
        if play.length is None:
            with gui.add_folder("play"):
                self.player = gui.add_dropdown("who acts", (POLICY, *self._agents))
                self._keys = gui.add_html(page_keys.content(False))

    def _add_numbers(self, gui: viser.GuiApi) -> None:
        with gui.add_folder("numbers"):
            self._table = gui.add_html("")
            self._plots = Plots(gui, self._sim)

    # ---- From the page ----

    def connect(self, requests: Requests, commands: Commands) -> None:
        """From now on, what people do reaches `commands`; what is no value of a control fails as a request."""
        post = requests.post

        def ask(control: Any, command: _Command, read: Callable[[object], object]) -> None:
            _on_update(control, lambda event: post(lambda value: command(read(value)), event.target.value))

        _on_click(self.pause, lambda _: post(commands.toggle_pause))
        _on_click(self.step, lambda _: post(commands.step_once))
        self._connect_speed(ask, commands)
        if self.reset is not None:
            _on_click(self.reset, lambda _: post(commands.reset_world))
        if self.position is not None:
            ask(self.position, self._seek(commands), values.whole("step", 0, self._last_step))
        agents = {name: agent for agent, name in enumerate(self._agents)}
        ask(self.world, commands.choose_world, values.whole("world", 0, self._sim.num_worlds - 1))
        ask(self.agent, commands.choose_agent, values.one_of("agent", agents))
        ask(self.camera, commands.follow, values.one_of("camera", {FLY: False, FOLLOW: True}))
        self._connect_presets(requests, commands)
        ask(self.lidar, commands.show_lidar, bool)
        ask(self.grabs, commands.show_grabs, bool)
        ask(self.picture, commands.show_picture, bool)
        if self.player is not None:
            ask(self.player, commands.choose_player, values.one_of("who acts", {POLICY: None, **agents}))

    def _connect_speed(self, ask: Callable[..., None], commands: Commands) -> None:
        """The slider and the field beside it follow each other."""

        def slide(power: float) -> None:
            self.rate.value = round(10**power)
            commands.set_rate(self.rate.value)

        def type_rate(rate: float) -> None:
            self.speed.value = _speed(rate)
            commands.set_rate(rate)

        ask(self.speed, slide, values.number("speed", 0, _HIGHEST_SPEED))
        ask(self.rate, type_rate, values.number("steps per second", 0, _HIGHEST_RATE))

    def _seek(self, commands: Commands) -> _Command:
        def seek(position: int) -> None:
            self._sought = True
            commands.seek(position)

        return seek

    def _connect_presets(self, requests: Requests, commands: Commands) -> None:
        preset = values.one_of("look from", {name: name for name in cameras.PRESETS})

        def look_from(value: object, client: viser.ClientHandle) -> None:
            commands.look_from(preset(value), client)

        _on_click(self.look_from, lambda event: requests.post(look_from, event.target.value, event.client))

    # ---- To the page ----

    def show_status(self, text: str, error: str) -> None:
        """One line of what is going on, and what went wrong."""
        said = f'<div style="font-size: 0.8em; padding: 0 0.6em 0.4em">{html.escape(text)}</div>'
        if error:
            style = "font-size: 0.8em; margin: 0 0.6em 0.4em; padding: 0.4em; background: #c92a2a; color: white"
            said += f'<div class="doorstep-error" style="{style}">{html.escape(error)}</div>'
        self.status.content = said

    def show_paused(self, paused: bool) -> None:
        """The button says what it would do."""
        self.pause.label = "go on" if paused else "pause"

    def show_playing(self, playing: bool) -> None:
        """Whether keys move an agent."""
        self._keys.content = page_keys.content(playing)

    def show_following(self, following: bool) -> None:
        """How the camera goes."""
        self.camera.value = FOLLOW if following else FLY

    def show_position(self, position: int) -> None:
        """How far the recording has come."""
        if self.position is None:
            return
        if self._sought:  # a browser may have received an earlier position after somebody moved its slider
            self._sought = False
            self.position.value = _NO_POSITION  # viser sends a value only if it differs from the last one
        self.position.value = position

    def show_numbers(self, world: int, agent: int, history: History) -> None:
        """Numbers and plots of one agent."""
        self._table.content = numbers.table(self._sim, world, agent, history.last)
        self._plots.show(world, agent, history)

    def show_image(self, image: NDArray[np.uint8] | None) -> None:
        """What the agent sees; None: nothing any more."""
        if image is None:
            self._image.visible = self.picture.value = False
        else:
            self._image.image = image
            self._image.visible = True


def _speed(rate: float) -> float:
    """Where the slider stands for steps per second; at its left end for fewer than one."""
    return min(math.log10(max(rate, 1.0)), _HIGHEST_SPEED)


# Coroutines run in the order of the events; functions would run in threads. What the server itself sets is no request.


def _on_click(button: Any, act: Callable[[viser.GuiEvent[Any]], None]) -> None:
    async def clicked(event: viser.GuiEvent[Any]) -> None:
        act(event)

    button.on_click(clicked)


def _on_update(control: Any, act: Callable[[viser.GuiEvent[Any]], None]) -> None:
    async def updated(event: viser.GuiEvent[Any]) -> None:
        if event.client_id is not None:
            act(event)

    control.on_update(updated)
