"""`doorstep evaluate`: a table, JSON and plots of policies that play the same episodes."""

import json
import re
import sys
from pathlib import Path

import pytest

import doorstep
from doorstep.cli import main
from doorstep.levels import curated, save_levels

SHORT = ("--episodes", "4", "--episode-length", "20")
STILL = """
import pathlib
import numpy
pathlib.Path("has_run").touch()
def act(observations):
    return numpy.full((*observations.shape[:-1], 4), (0, 0, 2, 0))
"""


def test_it_prints_what_the_api_returns(run, capsys):
    said = run("evaluate", "--policy", "idle", "--policy", "random", *SHORT, "--seed", "3")
    evaluation = doorstep.evaluate(["idle", "random"], episodes=4, episode_length=20, seed=3)
    first, _, rest = said.partition("\n\n")
    assert first == f"doorstep {doorstep.__version__}: 4 episodes of each policy in each level, 2 agents, seed 3"
    table, _, engine = rest.rpartition("\n\n")
    assert table == str(evaluation)
    waited = r"worlds busy [\d.]+%; requests waited \S+ s \(median\), \S+ s \(99%\)\n"
    assert re.fullmatch(rf"engine: 160 steps of episodes, [\d,]+ per second; {waited}", engine)
    assert main(["evaluate", "--policy", "idle", *SHORT]) == 0
    assert capsys.readouterr().err == "100%  episode 4 of 4  native policies\n"


def test_metrics_and_a_trace_are_written(run):
    arguments = ["evaluate", "--policy", "random", *SHORT, "--threads", "1"]
    run(*arguments, "--metrics", "m.prom", "--trace", "t.json")
    run(*arguments, "--metrics", "m.json")
    assert 'doorstep_requests_answered_total{reason="time",replica="0",scheduler=' in Path("m.prom").read_text()
    values = {series["name"]: series for series in json.loads(Path("m.json").read_text())["series"]}
    assert values["episode_steps"]["value"] == 80
    events = {event["name"] for event in json.loads(Path("t.json").read_text())["traceEvents"]}
    assert events >= {"step", "begin", "end"}


def of_file():
    return doorstep.Evaluation.from_json(Path("out.json").read_text("utf-8"))


def test_options_levels_policies_and_a_config_of_files_are_those_of_the_api(run, tmp_path):
    run("evaluate", "--policy", "random", *SHORT, "--threads", "1", "--json", "out.json", "--worlds", "1")
    assert of_file() == doorstep.evaluate("random", episodes=4, episode_length=20)
    save_levels("mine.json", [curated()["one door"]])
    Path("train.py").write_text(STILL)
    arguments = ("--policy", "train.py:act", "--levels", "mine.json", "--episodes", "3", "--json", "out.json")
    assert "one door  train.py:act" in run("evaluate", *arguments)
    assert of_file() == doorstep.evaluate("train.py:act", levels="mine.json", episodes=3)
    parts = {"simulator": {"num_worlds": 4, "episode_length": 20}, "scheduler": {"type": "fair_share", "max_chunk": 2}}
    Path("config.json").write_text(json.dumps({"policies": ["idle", "random"], "episodes": 9, "seed": 3, **parts}))
    arguments = ("evaluate", "--config", "config.json", "--json", "out.json")
    run(*arguments, "--episodes", "4", "scheduler.max_chunk=1", "devices=cpu,cpu")
    assert of_file() == doorstep.evaluate(["idle", "random"], episodes=4, episode_length=20, seed=3)
    run(*arguments, "--policy", "idle", "--agents", "1")
    assert of_file() == doorstep.evaluate("idle", episodes=9, episode_length=20, seed=3, num_agents=1)


def test_plots_are_written_and_refused_before_the_work_without_matplotlib(run, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    run("evaluate", "--policy", "idle", *SHORT, "--plot", "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["evaluate", "--plot", "plot.png"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert 'pip install "doorstep[plot]"' in output.err


def test_a_file_runs_no_code_unless_that_is_allowed(run, refused):
    Path("theirs.py").write_text(STILL)
    for config in ("theirs.json", "theirs.yaml"):
        Path("has_run").unlink(missing_ok=True)
        written = {"policies": ["idle", "theirs.py:act"], "episodes": 4, "simulator": {"num_worlds": 4}}
        Path(config).write_text(json.dumps(written))
        arguments = ["evaluate", "--config", config, "--episode-length", "5"]
        said = refused(*arguments)
        assert said.startswith(f"doorstep evaluate: error: {config}: policies[1] is 'theirs.py:act', which runs code")
        assert "--allow-code" in said
        run(*arguments, "--policy", "idle")
        run(*arguments, "policies=random,idle")
        assert not Path("has_run").exists()
        run(*arguments, "--allow-code")
        assert Path("has_run").exists()
        del sys.modules[next(name for name in sys.modules if name.startswith("__doorstep_policy"))]
