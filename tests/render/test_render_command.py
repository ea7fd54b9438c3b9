"""`doorstep render`: what it writes is what simulation gives."""

import errno
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cli.conftest import Command, command  # noqa: F401 (a fixture)
from tests.pkg import recording_files as files
from tests.render.pixels import read_png

import doorstep
from doorstep.cli import main
from doorstep.cli.rooms_start import RoomsStart
from doorstep.policy import SamplingParams, load_policy
from doorstep.recording import RecordingWriter
from doorstep.recording.grid import side_by_side

SMALL = ("--size", "96x64", "--threads", "1", "--camera", "top", "--no-caption")


def render(tmp_path: Path, name: str, *arguments: str) -> Path:
    output = tmp_path / name
    assert main(["render", "--output", str(output), *SMALL, *arguments]) == 0
    return output


def picture(tmp_path: Path, *arguments: str) -> NDArray[np.uint8]:
    return read_png(render(tmp_path, "picture.png", *arguments).read_bytes())


def record(path: Path, steps: int, num_worlds: int = 3, **settings: Any) -> list[NDArray[np.uint8]]:
    """Writes a recording of random actions, and returns what world 1 looked like at each moment."""
    generator = np.random.default_rng(2)
    with (
        doorstep.Simulator(num_worlds, num_threads=1, **settings) as sim,
        RecordingWriter(path, sim) as writer,
    ):
        frames = [sim.render(1, width=96, height=64)]
        for _ in range(steps):
            sim.actions.to_numpy()[:] = generator.integers(0, doorstep.ACTIONS, sim.actions.shape)
            writer.step()
            frames.append(sim.render(1, width=96, height=64))
    return frames


def test_ones_own_policy_acts_and_sees_the_flat_observations(tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text(
        "def act(observations):\n    assert observations.shape == (1, 2, 94)\n    return [[[3, 0, 2, 0]] * 2]\n"
    )
    seen = picture(tmp_path, "--steps", "30", "--policy", f"{tmp_path / 'walk.py'}:act")
    with doorstep.Simulator(1) as sim:
        for _ in range(30):
            sim.actions[:] = (3, 0, 2, 0)
            sim.step()
        assert (seen == sim.render(0, width=96, height=64)).all()


# ---- Pictures


def test_by_default_it_is_a_picture_of_the_end_of_an_episode(
    command: Command,  # noqa: F811
    tmp_path: Path,
) -> None:
    finished = command("render", "--threads", "1")
    assert (finished.returncode, finished.stdout) == (0, "doorstep.png: 640 x 480 pixels, after step 199\n")
    with doorstep.Simulator(1) as sim:
        random = load_policy("random", sampling=SamplingParams(seed=0))
        for _ in range(1, 200):
            sim.actions = random(sim.observations)
            sim.step()
        expected = sim.render(camera="overview")
    shown = read_png((tmp_path / "doorstep.png").read_bytes())
    assert np.array_equal(shown[40:], expected[40:])
    assert not np.array_equal(shown[:40], expected[:40])  # the caption


def test_the_options_are_those_of_render(tmp_path: Path) -> None:
    options = ("--policy", "idle", "--steps", "2", "--worlds", "3", "--show", "1", "--seed", "9", "--agents", "3")
    shown = picture(tmp_path, *options, "--camera", "follow", "--agent", "2", "--samples", "1", "--no-shadows")
    with doorstep.Simulator(3, seed=9, num_agents=3) as sim:
        sim.step()
        sim.step()
        expected = sim.render(1, "follow", agent=2, width=96, height=64, samples=1, shadows=False)
    assert np.array_equal(shown, expected)


def test_episodes_may_start_among_the_cubes(tmp_path: Path) -> None:
    shown = picture(tmp_path, "--policy", "idle", "--start", "rooms", "--steps", "0")
    with doorstep.Simulator(1) as sim:
        RoomsStart(sim).place(np.arange(1))
        expected = sim.render(width=96, height=64)
    assert np.array_equal(shown, expected)


@pytest.mark.parametrize(("count", "rows", "columns"), [(1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 2), (6, 3, 2)])
def test_worlds_lie_side_by_side(count: int, rows: int, columns: int, tmp_path: Path) -> None:
    worlds = ",".join(map(str, range(count)))
    shown = picture(tmp_path, "--policy", "idle", "--steps", "1", "--worlds", "8", "--show", worlds)
    assert shown.shape == (rows * 68 - 4, columns * 100 - 4, 3)
    with doorstep.Simulator(8) as sim:
        sim.step()
        for world in range(count):
            top, left = 68 * (world // columns), 100 * (world % columns)
            expected = sim.render(world, width=96, height=64)
            assert np.array_equal(shown[top : top + 64, left : left + 96], expected)


def test_a_grid_has_a_counter_above_worlds_in_rows(tmp_path: Path) -> None:
    shown = picture(tmp_path, "--policy", "idle", "--steps", "1", "--grid", "3x2")
    header = shown.shape[0] - (2 * 68 - 4)
    assert 20 < header < 40
    assert shown.shape[1] == 3 * 100 - 4
    with doorstep.Simulator(6) as sim:
        sim.step()
        for world in range(6):
            top, left = header + 68 * (world // 3), 100 * (world % 3)
            assert np.array_equal(shown[top : top + 64, left : left + 96], sim.render(world, width=96, height=64))


def test_a_grid_is_about_as_wide_as_high() -> None:
    for width, height in ((640, 480), (100, 400), (400, 100)):
        rows, columns, _ = side_by_side([np.zeros((height, width, 3), np.uint8)] * 64).shape
        assert 0.4 < rows / columns < 2.5


# ---- Recordings


def test_a_recording_is_replayed_to_its_end(tmp_path: Path) -> None:
    recording = tmp_path / "run.rec"
    frames = record(recording, 30, seed=8)
    shown = picture(tmp_path, "--actions", str(recording), "--show", "1")
    assert np.array_equal(shown, frames[30])
    rules = ("--worlds", "3", "--seed", "8", "--agents", "2", "--episode-length", "200")  # as it was recorded
    early = picture(tmp_path, "--actions", str(recording), *rules, "--show", "1", "--steps", "12")
    assert np.array_equal(early, frames[12])


def test_a_video_has_every_moment_of_a_recording_from_before_its_first_step_to_after_its_last(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    recording = tmp_path / "run.rec"
    frames = record(recording, 12, seed=8, num_agents=3, episode_length=7)
    video = render(tmp_path, "video.mp4", "--actions", str(recording), "--show", "1", "--skip", "2")
    with av.open(str(video)) as container:
        shown = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(shown) == 13 - 2
    # each is the one that was given, not its neighbour
    for number, frame in enumerate(shown, 2):
        differences = [np.abs(frame.astype(int) - given).mean() for given in frames]
        assert differences[number] == min(differences)
        assert differences[number] < 6


def test_a_gif_has_every_moment_too(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    video = render(tmp_path, "video.gif", "--steps", "5", "--fps", "10")
    with av.open(str(video)) as container:
        assert [frame.time for frame in container.decode(video=0)] == pytest.approx([0.1 * i for i in range(6)])


def test_a_replay_has_the_worlds_that_were_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = render(tmp_path, "replay.html", "--worlds", "4", "--show", "3,1", "--steps", "10", "--skip", "4")
    assert re.findall(r'"world": (\d+), "moments": (\d+)', page.read_text("utf-8")) == [("3", "7"), ("1", "7")]
    assert capsys.readouterr().out == f"{page}: 7 moments of 2 worlds\n"


def test_one_is_no_plural(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = render(tmp_path, "replay.html", "--steps", "0")
    assert capsys.readouterr().out == f"{page}: 1 moment of 1 world\n"


def test_where_nothing_can_be_written_no_work_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(name: str, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", name)

    monkeypatch.setattr("doorstep._files.open", full, raising=False)
    monkeypatch.setattr(doorstep, "Simulator", pytest.fail)
    output = tmp_path / "world.png"
    assert main(["render", "--output", str(output)]) == 2
    assert f"--output {output} cannot be written: No space left on device" in capsys.readouterr().err


def test_progress_goes_to_stderr(command: Command) -> None:  # noqa: F811
    finished = command("render", *SMALL, "--output", "replay.html", "--steps", "10")
    *_, last = finished.stderr.splitlines()
    assert last.startswith("100%")


# ---- Mistakes


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--output", "world.jpg"], "--output world.jpg must end in .png or .html or .mp4 or .gif or .webp"),
        (["--output", "missing/world.png"], "--output missing/world.png is not a file in an existing folder"),
        (["--show", "1"], "--show names world 1 of 1 world, counted from 0"),
        (["--steps", "1", "--skip", "2"], "--skip is 2, but only 1 step is taken"),
        (["--show", "0,0"], "argument --show: '0,0' names a world twice"),
        (["--show", "-1"], "argument --show: -1 is not allowed; give at least 0"),
        (["--grid", "9"], "argument --grid: '9' is not a grid; give columns and rows as 4x3"),
        (["--size", "640"], "argument --size: '640' is not a size; give width and height as 640x480"),
        (["--size", "0x480"], "width is 0; it must be an integer, 1 to 4096"),
        (["--size", "640x5000"], "height is 5000; it must be an integer, 1 to 4096"),
        (["--grid", "20x20"], "argument --grid: '20x20' is 400 worlds; show 1 to 256"),
        (["--glide", "--output", "glide.mp4"], "--glide is given without --grid, such as --grid 8x8."),
        (
            ["--grid", "2x2", "--glide"],
            "glide is True; it must be False, unless the file is a video (.mp4",
        ),
        (["--grid", "2x2", "--show", "1"], "argument --show: not allowed with argument --grid"),
        (["--until", "midnight"], "argument --until: invalid choice: 'midnight'"),
        (["--samples", "9"], "samples is 9; it must be an integer, 1 to 8"),
        (["--camera", "side"], "argument --camera: invalid choice: 'side'"),
        (["--agent", "0"], "agent is 0; it must be None, unless camera is"),
        (["--camera", "follow", "--agent", "2"], "agent is 2; it must be an integer, 0 to 1"),
        (["--steps", "3", "--skip", "4"], "--skip is 4, but only 3 steps are taken"),
        (["--output", "world.mp4", "--fps", "0"], "fps is 0"),
        (["--output", "world.mp4", "--fps", "0.0001"], "fps is 0.0001"),
        (["--output", f"{'long' * 80}.png"], ".png cannot be written: File name too long"),
        (["--actions", os.devnull], f"path is '{os.devnull}'; it must be a regular file"),
        (["--actions", "."], "path is '.'; it must be a regular file"),
        (["--actions", "missing.bin"], "missing.bin: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if "world.mp4" in arguments:
        pytest.importorskip("av")
    assert main(["render", *(() if "--size" in arguments else SMALL), *arguments]) == 2
    *progress, error = capsys.readouterr().err.splitlines()
    assert all("%" in line for line in progress)
    assert error.startswith("doorstep render: error: ")
    assert says in error
    assert not list(tmp_path.iterdir())


def test_a_recording_without_steps_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "empty.rec", 0)
    assert main(["render", "--output", str(tmp_path / "a.png"), "--actions", str(tmp_path / "empty.rec")]) == 2
    assert "empty.rec has no steps" in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize(("outside", "says"), [(1, "1 action value of FILE was"), (3, "3 action values of FILE were")])
def test_clamped_actions_of_a_recording_are_reported(
    outside: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.rec"
    with doorstep.Simulator(1) as sim, RecordingWriter(path, sim) as writer:
        for step in range(4):
            sim.actions.to_numpy().ravel()[:outside] = 99 * (step == 3)
            writer.step()
    picture(tmp_path, "--actions", str(path))
    *_, last = capsys.readouterr().err.splitlines()
    assert last == f"doorstep render: note: {says} out of range and clamped".replace("FILE", str(path))


def test_legal_actions_of_a_recording_are_no_news(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "run.rec", 4)
    picture(tmp_path, "--actions", str(tmp_path / "run.rec"))
    assert "note" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--worlds", "2"], "--worlds is 2, but FILE was recorded with 3. (Leave --worlds out.)"),
        (["--agents", "1"], "--agents is 1, but FILE was recorded with 2. (Leave --agents out.)"),
        (["--seed", "0"], "--seed is 0, but FILE was recorded with 4. (Leave --seed out.)"),
        (["--episode-length", "9"], "--episode-length is 9, but FILE was recorded with 200. (Leave --episode-length"),
        (["--policy", "random"], "--policy is given together with --actions, which has its own."),
        (["--start", "rooms"], "--start is given together with --actions, which has its own."),
        (["--steps", "6"], "--steps is 6, but FILE has 5 steps."),
        (["--show", "3"], "--show names world 3 of 3 worlds, counted from 0.\n"),
    ],
)
def test_options_that_contradict_a_recording_are_refused(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.rec"
    record(path, 5, seed=4)
    assert main(["render", "--output", str(tmp_path / "a.png"), "--actions", str(path), *arguments]) == 2
    assert says.replace("FILE", str(path)) in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()


def test_a_truncated_recording_is_shown_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.rec"
    frames = record(path, 80)
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["render", "--output", str(tmp_path / "a.png"), "--actions", str(path)]) == 2
    assert "truncated" in capsys.readouterr().err
    assert np.array_equal(picture(tmp_path, "--actions", str(path), "--incomplete", "--show", "1"), frames[80])
    assert main(["render", "--output", str(tmp_path / "a.png"), "--incomplete"]) == 2
    assert "--incomplete is given without --actions" in capsys.readouterr().err


def test_a_recording_that_does_not_fit_its_worlds_is_no_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.rec"
    record(path, 5)
    data = files.with_changed(path.read_bytes(), "HASH", 1, lambda chunk: chunk._replace(payload=bytes(8 * 3)))
    path.write_bytes(data)
    assert main(["render", "--output", str(tmp_path / "a.png"), "--actions", str(path), *SMALL]) == 3
    assert "worlds 0, 1, 2 differ from the recording after step 5" in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize("name", ["video.mp4", "video.gif", "video.webp"])
def test_without_pyav_videos_say_what_to_install(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    assert main(["render", "--output", str(tmp_path / name)]) == 1
    assert 'pip install "doorstep[video]"' in capsys.readouterr().err
    assert main(["render", "--output", str(tmp_path / "picture.png"), "--steps", "1", *SMALL]) == 0
