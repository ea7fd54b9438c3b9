"""The panel beside the picture: buttons, menus, numbers, drawings."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.viewer import agent_panel, drawings, keyboard
from doorstep.viewer.agent_panel import STEPS_KEPT, RewardHistory
from doorstep.viewer.play import LivePlay, Play
from doorstep.viewer.requests import Commands, Requests, number, one_of, whole_number
from doorstep.viewer.world_arrays import lidar_readings

FLY, FOLLOW = "fly", "follow"
POLICY = "policy"
_HIGHEST_RATE = 1000  # steps per second
_HIGHEST_SPEED = 3.0  # the slider has powers of ten
_NO_POSITION = -1.0
_SPEED_MARKS = tuple((float(power), str(10**power)) for power in range(4))

# Numbers of controls are floats, also where they count: viser makes a whole number of any size of what a page sends for
# an int, keeps it, cannot encode it, and from then on closes the connection of every page that opens.

# viser shows the value of a slider in a field beside it. Here that would be the power of ten, so the field is hidden.
_SPEED_STYLE = """
<style class="doorstep-speed">
  div:has(> .doorstep-speed) + div .mantine-Slider-root { margin-right: 0.7em }
  div:has(> .doorstep-speed) + div .mantine-Slider-root + * { display: none }
</style>
"""

_Command = Callable[[Any], None]


class Controls:
    """The panel: its controls post `Commands` to `Requests`, its `show_...` methods update what it shows."""

    def __init__(
        self, server: viser.ViserServer, sim: Simulator, play: Play, rate: float, presets: tuple[str, ...]
    ) -> None:
        self._sim = sim
        self._presets = presets
        self._agents = [f"agent {agent}" for agent in range(sim.num_agents)]
        self._last_step = play.length or 0
        self._sought = False  # whether the step slider was moved since its position was last sent
        self._add_run(server.gui, play, rate)
        panel = server.gui.add_panel()  # apart from the rest: on phones it begins folded
        with panel.add_tab("look and numbers"):
            self._add_look(server.gui)
            self._add_numbers(server.gui)
        panel.dock_below(server.gui.main_panel)

    def _add_run(self, gui: viser.GuiApi, play: Play, rate: float) -> None:
        self.status = gui.add_html("")
        self.pause = gui.add_button("pause")
        self.step = gui.add_button("single step")
        gui.add_html(_SPEED_STYLE)
        self.speed = gui.add_slider("speed", 0.0, _HIGHEST_SPEED, 0.1, _speed(rate), marks=_SPEED_MARKS)
        self.rate = gui.add_number("steps per second", float(rate), min=0.0, max=float(_HIGHEST_RATE), step=1.0)
        self.reset: viser.GuiButtonHandle | None = None
        self.position: viser.GuiSliderHandle[float] | None = None
        self.player: viser.GuiDropdownHandle[str] | None = None
        if isinstance(play, LivePlay):
            self.reset = gui.add_button("reset world")
            with gui.add_folder("play"):
                self.player = gui.add_dropdown("who acts", (POLICY, *self._agents))
                self._keys = gui.add_html(keyboard.page_content(False))
        elif play.length is not None:
            self.position = gui.add_slider("step", 0.0, float(max(play.length, 1)), 1.0, 0.0)

    def _add_look(self, gui: viser.GuiApi) -> None:
        with gui.add_folder("look"):
            last = self._sim.num_worlds - 1
            self.world = gui.add_number("world", 0.0, min=0.0, max=float(last), step=1.0, disabled=last == 0)
            self.agent = gui.add_dropdown("agent", self._agents)
            self.camera = gui.add_dropdown("camera", (FLY, FOLLOW))
            self.look_from = gui.add_button_group("look from", self._presets)
            self.trails = gui.add_checkbox("trails", True)
            self.lidar = gui.add_checkbox("lidar rays", False)
            self.grabs = gui.add_checkbox("grab rays", False)
            self.picture = gui.add_checkbox("what the agent sees", False)
            self._image = gui.add_image(np.zeros((1, 1, 3), np.uint8), format="jpeg", jpeg_quality=85, visible=False)

    def _add_numbers(self, gui: viser.GuiApi) -> None:
        with gui.add_folder("numbers"):
            self._table = gui.add_html("")
            self._returns = gui.add_html("")
        with gui.add_folder("lidar"):
            self._lidar = gui.add_html("")
        with gui.add_folder("observations"):
            self._observations = gui.add_html("")

    # ---- From the page ----

    def connect(self, requests: Requests, commands: Commands) -> None:
        """Posts a request for each use of a control from now on; one with an invalid value fails when it is served."""
        post = requests.post

        def request(control: Any, command: _Command, read: Callable[[object], object]) -> None:
            _on_update(control, lambda event: post(lambda value: command(read(value)), event.target.value))

        _on_click(self.pause, lambda _: post(commands.toggle_pause))
        _on_click(self.step, lambda _: post(commands.step_once))
        self._connect_speed(request, commands)
        if self.reset is not None:
            _on_click(self.reset, lambda _: post(commands.reset_world))
        if self.position is not None:

            def seek(position: int) -> None:
                self._sought = True
                commands.seek(position)

            request(self.position, seek, whole_number("step", 0, self._last_step))
        agents = {name: agent for agent, name in enumerate(self._agents)}
        request(self.world, commands.choose_world, whole_number("world", 0, self._sim.num_worlds - 1))
        request(self.agent, commands.choose_agent, one_of("agent", agents))
        request(self.camera, commands.follow, one_of("camera", {FLY: False, FOLLOW: True}))
        preset = one_of("look from", {name: name for name in self._presets})

        def look_from(value: object, client: viser.ClientHandle) -> None:
            commands.look_from(preset(value), client)

        _on_click(self.look_from, lambda event: post(look_from, event.target.value, event.client))
        request(self.trails, commands.show_trails, bool)
        request(self.lidar, commands.show_lidar, bool)
        request(self.grabs, commands.show_grabs, bool)
        request(self.picture, commands.show_picture, bool)
        if self.player is not None:
            request(self.player, commands.choose_player, one_of("who acts", {POLICY: None, **agents}))

    def _connect_speed(self, request: Callable[..., None], commands: Commands) -> None:
        """Keeps the slider and the field of the speed equal."""

        def slide(power: float) -> None:
            self.rate.value = round(10**power)
            commands.set_rate(self.rate.value)

        def type_rate(rate: float) -> None:
            self.speed.value = _speed(rate)
            commands.set_rate(rate)

        request(self.speed, slide, number("speed", 0, _HIGHEST_SPEED))
        request(self.rate, type_rate, number("steps per second", 0, _HIGHEST_RATE))

    # ---- To the page ----

    def show_status(self, text: str, score: str, error: str) -> None:
        """Shows a line of status, how many episodes succeeded, and an error unless it is empty."""
        lines = "<br>".join(html.escape(line) for line in (text, score) if line)
        said = f'<div style="font-size: 0.8em; padding: 0 0.6em 0.4em">{lines}</div>'
        if error:
            style = "font-size: 0.8em; margin: 0 0.6em 0.4em; padding: 0.4em; background: #c92a2a; color: white"
            said += f'<div class="doorstep-error" style="{style}">{html.escape(error)}</div>'
        self.status.content = said

    def show_paused(self, paused: bool) -> None:
        """Labels the button with what it would do."""
        self.pause.label = "resume" if paused else "pause"

    def show_playing(self, playing: bool) -> None:
        """Starts or stops reading keys in the page."""
        self._keys.content = keyboard.page_content(playing)

    def show_following(self, following: bool) -> None:
        """Shows whether the camera follows the agent."""
        self.camera.value = FOLLOW if following else FLY

    def show_world(self, world: int) -> None:
        """Shows which world is chosen."""
        self.world.value = world

    def show_position(self, position: int) -> None:
        """Shows the step of the recording."""
        if self.position is None:
            return
        if self._sought:  # a browser may have received an older position after its slider was moved
            self._sought = False
            self.position.value = _NO_POSITION  # viser sends a value only if it differs from the last one it knows
        self.position.value = position

    def show_numbers(self, world: int, agent: int, history: RewardHistory) -> None:
        """Shows the numbers and drawings of one agent."""
        distances, kinds = lidar_readings(self._sim, world)
        self._table.content = agent_panel.table(self._sim, world, agent, history.last)
        self._returns.content = drawings.returns(history.returns(), STEPS_KEPT)
        self._lidar.content = drawings.lidar(distances[agent], kinds[agent])
        self._observations.content = drawings.bars(agent_panel.observations(self._sim, world, agent))

    def show_image(self, image: NDArray[np.uint8] | None) -> None:
        """Shows what the agent sees; None: hides the picture."""
        if image is None:
            self._image.visible = self.picture.value = False
        else:
            self._image.image = image
            self._image.visible = True


def _speed(rate: float) -> float:
    """The slider's value for steps per second; its lowest for fewer than one."""
    return min(math.log10(max(rate, 1.0)), _HIGHEST_SPEED)


# Handlers are coroutines because those run in the order of the events; functions would run in threads. Events without
# a client are changes by the server itself.


def _on_click(button: Any, act: Callable[[viser.GuiEvent[Any]], None]) -> None:
    async def clicked(event: viser.GuiEvent[Any]) -> None:
        act(event)

    button.on_click(clicked)


def _on_update(control: Any, act: Callable[[viser.GuiEvent[Any]], None]) -> None:
    async def updated(event: viser.GuiEvent[Any]) -> None:
        if event.client_id is not None:
            act(event)

    control.on_update(updated)
