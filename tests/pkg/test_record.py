"""`doorstep.record()` plays worlds and records them; a `Recording` is drawn as a picture, a video or a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.levels import Goal, Level, Spawn, save_levels
from doorstep.recording import Recording

SHORT = Level(spawns=[Spawn(0, 3), Spawn(2, 3)], episode_length=4, name="short")
GOAL_AT_START = Level(spawns=[Spawn(0, 3), Spawn(2, 3)], goal=Goal(-15, 15, 0, 30, "any"))


def test_one_episode_of_each_world_is_recorded(tmp_path: Path) -> None:
    with doorstep.record(tmp_path / "a.rec", seed=7, num_worlds=3, episode_length=9) as recording:
        assert (recording.num_steps, recording.config.num_worlds, recording.config.seed) == (9, 3, 7)
        assert not recording.same_version_only
        with doorstep.Simulator.from_config(recording.config) as sim:
            recording.replay(sim)
            assert sim.dones.to_numpy().all()  # the worlds stand at their ends
            assert (sim.state.episode_index.to_numpy() == 1).all()


@pytest.mark.parametrize(("levels", "num_steps"), [([SHORT], 4), (GOAL_AT_START, 1), ([SHORT, GOAL_AT_START], 4)])
def test_worlds_begin_with_the_levels_and_end_with_them(levels: Any, num_steps: int, tmp_path: Path) -> None:
    with doorstep.record(tmp_path / "a.rec", levels=levels, num_worlds=8, policy="idle") as recording:
        assert recording.num_steps == num_steps
        recording.replay()


def test_steps_may_take_several_episodes(tmp_path: Path) -> None:
    save_levels(tmp_path / "short.json", [SHORT])
    with doorstep.record(tmp_path / "a.rec", levels=tmp_path / "short.json", steps=10) as recording:
        assert recording.num_steps == 10
        with doorstep.Simulator.from_config(recording.config) as sim:
            recording.replay(sim)
            assert sim.state.episode_index.to_numpy().tolist() == [4]


def test_a_seed_fixes_what_is_recorded(tmp_path: Path) -> None:
    files = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        with doorstep.record(tmp_path / name, seed=seed, steps=5):
            files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1] != files[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"policy": "scirpted"}, "scripted"),
        ({"levels": "curatde"}, "levels is 'curatde'"),
        ({"num_worlds": 0}, "num_worlds"),
    ],
)
def test_bad_arguments_leave_no_file(arguments: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(doorstep.ArgumentError, match=says):
        doorstep.record(tmp_path / "a.rec", **arguments)
    assert not list(tmp_path.iterdir())


def test_a_policy_that_raises_leaves_the_older_file(tmp_path: Path) -> None:
    def policy(observations: Any) -> Any:
        calls.append(len(calls))
        return 1 / (calls[-1] - 70) and np.zeros((1, 2, 4), int)

    calls: list[int] = []
    doorstep.record(tmp_path / "a.rec", steps=2).close()
    older = (tmp_path / "a.rec").read_bytes()
    with pytest.raises(ZeroDivisionError):
        doorstep.record(tmp_path / "a.rec", policy=policy)
    assert [path.name for path in tmp_path.iterdir()] == ["a.rec"]
    assert (tmp_path / "a.rec").read_bytes() == older


# ---- Pictures


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return doorstep.record(tmp_path / "a.rec", seed=3, num_worlds=2, steps=3)


def test_a_recording_is_drawn(recording: Recording, tmp_path: Path) -> None:
    recording.render(tmp_path / "a.png", camera="follow", width=40, height=30)
    recording.render(tmp_path / "a.html", worlds=[1])
    assert (tmp_path / "a.png").read_bytes()[16:24] == np.array([40, 30], ">u4").tobytes()
    assert '"moments": 4' in (tmp_path / "a.html").read_text()
    assert "&quot;moments&quot;: 4" in recording._repr_html_()


def test_a_picture_shows_the_last_moment(recording: Recording, tmp_path: Path) -> None:
    recording.render(tmp_path / "a.png", width=40, height=30)
    with doorstep.Simulator.from_config(recording.config) as sim:
        recording.replay(sim)
        doorstep.render.write_png(tmp_path / "b.png", sim.render(0, width=40, height=30))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_video_has_all_moments(recording: Recording, tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    recording.render(tmp_path / "a.mp4", worlds=[0, 1], width=64, height=48)
    with av.open(tmp_path / "a.mp4") as video:
        assert sum(1 for _ in video.decode(video=0)) == 4


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("a.bmp", {}, "path is"),
        ("a.png", {"worlds": [2]}, "worlds is 2"),
        ("a.png", {"worlds": []}, "worlds is"),
        ("a.png", {"worlds": [0, 0]}, "worlds is"),
        ("a.png", {"worlds": [True, False]}, "worlds is"),
        ("a.png", {"camera": "sideways"}, "camera is"),
        ("a.png", {"agent": 2}, "agent is"),
    ],
)
def test_pictures_that_cannot_be_are_refused(
    recording: Recording, name: str, arguments: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(doorstep.ArgumentError, match=says):
        recording.render(tmp_path / name, **arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["a.rec"]
