"""The viewer with a page that only counts calls: rates, errors, and nothing is sent without a change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import OpenViewer, until

import doorstep
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording import Recording, RecordingWriter
from doorstep.viewer import agent_panel
from doorstep.viewer.keyboard import Keyboard
from doorstep.viewer.page import Page
from doorstep.viewer.play import LivePlay, RecordedPlay
from doorstep.viewer.viewer import Viewer
from doorstep.viewer.world_arrays import Layout


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


@pytest.mark.parametrize(("rate", "steps", "pictures"), [(20, 40, 40), (30, 60, 50), (5, 10, 10), (200, 400, 50)])
def test_worlds_are_stepped_and_shown_at_the_rate_but_shown_at_most_25_times_a_second(
    sim: doorstep.Simulator, rate: float, steps: int, pictures: int
) -> None:
    page = FakePage()
    play = LivePlay(sim, Player(load_policy("random"), sim).act)
    let_pass(viewer_of(sim, play, page, rate), 2.0)
    assert play.position == pytest.approx(steps, abs=2)
    assert page.count("show") == pytest.approx(pictures, abs=4)
    assert page.count("show_numbers") == pytest.approx(6, abs=1)


def test_a_paused_viewer_waits_for_requests_and_shows_nothing_new(sim: doorstep.Simulator) -> None:
    page = FakePage()
    play = LivePlay(sim, Player(load_policy("idle"), sim).act)
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


def test_without_a_browser_nothing_is_stepped_unless_it_keeps_running(sim: doorstep.Simulator) -> None:
    page = FakePage()
    page.watched = False
    play = LivePlay(sim, Player(load_policy("idle"), sim).act)
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
def test_the_status_says_which_worlds_are_shown(sim: doorstep.Simulator, cells: int, world: int, says: str) -> None:
    class StatusPage(FakePage):
        def show_status(self, text: str, score: str, error: str) -> None:
            self.calls.append(text)

    page = StatusPage()
    viewer = Viewer(
        sim,
        LivePlay(sim, Player(load_policy("idle"), sim).act),
        cast(Page, page),
        Layout.of(sim, cells),
        Keyboard(),
        rate=0,
        keep_running=False,
    )
    viewer.requests.post(viewer.toggle_pause)
    viewer.requests.post(viewer.choose_world, world)
    viewer.tick(1.0)
    assert says in page.calls
    viewer.requests.post(lambda: setattr(sim, "actions", np.full((4, 2, 4), 9)))
    viewer.requests.post(sim.step)
    viewer.tick(2.0)
    assert f"{says}; 32 action values out of range, clamped" in page.calls


def test_a_failing_step_pauses_and_is_reported(sim: doorstep.Simulator) -> None:
    page = FakePage()
    play = LivePlay(sim, Player(load_policy("idle"), sim).act)
    viewer = viewer_of(sim, play, page)
    sim.close()
    viewer._step(5)
    assert viewer.paused
    assert viewer.error.startswith("ClosedError: ")
    assert play.position == 0


def test_an_exception_of_a_policy_is_shown_and_its_traceback_printed(
    sim: doorstep.Simulator, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.py"
    path.write_text("def policy(observations):\n    return observations / None\n")
    page = FakePage()
    play = LivePlay(sim, Player(load_policy(f"{path}:policy"), sim).act)
    viewer = viewer_of(sim, play, page)
    viewer.tick(1.0)
    assert viewer.paused
    assert viewer.error.startswith("TypeError: unsupported operand")
    printed = capfd.readouterr().err
    assert f'File "{path}", line 2, in policy' in printed
    viewer.step_once()  # the same error again
    assert play.position == 0
    assert capfd.readouterr().err == ""


def test_an_error_of_a_policy_that_looks_like_a_collision_of_the_servers_thread_is_shown(
    sim: doorstep.Simulator, capfd: pytest.CaptureFixture[str]
) -> None:
    def act() -> None:
        raise RuntimeError("deque mutated during iteration")

    viewer = viewer_of(sim, LivePlay(sim, act), FakePage())
    viewer.tick(1.0)
    assert (viewer.error, viewer.paused) == ("RuntimeError: deque mutated during iteration", True)
    assert "deque mutated" in capfd.readouterr().err


def test_actions_that_do_not_fit_are_an_error_in_the_page(sim: doorstep.Simulator, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def policy(observations):\n    return 0\n")
    viewer = viewer_of(sim, LivePlay(sim, Player(load_policy(f"{tmp_path}/train.py:policy"), sim).act), FakePage())
    viewer.tick(1.0)
    assert "returned int64 []; it must return integers [4, 2, 4]" in viewer.error
    assert viewer.paused


def test_a_picture_that_cannot_be_drawn_is_an_error_in_the_page(
    sim: doorstep.Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise doorstep.DeviceError("no renderer")

    monkeypatch.setattr(agent_panel, "Cameras", refuse)
    page = FakePage()
    viewer = viewer_of(sim, LivePlay(sim, Player(load_policy("idle"), sim).act), page)
    viewer.show_picture(True)
    assert viewer.error == "DeviceError: no renderer"
    assert viewer.paused
    assert page.calls[-1] == "show_image"
    viewer.tick(1.0)
    assert viewer.error == "DeviceError: no renderer"


def test_a_recording_ignores_players_and_resets(tmp_path: Path) -> None:
    page = FakePage()
    with doorstep.Simulator(4) as sim, RecordingWriter(tmp_path / "run.rec", sim) as writer:
        for _ in range(5):
            writer.step()
    with Recording(tmp_path / "run.rec") as recording, doorstep.Simulator(4) as sim:
        check_that_players_and_resets_are_ignored(sim, RecordedPlay(sim, recording), page)


def check_that_players_and_resets_are_ignored(sim: doorstep.Simulator, recorded: RecordedPlay, page: FakePage) -> None:
    viewer = viewer_of(sim, recorded, page)
    before = sim.hash()
    viewer.reset_world()
    viewer.choose_player(0)
    viewer.press_reset_key()
    assert sim.hash() == before
    viewer.seek(3)
    assert viewer.paused
    assert recorded.position == 3


def test_a_failing_request_is_shown_and_the_next_ones_are_served(sim: doorstep.Simulator) -> None:
    page = FakePage()
    viewer = viewer_of(sim, LivePlay(sim, Player(load_policy("idle"), sim).act), page)

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
    viewer = viewer_of(sim, LivePlay(sim, Player(load_policy("idle"), sim).act), page, rate=0)
    viewer.tick(1.0)
    assert (page.count("show"), page.count("show_numbers")) == (1, 0)
    viewer.tick(2.0)
    assert (page.count("show"), page.count("show_numbers")) == (2, 1)
    assert (viewer.error, viewer.paused) == ("", False)


def test_a_page_that_cannot_be_shown_is_tried_again_only_after_a_change(
    sim: doorstep.Simulator, capfd: pytest.CaptureFixture[str]
) -> None:
    class BrokenPage(FakePage):
        def show_numbers(self, *_: object) -> None:
            self.calls.append("show_numbers")
            raise ValueError("no numbers")

    page = BrokenPage()
    viewer = viewer_of(sim, LivePlay(sim, Player(load_policy("idle"), sim).act), page)
    for moment in range(10):
        wait = viewer.tick(float(moment))
    assert wait is None
    assert page.count("show_numbers") == 2
    assert (viewer.error, viewer.paused) == ("ValueError: no numbers", True)
    assert capfd.readouterr().err.count("ValueError: no numbers") == 1


def test_unexpected_errors_are_shown_and_the_viewer_continues(
    open_viewer: OpenViewer, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise KeyError("surprise")

    with open_viewer(policy="idle") as running:
        running.viewer.requests.post(fail)
        until(lambda: running.error() == "KeyError: 'surprise'")
        running.viewer._play.step = fail  # type: ignore[method-assign]
        running.ask(lambda viewer: setattr(viewer, "error", ""))
        running.viewer.requests.post(running.viewer.step_once)
        until(lambda: running.error() == "KeyError: 'surprise'")
        assert running.viewer.paused
    assert capfd.readouterr().err.count("KeyError: 'surprise'") == 2
