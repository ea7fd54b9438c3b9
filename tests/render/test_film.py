"""Films of worlds and replays: when they end, what happens in them, what is written, and how the camera moves."""

import itertools
import re

import numpy as np
import pytest
from tests.render.pixels import read_png, shown

import doorstep
from doorstep.recording.film import Film, _Shooting
from doorstep.recording.grid import WHOLE, Glide, Grid, Window, side_by_side
from doorstep.recording.panel import Panel
from doorstep.recording.replay_page import ReplayPage
from doorstep.recording.world_moments import Event
from doorstep.render import look

OUT = [(-3.0, 41.5, 0.0), (3.0, 41.5, 0.0), (0.0, 41.5, 0.0)]  # beyond the last door, metres


def moments(sim, out_at, steps):
    """Idle steps; the agents of world k are put outside after step out_at[k]."""
    for step in range(steps + 1):
        if step:
            sim.step()
        for world, last in out_at.items():
            if step == last:
                sim.state.body_positions.to_numpy()[world, :2] = OUT[:2]
                sim.state.agent_max_y.to_numpy()[world] = OUT[0][1]
        yield step


def film(**changed):
    return Film(**{"width": 64, "height": 48, "samples": 1, "caption": False, "until": "out", **changed})


def filmed(path, out_at, steps, num_worlds=4, settings=(), **changed):
    """What is said of a film, and its picture."""
    with doorstep.Simulator(num_worlds, num_threads=1, **dict(settings)) as sim:
        said = film(**changed).write(path, sim, moments(sim, out_at, steps), "")
    return said, read_png(path.read_bytes()) if path.suffix == ".png" else None


def test_a_film_ends_when_the_agents_of_all_its_worlds_are_out_or_its_goal_is_reached(tmp_path):
    png = tmp_path / "a.png"
    assert filmed(png, {1: 3, 2: 6}, 20, worlds=[1, 2])[0].endswith("after step 6")
    assert filmed(png, {0: 3, 3: 6}, 20, worlds=[0, 3], until="end")[0].endswith("after step 20")
    level = doorstep.levels.GeneratedLevel(goal=doorstep.levels.Goal(min_x=-10, max_x=10, min_y=-1, max_y=30))
    for auto_reset in (True, False):
        settings = {"levels": [level], "auto_reset": auto_reset}
        assert filmed(png, {}, 20, 1, settings, caption=True)[0].endswith("after step 1")
    assert filmed(tmp_path / "a.html", {1: 3, 2: 6}, 20, worlds=[1, 2])[0] == "7 moments of 2 worlds"
    assert re.findall(r'"moments": (\d+)', (tmp_path / "a.html").read_text("utf-8")) == ["4", "7"]
    with doorstep.Simulator(1, num_threads=1) as sim:  # agents that came back from beyond the exit have been out
        for agent in range(2):
            sim.state.agent_max_y.to_numpy()[0, agent] = OUT[0][1]
            assert sim._snapshots([0])[0].agents_are_out() == (agent == 1)


def test_captions_and_counters_tell_world_step_return_doors_level_and_who_is_out(tmp_path, monkeypatch):
    """Steps and the mean return over the agents count from the beginning of the present episode."""
    said, rewards = [], []
    monkeypatch.setattr("doorstep.recording.panel.put_label", lambda image, text, *_: said.append(text))
    monkeypatch.setattr("doorstep.recording.film.put_text", lambda image, text, *_: said.append(text))
    level = doorstep.levels.curated()["two rooms"].replace(episode_length=5)
    with doorstep.Simulator(2, num_threads=1, levels=level, world_offset=7) as sim:

        def shot():
            for step in moments(sim, {}, 8):
                sim.actions.to_numpy()[:, 0] = (3, 0, 2, 0)  # one of the two agents walks
                rewards.append(sim.rewards.copy_to_host()[1].mean())
                sim.state.door_open.to_numpy()[1, 0] = step == 8
                yield step

        made = film(worlds=[1], width=900, caption=True, until="end")
        assert made.write(tmp_path / "a.png", sim, shot(), "") == "900 x 48 pixels, after step 8"
        (caption,) = said
        assert caption.split("   ") == ["world 8", "step 3", f"return {sum(rewards[6:]):.2f}", "doors 1/2", "two rooms"]
        assert abs(sum(rewards[6:])) > 0.01
    # A world stops before its next episode, and at its own moment where all its agents are out.
    alone = {"settings": {"episode_length": 12}, "worlds": [1, 2], "columns": 1, "width": 900, "caption": True}
    for out_at, moments_seen in (({1: 3, 2: 6}, ["step 3", "step 6"]), ({1: 5}, ["step 5", "step 11"])):
        said.clear()
        filmed(tmp_path / "a.png", out_at, 20, **alone)
        assert [text.split("   ")[1] for text in said] == moments_seen
    for width, captions in ((200, 0), (260, 2)):  # small worlds of a grid have none
        said.clear()
        filmed(tmp_path / "a.png", {1: 1}, 3, 2, worlds=[0, 1], counter=True, caption=True, width=width, columns=1)
        assert (len(said), said[captions:]) == (captions + 2, ["1 of 2 out", "step 3"])
    for steps, says in ((2, "3 frames, 12.5 a second"), (0, "1 frame, 12.5 a second")):
        assert filmed(tmp_path / "a.mp4", {}, steps, 1, fps=12.5, until="end")[0] == says


def test_worlds_whose_agents_are_out_have_a_border_and_are_counted(tmp_path):
    _, picture = filmed(tmp_path / "a.png", {1: 2}, 4, 2, worlds=[0, 1], columns=2, counter=True)
    assert tuple(picture[-48, 68]) == pytest.approx(shown(look.OPEN), abs=1)
    assert tuple(picture[-48, 0]) != pytest.approx(shown(look.OPEN), abs=30)


def test_the_camera_that_follows_glides_to_another_agent():
    with doorstep.Simulator(1, num_threads=1) as sim:
        panel = Panel("0", until_out=False)
        sim.state.body_positions.to_numpy()[0, :2] = [(-6.0, 3.0, 0.0), (6.0, 3.0, 0.0)]
        (snapshot,) = sim._snapshots([0])
        drawing = film(camera="follow")._drawing(sim)
    panel.see(snapshot, 0.0, False, 0)
    places, seen = [-6.0], [panel.image(drawing, False)]
    for _ in range(40):
        panel.see(snapshot, 0.0, False, 1)
        places.append(float(panel._anchor[0]))
        seen.append(panel.image(drawing, False))
    assert len({image.tobytes() for image in seen}) > 10
    assert 0 < np.diff(places).min() <= np.diff(places).max() < 2.0
    assert places[-1] == pytest.approx(6.0, abs=0.2)


# ---- Events of worlds


def worlds_of(sim, steps, edit=lambda _: None, until_out=False):
    """The worlds of a page after idle steps; edit(step) comes before each."""
    page = ReplayPage(sim, range(sim.num_worlds), "", until_out)
    for step in range(1, steps + 1):
        edit(step)
        sim.step()
        page.record()
    return page._worlds


def test_doors_that_open_agents_that_are_out_and_the_end_with_the_mean_return_are_events():
    rewards, opened = [], []
    with doorstep.Simulator(2, num_threads=1, episode_length=12) as sim:

        def act(step):
            rewards.append(sim.rewards.copy_to_host()[:, :, 0].mean(axis=1))
            opened.append(sim.state.door_open.copy_to_host()[:, :2] != 0)
            places, buttons = sim.state.body_positions.to_numpy(), sim.state.button_positions.to_numpy()
            if step in (3, 6):
                places[:, :2, :2] = buttons[:, 2 * step // 3 - 2 : 2 * step // 3, :2]
            if step == 9:
                places[:, :2] = OUT[:2]

        worlds = worlds_of(sim, 14, act)
    first, second = np.argmax(opened, axis=0)[0].tolist()  # state k is that after k steps
    assert 0 < first < second < 9
    for world, total in zip(worlds, np.sum(rewards[1:13], axis=0).tolist(), strict=True):
        assert world.events == [
            *(Event(first, first, "door 1 opened"), Event(second, second, "door 2 opened")),
            *(Event(9, 9, "both agents out"), Event(11, 12, f"episode ended, return {total:.1f}")),
        ]
        assert [moment.is_out for moment in world.moments] == [False] * 9 + [True] * 3 + [False] * 3
        last = world.moments[11]
        assert (last.returns + last.final_rewards).mean() == pytest.approx(total, abs=1e-5)
        assert world.moments[12].returns.tolist() == [0, 0]


def test_a_world_stops_where_all_its_agents_are_out_or_its_episode_ends():
    for num_agents, text in ((1, "agent out"), (3, "all 3 agents out")):
        with doorstep.Simulator(3, num_threads=1, episode_length=9, num_agents=num_agents) as sim:

            def leave_one(step, sim=sim, count=num_agents):
                if step in (3, 6):
                    sim.state.body_positions.to_numpy()[step // 3 - 1, :count] = OUT[:count]

            worlds = worlds_of(sim, 12, leave_one, until_out=True)
        assert [len(world.moments) - 1 for world in worlds] == [3, 6, 8]
        assert [world.events[-1].text.partition(",")[0] for world in worlds] == [text, text, "episode ended"]


def test_a_goal_is_one_event_whether_episodes_end_there_or_go_on():
    for auto_reset in (True, False):
        with doorstep.Simulator(1, num_threads=1, levels="one door", auto_reset=auto_reset) as sim:

            def enter(step, sim=sim):
                goal, places = sim.levels[0].goal, sim.state.body_positions.to_numpy()[0, :2, :2]
                if step == 3:
                    middle = np.array((goal.min_x + goal.max_x, goal.min_y + goal.max_y)) / 2
                    places[:] = middle + np.array([(-1.5, 0), (1.5, 0)])

            (world,) = worlds_of(sim, 5, enter)
        (event,) = world.events
        last, text = world.moments[2], "goal reached"
        if auto_reset:
            text += f", return {(last.returns + last.final_rewards).mean():.1f}"
            assert (event.step, last.is_out, world.moments[3].is_out) == (3, True, False)
        assert (event.moment, event.text) == (3 - auto_reset, text)


# ---- Pictures in rows, and the window that glides over them

GRID = Grid.of(6, 30, 20, columns=3)


def picture(number, width, height):
    """Its number everywhere, but for its corners."""
    image = np.full((height, width, 3), 10 + number, np.uint8)
    image[[0, 0, -1, -1], [0, -1, 0, -1]] = 200
    return image


def test_only_pictures_within_a_window_are_asked_for_and_those_in_rows_have_the_shape_of_a_screen():
    assert np.array_equal(GRID.draw(picture), side_by_side([picture(number, 30, 20) for number in range(6)], 3))
    asked = []

    def noted(*one):
        asked.append(one)
        return picture(*one)

    seen = GRID.draw(noted, Window(left=34.0, top=24.0, zoom=2.0))
    assert (asked, seen.shape) == ([(4, 60, 40), (5, 60, 40)], (44, 98, 3))
    assert np.array_equal(seen[:40, :60], picture(4, 60, 40))
    for width, height in ((640, 480), (100, 400), (400, 100)):
        rows, columns, _ = side_by_side([np.zeros((height, width, 3), np.uint8)] * 64).shape
        assert 0.4 < rows / columns < 2.5


def test_a_glide_begins_at_the_first_picture_and_moves_away_to_all_whatever_the_rate():
    for grid in (GRID, Grid.of(64, 156, 117), Grid.of(8, 20, 20, columns=8), Grid.of(1, 30, 20)):
        glide = Glide(grid, fps=25)
        windows = [glide.window(frame) for frame in range(glide.frames + 10)]
        (width, height), first = grid.size, windows[0]
        assert (first.left, first.top) == (0.0, 0.0)
        assert min(width / first.zoom - grid.width, height / first.zoom - grid.height) == pytest.approx(0, abs=1e-9)
        assert windows[glide.frames - 1] == windows[-1] == WHOLE
        assert all(before.zoom >= after.zoom for before, after in itertools.pairwise(windows))
        for window in windows:
            for place, extent in ((window.left, width), (window.top, height)):
                assert 0 <= place <= extent * (1 - 1 / window.zoom) + 1e-9
    slow, fast = Glide(GRID, fps=10), Glide(GRID, fps=50)
    assert (fast.frames, fast.window(200)) == (5 * slow.frames, slow.window(40))


def test_a_glide_goes_on_until_it_shows_the_grid():
    with doorstep.Simulator(4, num_threads=1) as sim:
        made = film(worlds=[0, 1, 2, 3], columns=2, counter=True, glide=True, fps=4)
        shooting = _Shooting(made, sim, made._drawing(sim))
        frames = list(shooting.images(moments(sim, {0: 2, 1: 2, 2: 2, 3: 2}, 5)))
        assert len(frames) == 34  # 8.5 s, though all worlds stop after 2 steps
        assert {frame.shape for frame in frames} == {frames[0].shape}
        assert np.array_equal(frames[-1], shooting.image())
    assert not np.array_equal(frames[0], frames[-1])
