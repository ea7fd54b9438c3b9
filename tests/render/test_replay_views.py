"""What the page of a replay shows by itself: all worlds, curves, events, a camera that glides; on any screen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.render.pixels import AGENTS, has_hue
from tests.render.test_replay import settle, shown

import doorstep
from doorstep.recording import replay_page
from doorstep.recording.replay_page import ReplayPage

pytestmark = pytest.mark.slow

OUT_AT, STEPS = 20, 40


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def opened(browser: Any, replay: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page at the address's part that the test gives; without one it plays."""
    page = browser.new_page(viewport={"width": 900, "height": 500})
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(replay.as_uri() + getattr(request, "param", ""))
    page.wait_for_function("document.getElementById('count').textContent !== ''")
    yield page
    assert trouble == []
    page.close()


def at(address: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("opened", [address], indirect=True)


def moment(page: Any) -> int:
    settle(page)
    return int(page.inner_text("#count").partition(" /")[0])


def test_it_opens_in_overview_with_all_worlds_and_plays(opened: Any) -> None:
    assert opened.input_value("#camera") == "overview"
    assert opened.locator("#names div").all_inner_texts() == ["world 0", "world 1", "world 2"]
    opened.wait_for_function(f"document.getElementById('count').textContent === '{STEPS} / {STEPS}'")
    assert opened.inner_text("#moment") == "3 worlds, 1 out"
    assert opened.locator("#names div.out").all_inner_texts() == ["world 1"]


def test_it_does_not_play_by_itself_where_motion_is_unwanted(browser: Any, replay: Path) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(replay.as_uri())
    page.wait_for_function("document.getElementById('count').textContent !== ''")
    page.wait_for_timeout(300)
    assert (page.inner_text("#play"), moment(page)) == ("Play", 0)
    page.close()


@at("#moment=0")
def test_a_click_on_a_world_shows_it_alone_and_escape_shows_all(opened: Any) -> None:
    box = opened.locator("#names div").nth(2).bounding_box()
    opened.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    settle(opened)
    assert opened.inner_text("#moment") == "World 2, episode 1, step 0"
    assert opened.locator("#names div").count() == 0
    opened.keyboard.press("Escape")
    settle(opened)
    assert opened.inner_text("#moment") == "3 worlds, 0 out"


@at("#moment=0&world=1")
def test_events_and_the_curve_lead_to_their_moments(opened: Any) -> None:
    (event,) = opened.locator("#events button").all()
    assert event.inner_text().split("\n") == ["both agents out", f"step {OUT_AT}"]
    assert opened.locator("#events .past").count() == 0
    event.click()
    assert moment(opened) == OUT_AT
    assert opened.locator("#events .past").count() == 1
    box = opened.locator("#curve").bounding_box()
    for share, reached in ((0.5, STEPS // 2), (1.0, STEPS), (0.0, 0)):
        opened.mouse.click(box["x"] + 6 + share * (box["width"] - 12.5), box["y"] + 30)
        assert moment(opened) == reached


GLIDE = """([first, second, frames, seconds]) => {
  const agent = (x, index) => ({kind: KINDS.AGENT, index, centre: [x, 0, 1], rotation: [1, 0, 0, 0], half: [1, 1, 1]});
  const objects = [agent(first, 0), agent(second, 1)], camera = new FollowCamera(), places = [];
  camera.camera(objects, 0, 0);
  for (let frame = 0; frame < frames; ++frame) {
    camera.camera(objects, 1, seconds);
    places.push(camera.place[0]);
  }
  return [places, camera.moves];
}"""


def test_the_camera_glides_from_agent_to_agent_however_many_pictures_are_drawn(browser: Any) -> None:
    page, folder = browser.new_page(), Path(replay_page.__file__).parent / "page"
    source = "\n".join((folder / name).read_text("utf-8") for name in ("geometry.js", "recording.js", "cameras.js"))

    def glide(frames: int, seconds: float) -> tuple[np.ndarray[Any, Any], bool]:
        places, moves = page.evaluate(f"(given) => {{ {source}; return ({GLIDE})(given); }}", [0, 10, frames, seconds])
        return np.array([0, *places]), moves

    places, moves = glide(150, 0.02)
    strides = np.diff(places)
    assert (strides > -1e-9).all(), "it never turns back"
    assert strides[0] < strides[5], "it starts gently"
    assert strides.max() < 1
    assert places[-1] == pytest.approx(10, abs=1e-3)
    assert not moves
    few, many = glide(2, 0.25)[0], glide(50, 0.01)[0]
    assert few[-1] == pytest.approx(many[-1], abs=1e-9)
    page.close()


@at("#moment=10&world=1&camera=follow")
def test_the_camera_reaches_another_agent_while_the_replay_stands_still(opened: Any) -> None:
    def followed(agent: int) -> bool:
        picture = shown(opened)
        pixel = picture[round(0.567 * picture.shape[0]), picture.shape[1] // 2]  # see test_replay.py
        return bool(has_hue(pixel, AGENTS[agent]))

    for agent in (0, 1, 0):
        opened.locator("#agents tr").nth(agent).click()
        deadline = time.monotonic() + 30
        while not followed(agent):
            assert time.monotonic() < deadline
    assert moment(opened) == 10


@pytest.mark.parametrize(("width", "height"), [(390, 844), (844, 390), (740, 440), (1280, 800)])
def test_nothing_covers_the_worlds(width: int, height: int, browser: Any, replay: Path) -> None:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(f"{replay.as_uri()}#moment=5")
    page.wait_for_function("document.getElementById('count').textContent !== ''")
    boxes = [page.locator(name).bounding_box() for name in ("#stage", "header", "footer")]
    low = np.array([(box["x"], box["y"]) for box in boxes])
    high = low + [(box["width"], box["height"]) for box in boxes]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert (np.minimum(high[first], high[second]) - np.maximum(low[first], low[second]) < 0.5).any()
    assert (low > -0.5).all()
    assert (high < np.array((width, height)) + 0.5).all()
    assert np.prod(high[0] - low[0]) > 0.4 * width * height
    page.close()


def test_in_a_frame_the_wheel_scrolls_until_the_picture_was_clicked(browser: Any, replay: Path) -> None:
    page = browser.new_page(viewport={"width": 800, "height": 500})
    page.goto(replay.parent.as_uri())
    frame = f'<iframe src="{replay.name}#moment=0" width="700" height="400"></iframe>'
    page.set_content(f'{frame}<p style="height: 3000px">')
    frame = page.frame_locator("iframe")
    frame.locator("#names div").first.wait_for()
    page.mouse.move(500, 150)
    page.mouse.wheel(0, 50)
    page.wait_for_function("window.scrollY === 50")
    assert frame.locator("#camera").input_value() == "overview"
    page.mouse.click(500, 150)
    page.mouse.wheel(0, 50)
    frame.locator("#camera").evaluate("(camera) => new Promise((done) => setTimeout(done, 300))")
    assert frame.locator("#camera").input_value() == "free"
    assert page.evaluate("window.scrollY") == 50
    page.close()
