"""`doorstep bench`: what it reports, and what its hash depends on. Never how fast it is."""

import json
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command, Refused

import doorstep
from doorstep.cli import main
from doorstep.cli.bench import time_steps
from doorstep.cli.random_actions import ActionTable
from doorstep.cli.rooms_start import RoomsStart

SMALL = ("--worlds", "24", "--steps", "30", "--threads", "1")


def bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["bench", "--json", *arguments]) == 0
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    result: dict[str, Any] = json.loads(output)
    return result


def test_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    result = bench(capsys, *SMALL)
    assert result.keys() == {
        "version",
        "device",
        "worlds",
        "steps",
        "agents",
        "seed",
        "start",
        "threads",
        "world_steps_per_second",
        "world_steps_per_cpu_second",
        "bytes_per_world",
        "startup_seconds",
        "hash",
    }
    assert (result["worlds"], result["steps"], result["threads"], result["start"]) == (24, 30, 1, "normal")
    assert result["device"] == "cpu"
    assert result["world_steps_per_second"] > 0
    assert result["world_steps_per_cpu_second"] > 0
    assert 0 < result["startup_seconds"] < 60


def test_bytes_per_world_are_what_the_simulator_allocated(capsys: pytest.CaptureFixture[str]) -> None:
    with doorstep.Simulator(24, num_threads=1, observations="by_name") as sim:
        assert bench(capsys, *SMALL)["bytes_per_world"] == pytest.approx(sim.allocated_bytes / 24, abs=0.1)


@pytest.mark.parametrize("start", ["normal", "rooms"])
def test_the_hash_is_the_same_every_time_and_for_every_number_of_threads(
    start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--worlds", "80", "--steps", "210", "--start", start)
    hashes = {bench(capsys, *arguments, "--threads", threads)["hash"] for threads in ("1", "1", "3")}
    assert len(hashes) == 1
    assert int(hashes.pop(), 16) > 0


def test_the_hash_depends_on_every_other_argument(capsys: pytest.CaptureFixture[str]) -> None:
    variations = [(), ("--seed", "6"), ("--worlds", "25"), ("--steps", "31"), ("--agents", "1"), ("--start", "rooms")]
    hashes = [bench(capsys, *SMALL, *variation)["hash"] for variation in variations]
    assert len(set(hashes)) == len(variations)


def test_the_hash_is_that_of_the_same_steps_made_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    table = ActionTable(0)
    with doorstep.Simulator(24, num_threads=1) as sim:
        sim.step()
        for step in range(30):
            table.copy_into(sim.actions.to_numpy(), step)
            sim.step()
        assert bench(capsys, *SMALL)["hash"] == f"{sim.hash():016x}"


def test_the_profile_splits_the_time_over_the_stages(capsys: pytest.CaptureFixture[str]) -> None:
    result = bench(capsys, *SMALL, "--profile")
    with doorstep.Simulator(1, num_threads=1) as sim:
        sim.start_profile()
        stages = list(sim.stop_profile())
    assert list(result["profile"]) == stages
    # figures are rounded to a hundredth of a nanosecond
    assert sum(result["profile"].values()) == pytest.approx(1e9 / result["world_steps_per_cpu_second"], rel=0.01)


def test_profiling_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(capsys, *SMALL, "--profile")["hash"] == bench(capsys, *SMALL)["hash"]


def test_agents_are_moved_into_the_rooms_after_every_reset() -> None:
    with doorstep.Simulator(6, seed=5, episode_length=4, num_threads=1) as sim:
        starts = []
        for _ in range(3):  # episodes of four steps; the last of them resets and moves
            time_steps(sim, ActionTable(5), 4, RoomsStart(sim), profile=False)
            starts.append(sim.state.body_positions.to_numpy()[:, :2, 1].copy())
        even, odd = np.array(starts)[:, ::2], np.array(starts)[:, 1::2]
    assert ((even > 13.0) & (even < 26.5)).all()
    assert ((odd > 26.5) & (odd < 40.0)).all()
    assert len(np.unique(even)) == even.size  # other places each time


def test_without_json_a_table_is_printed(command: Command) -> None:
    finished = command("bench", *SMALL, "--profile")
    assert finished.returncode == 0
    assert finished.stderr == ""
    for words in (
        "24 worlds x 30 steps",
        "world-steps per CPU-second",
        "bytes per world",
        "startup",
        "hash",
        "by stage",
    ):
        assert words in finished.stdout


def test_a_report_has_a_row_for_each_way_of_stepping_and_what_they_depend_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("torch")
    assert main(["bench", "--report", "--worlds", "8", "--steps", "20", "--threads", "1", "--agents", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"doorstep {doorstep.__version__}, Python ")
    assert lines[1].startswith("8 worlds, 20 steps, 3 agents, seed 0; episodes of 200 steps")
    rows = {line[:28].strip(): [float(part.replace(",", "")) for part in line[28:70].split()] for line in lines[4:]}
    assert list(rows) == [
        "steps alone",
        "steps among cubes",
        "with a network's actions",
        "with views of 64 x 64",
        "with training",
    ]
    for name, (worlds, agents, rays) in rows.items():
        expected = 3 if name.startswith(("steps", "with views")) else 2
        assert agents == pytest.approx(expected * worlds, abs=2)
        assert rays == pytest.approx(30 * agents, abs=31)


@pytest.mark.parametrize("option", [("--json",), ("--profile",), ("--device", "cuda")])
def test_a_report_is_of_the_cpu_and_for_people(option: tuple[str, ...], refused: Refused) -> None:
    assert f"--report is given with {option[0]}" in refused("bench", "--report", *option)
