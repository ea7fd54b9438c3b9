"""Replays: the recording holds what the state said, and a browser shows it."""

import base64
import json
import re
import zlib
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from tests.markup import HOSTILE, HOSTILE_NAME, Markup
from tests.render.level_worlds import full_level, mixed_levels, playing
from tests.render.pixels import AGENTS, CUBE, at, has_hue, read_png
from tests.scenes import random_actions

import doorstep
from doorstep import EntityKind
from doorstep.recording import Recording, RecordingWriter
from doorstep.recording.replay_page import ReplayPage
from doorstep.render import look

SHOWN, STEPS, EPISODE = (3, 1), 12, 8


class Recorded:
    """A replay of worlds 3 and 1 over one and a half episodes, and what the state said at each moment."""

    def __init__(self, path):
        self.path, self.states = path, []
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

    def remember(self, sim):
        names = ("body_positions", "body_rotations", "episode_index")
        state = {name: getattr(sim.state, name).copy_to_host() for name in names}
        for camera in ("top", "overview"):
            state[camera] = {world: sim.render(world, camera, width=240, height=180) for world in SHOWN}
        self.states.append({**state, "rewards": sim.rewards.copy_to_host()[..., 0]})

    def of(self, world, name):
        return [state[name][world] for state in self.states]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return Recorded(tmp_path_factory.mktemp("replay") / "replay.html")


# ---- The file


def recorded_steps(sim, steps):
    """The page of all worlds after these actions of each step."""
    recorder = ReplayPage(sim, range(sim.num_worlds), "")
    for actions in steps:
        sim.actions.copy_from_host(actions)
        sim.step()
        recorder.record()
    return recorder


def read_recording(page):
    found = re.search(r'<script type="application/json" id="recording">(.*?)</script>', page, re.DOTALL)
    assert "<" not in found[1]
    recording = json.loads(found[1])
    return recording, zlib.decompress(base64.b64decode(recording["data"]))


def test_the_file_holds_what_the_state_said(recorded):
    recording, data = read_recording(recorded.path.read_text("utf-8"))
    assert [world["world"] for world in recording["worlds"]] == [103, 101]
    moments, offset = STEPS + 1, 0

    def take(dtype, *shape):
        nonlocal offset
        array = np.frombuffer(data, dtype, int(np.prod(shape)), offset).reshape(shape)
        offset += array.nbytes
        return array

    for described, world in zip(recording["worlds"], SHOWN, strict=True):
        assert described["moments"] == moments
        ((moment, step, text),) = described["events"]
        assert (moment, step, text[:21]) == (EPISODE - 1, EPISODE, "episode ended, return")
        rewards = np.array(recorded.of(world, "rewards"))
        assert np.array_equal(take("<f4", moments, 2)[1:], rewards[1:])
        final_rewards, episodes = take("<f4", moments, 2), take("<i4", moments)
        assert episodes.tolist() == recorded.of(world, "episode_index")
        assert np.array_equal(final_rewards[EPISODE - 1], rewards[EPISODE])
        assert not np.delete(final_rewards, EPISODE - 1, axis=0).any()
        assert take("<i4", moments).tolist() == [*range(EPISODE), *range(STEPS - EPISODE + 1)]
        offset += 4 * moments * 4  # held bodies, agent that got furthest, whether all are out
        assert take("<f4", moments, 4) == pytest.approx(np.tile((-11, 40, 11, 40 + look.EXIT_DEPTH), (moments, 1)))
        columns = np.cumsum(take("<i2", 12, described["objects"], moments).astype(np.int64), axis=-1)
        offset += -offset % 4
        assert [recording["colours"][index] for index in columns[1, :2, 0]] == list(look.AGENTS[:2])
        centres, rotations = columns[2:5].T * recording["unit"], columns[5:9].T / 2047
        bodies = np.array(recorded.of(world, "body_positions"))
        bodies[:, :2, 2] += 1  # agents are told by their bottom
        assert centres[:, :7] == pytest.approx(bodies, abs=recording["unit"])
        assert rotations[:, :7] == pytest.approx(np.array(recorded.of(world, "body_rotations")), abs=3e-4)
    assert offset == len(data)


def test_the_file_says_what_is_held_who_is_ahead_and_whether_all_are_out():
    with doorstep.Simulator(1, num_threads=1) as sim:
        for furthest, leading, is_out in (((1.0, 5.0), 1, 0), ((60.0, 50.0), 0, 1)):
            sim.state.agent_grabs.to_numpy()[0] = (3, -1)
            sim.state.agent_max_y.to_numpy()[0] = furthest
            _, data = read_recording(ReplayPage(sim, [0], "").to_html())
            # After rewards, final ones, the episode and its step.
            assert np.frombuffer(data, "<i4", 4, offset=24).tolist() == [3, -1, leading, is_out]


def test_an_episode_of_a_world_is_a_small_file_and_what_is_far_or_nowhere_is_recorded_too():
    with doorstep.Simulator(1, seed=5) as sim:
        recorder = recorded_steps(sim, random_actions(1, 200, 1, 2))
        assert len(recorder) == 201
        assert len(recorder.to_html()) < 80_000

        for place, furthest in ((3000.0, 3000), (np.nan, 40)):  # the longest wall
            sim.state.body_positions.to_numpy()[0, 0, 1] = place
            recording, _ = read_recording(ReplayPage(sim, [0], "").to_html())
            assert recording["unit"] == pytest.approx(furthest / 32767)
        sim.state.static_positions.to_numpy()[0, 0] = np.nan
        (world,) = read_recording(ReplayPage(sim, [0], "").to_html())[0]["worlds"]
        assert all(np.isfinite(world[name]).all() for name in ("bounds", "box"))


def test_a_replay_of_levels_is_as_precise_and_counts_the_steps_of_levels_with_a_length_of_their_own():
    with playing(mixed_levels(2), num_threads=1) as sim:
        recording, _ = read_recording(recorded_steps(sim, random_actions(3, 3, sim.num_worlds, 2)).to_html())
        state, used = sim.state, sim.state.static_kinds.to_numpy() != EntityKind.NONE
        positions, sizes = (field.to_numpy()[used][:, :2] for field in (state.static_positions, state.static_sizes))
    assert recording["unit"] == pytest.approx(np.abs(positions).max() / 32767, rel=0.1)
    bounds = np.array([world["bounds"] for world in recording["worlds"]])
    assert bounds[:, :2].min(axis=0) == pytest.approx((positions - sizes / 2).min(axis=0))
    assert bounds[:, 2:].max(axis=0) == pytest.approx((positions + sizes / 2).max(axis=0))
    assert {world["objects"] for world in recording["worlds"]} == {2 + 24 + 32 + 12}
    with playing([full_level(2).replace(episode_length=4)], num_threads=1) as sim:
        _, data = read_recording(recorded_steps(sim, random_actions(3, 6, 1, 2)).to_html())
    steps = np.frombuffer(data, "<i4", 7, offset=4 * 7 * (2 + 2 + 1))  # after rewards, final ones, episodes
    assert steps.tolist() == [0, 1, 2, 3, 0, 1, 2]


def test_names_of_levels_titles_and_files_stay_text(tmp_path):
    def page_of(name):
        level = doorstep.levels.curated()["one door"].replace(name=name, description=name)
        with doorstep.Simulator(1, levels=level, num_threads=1) as sim:
            return ReplayPage(sim, [0], name).to_html()

    page = page_of(HOSTILE)
    markup = Markup(page)
    assert markup.elements == Markup(page_of("plain")).elements
    assert all(HOSTILE in markup.texts[name] for name in ("title", "h1"))
    assert read_recording(page)[0]["worlds"][0]["level"] == HOSTILE
    path = tmp_path / HOSTILE_NAME
    with doorstep.Simulator(1, num_threads=1) as sim, RecordingWriter(path, sim) as writer:
        writer.step()
    with Recording(path) as recording:
        ((name, attributes),) = Markup(recording._repr_html_()).elements
    assert (name, sorted(attributes)) == ("iframe", ["srcdoc", "style"])
    page = Markup(attributes["srcdoc"] or "")
    assert (page.names.count("img"), page.names.count("script")) == (0, 2)
    assert HOSTILE_NAME in page.texts["title"]


# ---- The page


@contextmanager
def opened(browser, address, width, height, **how):
    """A page in a browser; no complaint and no request for anything else is allowed."""
    trouble = []
    with browser.new_page(viewport={"width": width, "height": height}, **how) as page:
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda request: trouble.append(request.url))
        page.goto(address)
        page.wait_for_function("document.getElementById('count').textContent !== ''")
        yield page
        assert trouble == [address.partition("#")[0]]
        assert page.locator("#trouble").is_hidden()


@pytest.fixture
def page(browser, recorded):
    """One of its worlds from above, still."""
    with opened(browser, f"{recorded.path.as_uri()}#world=103&moment=0&camera=top", 480, 300) as one:
        one.wait_for_selector("#agents tr")
        yield one


def settle(page):
    """Waits until what was asked for has been drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def shown(page):
    """What the canvas shows."""
    settle(page)
    return read_png(page.locator("#view").screenshot())[..., :3]


def scrub(page, moment):
    bar = "const bar = document.getElementById('scrub'); bar.value = moment;"
    page.evaluate(f"moment => {{ {bar} bar.dispatchEvent(new Event('input')) }}", moment)


def choose(page, name, label):
    page.select_option(f"#{name}", label=label)


def test_the_page_draws_and_tells_what_doorstep_does(page, recorded):
    style = "{flex: 'none', width: '240px', height: '180px'}"
    page.evaluate(f"() => Object.assign(document.getElementById('view').style, {style})")
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    assert page.title() == "doorstep: Two <worlds>"
    for moment, camera, world in ((0, "top", 3), (5, "overview", 3), (STEPS, "top", 3), (6, "top", 1)):
        if world == 3:
            scrub(page, moment)
            choose(page, "camera", camera)
        else:
            page.evaluate(f"location.hash = 'world=101&moment={moment}&camera={camera}'")
        difference = np.abs(shown(page).astype(int) - recorded.states[moment][camera][world]).max(axis=-1)
        assert np.median(difference) <= 1
        assert (difference > 20).mean() < 0.06  # edges are smoothed in another way
        episode, step = (1, moment) if moment < EPISODE else (2, moment - EPISODE)
        assert page.inner_text("#moment") == f"World {100 + world}, episode {episode}, step {step}"
        assert page.inner_text("#count") == f"{moment} / {STEPS}"
        rewards, first = recorded.of(world, "rewards"), 1 if moment < EPISODE else EPISODE + 1
        for agent in range(2):
            _, y, reward, total, _ = page.locator("#agents tr").nth(agent).locator("td").all_inner_texts()
            assert float(y) == pytest.approx(recorded.of(world, "body_positions")[moment][agent, 1], abs=0.06)
            if moment > 0:
                assert float(reward) == pytest.approx(rewards[moment][agent], abs=0.0006)
                assert float(total) == pytest.approx(sum(rewards[first : moment + 1])[agent], abs=0.006)


def test_keys_step_and_choose_the_camera(page):
    def count_after(*keys):
        for key in keys:
            page.keyboard.press(key)
        settle(page)
        return page.inner_text("#count")

    right = ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    for keys, moment in ((right, 2), (("Shift+ArrowRight",), STEPS), (("Home",), 0), (("End",), STEPS)):
        assert count_after(*keys) == f"{moment} / {STEPS}"
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


@pytest.mark.slow
def test_a_followed_agent_is_seen(page):
    choose(page, "camera", "follow")
    for agent, moment in ((1, 4), (0, STEPS)):
        scrub(page, moment)
        page.locator("#agents tr").nth(agent).click()
        picture = shown(page)
        while (picture != (picture := shown(page))).any():
            pass  # the camera glides
        height, width = picture.shape[:2]
        # 9 m behind, 10 m above, looking 2.5 m ahead: where the agent's middle, 1 m above the floor, is in the picture
        forward, up = np.array([(0, 11.5, -10), (0, 10, 11.5)]) / np.hypot(11.5, 10)
        middle = np.array([0, 9, -9])
        row = height / 2 - height / 2 / np.tan(np.radians(27.5)) * (middle @ up) / (middle @ forward)
        assert has_hue(np.array(at(picture, (width / 2, row))), AGENTS[agent])
        assert "followed" in page.locator("#agents tr").nth(agent).get_attribute("class")


@pytest.mark.slow
def test_playing_goes_on_to_the_end_and_begins_anew(page):
    page.click("#play")
    page.wait_for_function(f"document.getElementById('count').textContent === '{STEPS} / {STEPS}'")
    page.wait_for_function("document.getElementById('play').textContent === 'Play'")
    choose(page, "speed", "0.1x")
    page.click("#play")
    page.wait_for_function(f"!document.getElementById('count').textContent.startsWith('{STEPS} ')")
    page.click("#play")
    settle(page)
    stopped = page.inner_text("#play"), page.inner_text("#count")
    settle(page)
    assert (page.inner_text("#play"), page.inner_text("#count")) == stopped
    assert stopped[0] == "Play"


@pytest.mark.slow
def test_the_mouse_turns_moves_and_zooms(page):
    choose(page, "camera", "free")
    pictures, box = [shown(page)], page.locator("#view").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(button):
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


@pytest.mark.slow
def test_what_the_browser_lacks_is_said_and_a_notebook_shows_it(browser, recorded):
    for missing, says in (
        ("HTMLCanvasElement.prototype.getContext = () => null", "WebGL2 is missing"),
        ("delete window.DecompressionStream", "it has no DecompressionStream"),
    ):
        page = browser.new_page()
        page.add_init_script(missing)
        page.goto(recorded.path.as_uri())
        page.wait_for_selector("#trouble", state="visible")
        assert says in page.inner_text("#trouble")
        page.close()
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    page.set_content(recorded.recorder.in_frame())
    frame = page.frame_locator("iframe")
    frame.locator("#names div").first.wait_for()
    assert frame.locator("#moment").inner_text() == "2 worlds, 0 out"
    page.close()
