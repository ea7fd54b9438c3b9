"""Films of worlds: when they end, what is written into them, and how the camera moves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.render.pixels import read_png, shown

import doorstep
from doorstep.recording.film import Film
from doorstep.recording.panel import Panel
from doorstep.render import look

OUT = 41.5  # y of an agent beyond the last door, metres


def moments(sim: doorstep.Simulator, out_at: dict[int, int], steps: int) -> Iterator[int]:
    """Idle steps; the agents of world k are put outside after step out_at[k]."""
    for step in range(steps + 1):
        if step:
            sim.step()
        for world, last in out_at.items():
            if step == last:
                sim.state.body_positions.to_numpy()[world, :2] = [(-3.0, OUT, 0.0), (3.0, OUT, 0.0)]
                sim.state.agent_max_y.to_numpy()[world] = OUT
        yield step


def film(**changed: Any) -> Film:
    return Film(**{"width": 64, "height": 48, "samples": 1, "caption": False, "until": "out", **changed})


def panels(worlds: list[int], out_at: dict[int, int], **changed: Any) -> list[Panel]:
    """The worlds of a film after 20 moments, or its end."""
    from doorstep.recording.film import _Shooting

    with doorstep.Simulator(4, num_threads=1, episode_length=12) as sim:
        made = film(worlds=worlds, **changed)
        shooting = _Shooting(made, sim, made._drawing(sim))
        for _ in shooting.shown(moments(sim, out_at, 20)):
            pass
        return shooting._panels


def test_a_film_ends_when_the_agents_of_all_its_worlds_are_out(tmp_path: Path) -> None:
    with doorstep.Simulator(4, num_threads=1) as sim:
        said = film(worlds=[1, 2]).write(tmp_path / "a.png", sim, moments(sim, {1: 3, 2: 6}, 20), "")
        assert said.endswith("after step 6")
        said = film(worlds=[0, 3], until="end").write(tmp_path / "a.png", sim, moments(sim, {0: 3, 3: 6}, 20), "")
        assert said.endswith("after step 20")


def test_each_world_of_a_page_stops_at_its_own_moment(tmp_path: Path) -> None:
    with doorstep.Simulator(4, num_threads=1) as sim:
        said = film(worlds=[1, 2]).write(tmp_path / "a.html", sim, moments(sim, {1: 3, 2: 6}, 20), "")
    assert said == "7 moments of 2 worlds"
    assert re.findall(r'"moments": (\d+)', (tmp_path / "a.html").read_text("utf-8")) == ["4", "7"]


def test_each_world_stops_at_its_own_moment_and_shows_its_agents() -> None:
    first, second = panels([1, 2], {1: 3, 2: 6})
    assert (first.step, second.step) == (3, 6)
    assert first.is_out
    assert second.is_out


def test_agents_that_came_back_from_beyond_the_exit_have_been_out() -> None:
    with doorstep.Simulator(1, num_threads=1) as sim:
        sim.state.agent_max_y.to_numpy()[:] = OUT
        (snapshot,) = sim._snapshots([0])
        assert snapshot.body_positions[:2, 1].max() < OUT
        assert snapshot.agents_are_out()


def test_in_a_level_with_a_goal_its_world_is_out_when_the_goal_is_reached(tmp_path: Path) -> None:
    goal = doorstep.levels.Goal(min_x=-10, max_x=10, min_y=-1, max_y=30)
    for auto_reset in (True, False):
        with doorstep.Simulator(
            1, num_threads=1, auto_reset=auto_reset, levels=[doorstep.levels.GeneratedLevel(goal=goal)]
        ) as sim:
            said = film(caption=True).write(tmp_path / "a.png", sim, moments(sim, {}, 20), "")
        assert said.endswith("after step 1")


def test_an_episode_that_ends_by_time_stops_its_world_before_the_next_one_begins() -> None:
    out, late = panels([0, 1], {0: 5})
    assert (out.step, out.is_out) == (5, True)
    assert (late.step, late.is_out, late.stopped) == (11, False, True)


def test_without_an_end_episodes_follow_each_other() -> None:
    (world,) = panels([0], {}, until="end")
    assert world.step == 20 - 12
    assert not world.stopped


def test_a_caption_changes_a_corner_and_nothing_else(tmp_path: Path) -> None:
    pictures = []
    for caption in (False, True):
        with doorstep.Simulator(1, num_threads=1) as sim:
            made = film(width=320, height=240, caption=caption)
            made.write(tmp_path / "a.png", sim, moments(sim, {}, 2), "")
        pictures.append(read_png((tmp_path / "a.png").read_bytes()))
    changed = np.argwhere((pictures[0] != pictures[1]).any(axis=-1))
    assert len(changed) > 100
    assert changed[:, 0].max() < 24
    dark = (pictures[1][:24].max(axis=-1) < 90).sum() - (pictures[0][:24].max(axis=-1) < 90).sum()
    assert dark > 50  # letters


def test_worlds_whose_agents_are_out_have_a_border_and_are_counted(tmp_path: Path) -> None:
    with doorstep.Simulator(2, num_threads=1) as sim:
        made = film(worlds=[0, 1], columns=2, counter=True)
        made.write(tmp_path / "a.png", sim, moments(sim, {1: 2}, 4), "")
    picture = read_png((tmp_path / "a.png").read_bytes())
    top = picture.shape[0] - 48
    assert tuple(picture[top, 68]) == pytest.approx(shown(look.OPEN), abs=1)
    assert tuple(picture[top, 0]) != pytest.approx(shown(look.OPEN), abs=30)


def test_a_glide_goes_on_until_it_shows_the_grid() -> None:
    from doorstep.recording.film import _Shooting

    with doorstep.Simulator(4, num_threads=1) as sim:
        made = film(worlds=[0, 1, 2, 3], columns=2, counter=True, glide=True, fps=4)
        shooting = _Shooting(made, sim, made._drawing(sim))
        frames = list(shooting.images(moments(sim, {0: 2, 1: 2, 2: 2, 3: 2}, 5)))
        assert len(frames) == 34  # 8.5 s, though all worlds stop after 2 steps
        assert {frame.shape for frame in frames} == {frames[0].shape}
        assert np.array_equal(frames[-1], shooting.image())
    assert not np.array_equal(frames[0], frames[-1])


@pytest.mark.parametrize(("width", "has_caption"), [(200, False), (260, True)])
def test_small_worlds_of_a_grid_have_no_caption(width: int, has_caption: bool, tmp_path: Path) -> None:
    pictures = []
    for caption in (False, True):
        with doorstep.Simulator(1, num_threads=1) as sim:
            made = film(width=width, height=60, columns=1, counter=True, caption=caption)
            made.write(tmp_path / "a.png", sim, moments(sim, {}, 1), "")
        pictures.append((tmp_path / "a.png").read_bytes())
    assert (pictures[0] != pictures[1]) == has_caption


def test_the_camera_that_follows_glides_to_another_agent() -> None:
    with doorstep.Simulator(1, num_threads=1) as sim:
        panel = Panel("0", until_out=False)
        positions: NDArray[Any] = sim.state.body_positions.to_numpy()
        positions[0, :2] = [(-6.0, 3.0, 0.0), (6.0, 3.0, 0.0)]
        (snapshot,) = sim._snapshots([0])
        panel.see(snapshot, 0.0, False, 0)
        places = []
        for _ in range(40):
            panel.see(snapshot, 0.0, False, 1)
            assert panel._anchor is not None
            places.append(float(panel._anchor[0]))
        steps = np.diff([-6.0, *places])
        assert steps.min() > 0
        assert steps.max() < 2.0
        assert places[-1] == pytest.approx(6.0, abs=0.2)


@pytest.mark.parametrize("changed", [{"until": "midnight"}, {"caption": 1}, {"worlds": [0, 0]}, {"glide": True}])
def test_what_cannot_be_filmed_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError) as caught:
        film(**changed).check(tmp_path / "a.png", sim)
    assert caught.value.argument in changed
