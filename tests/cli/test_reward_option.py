"""--reward: what agents are rewarded for, by one spelling in every command that makes worlds."""

import json
from pathlib import Path

import pytest

import doorstep.viewer
from doorstep import Rewards
from doorstep.cli.argument_types import load_reward
from doorstep.evaluation import Evaluation
from doorstep.recording import Recording

# Every step is worth 2, wherever agents go: an episode of 10 steps is worth 20.
TERMS = "progress=0,idle=2,room=0,bonus_factor=1,max_y=0"
WORTH_2 = Rewards(progress=0, idle=2, bonus_factor=1, max_y=0)
FILES = {
    "terms.json": '{"progress": 0, "idle": 2, "bonus_factor": 1, "max_y": 0}',
    "terms.yaml": "progress: 0\nidle: 2\nbonus_factor: 1\nmax_y: 0\n",
    "mine.py": "import doorstep\nterms = doorstep.Rewards(progress=0, idle=2, bonus_factor=1, max_y=0)\n",
}


def test_a_reward_has_several_spellings(tmp_path, monkeypatch):
    pytest.importorskip("yaml")
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    for spelling in (TERMS, FILES["terms.json"], "terms.json", "terms.yaml", "mine.py:terms"):
        assert load_reward(spelling) == WORTH_2
    assert load_reward("none") is None


def test_every_command_that_makes_worlds_rewards_as_it_says(run, refused, monkeypatch):
    reward = ("--reward", TERMS)
    run("record", *reward, "--steps", "3", "--worlds", "2", "--output", "run.rec")
    with Recording("run.rec") as recording:
        assert recording.reward == WORTH_2
    run("replay", "run.rec")
    said = run("demo", *reward, "--worlds", "3", "--steps", "200", "--pictured", "1")
    assert "mean return 400.000 over 6 episodes" in said
    bench = ("bench", "--json", "--worlds", "4", "--steps", "5")
    plain, other, same = (json.loads(run(*bench, *one))["hash"] for one in ((), reward, ("--reward", "none")))
    assert plain == same != other  # returns are a part of worlds
    render = ("render", "--steps", "2", "--output", "run.html")
    assert run(*render, *reward, wrote="run.html") != run(*render, wrote="run.html")
    shown = []
    monkeypatch.setattr(doorstep.viewer, "show", lambda **settings: shown.append(settings["reward"]))
    run("view", *reward)
    assert shown == [WORTH_2]
    run("record", "--steps", "3", "--output", "run.rec")
    assert "--reward is given together with --actions" in refused("render", "--actions", "run.rec", *reward)


def test_an_evaluation_counts_the_reward_and_the_option_more_than_its_file(run):
    Path("config.json").write_text(json.dumps({"reward": {"idle": 9}, "episodes": 2}))
    returns = []
    file, rewarded = ["--config", "config.json"], ["--reward", TERMS]
    for options in (["--episodes", "2", *rewarded], [*file, *rewarded], [*file, "--reward", "none"]):
        run("evaluate", *options, "--episode-length", "10", "--json", "figures.json")
        returns.append(Evaluation.from_json(Path("figures.json").read_text()).scores[0].mean_return.value)
    assert returns[:2] == [20, 20]
    assert returns[2] < 5
