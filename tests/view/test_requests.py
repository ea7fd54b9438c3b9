"""What the page sends is checked, and reaches the thread that owns the simulator. Any program may send anything."""

import operator
import threading

import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.markup import HOSTILE, Markup
from tests.view.running import Visitor, until

from doorstep.viewer.agent_panel import AgentCamera
from doorstep.viewer.requests import Requests


def test_requests_are_served_in_order_by_the_thread_that_waits():
    requests, served = Requests(), []

    def post():
        for count in range(100):
            requests.post(served.append, count)

    thread = threading.Thread(target=post)
    thread.start()
    while len(served) < 100:
        requests.wait(1e300)  # until the next step of a world whose speed is almost 0: a request ends any wait
        requests.serve()
    thread.join()
    assert served == list(range(100))
    assert requests.serve() is False


def test_a_request_that_met_a_collision_is_made_again_before_the_next_and_one_that_failed_is_not():
    requests, served = Requests(), []
    errors = [ValueError("no"), *[RuntimeError("deque mutated during iteration")] * 2]

    def send():
        if errors:
            raise errors.pop()
        served.append("sent")

    requests.post(send)
    requests.post(served.append, "next")
    with pytest.raises(ValueError, match="no"):
        requests.serve()
    requests.post(send)
    assert requests.serve() is True
    assert served == ["next", "sent"]


def test_an_invalid_choice_is_an_error_in_the_page_and_the_viewer_continues(open_viewer):
    wrong = {
        "look_from": ("look from", "top, left, right, world, all"), "agent": ("agent", "agent 0, agent 1"),
        "player": ("who acts", "policy, agent 0, agent 1"), "camera": ("camera", "fly, follow"),
    }  # fmt: skip
    with open_viewer(policy="idle") as running, Visitor(running) as visitor:
        for name, (called, choices) in wrong.items():
            visitor.set(running.control(name), "nowhere")
            says = f"{called} is 'nowhere'; it must be one of {choices}."
            until(lambda says=says: running.error() == f"ArgumentError: {says}")
            assert running.viewer.paused
            until(lambda says=says: says in running.control("status").content.replace("&#x27;", "'"))
        visitor.set(running.control("rate"), 7)
        until(lambda: running.ask(lambda viewer: viewer._pace.rate) == 7)


def test_each_control_does_what_it_is_for_and_numbers_out_of_range_become_the_nearest_ones(open_viewer):
    with open_viewer(worlds=3, policy="idle", rate=0) as running, Visitor(running) as visitor:

        def check(name, value, attribute, expected):
            visitor.set(running.control(name), value)
            until(lambda: running.ask(operator.attrgetter(attribute)) == expected)

        for row in (
            ("pause", True, "paused", True), ("step", True, "_play.position", 1),
            ("reset", True, "_history.last", None), ("pause", True, "paused", False),
            ("rate", 1e300, "_pace.rate", 1000), ("rate", -5, "_pace.rate", 0), ("speed", 2.0, "_pace.rate", 100),
            ("world", 99, "world", 2), ("world", -1, "world", 0), ("world", 1e300, "world", 2),
            ("agent", "agent 1", "agent", 1), ("camera", "follow", "_following", True),
            *((name, not before, f"_page.stage.{name}.visible", not before)
              for name, before in (("trails", True), ("lidar", False), ("grabs", False))),
            ("player", "agent 0", "_player", 0), ("player", "policy", "_player", None),
            ("picture", True, "_agent_camera.__class__", AgentCamera), ("picture", False, "_agent_camera", None),
            ("look_from", "top", "_following", False),
        ):  # fmt: skip
            check(*row)
            assert row[:2] != ("player", "agent 0") or running.ask(lambda viewer: viewer.agent) == 0
        assert running.error() == ""
        with Visitor(running) as other:  # the page of another is sent the values of all controls
            other.set(running.control("rate"), 7)
            until(lambda: running.ask(lambda viewer: viewer._pace.rate) == 7)
        assert running.control("speed").value == pytest.approx(0.845, abs=0.06)


def test_texts_are_no_html_in_the_panel(open_viewer):
    with open_viewer(policy="idle") as running:
        running.ask(lambda viewer: viewer._page.controls.show_status(HOSTILE, HOSTILE, HOSTILE))
        markup = Markup(running.control("status").content)
        assert markup.names == ["div", "br", "div"]
        assert HOSTILE in markup.texts["div"]
