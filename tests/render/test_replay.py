"""Replays: the recording holds what the state said, and a browser shows it."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.render.pixels import AGENTS, CUBE, DOORS, at, has_hue, top_pixels

import doorstep
from doorstep import EntityKind
from doorstep.recording.replay_page import ReplayPage
from doorstep.render import look

SHOWN = (3, 1)
STEPS = 12
EPISODE = 8


class Recorded:
    """A replay of worlds 3 and 1 over one and a half episodes, and what the state said at each moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.states: list[dict[str, NDArray[Any]]] = []
        generator = np.random.default_rng(4)
        with doorstep.Simulator(4, seed=5, episode_length=EPISODE, num_threads=1, world_offset=100) as sim:
            positions = sim.state.body_positions.to_numpy()
            positions[:, 0, :2], positions[:, 1, :2] = (2.0, 6.0), (-3.0, 5.0)
            self.recorder = ReplayPage(sim, SHOWN, "Two <worlds>")
            self.remember(sim)
            for _ in range(STEPS):
                sim.actions.to_numpy()[:] = generator.integers((1, 0, 0, 0), doorstep.ACTIONS, sim.actions.shape)
                sim.step()
                self.recorder.record()
                self.remember(sim)
            self.recorder.save(path)

    def remember(self, sim: doorstep.Simulator) -> None:
        names = ("body_positions", "body_rotations", "body_kinds", "static_positions", "static_sizes", "static_kinds")
        state = {name: getattr(sim.state, name).copy_to_host() for name in (*names, "episode_index")}
        self.states.append(
            {
                **state,
                "rewards": sim.rewards.copy_to_host()[..., 0],
                **{camera: sim.render(3, camera, width=400, height=300) for camera in ("top", "overview")},
            }
        )

    def of(self, world: int, name: str) -> list[NDArray[Any]]:
        return [state[name][world] for state in self.states]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("replay") / "replay.html")


# ---- The file


def read_recording(page: str) -> tuple[dict[str, Any], bytes]:
    found = re.search(r'<script type="application/json" id="recording">(.*?)</script>', page, re.DOTALL)
    assert found
    recording = json.loads(found[1])
    return recording, zlib.decompress(base64.b64decode(recording["data"]))


def test_the_file_holds_what_the_state_said(recorded: Recorded) -> None:
    recording, data = read_recording(recorded.path.read_text("utf-8"))
    assert [world["world"] for world in recording["worlds"]] == [103, 101]
    moments, offset = STEPS + 1, 0

    def take(dtype: str, *shape: int) -> NDArray[Any]:
        nonlocal offset
        array = np.frombuffer(data, dtype, int(np.prod(shape)), offset).reshape(shape)
        offset += array.nbytes
        return array

    for described, world in zip(recording["worlds"], SHOWN, strict=True):
        assert described["moments"] == moments
        rewards = np.array(recorded.of(world, "rewards"))
        assert np.array_equal(take("<f4", moments, 2)[1:], rewards[1:])
        final_rewards, episodes = take("<f4", moments, 2), take("<i4", moments)
        assert episodes.tolist() == recorded.of(world, "episode_index")
        assert np.array_equal(final_rewards[EPISODE - 1], rewards[EPISODE])
        assert not np.delete(final_rewards, EPISODE - 1, axis=0).any()
        assert take("<i4", moments).tolist() == [*range(EPISODE), *range(STEPS - EPISODE + 1)]
        offset += 4 * moments * 4  # held bodies, agent that got furthest, whether all are out
        assert take("<f4", moments, 4) == pytest.approx(np.tile((-11, 40, 11, 40 + look.EXIT_DEPTH), (moments, 1)))
        objects = described["objects"]
        columns = np.cumsum(take("<i2", 12, objects, moments).astype(np.int64), axis=-1)
        offset += -offset % 4
        assert [recording["colours"][index] for index in columns[1, :2, 0]] == list(look.AGENTS[:2])
        centres, rotations = columns[2:5].T * recording["unit"], columns[5:9].T / 2047
        bodies = np.array(recorded.of(world, "body_positions"))
        bodies[:, :2, 2] += 1  # agents are told by their bottom
        assert centres[:, :7] == pytest.approx(bodies, abs=recording["unit"])
        assert rotations[:, :7] == pytest.approx(np.array(recorded.of(world, "body_rotations")), abs=3e-4)
    assert offset == len(data)


def test_an_episode_of_a_world_is_a_small_file() -> None:
    generator = np.random.default_rng(1)
    with doorstep.Simulator(1, seed=5) as sim:
        recorder = ReplayPage(sim, [0], "")
        for _ in range(200):
            sim.actions.to_numpy()[:] = generator.integers(0, doorstep.ACTIONS, sim.actions.shape)
            sim.step()
            recorder.record()
    assert len(recorder) == 201
    assert len(recorder.to_html()) < 80_000


def test_far_away_things_are_recorded_too() -> None:
    with doorstep.Simulator(1) as sim:
        sim.state.body_positions.to_numpy()[0, 0, 1] = 3000.0
        recording, _ = read_recording(ReplayPage(sim, [0], "").to_html())
        assert recording["unit"] == pytest.approx(3000 / 32767)
        sim.state.body_positions.to_numpy()[0, 0, 1] = np.nan
        longest_wall = 40.0
        assert read_recording(ReplayPage(sim, [0], "").to_html())[0]["unit"] == pytest.approx(longest_wall / 32767)


def test_walls_that_are_nowhere_leave_a_page_that_browsers_read() -> None:
    with doorstep.Simulator(1) as sim:
        sim.state.static_positions.to_numpy()[0, 0] = np.nan
        recording, _ = read_recording(ReplayPage(sim, [0], "").to_html())
    (world,) = recording["worlds"]
    assert np.isfinite(world["bounds"]).all()
    assert np.isfinite(world["box"]).all()


# ---- The page


@pytest.fixture
def page(browser: Any, recorded: Recorded) -> Iterator[Any]:
    """One of its worlds from above, still; no complaint and no request for anything else is allowed."""
    opened = browser.new_page(viewport={"width": 760, "height": 360})
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("request", lambda request: trouble.append(request.url))
    opened.goto(f"{recorded.path.as_uri()}#world=103&moment=0&camera=top")
    opened.wait_for_selector("#agents tr")
    assert trouble.pop(0) == recorded.path.as_uri()
    yield opened
    assert trouble == []
    assert opened.locator("#trouble").is_hidden()
    opened.close()


def settle(page: Any) -> None:
    """Waits until what was asked for has been drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def shown(page: Any) -> NDArray[np.uint8]:
    """What the canvas shows."""
    settle(page)
    av = pytest.importorskip("av")
    (frame,) = av.CodecContext.create("png", "r").decode(av.Packet(page.locator("#view").screenshot()))
    return np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)


def scrub(page: Any, moment: int) -> None:
    page.evaluate(
        "moment => { const bar = document.getElementById('scrub'); bar.value = moment;"
        " bar.dispatchEvent(new Event('input')) }",
        moment,
    )


def choose(page: Any, name: str, label: str) -> None:
    page.select_option(f"#{name}", label=label)


def check_from_above(picture: NDArray[np.uint8], state: dict[str, NDArray[Any]], world: int) -> None:
    """Everything is where the state says."""
    statics, sizes = state["static_positions"][world], state["static_sizes"][world]
    low, high = (statics - sizes / 2)[:, :2].min(axis=0), (statics + sizes / 2)[:, :2].max(axis=0)
    high = high + np.array((0, look.EXIT_DEPTH))

    def pixels(points: NDArray[Any]) -> list[NDArray[Any]]:
        places = top_pixels(points, low, high, picture.shape[1], picture.shape[0])
        return [np.array(at(picture, place)) for place in places]

    bodies = state["body_positions"][world]
    for agent, pixel in enumerate(pixels(bodies[:2])):
        assert has_hue(pixel, AGENTS[agent])
    for pixel in pixels(bodies[state["body_kinds"][world] == EntityKind.CUBE]):
        assert has_hue(pixel, CUBE)
    doors = statics[state["static_kinds"][world] == EntityKind.DOOR]
    for pixel, colour in zip(pixels(doors), DOORS, strict=False):
        assert has_hue(pixel, colour)


def test_from_above_everything_is_where_the_state_says(page: Any, recorded: Recorded) -> None:
    for moment in (0, 5, STEPS, 3):
        scrub(page, moment)
        check_from_above(shown(page), recorded.states[moment], 3)
    choose(page, "world", "world 101")
    check_from_above(shown(page), recorded.states[3], 1)


def test_the_page_draws_as_doorstep_does(page: Any, recorded: Recorded) -> None:
    page.set_viewport_size({"width": 1000, "height": 500})
    for moment, camera in ((0, "top"), (7, "top"), (7, "overview")):
        scrub(page, moment)
        choose(page, "camera", camera)
        page.evaluate("""() => Object.assign(document.getElementById('view').style,
            {flex: 'none', width: '400px', height: '300px'})""")
        page.evaluate("window.dispatchEvent(new Event('resize'))")
        difference = np.abs(shown(page).astype(int) - recorded.states[moment][camera]).max(axis=-1)
        assert np.median(difference) <= 1
        assert (difference > 20).mean() < 0.04  # edges are smoothed in another way


def test_a_followed_agent_is_seen(page: Any, recorded: Recorded) -> None:
    choose(page, "camera", "follow")
    for agent, moment in ((1, 4), (0, STEPS)):
        scrub(page, moment)
        page.locator("#agents tr").nth(agent).click()
        picture = shown(page)
        height, width = picture.shape[:2]
        # 9 m behind, 10 m above, looking 2.5 m ahead: where the agent's middle, 1 m above the floor, is in the picture
        forward = np.array([0, 11.5, -10]) / np.hypot(11.5, 10)
        up = np.array([0, 10, 11.5]) / np.hypot(11.5, 10)
        middle = np.array([0, 9, -9])
        row = height / 2 - height / 2 / np.tan(np.radians(27.5)) * (middle @ up) / (middle @ forward)
        assert has_hue(np.array(at(picture, (width / 2, row))), AGENTS[agent])
        assert "followed" in page.locator("#agents tr").nth(agent).get_attribute("class")


def test_the_text_tells_step_episode_rewards_and_returns(page: Any, recorded: Recorded) -> None:
    assert page.title() == "doorstep: Two <worlds>"
    for moment, text in ((5, "World 103, episode 1, step 5"), (STEPS, "World 103, episode 2, step 4")):
        scrub(page, moment)
        settle(page)
        assert page.inner_text("#moment") == text
        assert page.inner_text("#count") == f"{moment} / {STEPS}"
        rewards = recorded.of(3, "rewards")
        first = 1 if moment < EPISODE else EPISODE + 1
        for agent in range(2):
            _, y, reward, total, _ = page.locator("#agents tr").nth(agent).locator("td").all_inner_texts()
            assert float(y) == pytest.approx(recorded.states[moment]["body_positions"][3, agent, 1], abs=0.06)
            assert float(reward) == pytest.approx(rewards[moment][agent], abs=0.0006)
            assert float(total) == pytest.approx(np.sum(rewards[first : moment + 1], axis=0)[agent], abs=0.006)


def test_playing_goes_on_to_the_end_and_begins_anew(page: Any) -> None:
    page.click("#play")
    page.wait_for_function(f"document.getElementById('count').textContent === '{STEPS} / {STEPS}'")
    page.wait_for_function("document.getElementById('play').textContent === 'Play'")
    choose(page, "speed", "0.1x")
    page.evaluate(
        """end => new Promise((stopped) => {
            const [play, count] = ['play', 'count'].map((name) => document.getElementById(name));
            new MutationObserver((_, observer) => {
                const moment = parseInt(count.textContent);
                if (moment === 0 || moment === end) return;
                observer.disconnect();
                play.click();
                stopped();
            }).observe(count, {childList: true, characterData: true, subtree: true});
            play.click();
        })""",
        STEPS,
    )
    settle(page)
    assert page.inner_text("#play") == "Play"
    stopped = page.inner_text("#count")
    settle(page)
    assert page.inner_text("#count") == stopped != f"{STEPS} / {STEPS}"


def test_keys_step_and_choose_the_camera(page: Any) -> None:
    def count_after(*keys: str) -> str:
        for key in keys:
            page.keyboard.press(key)
        settle(page)
        return str(page.inner_text("#count"))

    assert count_after("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft") == f"2 / {STEPS}"
    assert count_after("Shift+ArrowRight") == f"{STEPS} / {STEPS}"
    assert count_after("Home") == f"0 / {STEPS}"
    assert count_after("End") == f"{STEPS} / {STEPS}"
    for key, camera in (("2", "top"), ("3", "follow"), ("4", "free"), ("1", "overview")):
        page.keyboard.press(key)
        assert page.input_value("#camera") == camera
    choose(page, "speed", "0.1x")
    page.evaluate("document.activeElement.blur()")
    for focused in ("body", "#play"):
        page.locator(focused).focus()
        for text in ("Pause", "Play"):
            page.keyboard.press("Space")
            page.wait_for_function("text => document.getElementById('play').textContent === text", arg=text)


def test_the_mouse_turns_moves_and_zooms(page: Any) -> None:
    choose(page, "camera", "free")
    pictures = [shown(page)]
    box = page.locator("#view").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(button: str) -> None:
        page.mouse.move(x, y)
        page.mouse.down(button=button)
        page.mouse.move(x + 60, y + 30)
        page.mouse.up(button=button)

    for change in (lambda: drag("left"), lambda: drag("right"), lambda: page.mouse.wheel(0, -300)):
        change()
        pictures.append(shown(page))
    page.keyboard.press("w")
    pictures.append(shown(page))
    for before, after in pairwise(pictures):
        assert (np.abs(before.astype(int) - after).max(axis=-1) > 20).mean() > 0.02
    # nearer: cubes are larger
    assert has_hue(pictures[3], CUBE).sum() > has_hue(pictures[2], CUBE).sum()


def test_an_address_leads_to_a_moment(page: Any, recorded: Recorded) -> None:
    page.evaluate("location.hash = 'world=101&moment=6&camera=top'")
    check_from_above(shown(page), recorded.states[6], 1)
    assert page.inner_text("#moment") == "World 101, episode 1, step 6"


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("HTMLCanvasElement.prototype.getContext = () => null", "WebGL2 is missing"),
        ("delete window.DecompressionStream", "it has no DecompressionStream"),
    ],
)
def test_what_the_browser_lacks_is_said(missing: str, says: str, browser: Any, recorded: Recorded) -> None:
    page = browser.new_page()
    page.add_init_script(missing)
    page.goto(recorded.path.as_uri())
    page.wait_for_selector("#trouble", state="visible")
    assert says in page.inner_text("#trouble")
    page.close()


def test_a_notebook_shows_it(browser: Any, recorded: Recorded) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    page.set_content(recorded.recorder.in_frame())
    frame = page.frame_locator("iframe")
    frame.locator("#names div").first.wait_for()
    assert frame.locator("#moment").inner_text() == "2 worlds, 0 out"
    page.close()
