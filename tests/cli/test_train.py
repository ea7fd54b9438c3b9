"""`doorstep train`: small runs, as users start, stop and resume them."""

import dataclasses
import io
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.conftest import Terminal
from tests.forks import COMMAND, server

from doorstep.cli.train import PRESETS
from doorstep.cli.training_screen import TrainingScreen

pytest.importorskip("torch")

from doorstep import Rewards, training
from doorstep.training.logs import Record
from doorstep.training.presets import PRESETS as KNOWN

SMALL = ("--worlds", "8", "network.widths=[16]", "ppo.num_minibatches=1", "num_threads=1")


def checkpoint_of(folder):
    return training.load_checkpoint(Path(folder, "checkpoint.safetensors"))


def updates_of(folder):
    return [record["update"] for record in training.read_log(Path(folder, "log.jsonl"))]


def test_a_run_trains_says_where_the_result_is_goes_on_and_plays(run, refused):
    said = run("train", *SMALL, "--num-updates", "3", "--seed", "4", "--run-dir", "a", "--tensorboard")
    assert "8 worlds on cpu" in said
    assert "update 3 of 3  768 steps" in said
    assert said.endswith("3 updates, 768 world-steps: a/checkpoint.safetensors\n")
    checkpoint, same = checkpoint_of("a"), training.Trainer(checkpoint_of("a").config)
    for _ in range(3):
        same.update()
    assert (checkpoint.config.seed, checkpoint.config.simulator.seed) == (4, 4)
    assert (checkpoint.tensors["network.actor.weight"] == same.network.actor.weight).all()
    assert updates_of("a") == [1, 2, 3]
    pytest.importorskip("tensorboard")
    (events,) = Path("a/tensorboard").iterdir()
    for curve in (b"loss/entropy", b"speed/world_steps_per_second"):
        assert curve in events.read_bytes(), curve

    assert "a has a run already (resume it, or choose another folder)" in refused("train", *SMALL, "--run-dir", "a")
    assert "training from update 3" in run("train", "--resume", "--run-dir", "a", "--num-updates", "5")
    run("train", *SMALL, "--run-dir", "a", "--auto-resume", "--num-updates", "6", "--seed", "4")
    run("train", "--resume", "--run-dir", "a", "--minutes", "1e-6", "--num-updates", "100")
    assert updates_of("a") == [1, 2, 3, 4, 5, 6, 7]

    run("evaluate", "--policy", "a/checkpoint.safetensors", "--episodes", "2", "--worlds", "2")
    training.export_policy("a/checkpoint.safetensors", "small.safetensors")
    record = ("record", "--steps", "9", "--output", "run.rec", "--policy")
    recorded = run(*record, "a/checkpoint.safetensors", wrote="run.rec")
    assert recorded == run(*record, "small.safetensors", wrote="run.rec")


def test_config_is_printed_and_read(run):
    def printed(*arguments):
        return training.TrainingConfig.from_json(run("train", *arguments, "--print-config"))

    text = run("train", "--preset", "reference", "--print-config", "ppo.learning_rate=5e-4")
    config = training.TrainingConfig.from_json(text)
    assert config == training.preset("reference").changed("ppo.learning_rate=5e-4")
    Path("c.json").write_text(text)
    assert printed("--config", "c.json", "--worlds", "64") == config.changed("simulator.num_worlds=64")
    pytest.importorskip("yaml")
    Path("c.yaml").write_text("network: {type: lstm, widths: [32]}\nppo: {learning_rate: 1.0e-3}\n")
    network, ppo = training.LSTMNetwork(widths=(32,), memory=8), training.PPOConfig(learning_rate=1e-3)
    assert printed("--config", "c.yaml", "network.memory=8") == training.TrainingConfig(network=network, ppo=ppo)
    rewarded = training.preset("default").changed(reward=Rewards(goal=7, exit=1))
    assert printed("--reward", "goal=7,exit=1") == rewarded
    assert not Path("run").exists()
    assert set(PRESETS) == set(KNOWN)
    shown = " ".join(run("train", "--help").split())
    assert not [name for name in KNOWN if f"{name}: " not in shown]


def test_a_function_rewards_a_run_and_is_given_again_to_resume_it(run):
    Path("mine.py").write_text("def doubled(step):\n    return 2 * step.rewards\n")
    rewarded = ("--reward", "mine.py:doubled")
    run("train", *SMALL, "--num-updates", "1", *rewarded)
    assert "doubled" in checkpoint_of("run").reward_function
    assert checkpoint_of("run").config.reward is None
    run("train", "--resume", "--num-updates", "2", code=2)
    run("train", "--resume", "--num-updates", "2", *rewarded)


def test_mistakes_are_one_line_and_leave_nothing(refused):
    for arguments, message in (
        (("ppo.gama=1",), "'ppo.gama' is not the name of a single value"),
        (("--resume",), "run has no checkpoint.safetensors to resume"),
        (("--resume", "--preset", "default"), "--resume is given with --preset or --config"),
        (("--config", "nowhere.json"), "nowhere.json"),
        (("--config", "nowhere.json", "--preset", "default"), "--config and --preset are both given"),
    ):
        assert message in refused("train", *arguments)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_saves_and_goes_on(run, tmp_path, number):
    log, said = tmp_path / "run" / "log.jsonl", tmp_path / "said"
    arguments = ("train", *SMALL, "--num-updates", "100000")
    with said.open("w") as stdout, (tmp_path / "errors").open("w+") as stderr:
        begun = server("torch").start(COMMAND, *arguments, folder=tmp_path, stdout=stdout, stderr=stderr)
        deadline = time.monotonic() + 200
        while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.02)
        begun.send_signal(number)
        assert begun.wait(60) == 130
        stderr.seek(0)  # the command has written through the same file
        assert stderr.read() == ""
    assert "go on with: doorstep train --resume --run-dir run" in said.read_text()
    update = checkpoint_of("run").update
    assert updates_of("run") == list(range(1, update + 1))
    run("train", "--resume", f"num_updates={update + 1}")
    assert updates_of("run")[-1] == update + 1


def test_a_run_on_levels_says_how_many_are_solved(run):
    said = run("train", "--levels", "curated", "--num-updates", "3", *SMALL, "curriculum.type=learnability")
    assert re.search(r"levels solved \d+\.\d%", said)
    config = checkpoint_of("run").config
    assert (config.levels, config.curriculum.type) == ("curated", "learnability")


# ---- The screen


def record_of(update, episodes, passed):
    losses = dict.fromkeys(("policy_loss", "value_loss", "entropy", "approx_kl"), 0.5)
    shares = (passed, passed / 2, 0.0) if episodes else ()
    mean = 2 * passed if episodes else None
    return Record(update, update * 256, 2.0 * update, 128.0, episodes, mean, shares, shares, losses)


@pytest.fixture
def begun(monkeypatch):
    """A screen of a run, and the time, at which it is drawn anew whatever happens."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for name in ("REDRAW_SECONDS", "LOG_SECONDS"):
        monkeypatch.setattr(f"doorstep.cli.terminal.{name}", 0)

    def begin(stream, num_updates, minutes=None, *changes):
        config = training.preset("default").changed("simulator.num_worlds=4", f"num_updates={num_updates}", *changes)
        screen = TrainingScreen(stream, minutes)
        screen.begin(training.Trainer(config.changed("ppo.num_minibatches=1", "network.widths=[8]")))
        return screen, now

    return begin


def test_a_terminal_shows_one_screen_that_is_redrawn(begun):
    stream = Terminal()
    screen, _ = begun(stream, 10)
    for update in (1, 2):
        screen.show(record_of(update, 10, 0.5))
    text = stream.getvalue()
    height = text.count("\x1b[K") // 2 - 1
    assert f"\x1b[{height}A" in text
    last = text.rpartition(f"\x1b[{height}A")[2]
    assert "2 of 10" in last
    assert "time       0:04" in last
    assert re.search(r"one +50.0% +25.0% +0.0%", last)
    assert "+1.000" in last
    screen, _ = begun(stream := Terminal(), 10)
    for update, won in ((1, 0), (2, 3)):
        shown = {"success": 0.375, "levels": {"relay": SimpleNamespace(episodes=4, successes=won)}}
        screen.show(dataclasses.replace(record_of(update, 10, 0.5), rooms_one=(), rooms_all=(), **shown))
    assert "success    37.5%, the mean over all levels" in stream.getvalue()
    assert " 37.5% relay" in stream.getvalue()
    assert "door" not in stream.getvalue()


def test_shares_are_means_over_recent_episodes(begun, monkeypatch):
    screen, _ = begun(stream := io.StringIO(), 3)
    screen.show(record_of(1, 0, 0.0))
    assert "return +nan  all past the doors none ended" in stream.getvalue()
    screen.show(record_of(2, 10, 0.0))
    screen.show(record_of(3, 30, 1.0))
    assert "return +1.50  all past the doors 75%, 38%, 0%" in stream.getvalue()
    monkeypatch.setattr("doorstep.cli.training_screen.SMOOTHED_EPISODES", 40)
    screen.show(record_of(4, 40, 0.5))  # older ones are forgotten
    assert "all past the doors 50%, 25%, 0%" in stream.getvalue()


def test_returns_say_whether_they_are_shaped_and_a_run_of_some_minutes_how_much_of_them_is_over(begun):
    screen, _ = begun(stream := io.StringIO(), 1, None, "reward=goal=2")
    screen.show(record_of(1, 10, 0.75))
    assert "/s  shaped return +1.50" in stream.getvalue()
    screen, now = begun(stream := io.StringIO(), 1000, 2)
    now[0] = 90.0
    screen.show(record_of(1, 10, 0.5))
    assert " 75%  update 1 of 1,000, 0:30 left" in stream.getvalue()
