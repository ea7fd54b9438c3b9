"""`doorstep bench`: what it reports, in which units, and what its hash depends on. Never how fast it is."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import doorstep
from doorstep.cli.bench import time_steps
from doorstep.cli.random_actions import ActionTable
from doorstep.cli.rooms_start import RoomsStart

SMALL = ("--worlds", "24", "--steps", "30", "--threads", "1")


@pytest.fixture
def bench(run):
    return lambda *arguments: json.loads(run("bench", "--json", *arguments))


def clocks(**ticks):
    """Clocks that go on by so much at each look."""
    now = dict.fromkeys(ticks, 0)

    def look(name):
        now[name] += ticks[name]
        return now[name]

    return SimpleNamespace(**{name: lambda name=name: look(name) for name in ticks})


@pytest.fixture
def slow_clocks(monkeypatch):
    """The start and each step take 5 ms, and 3 ms of CPU time."""
    monkeypatch.setattr("doorstep.cli.bench.time", clocks(perf_counter_ns=5_000_000, process_time_ns=3_000_000))


@pytest.mark.usefixtures("slow_clocks")
def test_json_and_table_have_the_same_figures_in_their_units(bench, run):
    with doorstep.Simulator(24, num_threads=1, observations="by_name") as sim:
        size = sim.allocated_bytes / 24
        sim.start_profile()
        stages = list(sim.stop_profile())
    result = bench(*SMALL, "--profile")
    split = result.pop("profile")
    assert list(split) == stages
    assert sum(split.values()) == pytest.approx(125_000, abs=0.1)  # nanoseconds of CPU time of a world's step
    digits = result.pop("hash")
    assert int(digits, 16) > 0
    assert result.pop("bytes_per_world") == pytest.approx(size, abs=0.1)
    what = {"device": "cpu", "worlds": 24, "steps": 30, "agents": 2, "seed": 0, "start": "normal", "threads": 1}
    speed = {"world_steps_per_second": 4800, "world_steps_per_cpu_second": 8000}  # 24 steps of worlds in 5 ms, in 3 ms
    assert result == {"version": doorstep.__version__, **what, **speed, "startup_seconds": 0.005}
    header, *lines = run("bench", *SMALL, "--profile").splitlines()
    assert header == f"doorstep {doorstep.__version__}: 24 worlds x 30 steps, 2 agents, normal start, seed 0, 1 thread"
    rows = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines[:5])
    figures = {"world-steps per second": "4,800", "world-steps per CPU-second": "8,000", "startup": "5.0 ms"}
    assert rows == {**figures, "bytes per world": f"{size:,.0f}", "hash": digits}
    assert lines[5] == "  CPU time per world-step, by stage"
    parts = [re.fullmatch(r"    (\S.*?) +([\d,.]+) ns +([\d.]+)%", line).groups() for line in lines[6:]]
    assert [name for name, _, _ in parts] == stages
    assert sum(float(time.replace(",", "")) for _, time, _ in parts) == pytest.approx(125_000, rel=1e-3)
    for _, time, share in parts:
        assert float(share) == pytest.approx(100 * float(time.replace(",", "")) / 125_000, abs=0.1)


def test_the_hash_depends_on_every_argument_but_threads_profile_and_time(bench):
    variations = [(), ("--seed", "6"), ("--worlds", "25"), ("--steps", "31"), ("--agents", "1"), ("--start", "rooms")]
    hashes = [bench(*SMALL, *variation)["hash"] for variation in variations]
    assert len(set(hashes)) == len(variations)
    for start in ("normal", "rooms"):
        arguments = ("--worlds", "80", "--steps", "210", "--start", start)
        same = {bench(*arguments, *more)["hash"] for more in (("--threads", "1"), ("--threads", "3", "--profile"))}
        assert len(same) == 1
    table = ActionTable(0)
    with doorstep.Simulator(24, num_threads=1) as sim:
        sim.step()
        for step in range(30):
            table.copy_into(sim.actions.to_numpy(), step)
            sim.step()
        assert hashes[0] == f"{sim.hash():016x}"


def test_agents_are_moved_into_the_rooms_after_every_reset():
    with doorstep.Simulator(6, seed=5, episode_length=4, num_threads=1) as sim:
        starts = []
        for _ in range(3):  # episodes of four steps; the last of them resets and moves
            time_steps(sim, ActionTable(5), 4, RoomsStart(sim), profile=False)
            starts.append(sim.state.body_positions.to_numpy()[:, :2, 1].copy())
        even, odd = np.array(starts)[:, ::2], np.array(starts)[:, 1::2]
    assert ((even > 13.0) & (even < 26.5)).all()
    assert ((odd > 26.5) & (odd < 40.0)).all()
    assert len(np.unique(even)) == even.size  # other places each time


def test_a_report_has_a_row_for_each_way_of_stepping_and_what_they_depend_on(run, monkeypatch):
    pytest.importorskip("torch")
    from tests.pkg.training.runs import small

    monkeypatch.setattr("doorstep.training.preset", lambda _: small())
    monkeypatch.setattr("doorstep.cli.bench_report.time", clocks(process_time=0.5))  # every call takes so long
    lines = run("bench", "--report", "--worlds", "8", "--steps", "20", "--threads", "1", "--agents", "3").splitlines()
    assert lines[0].startswith(f"doorstep {doorstep.__version__}, Python ")
    assert lines[1].startswith("8 worlds, 20 steps, 3 agents, seed 0; episodes of 200 steps")
    rows = {line[:28].strip(): [int(part.replace(",", "")) for part in line[28:70].split()] for line in lines[4:]}
    assert rows == {  # steps of worlds in a second, and how many agents and rays of lidars each has
        "steps alone": [16, 48, 1440],
        "steps among cubes": [16, 48, 1440],
        "with a network's actions": [320, 640, 19200],
        "with views of 64 x 64": [16, 48, 1440],
        "with training": [576, 1152, 34560],  # three updates of 16 steps of 6 worlds
    }
    for option in (("--json",), ("--profile",), ("--device", "cuda")):
        run("bench", "--report", *option, code=2)
