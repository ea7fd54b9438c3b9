"""`doorstep bench`: what it reports, in which units, and what its hash depends on. Never how fast it is. Its random
actions, and the places among the cubes where its agents start, facing where, and overlapping nothing."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import doorstep
from doorstep.cli.bench import time_steps
from doorstep.cli.random_actions import ActionTable, random_bits
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
    for stage, line in zip(stages, lines[6:], strict=True):
        name, time, share = re.fullmatch(r"    (\S.*?) +([\d,.]+) ns +([\d.]+)%", line).groups()
        assert (name, float(share)) == (stage, pytest.approx(float(time.replace(",", "")) / 1250, abs=0.1))


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


def test_random_actions_are_uniform_over_their_legal_values_and_others_at_each_step():
    table, actions, later = ActionTable(5), np.empty((600_000, 2, 4), np.int32), np.empty((600_000, 2, 4), np.int32)
    table.copy_into(actions, 7)
    table.copy_into(later, 8)
    for values, choices in zip(actions.reshape(-1, 4).T, doorstep.ACTIONS, strict=True):
        assert np.bincount(values) / len(values) == pytest.approx(np.full(choices, 1 / choices), rel=0.02)
    assert np.abs(np.corrcoef(actions[:100_000].reshape(-1, 4).T) - np.eye(4)).max() < 5 / np.sqrt(200_000)
    assert (actions == later).all(axis=2).mean() < 0.03  # 1 / 320 is expected
    assert random_bits(0) == [0xE220A8397B1DCDAF]  # the published first output of splitmix64


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


# ---- Agents placed among the cubes

WORLDS = 256
ROOM = 40 / 3
ALL = np.arange(WORLDS)


def poses(sim):
    """x, y, yaw of the agents, [N, A] each."""
    positions = sim.state.body_positions.to_numpy()[:, : sim.num_agents].astype(np.float64)
    rotations = sim.state.body_rotations.to_numpy()[:, : sim.num_agents].astype(np.float64)
    assert (positions[..., 2] == 0).all()
    assert np.linalg.norm(rotations, axis=2) == pytest.approx(1.0, abs=1e-6)
    return positions[..., 0], positions[..., 1], 2 * np.arctan2(rotations[..., 3], rotations[..., 0])


@pytest.mark.parametrize("num_agents", [1, 2, 5])
def test_agents_rest_at_free_places_all_over_the_promised_part_of_the_promised_room(num_agents):
    with doorstep.Simulator(WORLDS, seed=11, num_agents=num_agents, num_threads=1) as sim:
        state, agents = sim.state, slice(0, num_agents)
        state.body_linear_velocities.to_numpy()[:, agents] = 3
        state.body_angular_velocities.to_numpy()[:, agents] = 3
        RoomsStart(sim).place(ALL)
        x, y, yaw = poses(sim)
        depth = y - ROOM * (1 + ALL % 2)[:, None]
        assert (np.abs(x) <= 8).all()
        assert ((depth >= 1.6 - 1e-4) & (depth <= 10.6 + 1e-4)).all()
        assert (np.abs(yaw) <= np.pi / 4 + 1e-6).all()
        assert np.ptp(x) > 14
        assert np.ptp(depth) > 8
        assert np.ptp(yaw) > 1.4
        assert (state.agent_grabs.to_numpy() == -1).all()
        assert (state.agent_max_y.to_numpy() == state.body_positions.to_numpy()[:, agents, 1]).all()
        seen = sim.self_observations.to_numpy()  # shows the new places
        assert seen[..., 2] * 40 == pytest.approx(x, abs=1e-4)
        assert seen[..., 3] * 40 == pytest.approx(y, abs=1e-4)
        assert seen[..., 6] * np.pi == pytest.approx(yaw, abs=1e-4)
        sim.step()  # which pushes apart what overlaps
        for before, after in zip((x, y, yaw), poses(sim), strict=True):
            assert after == pytest.approx(before, abs=1e-4)


def test_a_place_depends_on_seed_world_and_episode_alone_and_other_worlds_stay_as_they_are():
    with (
        doorstep.Simulator(8, seed=3, num_threads=1) as whole,
        doorstep.Simulator(4, seed=3, num_threads=1, world_offset=4) as shard,
    ):
        before = shard.world_hashes()
        RoomsStart(whole).place(np.arange(8))
        start = RoomsStart(shard)
        start.place(np.array([2, 0]))
        assert (before != shard.world_hashes()).tolist() == [True, False, True, False]
        start.place(np.array([1, 3]))
        for ours, theirs in zip(poses(whole), poses(shard), strict=True):
            assert (ours[4:] == theirs).all()
        assert whole.hash([4, 5, 6, 7]) == shard.hash()
        shard.reset()
        start.place(np.arange(4))
        assert (poses(whole)[0][4:] != poses(shard)[0]).all()


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
