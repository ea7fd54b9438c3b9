"""--reward: what agents are rewarded for, by one spelling in every command that makes worlds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Refused

import doorstep.viewer
from doorstep import Rewards
from doorstep.cli import main
from doorstep.cli.argument_types import load_reward
from doorstep.evaluation import Evaluation
from doorstep.recording import Recording

# Every step is worth 2, wherever agents go: an episode of 10 steps is worth 20.
TERMS = "progress=0,idle=2,room=0,bonus_factor=1,max_y=0"
WORTH_2 = Rewards(progress=0, idle=2, bonus_factor=1, max_y=0)

TEXTS = {
    "terms": TERMS,
    "json": '{"progress": 0, "idle": 2, "bonus_factor": 1, "max_y": 0}',
    "a file of json": "terms.json",
    "a file of yaml": "terms.yaml",
    "a member of a file": "mine.py:terms",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the files that the texts name."""
    monkeypatch.chdir(tmp_path)
    Path("terms.json").write_text(TEXTS["json"])
    Path("terms.yaml").write_text("progress: 0\nidle: 2\nbonus_factor: 1\nmax_y: 0\n")
    Path("mine.py").write_text(
        "import doorstep\n"
        "terms = doorstep.Rewards(progress=0, idle=2, bonus_factor=1, max_y=0)\n"
        "def function(step):\n    return step.rewards + 1\n"
    )
    return tmp_path


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_reward_has_several_spellings(text: str, folder: Path) -> None:
    if text.endswith(".yaml"):
        pytest.importorskip("yaml")
    assert load_reward(text) == WORTH_2


def test_none_is_the_reward_of_the_levels() -> None:
    assert load_reward("none") is None


def test_a_recording_is_made_with_the_reward(folder: Path) -> None:
    assert main(["record", "--reward", TERMS, "--steps", "3", "--worlds", "2", "--output", "run.rec"]) == 0
    with Recording("run.rec") as recording:
        assert recording.reward == WORTH_2
    assert main(["replay", "run.rec"]) == 0


def test_the_demo_reports_returns_of_the_reward(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--reward", TERMS, "--worlds", "3", "--steps", "200", "--pictured", "1"]) == 0
    assert "mean return 400.000 over 6 episodes" in capsys.readouterr().out


def test_an_evaluation_counts_the_reward(folder: Path) -> None:
    arguments = ["evaluate", "--reward", TERMS, "--episodes", "2", "--episode-length", "10", "--json", "figures.json"]
    assert main(arguments) == 0
    (score,) = Evaluation.from_json(Path("figures.json").read_text()).scores
    assert score.mean_return.value == 20


def test_an_option_of_an_evaluation_counts_more_than_its_file(folder: Path) -> None:
    Path("config.json").write_text(json.dumps({"reward": {"idle": 9}, "episodes": 2}))
    options = ["--config", "config.json", "--episode-length", "10", "--json", "figures.json"]
    returns = []
    for reward in (["--reward", TERMS], ["--reward", "none"]):
        assert main(["evaluate", *options, *reward]) == 0
        returns.append(Evaluation.from_json(Path("figures.json").read_text()).scores[0].mean_return.value)
    assert returns[0] == 20
    assert returns[1] < 5


def test_a_benchmark_steps_worlds_with_the_reward(capsys: pytest.CaptureFixture[str]) -> None:
    hashes = set()
    for reward in ([], ["--reward", TERMS], ["--reward", "none"]):
        assert main(["bench", "--json", "--worlds", "4", "--steps", "5", *reward]) == 0
        hashes.add(json.loads(capsys.readouterr().out)["hash"])
    assert len(hashes) == 2  # returns are a part of worlds


def test_a_page_shows_the_reward(folder: Path) -> None:
    pages = []
    for reward in (["--reward", TERMS], []):
        assert main(["render", *reward, "--steps", "2", "--output", "run.html"]) == 0
        pages.append(Path("run.html").read_bytes())
    assert pages[0] != pages[1]


def test_the_viewer_gets_the_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(doorstep.viewer, "show", lambda **settings: shown.append(settings))
    assert main(["view", "--reward", TERMS]) == 0
    assert [settings["reward"] for settings in shown] == [WORTH_2]


@pytest.mark.parametrize("command", ["demo", "record", "render", "view", "bench", "evaluate"])
@pytest.mark.parametrize(
    ("reward", "says"),
    [
        ("gaol=1", "reward: 'gaol' is not a field of Rewards (did you mean 'goal'?)"),
        ("goal", "reward is 'goal'; it must be doorstep.Rewards, or its terms, such as goal=5,cube_approach=0.25"),
        ("nowhere.json", "nowhere.json: No such file or directory"),
        ("nowhere.py:terms", "reward is 'nowhere.py:terms'; there is no file 'nowhere.py'"),
        ("json:dumps", "reward is 'json:dumps'; it must be terms, such as goal=5,cube_approach=0.25 (doorstep train"),
        ("json:decoder", "reward is <module 'json.decoder'"),
    ],
)
def test_what_is_no_reward_is_refused(command: str, reward: str, says: str, refused: Refused) -> None:
    assert refused(command, "--reward", reward).startswith(f"doorstep {command}: error: {says}")


def test_a_recording_has_its_own_reward(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--steps", "3", "--output", "run.rec"]) == 0
    assert main(["render", "--actions", "run.rec", "--reward", TERMS]) == 2
    assert "--reward is given together with --actions" in capsys.readouterr().err
