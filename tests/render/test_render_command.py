"""`doorstep render`: what it writes is what simulation gives."""

import re

import numpy as np
import pytest
from tests.cli.conftest import command  # noqa: F401 (a fixture)
from tests.pkg import recording_files as files
from tests.render.pixels import read_png

import doorstep
from doorstep.cli import main
from doorstep.cli.rooms_start import RoomsStart
from doorstep.policy import SamplingParams, load_policy
from doorstep.recording import RecordingWriter

SMALL = ("--size", "96x64", "--threads", "1", "--camera", "top", "--no-caption")


def render(tmp_path, name, *arguments):
    output = tmp_path / name
    assert main(["render", "--output", str(output), *SMALL, *arguments]) == 0
    return output


def picture(tmp_path, *arguments):
    return read_png(render(tmp_path, "picture.png", *arguments).read_bytes())


def view(sim, world=0, camera="top", **settings):
    return sim.render(world, camera, width=96, height=64, **settings)


def record(path, steps, num_worlds=3, **settings):
    """Writes a recording of random actions, and returns what world 1 looked like at each moment."""
    generator = np.random.default_rng(2)
    with doorstep.Simulator(num_worlds, num_threads=1, **settings) as sim, RecordingWriter(path, sim) as writer:
        frames = [view(sim, 1)]
        for _ in range(steps):
            sim.actions.to_numpy()[:] = generator.integers(0, doorstep.ACTIONS, sim.actions.shape)
            writer.step()
            frames.append(view(sim, 1))
    return frames


# ---- Pictures


def test_by_default_it_is_a_picture_of_the_end_of_an_episode(command, tmp_path):  # noqa: F811
    finished = command("render", "--threads", "1")
    assert (finished.returncode, finished.stdout) == (0, "doorstep.png: 640 x 480 pixels, after step 199\n")
    assert finished.stderr.splitlines()[-1].startswith("100%")
    with doorstep.Simulator(1) as sim:
        random = load_policy("random", sampling=SamplingParams(seed=0))
        for _ in range(1, 200):
            sim.actions = random(sim.observations)
            sim.step()
        expected = sim.render(camera="overview")
    shown = read_png((tmp_path / "doorstep.png").read_bytes())
    assert np.array_equal(shown[40:], expected[40:])
    assert not np.array_equal(shown[:40], expected[:40])  # the caption


def test_the_options_are_those_of_render_and_of_worlds(tmp_path):
    options = ("--policy", "idle", "--steps", "2", "--worlds", "3", "--show", "1", "--seed", "9", "--agents", "3")
    shown = picture(tmp_path, *options, "--camera", "follow", "--agent", "2", "--samples", "1", "--no-shadows")
    with doorstep.Simulator(3, seed=9, num_agents=3) as sim:
        for _ in range(2):
            sim.step()
        assert np.array_equal(shown, view(sim, 1, "follow", agent=2, samples=1, shadows=False))
    shown = picture(tmp_path, "--policy", "idle", "--start", "rooms", "--steps", "0")
    with doorstep.Simulator(1) as sim:
        RoomsStart(sim).place(np.arange(1))
        assert np.array_equal(shown, view(sim))
    policy = "def act(observations):\n    assert observations.shape == (1, 2, 94)\n    return [[[3, 0, 2, 0]] * 2]\n"
    (tmp_path / "walk.py").write_text(policy)
    seen = picture(tmp_path, "--steps", "30", "--policy", f"{tmp_path / 'walk.py'}:act")
    with doorstep.Simulator(1) as sim:
        for _ in range(30):
            sim.actions[:] = (3, 0, 2, 0)
            sim.step()
        assert np.array_equal(seen, view(sim))


@pytest.mark.parametrize(("columns", "rows", "grid"), [(1, 1, False), (2, 1, False), (2, 2, False), (3, 2, True)])
def test_worlds_lie_side_by_side_a_grid_under_its_counter(columns, rows, grid, tmp_path):
    count = columns * rows - (rows == columns == 2)  # the last place is empty
    show = ("--grid", f"{columns}x{rows}") if grid else ("--worlds", "8", "--show", ",".join(map(str, range(count))))
    shown = picture(tmp_path, "--policy", "idle", "--steps", "1", *show)
    header = shown.shape[0] - (rows * 68 - 4)
    assert (20 < header < 40) if grid else header == 0
    assert shown.shape[1] == columns * 100 - 4
    with doorstep.Simulator(8) as sim:
        sim.step()
        for world in range(count):
            top, left = header + 68 * (world // columns), 100 * (world % columns)
            assert np.array_equal(shown[top : top + 64, left : left + 96], view(sim, world))


# ---- Recordings


def test_a_recording_is_replayed_to_its_end_or_as_far_as_it_is_complete(tmp_path, capsys):
    recording = tmp_path / "run.rec"
    frames = record(recording, 80, seed=8)
    assert np.array_equal(picture(tmp_path, "--actions", str(recording), "--show", "1"), frames[80])
    rules = ("--worlds", "3", "--seed", "8", "--agents", "2", "--episode-length", "200")  # as it was recorded
    early = picture(tmp_path, "--actions", str(recording), *rules, "--show", "1", "--steps", "12")
    assert np.array_equal(early, frames[12])
    assert "note" not in capsys.readouterr().err
    recording.write_bytes(recording.read_bytes()[:-1])
    assert main(["render", "--output", str(tmp_path / "a.png"), "--actions", str(recording)]) == 2
    assert "truncated" in capsys.readouterr().err
    assert np.array_equal(picture(tmp_path, "--actions", str(recording), "--incomplete", "--show", "1"), frames[80])
    assert main(["render", "--output", str(tmp_path / "a.png"), "--incomplete"]) == 2
    assert "--incomplete is given without --actions" in capsys.readouterr().err


def test_a_video_has_every_moment_of_a_recording_from_before_its_first_step_to_after_its_last(tmp_path):
    av, recording = pytest.importorskip("av"), tmp_path / "run.rec"
    frames = record(recording, 12, seed=8, num_agents=3, episode_length=7)
    video = render(tmp_path, "video.mp4", "--actions", str(recording), "--show", "1", "--skip", "2")
    with av.open(str(video)) as container:
        shown = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(shown) == 13 - 2
    # each is the one that was given, not its neighbour
    for number, frame in enumerate(shown, 2):
        differences = [np.abs(frame.astype(int) - given).mean() for given in frames]
        assert differences[number] == min(differences) < 6
    video = render(tmp_path, "video.gif", "--steps", "5", "--fps", "10")
    with av.open(str(video)) as container:
        assert [frame.time for frame in container.decode(video=0)] == pytest.approx([0.1 * i for i in range(6)])


def test_a_replay_has_the_worlds_that_were_asked_for(tmp_path, capsys):
    page = render(tmp_path, "replay.html", "--worlds", "4", "--show", "3,1", "--steps", "10", "--skip", "4")
    assert re.findall(r'"world": (\d+), "moments": (\d+)', page.read_text("utf-8")) == [("3", "7"), ("1", "7")]
    assert capsys.readouterr().out == f"{page}: 7 moments of 2 worlds\n"
    render(tmp_path, "replay.html", "--steps", "0")
    assert capsys.readouterr().out == f"{page}: 1 moment of 1 world\n"


# ---- Mistakes

# Arguments, and what is said of them.
MISTAKES = {
    "--output world.jpg": "--output world.jpg must end in .png or .html or .mp4 or .gif or .webp",
    "--output missing/world.png": "--output missing/world.png is not a file in an existing folder",
    f"--output {'long' * 80}.png": ".png cannot be written: File name too long",
    "--show 1": "--show names world 1 of 1 world, counted from 0",
    "--show 0,0": "argument --show: '0,0' names a world twice",
    "--show -1": "argument --show: -1 is not allowed; give at least 0",
    "--steps 3 --skip 4": "--skip is 4, but only 3 steps are taken",
    "--grid 9": "argument --grid: '9' is not a grid; give columns and rows as 4x3",
    "--grid 20x20": "argument --grid: '20x20' is 400 worlds; show 1 to 256",
    "--grid 2x2 --show 1": "argument --show: not allowed with argument --grid",
    "--grid 2x2 --glide": "glide is True; it must be False, unless the file is a video (.mp4",
    "--glide --output glide.mp4": "--glide is given without --grid, such as --grid 8x8.",
    "--size 640": "argument --size: '640' is not a size; give width and height as 640x480",
    "--agent 0": "agent is 0; it must be None, unless camera is",
    "--output world.mp4 --fps 0": "fps is 0",
    "--actions missing.bin": "missing.bin: No such file or directory",
    "--actions empty.rec": "empty.rec has no steps",
    **{f"--actions run.rec --{name} {value}":
       f"--{name} is {value}, but run.rec was recorded with {own}. (Leave --{name}"
       for name, value, own in (("worlds", 2, 3), ("agents", 1, 2), ("seed", 0, 4), ("episode-length", 9, 200))},
    **{f"--actions run.rec {words}": f"{words.split()[0]} is given together with --actions, which has its own."
       for words in ("--policy random", "--start rooms")},
    "--actions run.rec --steps 6": "--steps is 6, but run.rec has 5 steps.",
    "--actions run.rec --show 3": "--show names world 3 of 3 worlds, counted from 0.",
}  # fmt: skip


def test_a_mistake_is_one_line_and_leaves_no_file(tmp_path, monkeypatch, capsys):
    pytest.importorskip("av")
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "run.rec", 5, seed=4)
    record(tmp_path / "empty.rec", 0)
    for words, says in MISTAKES.items():
        assert main(["render", *(() if "--size" in words else SMALL), *words.split()]) == 2, words
        *progress, error = capsys.readouterr().err.splitlines()
        assert all("%" in line for line in progress)
        assert error.partition("error: ")[0] == "doorstep render: "
        assert says in error
        assert {path.name for path in tmp_path.iterdir()} == {"run.rec", "empty.rec"}


def test_clamped_actions_of_a_recording_are_reported(tmp_path, capsys):
    path = tmp_path / "run.rec"
    with doorstep.Simulator(1) as sim, RecordingWriter(path, sim) as writer:
        for step in range(4):
            sim.actions.to_numpy().ravel()[:3] = 99 * (step == 3)
            writer.step()
    picture(tmp_path, "--actions", str(path))
    *_, last = capsys.readouterr().err.splitlines()
    assert last == f"doorstep render: note: 3 action values of {path} were out of range and clamped"


def test_a_recording_that_does_not_fit_its_worlds_is_no_picture(tmp_path, capsys):
    path = tmp_path / "run.rec"
    record(path, 5)
    data = files.with_changed(path.read_bytes(), "HASH", 1, lambda chunk: chunk._replace(payload=bytes(8 * 3)))
    path.write_bytes(data)
    assert main(["render", "--output", str(tmp_path / "a.png"), "--actions", str(path), *SMALL]) == 3
    assert "worlds 0, 1, 2 differ from the recording after step 5" in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()
