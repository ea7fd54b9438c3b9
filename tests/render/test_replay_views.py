"""What the page of a replay shows by itself: all worlds, curves, events, a camera that glides; on any screen."""

from contextlib import ExitStack

import numpy as np
import pytest
from tests.render.test_replay import opened, settle

import doorstep
from doorstep.recording.replay_page import ReplayPage

pytestmark = pytest.mark.slow

OUT_AT, STEPS = 20, 40


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    """Three worlds; the agents of the second leave after `OUT_AT` steps."""
    path = tmp_path_factory.mktemp("views") / "replay.html"
    with doorstep.Simulator(3, num_threads=1, seed=2) as sim:
        page = ReplayPage(sim, [0, 1, 2], "three")
        for step in range(1, STEPS + 1):
            if step == OUT_AT:
                sim.state.body_positions.to_numpy()[1, :2] = [(-3.0, 41.5, 0.0), (3.0, 41.5, 0.0)]
            sim.actions.to_numpy()[:] = (3, 0, 2, 0)
            sim.step()
            page.record()
        page.save(path)
    return path


@pytest.fixture
def open_at(browser, replay):
    """Opens the page at a part of it; without one it plays."""
    with ExitStack() as stack:

        def open_page(address="", width=900, height=500, **how):
            return stack.enter_context(opened(browser, replay.as_uri() + address, width, height, **how))

        yield open_page


def moment(page):
    settle(page)
    return int(page.inner_text("#count").partition(" /")[0])


def test_it_opens_in_overview_with_all_worlds_and_plays_unless_motion_is_unwanted(open_at):
    still, opened = open_at(reduced_motion="reduce"), open_at()
    assert opened.input_value("#camera") == "overview"
    assert opened.locator("#names div").all_inner_texts() == ["world 0", "world 1", "world 2"]
    opened.wait_for_function(f"document.getElementById('count').textContent === '{STEPS} / {STEPS}'")
    out = opened.locator("#names div.out").all_inner_texts()
    assert (opened.inner_text("#moment"), out) == ("3 worlds, 1 out", ["world 1"])
    assert (still.inner_text("#play"), moment(still)) == ("Play", 0)


def test_a_click_on_a_world_shows_it_alone_and_escape_shows_all(open_at):
    opened = open_at("#moment=0")
    box = opened.locator("#names div").nth(2).bounding_box()
    opened.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    settle(opened)
    assert (opened.inner_text("#moment"), opened.locator("#names div").count()) == ("World 2, episode 1, step 0", 0)
    opened.keyboard.press("Escape")
    settle(opened)
    assert opened.inner_text("#moment") == "3 worlds, 0 out"


def test_events_and_the_curve_lead_to_their_moments(open_at):
    opened = open_at("#moment=0&world=1")
    (event,) = opened.locator("#events button").all()
    assert event.inner_text().split("\n") == ["both agents out", f"step {OUT_AT}"]
    assert opened.locator("#events .past").count() == 0
    event.click()
    assert (moment(opened), opened.locator("#events .past").count()) == (OUT_AT, 1)
    box = opened.locator("#curve").bounding_box()
    for share, reached in ((0.5, STEPS // 2), (1.0, STEPS), (0.0, 0)):
        opened.mouse.click(box["x"] + 6 + share * (box["width"] - 12.5), box["y"] + 30)
        assert moment(opened) == reached


def test_nothing_covers_the_worlds(open_at):
    for width, height in ((390, 844), (844, 390), (740, 440), (1280, 800)):
        page = open_at("#moment=5", width, height)
        boxes = [page.locator(name).bounding_box() for name in ("#stage", "header", "footer")]
        low = np.array([(box["x"], box["y"]) for box in boxes])
        high = low + [(box["width"], box["height"]) for box in boxes]
        for first, second in ((0, 1), (0, 2), (1, 2)):
            assert (np.minimum(high[first], high[second]) - np.maximum(low[first], low[second]) < 0.5).any()
        assert ((low > -0.5) & (high < np.array((width, height)) + 0.5)).all()
        assert np.prod(high[0] - low[0]) > 0.4 * width * height
