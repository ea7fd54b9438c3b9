"""`doorstep demo`: what it says, and the picture it leaves."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

import doorstep
from doorstep.cli import main
from doorstep.cli.random_actions import ActionTable
from doorstep.cli.rooms_start import RoomsStart

WORLD = "{http://www.w3.org/2000/svg}g[@class='world']"


def demo(tmp_path: Path, *arguments: str) -> ElementTree.Element:
    output = tmp_path / "picture.svg"
    assert main(["demo", "--output", str(output), "--threads", "1", *arguments]) == 0
    return ElementTree.parse(output).getroot()


def test_the_picture_is_written_where_asked(tmp_path: Path) -> None:
    picture = demo(tmp_path, "--worlds", "16", "--steps", "20", "--pictured", "3")
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(picture.findall(WORLD)) == 3


def test_by_default_the_picture_is_doorstep_svg_in_the_current_folder(command: Command, tmp_path: Path) -> None:
    finished = command("demo", "--worlds", "16", "--steps", "20")
    assert finished.returncode == 0
    assert (tmp_path / "doorstep.svg").stat().st_size > 1000
    assert "picture  doorstep.svg: 5 worlds after step 20" in finished.stdout


def test_without_a_terminal_progress_is_a_few_lines(command: Command) -> None:
    finished = command("demo", "--worlds", "16", "--steps", "1000")
    lines = finished.stderr.splitlines()
    assert [line.split("  ")[0].strip() for line in lines] == ["20%", "40%", "60%", "80%", "100%"]
    assert "\r" not in finished.stderr
    assert "step 1,000 of 1,000" in lines[-1]


def test_the_mean_return_is_that_of_the_ended_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo(tmp_path, "--worlds", "16", "--steps", "450", "--seed", "3")
    said = re.search(r"mean return (\S+) over 64 episodes", capsys.readouterr().out)
    assert said

    table, rewards = ActionTable(3), np.zeros((2, 200, 16, 2))
    with doorstep.Simulator(16, seed=3, num_threads=1) as sim:
        for step in range(400):
            table.copy_into(sim.actions.to_numpy(), step + 1)
            sim.step()
            rewards[step // 200, step % 200] = sim.rewards.to_numpy()[:, :, 0]
    assert float(said[1]) == pytest.approx(rewards.sum(axis=1).mean(), abs=0.0006)


def test_without_an_ended_episode_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo(tmp_path, "--worlds", "2", "--steps", "5")
    assert "no episode has ended: they take 200 steps" in capsys.readouterr().out


def test_the_picture_shows_the_step_before_a_reset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo(tmp_path, "--worlds", "2", "--steps", "200")
    assert "2 worlds after step 199" in capsys.readouterr().out


@pytest.mark.parametrize("start", ["normal", "rooms"])
def test_the_worlds_with_most_to_see_are_pictured(start: str, tmp_path: Path) -> None:
    picture = demo(tmp_path, "--worlds", "64", "--steps", "100", "--pictured", "4", "--start", start)
    shown = [int(panel.get("data-world", "")) for panel in picture.findall(WORLD)]

    table = ActionTable(5)
    with doorstep.Simulator(64, seed=5, num_threads=1) as sim:
        if start == "rooms":
            RoomsStart(sim).place(np.arange(64))
        for step in range(100):
            table.copy_into(sim.actions.to_numpy(), step + 1)
            sim.step()
        state = sim.state
        events = state.door_open.to_numpy().sum(axis=1) + state.button_pressed.to_numpy().sum(axis=1)
        events += (state.agent_grabs.to_numpy() >= 0).sum(axis=1)
    assert len(set(shown)) == 4
    assert events[shown].tolist() == sorted(events, reverse=True)[:4]


@pytest.mark.parametrize("agents", [1, 3])
def test_any_number_of_agents_is_drawn(agents: int, tmp_path: Path) -> None:
    picture = demo(tmp_path, "--worlds", "2", "--steps", "3", "--agents", str(agents))
    for panel in picture.findall(WORLD):
        assert len(panel.findall("{http://www.w3.org/2000/svg}g[@class='agent']")) == agents
