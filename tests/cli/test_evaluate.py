"""`doorstep evaluate`: a table, JSON and plots of policies that play the same episodes."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command, Refused

import doorstep
from doorstep.cli import main
from doorstep.levels import curated, save_levels

SHORT = ("--episodes", "4", "--episode-length", "20")


def test_it_prints_what_the_api_returns(command: Command) -> None:
    finished = command("evaluate", "--policy", "idle", "--policy", "random", *SHORT, "--seed", "3")
    assert finished.returncode == 0, finished.stderr
    evaluation = doorstep.evaluate(["idle", "random"], episodes=4, episode_length=20, seed=3)
    first, _, rest = finished.stdout.partition("\n\n")
    assert first == f"doorstep {doorstep.__version__}: 4 episodes of each policy in each level, 2 agents, seed 3"
    table, _, engine = rest.rpartition("\n\n")
    assert table == str(evaluation)
    assert re.fullmatch(
        r"engine: 160 steps of episodes, [\d,]+ per second; worlds busy [\d.]+%;"
        r" requests waited \S+ s \(median\), \S+ s \(99%\)\n",
        engine,
    )
    assert finished.stderr == "100%  episode 8 of 8  native policies\n"


def test_metrics_and_a_trace_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prometheus, document, trace = (str(tmp_path / name) for name in ("m.prom", "m.json", "t.json"))
    arguments = ["evaluate", "--policy", "random", *SHORT, "--threads", "1"]
    assert main([*arguments, "--metrics", prometheus, "--trace", trace]) == 0
    assert main([*arguments, "--metrics", document]) == 0
    assert 'doorstep_requests_answered_total{reason="time",replica="0",scheduler=' in Path(prometheus).read_text()
    values = {series["name"]: series for series in json.loads(Path(document).read_text())["series"]}
    assert values["episode_steps"]["value"] == 80
    assert {event["name"] for event in json.loads(Path(trace).read_text())["traceEvents"]} >= {"step", "begin", "end"}
    capsys.readouterr()
    assert main([*arguments, "--metrics", trace, "--trace", trace]) == 2
    assert "--metrics and --trace are both" in capsys.readouterr().err


def test_what_the_engine_does_not_play_has_no_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    metrics = tmp_path / "m.prom"
    arguments = ["--policy", "scripted", "--episodes", "1", "--episode-length", "2", "--metrics", str(metrics)]
    assert main(["evaluate", *arguments]) == 0
    assert "engine:" not in capsys.readouterr().out
    assert metrics.read_text() == ""


def test_json_has_the_figures_whatever_the_worlds(tmp_path: Path) -> None:
    texts = []
    for worlds in ("1", "64"):
        path = tmp_path / f"{worlds}.json"
        arguments = ["evaluate", "--policy", "random", *SHORT, "--worlds", worlds, "--threads", "1"]
        assert main([*arguments, "--json", str(path)]) == 0
        texts.append(path.read_text("utf-8"))
    assert texts[0] == texts[1]
    evaluation = doorstep.Evaluation.from_json(texts[0])
    assert evaluation == doorstep.evaluate("random", episodes=4, episode_length=20)


def test_a_policy_of_a_file_and_levels_of_a_file(command: Command, tmp_path: Path) -> None:
    save_levels(tmp_path / "mine.json", [curated()["one door"]])
    (tmp_path / "train.py").write_text(
        "import numpy as np\n"
        "def policy(observations):\n"
        "    worlds, agents, _ = observations.shape\n"
        "    return np.full((worlds, agents, 4), (3, 0, 2, 0))\n"
    )
    finished = command("evaluate", "--policy", "train.py:policy", "--levels", "mine.json", "--episodes", "3")
    assert finished.returncode == 0, finished.stderr
    assert "one door  train.py:policy" in finished.stdout


def test_plots_are_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "plot.png"
    assert main(["evaluate", "--policy", "idle", *SHORT, "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_plots_without_matplotlib_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["evaluate", "--plot", str(tmp_path / "plot.png")]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert 'pip install "doorstep[plot]"' in output.err


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["evaluate", "--policy", "random", *SHORT]) == 0
    assert "100%  episode 4 of 4  native policies" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_file_describes_the_evaluation_and_options_count_more(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(
        '{"policies": ["idle", "random"], "episodes": 9, "seed": 3,'
        ' "simulator": {"num_worlds": 4, "episode_length": 20}, "scheduler": {"type": "fair_share", "max_chunk": 2}}'
    )
    arguments = ["evaluate", "--config", str(tmp_path / "mine.json"), "--json", str(tmp_path / "out.json")]
    assert main([*arguments, "--episodes", "4", "scheduler.max_chunk=1", "devices=cpu,cpu"]) == 0
    evaluation = doorstep.Evaluation.from_json((tmp_path / "out.json").read_text("utf-8"))
    assert evaluation == doorstep.evaluate(["idle", "random"], episodes=4, episode_length=20, seed=3)
    assert main([*arguments, "--policy", "idle", "--agents", "1"]) == 0
    evaluation = doorstep.Evaluation.from_json((tmp_path / "out.json").read_text("utf-8"))
    assert evaluation == doorstep.evaluate("idle", episodes=9, episode_length=20, seed=3, num_agents=1)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_file_runs_no_code_unless_that_is_allowed(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("theirs.py").write_text("""
import pathlib
import numpy
pathlib.Path("has_run").touch()
def act(observations):
    return numpy.full((*observations.shape[:-1], 4), (0, 0, 2, 0))
""")
    config = Path(f"theirs.{suffix}")
    config.write_text('{"policies": ["idle", "theirs.py:act"], "episodes": 4, "simulator": {"num_worlds": 4}}')
    arguments = ["evaluate", "--config", str(config), "--episode-length", "5"]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"doorstep evaluate: error: {config}: policies[1] is 'theirs.py:act', which runs code")
    assert "--allow-code" in said
    assert main([*arguments, "--policy", "idle"]) == 0
    assert main([*arguments, "policies=random,idle"]) == 0
    assert not Path("has_run").exists()
    assert main([*arguments, "--allow-code"]) == 0
    assert Path("has_run").exists()


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("{}", ["scheduler.type=fair"], "scheduler.type is 'fair'; it must be a scheduler: "),
        ("{}", ["scheduler.max_chunk=0"], "scheduler.max_chunk is 0; it must be an integer"),
        ('{"episods": 3}', [], "{path}: 'episods' is not a field of EvaluationConfig (did you mean 'episodes'?)"),
        ('{"simulator": {"num_agents": 2}}', [], "{path}: simulator.num_worlds is absent"),
        ("[", [], "{path}: text is not JSON"),
    ],
)
def test_a_file_that_is_refused_is_named(
    text: str, options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)
    assert main(["evaluate", "--config", str(path), *options]) == 2
    output = capsys.readouterr()
    assert output.err.startswith(f"doorstep evaluate: error: {says.format(path=path)}")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["wise"], "change is 'wise'; it must be KEY=VALUE"),
        (["episods=4"], "'episods' is not the name of a single value of EvaluationConfig (did you mean 'episodes'?)"),
        (["--policy", "wise"], "policy is 'wise'; it must be 'random'"),
        (["--policy", "idle", "--policy", "idle"], "policies has two of the name 'idle'"),
        (["--episodes", "0"], "argument --episodes: 0 is not allowed; give at least 1"),
        (["--levels", "missing.json"], "missing.json: there is no such file; levels are 'reference', "),
        (["--levels", __file__], f"{__file__}: text is not JSON"),
        (["--levels", "curated", "--agents", "3"], "level 'one door' has 2 spawns; it must have at least 3"),
        (["--json", "missing/out.json"], "--json missing/out.json is not a file in an existing folder"),
        (["--plot", "out.txt"], "--plot out.txt must end in .png or .svg or .pdf"),
        (["--agents", "9"], "simulator.num_agents is 9; it must be an integer, 1 to 8"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(arguments: list[str], says: str, refused: Refused) -> None:
    assert refused("evaluate", *arguments).startswith(f"doorstep evaluate: error: {says}")
