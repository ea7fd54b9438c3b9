"""`doorstep demo`: what it says, and the picture it leaves."""

import re

import numpy as np
import pytest
from tests.render.pixels import read_png

import doorstep
from doorstep.cli import main
from doorstep.policy import SamplingParams, load_policy
from doorstep.render.drawing import Drawing

WIDTH, HEIGHT = 120, 90
STILL = "def act(observations): return [[(0, 0, 2, 0)] * 2] * len(observations)\n"


@pytest.fixture(autouse=True)
def _images_are_small(monkeypatch):
    monkeypatch.setattr("doorstep.cli.demo._WIDTH", WIDTH)
    monkeypatch.setattr("doorstep.cli.demo._HEIGHT", HEIGHT)


@pytest.fixture
def demo(run, tmp_path):
    """The picture, and what was said."""

    def show(*arguments):
        said = run("demo", "--output", "picture.png", "--threads", "1", *arguments)
        return read_png((tmp_path / "picture.png").read_bytes()), said

    return show


def random_policy(seed):
    return load_policy("random", sampling=SamplingParams(seed=seed))


def test_pictures_have_names_and_show_worlds_side_by_side(run, tmp_path):
    (tmp_path / "own.py").write_text(STILL)
    said = run("demo", "--worlds", "16", "--steps", "20")
    assert "picture  doorstep-demo-random.png: 6 worlds, 368 x 184 pixels, after step 20\n" in said
    run("demo", "--worlds", "16", "--steps", "2", "--pictured", "3", "--output", "mine.png")
    run("demo", "--worlds", "2", "--steps", "2", "--trained")
    run("demo", "--worlds", "2", "--steps", "2", "--policy", "./own.py:act")
    shapes = {path.name: read_png(path.read_bytes()).shape for path in tmp_path.glob("*.png")}
    sizes = {"random.png": (2, 3), "trained.png": (1, 2), "own-py-act.png": (1, 2)}
    sizes = {f"doorstep-demo-{name}": size for name, size in sizes.items()} | {"mine.png": (2, 2)}
    of = {name: (rows * (HEIGHT + 4) - 4, columns * (WIDTH + 4) - 4, 3) for name, (rows, columns) in sizes.items()}
    assert shapes == of


def test_the_mean_return_is_that_of_the_ended_episodes(demo, tmp_path, capsys):
    said = re.search(r"mean return (\S+) over 64 episodes", demo("--worlds", "16", "--steps", "450", "--seed", "3")[1])
    random, rewards = random_policy(3), np.zeros((2, 200, 16, 2))
    with doorstep.Simulator(16, seed=3, num_threads=1) as sim:
        for step in range(400):
            sim.actions = random(sim.observations)
            sim.step()
            rewards[step // 200, step % 200] = sim.rewards.to_numpy()[:, :, 0]
    assert float(said[1]) == pytest.approx(rewards.sum(axis=1).mean(), abs=0.0006)
    assert "no episode has ended: they take 200 steps" in demo("--worlds", "2", "--steps", "5")[1]
    assert main(["demo", "--worlds", "2", "--steps", "1000", "--output", str(tmp_path / "a.png")]) == 0
    log = capsys.readouterr().err
    assert "\r" not in log
    assert "100%  step 1,000 of 1,000  " in log.splitlines()[-1]


def test_speed_is_told_by_the_clock_and_by_the_processor_and_beside_it_what_the_policy_took(demo, monkeypatch):
    clocks = {name: iter(range(0, 10_000, step)) for name, step in (("perf_counter", 2), ("process_time", 1))}
    for name, ticks in clocks.items():
        monkeypatch.setattr(f"doorstep.cli.demo.time.{name}", lambda ticks=ticks: float(next(ticks)))
    _, said = demo("--worlds", "4", "--steps", "3")
    assert "speed    2 world-steps/s (6.00 s in step()), 4 per CPU-second\n" in said
    assert "policy   6.00 s in random, beside these\n" in said


def test_every_panel_shows_agents_at_work_in_the_first_worlds(demo, monkeypatch):
    pictured, draw = [], Drawing.draw
    monkeypatch.setattr(Drawing, "draw", lambda *arguments: pictured.append(arguments[1]) or draw(*arguments))
    few, _ = demo("--trained", "--worlds", "4", "--steps", "199", "--pictured", "4")
    assert [snapshot.world for snapshot in pictured] == [0, 1, 2, 3]
    places = np.stack([snapshot.body_positions[:2, 1] for snapshot in pictured])
    assert places.max() < 40  # metres: the third room ends there
    assert places.min() > 40 / 3  # and they are no longer in the room where they began
    many, _ = demo("--trained", "--worlds", "24", "--steps", "199", "--pictured", "4")
    assert np.array_equal(few, many)


def test_any_number_of_agents_is_drawn(demo):
    picture, _ = demo("--worlds", "1", "--steps", "3", "--agents", "3")
    with doorstep.Simulator(1, num_agents=3) as sim:
        random = random_policy(0)
        for _ in range(3):
            sim.actions = random(sim.observations)
            sim.step()
        drawn = sim.render(0, "overview", width=WIDTH, height=HEIGHT)
    assert np.array_equal(picture[HEIGHT // 4 :], drawn[HEIGHT // 4 :])  # without the caption
