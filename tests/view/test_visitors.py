"""Whoever reaches the port may send anything: the viewer stays, and pages from elsewhere do not get in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import OpenViewer, Running, until
from tests.view.visitor import Visitor
from websockets.exceptions import InvalidStatus

import doorstep
from doorstep.view import cameras, values
from doorstep.view.cameras import Lens
from doorstep.view.layout import Layout
from doorstep.view.origins import is_own
from doorstep.view.server import address


def error(running: Running) -> str:
    return running.ask(lambda viewer: viewer.error)


def control(running: Running, name: str) -> Any:
    return getattr(running.viewer._page.controls, name)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("look_from", "nowhere", "look from is 'nowhere'; it must be one of top, left, right, all."),
        ("agent", "agent 7", "agent is 'agent 7'; it must be one of agent 0, agent 1."),
        ("player", "nobody", "who acts is 'nobody'; it must be one of policy, agent 0, agent 1."),
        ("camera", "away", "camera is 'away'; it must be one of fly, follow."),
    ],
)
def test_a_choice_that_is_none_is_an_error_in_the_page(
    open_viewer: OpenViewer, name: str, value: str, says: str
) -> None:
    with open_viewer(policy="idle") as running, Visitor(running) as visitor:
        visitor.set(control(running, name), value)
        until(lambda: error(running) == f"ArgumentError: {says}")
        assert running.viewer.paused
        assert says in control(running, "status").content.replace("&#x27;", "'")
        visitor.set(control(running, "rate"), 7)  # and the viewer goes on
        until(lambda: running.ask(lambda viewer: viewer._pace.rate) == 7)


def test_numbers_out_of_range_become_the_nearest_ones(open_viewer: OpenViewer) -> None:
    with open_viewer(worlds=3, policy="idle") as running, Visitor(running) as visitor:
        for name, value, get, expected in (
            ("rate", 1e300, lambda viewer: viewer._pace.rate, 1000),
            ("rate", -5, lambda viewer: viewer._pace.rate, 0),
            ("world", 99, lambda viewer: viewer.world, 2),
            ("world", -1, lambda viewer: viewer.world, 0),
        ):
            visitor.set(control(running, name), value)
            until(lambda get=get, expected=expected: running.ask(get) == expected)  # type: ignore[misc]
        assert error(running) == ""


@pytest.mark.parametrize("value", [float("nan"), "fast", None])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"rate is .*; it must be a number from 0 to 1000"):
        values.number("rate", 0, 1000)(value)


@pytest.mark.parametrize(
    "window", [{"image_height": 0}, {"image_width": 0}, {"image_width": 10**9}, {"fov": 0.0}, {"fov": 100.0}]
)
def test_a_window_of_any_size_gets_a_camera_that_is_somewhere(
    open_viewer: OpenViewer, window: dict[str, object]
) -> None:
    with open_viewer(worlds=4, policy="idle", rate=0) as running, Visitor(running) as visitor:
        client = running.client()
        visitor.look(**window)
        until(lambda: all(getattr(client.camera, name) == value for name, value in window.items()))
        visitor.set(control(running, "look_from"), "all")
        until(lambda: client.camera.position[2] > 1)
        assert np.isfinite(client.camera.position).all()
        assert error(running) == ""


def test_a_window_that_changes_while_its_camera_is_put_somewhere_gets_another_place(
    open_viewer: OpenViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[Lens] = []
    fit = cameras.preset

    def fit_meanwhile(name: str, layout: Layout, cell: int, lens: Lens) -> cameras.Place:
        fits.append(lens)
        if lens.aspect == 2:  # the browser says another size before the place for this one is known
            visitor.look(image_width=300, image_height=100)
            until(lambda: client.camera.image_width == 300)
        return fit(name, layout, cell, lens)

    with open_viewer(worlds=4, policy="idle", rate=0) as running, Visitor(running) as visitor:
        client = running.client()
        until(lambda: running.ask(lambda viewer: viewer._page._presets))
        monkeypatch.setattr(cameras, "preset", fit_meanwhile)
        visitor.look(image_width=200, image_height=100, position=client.camera.position.tolist())
        until(lambda: any(lens.aspect == 2 for lens in fits))
        visitor.look(image_width=300, image_height=100, position=client.camera.position.tolist())
        until(lambda: fits[-1].aspect == 3)


def test_an_error_that_nobody_thought_of_is_shown_and_the_viewer_stays(
    open_viewer: OpenViewer, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise KeyError("surprise")

    with open_viewer(policy="idle") as running:
        running.viewer.requests.post(fail)
        until(lambda: error(running) == "KeyError: 'surprise'")
        running.viewer._play.step = fail  # type: ignore[method-assign]
        running.ask(lambda viewer: setattr(viewer, "error", ""))
        running.viewer.requests.post(running.viewer.step_once)
        until(lambda: error(running) == "KeyError: 'surprise'")
        assert running.viewer.paused
    assert capfd.readouterr().err.count("KeyError: 'surprise'") == 2


def test_pages_from_elsewhere_do_not_get_in(open_viewer: OpenViewer) -> None:
    with open_viewer(policy="idle") as running:
        port = running.server.get_port()
        for origin, host in (
            ("https://evil.example", "127.0.0.1"),
            ("null", "127.0.0.1"),
            ("http://127.0.0.1:1", "127.0.0.1"),
            (f"http://evil.example:{port}", "evil.example"),  # a name that its owner lets lead here
        ):
            with pytest.raises(InvalidStatus) as caught:
                Visitor(running, origin, host)
            assert caught.value.response.status_code == 403
        assert not running.server.get_clients()
        with Visitor(running, f"http://127.0.0.1:{port}"):
            assert len(running.server.get_clients()) == 1


@pytest.mark.parametrize(
    ("origin", "asked", "host", "own"),
    [
        (None, "127.0.0.1:8080", "127.0.0.1", True),
        ("http://localhost:9000", "localhost:9000", "127.0.0.1", True),  # a port that leads here
        ("http://[::1]:8080", "[::1]:8080", "::1", True),
        ("http://machine:8080", "machine:8080", "127.0.0.1", False),
        ("http://machine:8080", "machine:8080", "0.0.0.0", True),
        ("https://evil.example", "machine:8080", "0.0.0.0", False),
        ("https://localhost.evil.example:8080", "127.0.0.1:8080", "127.0.0.1", False),
    ],
)
def test_a_page_is_the_viewers_own_if_it_asks_where_it_came_from(
    origin: str | None, asked: str, host: str, own: bool
) -> None:
    assert is_own(origin, asked, host) is own


@pytest.mark.parametrize(
    ("host", "opened"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("localhost", "http://localhost:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),
        ("::", "http://[::1]:8080"),
        ("::1", "http://[::1]:8080"),
        ("2001:db8::7", "http://[2001:db8::7]:8080"),
    ],
)
def test_the_address_that_is_printed_can_be_opened(host: str, opened: str) -> None:
    assert address(host, 8080) == opened
