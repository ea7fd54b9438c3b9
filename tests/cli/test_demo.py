"""`doorstep demo`: what it says, and the picture it leaves."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.render.pixels import read_png

import doorstep
from doorstep._native.render import load_render
from doorstep.cli import main
from doorstep.policy import SamplingParams, load_policy
from doorstep.render.drawing import Drawing
from doorstep.render.objects import Snapshot

WIDTH, HEIGHT = 120, 90


@pytest.fixture(autouse=True)
def _images_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorstep.cli.demo._WIDTH", WIDTH)
    monkeypatch.setattr("doorstep.cli.demo._HEIGHT", HEIGHT)


def demo(tmp_path: Path, *arguments: str) -> NDArray[np.uint8]:
    output = tmp_path / "picture.png"
    assert main(["demo", "--output", str(output), "--threads", "1", *arguments]) == 0
    return read_png(output.read_bytes())


def random_policy(seed: int) -> Any:
    return load_policy("random", sampling=SamplingParams(seed=seed))


def test_the_picture_is_written_where_asked_and_shows_worlds_side_by_side(tmp_path: Path) -> None:
    picture = demo(tmp_path, "--worlds", "16", "--steps", "20", "--pictured", "3")
    assert picture.shape == (2 * HEIGHT + 4, 2 * WIDTH + 4, 3)


def test_by_default_the_picture_is_a_png_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--worlds", "16", "--steps", "20"]) == 0
    assert read_png((tmp_path / "doorstep-demo-random.png").read_bytes()).shape == (2 * HEIGHT + 4, 3 * WIDTH + 8, 3)
    assert "picture  doorstep-demo-random.png: 6 worlds, 368 x 184 pixels, after step 20\n" in capsys.readouterr().out


def test_a_log_has_the_last_line_of_the_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo(tmp_path, "--worlds", "16", "--steps", "1000")
    said = capsys.readouterr().err
    assert "\r" not in said
    assert "100%  step 1,000 of 1,000  " in said.splitlines()[-1]


def test_ones_own_policy_acts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "still.py"
    policy.write_text("def act(observations): return [[(0, 0, 2, 0)] * 2] * len(observations)\n")
    demo(tmp_path, "--worlds", "16", "--steps", "200", "--policy", f"{policy}:act")
    said = capsys.readouterr().out
    assert f"policy {policy}:act, seed 0" in said
    with doorstep.Simulator(16) as sim:
        for _ in range(200):
            sim.step()
        assert f"mean return {sim.episode_returns[:].mean():.3f}" in said


def test_a_policy_that_cannot_be_found_ends_it_before_the_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--policy", "missing:act"]) == 2
    said = capsys.readouterr()
    assert "there is no module 'missing'" in said.err
    assert said.out == ""


def test_the_mean_return_is_that_of_the_ended_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo(tmp_path, "--worlds", "16", "--steps", "450", "--seed", "3")
    said = re.search(r"mean return (\S+) over 64 episodes", capsys.readouterr().out)
    assert said

    random, rewards = random_policy(3), np.zeros((2, 200, 16, 2))
    with doorstep.Simulator(16, seed=3, num_threads=1) as sim:
        for step in range(400):
            sim.actions = random(sim.observations)
            sim.step()
            rewards[step // 200, step % 200] = sim.rewards.to_numpy()[:, :, 0]
    assert float(said[1]) == pytest.approx(rewards.sum(axis=1).mean(), abs=0.0006)


def test_speed_is_told_by_the_clock_and_by_the_processor_and_beside_it_what_the_policy_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clocks = {name: iter(range(0, 10_000, step)) for name, step in (("perf_counter", 2), ("process_time", 1))}
    for name, ticks in clocks.items():
        monkeypatch.setattr(f"doorstep.cli.demo.time.{name}", lambda ticks=ticks: float(next(ticks)))
    demo(tmp_path, "--worlds", "4", "--steps", "3")
    said = capsys.readouterr().out
    assert "speed    2 world-steps/s (6.00 s in step()), 4 per CPU-second\n" in said
    assert "policy   6.00 s in random, beside these\n" in said


def test_without_an_ended_episode_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo(tmp_path, "--worlds", "2", "--steps", "5")
    assert "no episode has ended: they take 200 steps" in capsys.readouterr().out


def test_every_panel_shows_agents_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictured: list[Snapshot] = []
    draw = Drawing.draw

    def seen(drawing: Drawing, snapshot: Snapshot, *arguments: Any) -> Any:
        pictured.append(snapshot)
        return draw(drawing, snapshot, *arguments)

    monkeypatch.setattr(Drawing, "draw", seen)
    demo(tmp_path, "--trained", "--worlds", "24", "--steps", "199", "--pictured", "4")
    assert [snapshot.world for snapshot in pictured] == [0, 1, 2, 3]
    places = np.stack([snapshot.body_positions[:2, 1] for snapshot in pictured])
    assert places.max() < 40  # metres: the third room ends there
    assert places.min() > 40 / 3  # and they are no longer in the room where they began


def test_the_worlds_of_the_picture_are_the_first_of_those_that_are_stepped(tmp_path: Path) -> None:
    few = demo(tmp_path, "--worlds", "2", "--steps", "6", "--pictured", "2", "--policy", "trained")
    many = demo(tmp_path, "--worlds", "16", "--steps", "6", "--pictured", "2", "--policy", "trained")
    assert np.array_equal(few, many)


@pytest.mark.parametrize("options", [["--trained", "--policy", "random"], ["--policy", "trained", "--trained"]])
def test_two_policies_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *options]) == 2
    assert "--trained, which is short for --policy trained, is given with --policy " in capsys.readouterr().err


def test_a_network_for_two_agents_is_refused_before_anything_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--agents", "3", "--trained", "--worlds", "2"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "(it was made for worlds with num_agents=2)" in output.err


@pytest.mark.parametrize(
    ("options", "name"),
    [(["--trained"], "doorstep-demo-trained.png"), (["--policy", "./own.py:act"], "doorstep-demo-own-py-act.png")],
)
def test_the_picture_of_another_policy_is_another_file(
    options: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text("def act(observations): return [[(0, 0, 2, 0)] * 2] * len(observations)\n")
    monkeypatch.chdir(tmp_path)
    assert main(["demo", *options, "--worlds", "2", "--steps", "2"]) == 0
    assert [path.name for path in tmp_path.glob("*.png")] == [name]


def test_any_number_of_agents_is_drawn(tmp_path: Path) -> None:
    picture = demo(tmp_path, "--worlds", "1", "--steps", "3", "--agents", "3")
    with doorstep.Simulator(1, num_agents=3) as sim:
        random = random_policy(0)
        for _ in range(3):
            sim.actions = random(sim.observations)
            sim.step()
        drawn = sim.render(0, "overview", width=WIDTH, height=HEIGHT)
    assert np.array_equal(picture[HEIGHT // 4 :], drawn[HEIGHT // 4 :])  # without the caption


def test_a_machine_that_cannot_draw_still_gets_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "libdoorstep_render.so"
    monkeypatch.setattr("doorstep._native.render.RENDER_LIBRARY_PATH", str(missing))
    monkeypatch.setattr("doorstep._native.render.load_render", load_render.__wrapped__)
    output = tmp_path / "picture.png"
    assert main(["demo", "--worlds", "2", "--steps", "3", "--output", str(output)]) == 1
    printed = capsys.readouterr()
    assert "speed    " in printed.out
    assert "no episode has ended" in printed.out
    *_, error = printed.err.splitlines()
    assert error.startswith(f"doorstep demo: error: {missing} cannot be read: No such file or directory")
    assert not output.exists()
