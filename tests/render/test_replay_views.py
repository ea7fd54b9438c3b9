"""What the page of a replay shows by itself: all worlds, curves, events, a camera that glides; on any screen."""

import time
from pathlib import Path

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
    pages, trouble = [], []

    def open_page(address="", width=900, height=500, **context):
        page = browser.new_page(viewport={"width": width, "height": height}, **context)
        pages.append(page)
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.goto(replay.as_uri() + address)
        page.wait_for_function("document.getElementById('count').textContent !== ''")
        return page

    yield open_page
    assert trouble == []
    for page in pages:
        page.close()


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


def test_the_camera_glides_from_agent_to_agent_however_many_pictures_are_drawn(open_at):
    page, folder = open_at("#moment=10&world=1&camera=follow", 500, 300), Path(replay_page.__file__).parent / "page"
    source = "\n".join((folder / name).read_text("utf-8") for name in ("geometry.js", "recording.js", "cameras.js"))

    def glide(frames, seconds):
        places, moves = page.evaluate(f"(given) => {{ {source}; return ({GLIDE})(given); }}", [0, 10, frames, seconds])
        return np.array([0, *places]), moves

    places, moves = glide(150, 0.02)
    strides = np.diff(places)
    assert -1e-9 < strides.min() <= strides.max() < 1, "it never turns back"
    assert strides[0] < strides[5], "it starts gently"
    assert (places[-1], bool(moves)) == (pytest.approx(10, abs=1e-3), False)
    assert glide(2, 0.25)[0][-1] == pytest.approx(glide(50, 0.01)[0][-1], abs=1e-9)

    def followed(agent):
        picture = shown(page)  # see test_replay.py
        return bool(has_hue(picture[round(0.567 * picture.shape[0]), picture.shape[1] // 2], AGENTS[agent]))

    for agent in (0, 1, 0):  # it reaches another agent while the replay stands still
        page.locator("#agents tr").nth(agent).click()
        deadline = time.monotonic() + 30
        while not followed(agent):
            assert time.monotonic() < deadline
    assert moment(page) == 10


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


def test_in_a_frame_the_wheel_scrolls_until_the_picture_was_clicked(browser, replay):
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
    look = "const look = () => camera.value === 'free' ? done() : requestAnimationFrame(look); look();"
    frame.locator("#camera").evaluate(f"camera => new Promise((done) => {{ {look} }})")
    assert page.evaluate("window.scrollY") == 50
    page.close()
