"""The viewer with a page that is a list of what was sent to it: rates, and nothing is sent that has not changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

import doorstep
from doorstep.view import first_person
from doorstep.view.keyboard import Keyboard
from doorstep.view.layout import Layout
from doorstep.view.page import Page
from doorstep.view.play import LivePlay, Replay
from doorstep.view.policies import idle, random
from doorstep.view.stage import Stage
from doorstep.view.viewer import Viewer


class Handle:
    """A thing in a scene; writes down what is set."""

    _name: str
    _sent: list[str]

    def __init__(self, name: str, sent: list[str], **properties: Any) -> None:
        self.__dict__.update(properties, _name=name, _sent=sent)

    def __setattr__(self, name: str, value: Any) -> None:
        self._sent.append(f"{self._name} {name}")
        self.__dict__[name] = value


class FakeScene:
    """viser's scene, as far as a stage needs it."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.things: dict[str, Handle] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("configure_"):
            return lambda *_, **__: None
        if name.startswith("add_"):
            return self._add
        raise AttributeError(name)

    def _add(self, path: str, *_: Any, visible: bool = True, **properties: Any) -> Handle:
        self.things[path] = Handle(path.removeprefix("/"), self.sent, visible=visible, **properties)
        return self.things[path]

    def take(self) -> list[str]:
        """What was sent since the last time."""
        sent = self.sent[:]
        self.sent.clear()
        return sent


class FakePage:
    """Counts what the viewer shows."""

    def __init__(self) -> None:
        self.watched = True
        self.calls: list[str] = []
        self.stage = self.controls = self

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.calls.append(name)

    def at_once(self) -> AbstractContextManager[None]:
        return nullcontext()

    def count(self, name: str) -> int:
        return self.calls.count(name)


@pytest.fixture
def sim() -> Iterator[doorstep.Simulator]:
    with doorstep.Simulator(4, seed=5) as one:
        yield one


def viewer_of(
    sim: doorstep.Simulator, play: Any, page: FakePage, rate: float = 20, keep_running: bool = False
) -> Viewer:
    return Viewer(sim, play, cast(Page, page), Layout.of(sim, sim.num_worlds), Keyboard(), rate, keep_running)


def let_pass(viewer: Viewer, seconds: float) -> None:
    """Calls the viewer when it wants to be called, on a clock of its own."""
    time, stop = 100.0, 100.0 + seconds
    while time < stop:
        wait = viewer.tick(time)
        assert wait is not None
        assert wait >= 0
        time += max(wait, 1e-4)


@pytest.mark.parametrize(("rate", "steps", "pictures"), [(20, 40, 40), (30, 60, 60), (5, 10, 10), (200, 400, 64)])
def test_worlds_are_stepped_and_shown_at_the_rate_but_not_more_often_than_eyes_need(
    sim: doorstep.Simulator, rate: float, steps: int, pictures: int
) -> None:
    page = FakePage()
    play = LivePlay(sim, random(sim))
    let_pass(viewer_of(sim, play, page, rate), 2.0)
    assert play.position == pytest.approx(steps, abs=2)
    assert page.count("show") == pytest.approx(pictures, abs=4)
    assert page.count("show_numbers") == pytest.approx(8, abs=1)


def test_a_paused_viewer_waits_for_requests_and_shows_nothing_new(sim: doorstep.Simulator) -> None:
    page = FakePage()
    play = LivePlay(sim, idle(sim))
    viewer = viewer_of(sim, play, page)
    viewer.requests.post(viewer.toggle_pause)
    viewer.tick(1.0)
    assert page.count("show") == 1
    assert viewer.tick(50.0) is None
    assert viewer.tick(60.0) is None
    assert page.count("show") == 1
    viewer.requests.post(viewer.step_once)
    viewer.tick(70.0)
    assert (play.position, page.count("show")) == (1, 2)


def test_nobody_looks_nothing_is_stepped_unless_it_keeps_running(sim: doorstep.Simulator) -> None:
    page = FakePage()
    page.watched = False
    play = LivePlay(sim, idle(sim))
    assert viewer_of(sim, play, page).tick(1.0) is None
    assert (play.position, page.calls) == (0, [])
    running = viewer_of(sim, play, page, keep_running=True)
    let_pass(running, 1.0)
    assert play.position == pytest.approx(20, abs=1)
    assert page.calls == []
    page.watched = True
    running.tick(200.0)
    assert page.count("show") == 1


@pytest.mark.parametrize(
    ("cells", "world", "says"),
    [
        (4, 0, "step 0, paused; 4 worlds on cpu"),
        (3, 0, "step 0, paused; worlds 0-2 of 4 on cpu"),
        (3, 3, "step 0, paused; worlds 1-3 of 4 on cpu"),
    ],
)
def test_it_says_which_worlds_are_shown(sim: doorstep.Simulator, cells: int, world: int, says: str) -> None:
    class StatusPage(FakePage):
        def show_status(self, text: str, error: str) -> None:
            self.calls.append(text)

    page = StatusPage()
    viewer = Viewer(
        sim, LivePlay(sim, idle(sim)), cast(Page, page), Layout.of(sim, cells), Keyboard(), rate=0, keep_running=False
    )
    viewer.requests.post(viewer.toggle_pause)
    viewer.requests.post(viewer.choose_world, world)
    viewer.tick(1.0)
    assert says in page.calls


def test_the_line_around_the_chosen_world_is_not_hidden_by_walls(sim: doorstep.Simulator) -> None:
    scene, layout = FakeScene(), Layout.of(sim, 4)
    Stage(cast(Any, scene), sim, layout).show(range(4), 3)
    points = vars(scene.things["/current world"])["points"].reshape(-1, 3)
    walls_end = 5.0  # metres above the floor
    assert (points[:, 2] > walls_end).all()
    assert points[:, :2].min(axis=0) == pytest.approx(layout.low + layout.offsets[3, :2])
    assert points[:, :2].max(axis=0) == pytest.approx(layout.high + layout.offsets[3, :2])


def test_a_failing_step_stops_the_play_and_says_so(sim: doorstep.Simulator) -> None:
    page = FakePage()
    play = LivePlay(sim, idle(sim))
    viewer = viewer_of(sim, play, page)
    sim.close()
    viewer._step(5)
    assert viewer.paused
    assert viewer.error.startswith("ClosedError: ")
    assert play.position == 0


def test_a_picture_that_cannot_be_drawn_is_an_error_in_the_page(
    sim: doorstep.Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise doorstep.DeviceError("no renderer")

    monkeypatch.setattr(first_person, "Cameras", refuse)
    page = FakePage()
    viewer = viewer_of(sim, LivePlay(sim, idle(sim)), page)
    viewer.show_picture(True)
    assert viewer.error == "DeviceError: no renderer"
    assert viewer.paused
    assert page.calls[-1] == "show_image"
    viewer.tick(1.0)
    assert viewer.error == "DeviceError: no renderer"


def test_a_recording_takes_no_player_and_no_reset(sim: doorstep.Simulator) -> None:
    page = FakePage()
    replay = Replay(sim, np.zeros((5, 4, 2, 4), np.int32))
    viewer = viewer_of(sim, replay, page)
    before = sim.hash()
    viewer.reset_world()
    viewer.choose_player(0)
    viewer.press_reset_key()
    assert sim.hash() == before
    viewer.seek(3)
    assert viewer.paused
    assert replay.position == 3


def test_only_what_moves_is_sent(sim: doorstep.Simulator) -> None:
    scene = FakeScene()
    stage = Stage(cast(Any, scene), sim, Layout.of(sim, 4))
    stage.show(range(4), 0)
    scene.take()
    stage.show(range(4), 0)
    assert scene.take() == []

    play = LivePlay(sim, idle(sim))
    play.player = (2, 0, lambda: (3, 0, 2, 0))
    play.step()
    stage.show(range(4), 0)
    walked = set(scene.take())
    assert {"agents batched_positions", "eyes batched_positions"} <= walked
    assert walked <= {
        f"{part} {array}" for part in ("agents", "eyes") for array in ("batched_positions", "batched_wxyzs")
    }

    sim.state.button_pressed.to_numpy()[1, 0] = 1
    stage.show(range(4), 0)
    assert scene.take() == ["buttons batched_scales", "buttons batched_colors"]

    sim.state.door_open.to_numpy()[1, 0] = 1
    stage.show(range(4), 0)
    assert scene.take() == ["doors batched_colors"]

    sim.state.body_positions.to_numpy()[3, 4, 0] += 1
    stage.show(range(4), 0)
    assert scene.take() == ["cubes batched_positions"]

    stage.show(range(4), 3)
    assert scene.take() == ["world 0 text", "world 1 text", "world 2 text", "world 3 text", "current world points"]


def test_rays_are_sent_only_while_they_are_drawn(sim: doorstep.Simulator) -> None:
    scene = FakeScene()
    stage = Stage(cast(Any, scene), sim, Layout.of(sim, 4))
    stage.show(range(4), 1)
    scene.take()
    stage.lidar.visible = True
    stage.show(range(4), 1)
    assert scene.take() == ["lidar visible", "lidar points", "lidar colors"]
    points = vars(scene.things["/lidar"])["points"]
    assert points.shape == (60, 2, 3)
    offset = Layout.of(sim, 4).offsets[1]
    start = sim.state.body_positions.to_numpy()[1, 1] + offset + np.array([0, 0, 0.5])
    assert points[30:, 0] == pytest.approx(np.tile(start, (30, 1)))
    lengths = np.linalg.norm(points[30:, 1] - points[30:, 0], axis=1)
    assert lengths == pytest.approx(40 * sim.lidar.to_numpy()[1, 1, :, 0], rel=1e-5, abs=1e-5)
    stage.lidar.visible = False
    scene.take()
    sim.step()
    stage.show(range(4), 1)
    assert [sent for sent in scene.take() if sent.startswith("lidar")] == []


def test_everything_that_is_sent_is_float32_or_bytes(sim: doorstep.Simulator) -> None:
    scene = FakeScene()
    Stage(cast(Any, scene), sim, Layout.of(sim, 4)).show(range(4), 0)
    arrays = {
        (path, name): value
        for path, thing in scene.things.items()
        for name, value in vars(thing).items()
        if name.startswith("batched_")
    }
    assert len(arrays) == 8 * 4
    for (_, name), array in arrays.items():
        assert array.dtype == (np.uint8 if name == "batched_colors" else np.float32)
    assert len(arrays["/agents", "batched_positions"]) == 4 * 2
    assert len(arrays["/walls", "batched_positions"]) == 4 * 12


def test_a_failing_request_is_shown_and_the_next_ones_are_served(sim: doorstep.Simulator) -> None:
    page = FakePage()
    viewer = viewer_of(sim, LivePlay(sim, idle(sim)), page)

    def fail() -> None:
        raise doorstep.SimulationError("nothing works")

    served: list[int] = []
    viewer.requests.post(fail)
    viewer.requests.post(served.append, 1)
    viewer.tick(1.0)
    assert viewer.error == "SimulationError: nothing works"
    assert viewer.paused
    viewer.tick(1.1)
    assert served == [1]


def test_what_collides_with_the_servers_thread_is_sent_again(sim: doorstep.Simulator) -> None:
    collisions = [RuntimeError("deque mutated during iteration")]  # asyncio's Event, set while its loop begins to wait

    class CollidingPage(FakePage):
        def show(self, *_: object) -> None:
            self.calls.append("show")
            if collisions:
                raise collisions.pop()

    page = CollidingPage()
    viewer = viewer_of(sim, LivePlay(sim, idle(sim)), page, rate=0)
    viewer.tick(1.0)
    assert (page.count("show"), page.count("show_numbers")) == (1, 0)
    viewer.tick(2.0)
    assert (page.count("show"), page.count("show_numbers")) == (2, 1)
    assert (viewer.error, viewer.paused) == ("", False)


def test_a_page_that_cannot_be_shown_is_given_up_until_something_changes(
    sim: doorstep.Simulator, capfd: pytest.CaptureFixture[str]
) -> None:
    class BrokenPage(FakePage):
        def show_numbers(self, *_: object) -> None:
            self.calls.append("show_numbers")
            raise ValueError("no numbers")

    page = BrokenPage()
    viewer = viewer_of(sim, LivePlay(sim, idle(sim)), page)
    for moment in range(10):
        wait = viewer.tick(float(moment))
    assert wait is None
    assert page.count("show_numbers") == 2
    assert (viewer.error, viewer.paused) == ("ValueError: no numbers", True)
    assert capfd.readouterr().err.count("ValueError: no numbers") == 1
