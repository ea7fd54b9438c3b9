"""What the page sends is checked, and reaches the thread that owns the simulator. Any program may send anything."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.markup import HOSTILE, Markup
from tests.view.running import OpenViewer, Visitor, Watch, until

import doorstep
from doorstep.viewer.requests import Requests, number


def test_requests_are_served_in_order_by_the_thread_that_waits() -> None:
    requests = Requests()
    served: list[Any] = []

    def post() -> None:
        for count in range(100):
            requests.post(served.append, count)

    threading.Thread(target=post).start()
    while len(served) < 100:
        requests.wait(20)
        requests.serve()
    assert served == list(range(100))
    assert requests.serve() is False


def test_a_request_ends_a_wait_of_any_length() -> None:
    requests = Requests()
    threading.Timer(0.05, requests.post, [int]).start()
    requests.wait(1e300)  # until the next step of a world whose speed is almost 0
    assert requests.serve()


def test_a_request_that_met_a_collision_is_made_again_before_the_next() -> None:
    requests = Requests()
    collisions = [RuntimeError("deque mutated during iteration")] * 2
    served: list[str] = []

    def send() -> None:
        if collisions:
            raise collisions.pop()
        served.append("sent")

    requests.post(send)
    requests.post(served.append, "next")
    assert requests.serve() is True
    assert served == ["sent", "next"]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("look_from", "nowhere", "look from is 'nowhere'; it must be one of top, left, right, world, all."),
        ("agent", "agent 7", "agent is 'agent 7'; it must be one of agent 0, agent 1."),
        ("player", "nobody", "who acts is 'nobody'; it must be one of policy, agent 0, agent 1."),
        ("camera", "away", "camera is 'away'; it must be one of fly, follow."),
    ],
)
def test_an_invalid_choice_is_an_error_in_the_page(open_viewer: OpenViewer, name: str, value: str, says: str) -> None:
    with open_viewer(policy="idle") as running, Visitor(running) as visitor:
        visitor.set(running.control(name), value)
        until(lambda: running.error() == f"ArgumentError: {says}")
        assert running.viewer.paused
        assert says in running.control("status").content.replace("&#x27;", "'")
        visitor.set(running.control("rate"), 7)  # and the viewer continues
        until(lambda: running.ask(lambda viewer: viewer._pace.rate) == 7)


def test_texts_are_no_html_in_the_panel(open_viewer: OpenViewer) -> None:
    with open_viewer(policy="idle") as running:
        running.ask(lambda viewer: viewer._page.controls.show_status(HOSTILE, HOSTILE, HOSTILE))
        markup = Markup(running.control("status").content)
        assert markup.names == ["div", "br", "div"]
        assert HOSTILE in markup.texts["div"]


@pytest.mark.slow
def test_the_name_of_a_level_is_no_html_in_a_browser(watch: Watch) -> None:
    name = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    level = doorstep.levels.curated()["one door"].replace(name=name)
    with watch(levels=(level,), policy="idle") as watched:
        assert watched.ask(lambda viewer: viewer._page.stage._labels[0].text).startswith(f"0 {name}")
        assert watched.page.title() != "owned"
        assert not watched.page.locator("img[src=x]").count()


def test_numbers_out_of_range_become_the_nearest_ones(open_viewer: OpenViewer) -> None:
    with open_viewer(worlds=3, policy="idle") as running, Visitor(running) as visitor:
        for name, value, get, expected in (
            ("rate", 1e300, lambda viewer: viewer._pace.rate, 1000),
            ("rate", -5, lambda viewer: viewer._pace.rate, 0),
            ("world", 99, lambda viewer: viewer.world, 2),
            ("world", -1, lambda viewer: viewer.world, 0),
            ("world", 1e300, lambda viewer: viewer.world, 2),
        ):
            visitor.set(running.control(name), value)
            until(lambda get=get, expected=expected: running.ask(get) == expected)  # type: ignore[misc]
        assert running.error() == ""
        with Visitor(running) as other:  # the page of another is sent the values of all controls
            other.set(running.control("rate"), 7)
            until(lambda: running.ask(lambda viewer: viewer._pace.rate) == 7)


@pytest.mark.parametrize("value", [float("nan"), "fast", None])
def test_values_that_are_not_numbers_are_refused(value: object) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"rate is .*; it must be a number from 0 to 1000"):
        number("rate", 0, 1000)(value)
