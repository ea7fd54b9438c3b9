"""`doorstep train`: small runs, as users start, stop and resume them."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import signal
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Command, Refused
from tests.forks import COMMAND, server

from doorstep.cli.train import PRESETS
from doorstep.cli.training_screen import TrainingScreen

pytest.importorskip("torch")

from doorstep import Rewards, levels, training
from doorstep.training.logs import Record
from doorstep.training.presets import PRESETS as KNOWN

SMALL = ("--worlds", "8", "network.widths=[16]", "ppo.num_minibatches=1", "num_threads=1")


def test_a_run_trains_and_says_where_the_result_is(command: Command, tmp_path: Path) -> None:
    done = command("train", *SMALL, "--num-updates", "3", "--seed", "4", "--run-dir", "a")
    assert done.returncode == 0, done.stderr
    assert "8 worlds on cpu" in done.stdout
    assert "update 3 of 3  768 steps" in done.stdout
    assert done.stdout.endswith("3 updates, 768 world-steps: a/checkpoint.safetensors\n")
    config = training.load_checkpoint(tmp_path / "a" / "checkpoint.safetensors").config
    assert (config.seed, config.simulator.seed, config.simulator.num_worlds) == (4, 4, 8)
    assert [record["update"] for record in training.read_log(tmp_path / "a" / "log.jsonl")] == [1, 2, 3]

    again = command("train", *SMALL, "--run-dir", "a")
    assert (again.returncode, again.stdout) == (2, "")
    assert "a has a run already (resume it, or choose another folder)" in again.stderr

    resumed = command("train", "--resume", "--run-dir", "a", "--num-updates", "5")
    assert resumed.returncode == 0, resumed.stderr
    assert "training from update 3" in resumed.stdout
    assert [record["update"] for record in training.read_log(tmp_path / "a" / "log.jsonl")] == [1, 2, 3, 4, 5]

    played = command("evaluate", "--policy", "a/checkpoint.safetensors", "--episodes", "2", "--worlds", "2")
    assert played.returncode == 0, played.stderr
    assert "checkpoint.safetensors" in played.stdout

    training.export_policy(tmp_path / "a" / "checkpoint.safetensors", tmp_path / "small.safetensors")
    recordings = []
    for policy in ("a/checkpoint.safetensors", "small.safetensors"):
        recorded = command("record", "--policy", policy, "--steps", "9", "--output", "run.rec")
        assert recorded.returncode == 0, recorded.stderr
        recordings.append((tmp_path / "run.rec").read_bytes())
    assert recordings[0] == recordings[1]


def test_a_folder_whose_name_is_not_utf8_is_read_by_all_that_play(command: Command, tmp_path: Path) -> None:
    folder = os.fsdecode(b"run\xff")
    (tmp_path / folder).mkdir()
    levels.save_levels(tmp_path / folder / "levels.json", [levels.curated()["one door"]])
    for arguments in (
        ("train", *SMALL, "--num-updates", "1", "--run-dir", folder),
        ("evaluate", "--policy", folder, "--episodes", "2", "--worlds", "2"),
        ("record", "--policy", folder, "--steps", "2", "--worlds", "2", "--output", f"{folder}/run.rec"),
        ("demo", "--policy", folder, "--steps", "2", "--worlds", "2", "--output", f"{folder}/picture.png"),
        ("evaluate", "--levels", f"{folder}/levels.json", "--episodes", "1", "--episode-length", "2"),
        ("train", *SMALL, "--num-updates", "1", "--levels", f"{folder}/levels.json", "--run-dir", f"{folder}/2"),
    ):
        done = command(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)


def test_config_is_printed_and_read(command: Command, tmp_path: Path) -> None:
    printed = command("train", "--preset", "reference", "--print-config", "ppo.learning_rate=5e-4")
    assert printed.returncode == 0, printed.stderr
    config = training.TrainingConfig.from_json(printed.stdout)
    assert config == training.preset("reference").changed("ppo.learning_rate=5e-4")
    (tmp_path / "c.json").write_text(printed.stdout)
    again = command("train", "--config", "c.json", "--print-config", "--worlds", "64")
    assert training.TrainingConfig.from_json(again.stdout) == config.changed("simulator.num_worlds=64")
    assert not (tmp_path / "run").exists()


def test_a_config_in_yaml_is_read(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "c.yaml").write_text("network: {type: lstm, widths: [32]}\nppo: {learning_rate: 1.0e-3}\n")
    printed = command("train", "--config", "c.yaml", "--print-config", "network.memory=8")
    assert printed.returncode == 0, printed.stderr
    assert training.TrainingConfig.from_json(printed.stdout) == training.TrainingConfig(
        network=training.LSTMNetwork(widths=(32,), memory=8), ppo=training.PPOConfig(learning_rate=1e-3)
    )


def test_terms_of_a_reward_are_a_change_of_the_config(command: Command) -> None:
    printed = command("train", "--print-config", "--reward", "goal=7,exit=1")
    assert printed.returncode == 0, printed.stderr
    expected = training.preset("default").changed(reward=Rewards(goal=7, exit=1))
    assert training.TrainingConfig.from_json(printed.stdout) == expected


@pytest.mark.slow
def test_a_function_rewards_a_run_and_is_given_again_to_resume_it(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def doubled(step):\n    return 2 * step.rewards\n")
    rewarded = ("--reward", "mine.py:doubled")
    done = command("train", *SMALL, "--num-updates", "1", *rewarded)
    assert done.returncode == 0, done.stderr
    checkpoint = training.load_checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    assert "doubled" in checkpoint.reward_function
    assert checkpoint.config.reward is None
    for given, status in (((), 2), (rewarded, 0)):
        assert command("train", "--resume", "--num-updates", "2", *given).returncode == status


def test_presets_of_the_command_are_those_of_the_package() -> None:
    assert set(PRESETS) == set(KNOWN)


def test_the_help_says_what_each_preset_is_for(command: Command) -> None:
    shown = " ".join(command("train", "--help").stdout.split())
    assert not [name for name in KNOWN if f"{name}: " not in shown]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ppo.gama=1",), "'ppo.gama' is not the name of a single value"),
        (("ppo.clip_range=big",), "ppo.clip_range is 'big'; it must be a number"),
        (("--resume",), "run has no checkpoint.safetensors to resume"),
        (("--resume", "--preset", "default"), "--resume is given with --preset or --config"),
        (("--config", "nowhere.json"), "nowhere.json"),
        (("--config", "nowhere.toml"), "it must be a file whose name ends in .json, .yaml, .yml"),
        (("--config", "nowhere.json", "--preset", "default"), "--config and --preset are both given"),
        (("--worlds", "0"), "0 is not allowed"),
        (("--device", "gpu"), "device is 'gpu'"),
        (("--levels", "curatde", *SMALL), "levels is 'curatde'; it must be"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(refused: Refused, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused("train", *arguments)


def test_a_missing_pytorch_is_named_with_its_extra(tmp_path: Path) -> None:
    code = f"import sys; sys.modules['torch'] = None; {COMMAND}"
    done = server().run(code, "train", "--worlds", "4", folder=tmp_path, timeout=60)
    assert done.returncode == 1
    assert 'pip install "doorstep[train]"' in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_saves_and_goes_on(command: Command, tmp_path: Path, number: signal.Signals) -> None:
    log, said = tmp_path / "run" / "log.jsonl", tmp_path / "said"
    arguments = ("train", *SMALL, "--num-updates", "100000")
    with said.open("w") as stdout, (tmp_path / "errors").open("w+") as stderr:
        run = server("torch").start(COMMAND, *arguments, folder=tmp_path, stdout=stdout, stderr=stderr)
        deadline = time.monotonic() + 60
        while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.02)
        run.send_signal(number)
        assert run.wait(60) == 130
        stderr.seek(0)  # the command has written through the same file
        assert stderr.read() == ""
    assert "go on with: doorstep train --resume --run-dir run" in said.read_text()
    update = training.load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").update
    assert training.read_log(log)[-1]["update"] == update
    done = command("train", "--resume", "num_updates=" + str(update + 1))
    assert done.returncode == 0, done.stderr


def test_tensorboard_gets_the_curves(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    done = command("train", *SMALL, "--num-updates", "8", "--tensorboard")
    assert done.returncode == 0, done.stderr
    (events,) = (tmp_path / "run" / "tensorboard").iterdir()
    written = events.read_bytes()
    for curve in (b"loss/entropy", b"episode/return", b"door_1/one", b"door_3/all", b"speed/world_steps_per_second"):
        assert curve in written, curve


def test_a_run_on_levels_is_evaluated_on_them(command: Command, tmp_path: Path) -> None:
    done = command("train", "--levels", "curated", "--num-updates", "3", *SMALL, "curriculum.type=learnability")
    assert done.returncode == 0, done.stderr
    assert re.search(r"levels solved \d+\.\d%", done.stdout)
    config = training.load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").config
    assert (config.levels, config.curriculum.type) == ("curated", "learnability")
    done = command(
        "evaluate", "--policy", "run/checkpoint.safetensors", "--levels", "curated", "--episodes", "1",
        "--episode-length", "10",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "everything" in done.stdout


# ---- The screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def record_of(update: int, episodes: int, passed: float) -> Record:
    losses = dict.fromkeys(("policy_loss", "value_loss", "entropy", "approx_kl"), 0.5)
    shares = (passed, passed / 2, 0.0) if episodes else ()
    mean = 2 * passed if episodes else None
    return Record(update, update * 256, 2.0 * update, 128.0, episodes, mean, shares, shares, losses)


def begun(stream: io.StringIO, num_updates: int, minutes: float | None = None, *changes: str) -> TrainingScreen:
    config = training.preset("default").changed("simulator.num_worlds=4", f"num_updates={num_updates}", *changes)
    screen = TrainingScreen(stream, minutes)
    screen.begin(training.Trainer(config.changed("ppo.num_minibatches=1", "network.widths=[8]")))
    return screen


def test_a_terminal_shows_one_screen_that_is_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorstep.cli.terminal.REDRAW_SECONDS", 0)
    stream = Terminal()
    screen = begun(stream, 10)
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


def test_a_run_on_levels_shows_how_many_are_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorstep.cli.terminal.REDRAW_SECONDS", 0)
    stream = Terminal()
    screen = begun(stream, 10)
    record = dataclasses.replace(record_of(1, 10, 0.5), rooms_one=(), rooms_all=(), success=0.375)
    screen.show(record)
    assert "success    37.5%, the mean over all levels" in stream.getvalue()
    assert "door" not in stream.getvalue()


def test_shares_are_means_over_recent_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorstep.cli.terminal.LOG_SECONDS", 0)
    stream = io.StringIO()
    screen = begun(stream, 3)
    screen.show(record_of(1, 0, 0.0))
    assert "return +nan  all past the doors none ended" in stream.getvalue()
    screen.show(record_of(2, 10, 0.0))
    screen.show(record_of(3, 30, 1.0))
    assert "return +1.50  all past the doors 75%, 38%, 0%" in stream.getvalue()


@pytest.mark.parametrize(("reward", "told"), [("none", "/s  return +1.50"), ("goal=2", "/s  shaped return +1.50")])
def test_returns_say_whether_they_are_shaped(reward: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    begun(stream, 1, None, f"reward={reward}").show(record_of(1, 10, 0.75))
    assert told in stream.getvalue()
    assert ("which evaluations leave out" in stream.getvalue()) == ("shaped" in told)


def test_a_run_of_some_minutes_shows_how_much_of_them_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stream = io.StringIO()
    screen = begun(stream, 1000, 2)
    now[0] = 90.0
    screen.show(record_of(1, 10, 0.5))
    assert " 75%  update 1 of 1,000, 0:30 left" in stream.getvalue()


def test_old_episodes_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorstep.cli.training_screen.SMOOTHED_EPISODES", 40)
    stream = io.StringIO()
    screen = begun(stream, 3)
    for update, passed in ((1, 0.0), (2, 0.0), (3, 1.0)):
        screen.show(record_of(update, 40, passed))
    assert "all past the doors 100%, 50%, 0%" in stream.getvalue()


def test_log_lines_are_rare() -> None:
    stream = io.StringIO()
    screen = begun(stream, 1000)
    for update in range(1, 1001):
        screen.show(record_of(update, 1, 0.5))
    assert len(stream.getvalue().splitlines()) == 2  # the beginning and the last
