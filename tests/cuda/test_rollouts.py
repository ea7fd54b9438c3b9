"""Episodes with seeds and levels of their own, and engines, give the same bits on both devices."""

import contextlib
import ctypes
import itertools
import logging
import queue
from collections import Counter
from dataclasses import replace
from logging.handlers import QueueHandler

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_gpu
from tests.cuda.twins import Twins
from tests.pkg.rollouts.playing import SHUFFLED, assert_equal_results, info_of, results_of, steps_of, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, levels
from doorstep._native import _generated as native
from doorstep._native import check, load
from doorstep.levels.native import to_native
from doorstep.policy import SamplingParams
from doorstep.rollouts import EpisodeColumns

pytest.importorskip("torch")

import torch
from tests.cuda.device_module import DeviceModule
from tests.pkg.policy.networks import late_infinity
from torch import nn

from doorstep.policy import Heads

CAPTURE_UNSUPPORTED = 900  # CUresult


def begin(sim, starts):
    """starts: world, seed, max_steps, level or None."""
    kept = {id(level): to_native(level) for *_, level in starts if level is not None}
    structs = (native.EpisodeStart * len(starts))()
    for struct, (world, seed, max_steps, level) in zip(structs, starts, strict=True):
        struct.world, struct.seed, struct.max_steps = world, seed, max_steps
        struct.level = None if level is None else ctypes.addressof(kept[id(level)])
    check(load().ds_simulator_begin(sim._session.handle, structs, len(starts)))


def test_given_episodes_are_the_same_on_both_devices():
    for num_agents, max_levels in ((1, 0), (2, 0), (2, 2), (5, 2)):
        table = [None]
        if max_levels:
            table += [level for level in levels.curated().values() if len(level.spawns) >= num_agents]
            table.append(levels.GeneratedLevel(room_types=("any", "any", "any"), episode_length=(5, 30)))
        with Twins(35, seed=3, num_agents=num_agents, max_levels=max_levels) as twins:
            twins.step_randomly(5)
            for attempt in range(4):
                worlds = np.random.default_rng(attempt).permutation(35)[: 1 + 10 * attempt].tolist()
                starts = [(w, 1000 * w + attempt, w % 3 * 4, table[w % len(table)]) for w in worlds]
                for sim in twins:
                    begin(sim, starts)
                twins.assert_same()
                twins.play(10, seed=attempt)


def test_a_level_is_uploaded_once_for_all_worlds_that_begin_with_it():
    worlds, table = 48, list(levels.curated().values())[:2]
    starts = [(world, world, 0, table[world % 2]) for world in range(worlds)]
    with doorstep.Simulator(worlds, device="cuda", max_levels=1) as sim:
        begin(sim, starts)
        sim.wait()
        driver.clear()
        begin(sim, starts)
        assert driver.report().waits <= 2  # for the staging memory
        assert 0 < driver.report().bus_bytes < worlds * ctypes.sizeof(to_native(table[0])) / 4


# ---- Engines


def linear():
    return nn.Linear(94, 19)


def networks():
    torch.manual_seed(3)
    plain = nn.Sequential(nn.Linear(94, 40), nn.LayerNorm(40), nn.Tanh(), nn.Linear(40, 19))
    recurrent = nn.Sequential(nn.Linear(94, 24), nn.GRU(24, 20), nn.LSTM(20, 24), nn.Linear(24, 19))
    return [plain, recurrent]


def on_device(modules, stream, arrays):
    policies = [DeviceModule(module, arrays).policy for module in modules]
    driver.synchronize(stream)
    return policies


def on_cuda(*arguments, devices=("cuda",), **rules):
    return RolloutConfig(SimulatorConfig(*arguments, **rules), devices=devices)


def requests_for(players, count, most, *, least=1, records=((),)):
    """Requests with players and records by turns, and all lengths from the least, as many as told."""
    turns = zip(range(count), itertools.cycle(players), itertools.cycle(records), strict=False)
    return [
        EpisodeRequest(seed=seed, max_steps=least + seed * 7 % most, policy=player, record=record)
        for seed, player, record in turns
    ]


def play(config, requests, **options):
    with RolloutEngine(config, **options) as engine:
        return results_of(engine, requests)


RECORDED = ("actions", "log_probs", "versions", "values", "states", "last_states", "observations", "rewards")


def assert_same_records(results, expected):
    assert_equal_results(results, expected)
    for result, other in zip(results, expected, strict=True):
        assert result.error == other.error
        for name in RECORDED:
            recorded, same = getattr(result, name), getattr(other, name)
            assert (recorded is None) == (same is None), name
            assert recorded is None or (recorded.shape, recorded.tobytes()) == (same.shape, same.tobytes()), name


def test_engines_play_the_same_episodes_on_both_devices():
    for max_levels in (0, 1):
        table = [None, *levels.curated().values()] if max_levels else [None]
        requests = requests_for(("random", walk, ("idle", walk)), 60, 30, records=((), ("observations", "stream")))
        requests = [replace(one, level=table[one.seed % len(table)]) for one in requests]
        rules = {"num_threads": 1, "max_levels": max_levels, "observations": SHUFFLED}
        expected = play(SimulatorConfig(7, **rules), requests)
        for devices in (("cuda",), ("cuda", "cpu")):
            assert_same_records(play(on_cuda(9, devices=devices, **rules), requests), expected)


@on_gpu()
def test_native_policies_act_on_the_gpu_with_the_cpus_results(stream, arrays):
    """Episodes of all lengths, of which several begin and end within most steps."""
    modules = networks()

    def requests_of(policies, records):
        players = ["random", "idle", *policies, (policies[0], "random"), (policies[1], policies[0])]
        if not records:
            return requests_for(players, 70, 23)
        return requests_for([*players, walk], 70, 23, records=[("observations",), *[()] * 4])

    rules = {"num_threads": 1, "observations": SHUFFLED}
    on_host, policies = [doorstep.load_policy(one).freeze() for one in modules], on_device(modules, stream, arrays)
    for records, devices in ((False, ("cuda", "cuda")), (True, ("cuda",))):
        expected = play(SimulatorConfig(9, **rules), requests_of(on_host, records))
        driver.clear()
        assert_same_records(play(on_cuda(9, devices=devices, **rules), requests_of(policies, records)), expected)
        assert records or "cuGraphLaunch" in driver.report().calls


@on_gpu()
def test_episodes_fail_alike_where_logits_are_not_finite(stream, arrays):
    modules = late_infinity(), linear()
    on_host, policies = [doorstep.load_policy(one) for one in modules], on_device(modules, stream, arrays)
    for records in ((), ("observations",)):

        def requests_of(failing, other, records=records):
            players = (failing, (other, failing), other, (failing, "idle"), ("random", failing), (walk, failing))
            return requests_for(players, 30, 3, least=8, records=[records])

        expected = play(SimulatorConfig(5, num_threads=1), requests_of(*on_host), on_error="return")
        assert {result.reason for result in expected} == {"failed", "time"}
        for pair in (policies, on_host, [policies[0], on_host[1]]):
            results = play(on_cuda(5), requests_of(*pair), on_error="return")
            assert_equal_results(results, expected)
            assert [result.error for result in results] == [result.error for result in expected]


def networks_with_values():
    """One without a memory, and two with memories of different sizes."""
    torch.manual_seed(4)

    def network(*layers):
        heads = Heads([nn.Linear(20, size) for size in doorstep.ACTIONS], value=nn.Linear(20, 1))
        return nn.Sequential(nn.Linear(94, 20), nn.Tanh(), *layers, heads)

    return [network(), network(nn.GRU(20, 20)), network(nn.LSTM(20, 33), nn.Linear(33, 20))]


@on_gpu()
def test_what_acting_records_is_the_same_on_both_devices(stream, arrays):
    modules, rules = networks_with_values(), {"num_threads": 1, "observations": SHUFFLED}
    records = ("observations", "log_probs", "values", "states"), ("states",), ("values", "stream"), ("log_probs",), ()

    def requests_of(plain, gru, lstm):
        players = (plain, gru, (lstm, gru), ("random", lstm), (plain, "idle"), (walk, gru))
        for one in requests_for(players, 30, 8, records=records):
            sampling = SamplingParams(temperature=0.5 + one.seed % 3, top_p=0.9, greedy=one.seed % 7 == 0)
            yield replace(one, sampling=sampling)

    on_host = [doorstep.load_policy(one).freeze() for one in modules]  # of version 0, as those on the device
    policies = on_device(modules, stream, arrays)
    expected = play(SimulatorConfig(5, **rules), requests_of(*on_host))
    assert any(result.states is not None and result.states.any() for result in expected)
    mixed = [policies[0], on_host[1], policies[2]]
    two = on_cuda(5, devices=("cuda", "cuda"), **rules)
    for config, those in ((on_cuda(5, **rules), policies), (two, on_host), (two, mixed)):
        assert_same_records(play(config, requests_of(*those)), expected)


@on_gpu()
def test_a_cancelled_episode_on_the_gpu_ends_with_the_state_after_its_last_step(stream, arrays):
    module, played = networks_with_values()[1], []

    def cancels(observations):
        played.append(len(observations))
        if len(played) == 6:
            engine.cancel(request_id)
        return np.zeros((len(observations), 4), np.int32)

    (policy,) = on_device([module], stream, arrays)
    with RolloutEngine(on_cuda(1)) as engine:
        request_id = engine.submit(EpisodeRequest(policy=(cancels, policy), record=("states", "observations")))
        (result,) = engine
    assert result.reason == "cancelled"
    assert 5 <= result.length <= 6
    on_host = doorstep.load_policy(module)
    state = on_host.initial_state(1, 1)
    for recorded, observations in zip(result.states, result.observations, strict=True):
        assert (recorded[1] == state).all()
        _, state = on_host(observations[None, 1:], state)
    assert (result.last_states[1] == state).all()


@on_gpu()
def test_what_steps_of_engines_cost(stream, arrays):
    """A step is one launch and one copy of ends; only worlds whose episodes end cross the bus; policies act side by
    side and share a module."""
    policies, requests = on_device([*networks(), linear()], stream, arrays), []
    with RolloutEngine(on_cuda(16)) as engine:
        driver.clear()
        engine.submit(EpisodeColumns(range(16), policy=policies[0], max_steps=150))
        assert len(list(engine)) == 16
        times = Counter(driver.report().calls)
        assert (times["cuGraphLaunch"], times["cuStreamBeginCapture"]) == (150, 1)
        assert times["cuLaunchKernel"] < 20  # captured once, and the begin of the episodes
        assert times["cuMemcpyAsync"] < 2 * 150 + 60
        assert times["cuStreamSynchronize"] < 150 + 60
        driver.clear()
        requests = [EpisodeRequest(seed=seed, policy=policies[seed % 3], max_steps=5) for seed in range(6)]
        assert len(results_of(engine, requests)) == 6
        calls = driver.report().calls
    assert driver.report().modules == 2  # of worlds, of policies
    last = len(calls) - 1 - calls[::-1].index("cuStreamBeginCapture")
    captured = calls[last : calls.index("cuStreamEndCapture", last)]
    assert captured.count("cuStreamWaitEvent") == 2 * (len(policies) - 1)
    with doorstep.Simulator(1) as sim, RolloutEngine(on_cuda(400)) as engine:
        for _ in range(2):
            driver.clear()
            engine.submit(EpisodeColumns([1], policy="random", max_steps=3))
            assert len(list(engine)) == 1
        assert 0 < driver.report().bus_bytes < 400 * len(sim.save()) / 2


@on_gpu()
def test_engines_and_captures_of_other_code_leave_each_other_alone(stream, arrays):
    policies = on_device(networks(), stream, arrays)
    with driver.users_stream() as side, Twins(4, stream=side) as (twin, sim), RolloutEngine(on_cuda(4)) as engine:

        def play_all():
            for policy in policies:
                engine.policies["now"] = policy
                engine.submit(EpisodeColumns(range(4), policy="now", max_steps=5))
                assert len(list(engine)) == 4

        play_all()
        with driver.RecordedGraph(side, driver.GLOBAL) as graph:
            sim.step()
            play_all()
        graph.launch()
        twin.step()
        assert sim.hash() == twin.hash()
    with RolloutEngine(on_cuda(4)) as engine:
        driver.clear()
        driver.fail("cuLaunchKernel", 2, CAPTURE_UNSUPPORTED)  # other code ends a capture; the first begins episodes
        ids = engine.submit(EpisodeColumns(range(4), policy="random", max_steps=5)).tolist()
        assert sorted(result.id for result in engine) == sorted(ids)
        assert driver.report().calls.count("cuStreamBeginCapture") == 2


def test_engines_on_gpus_close_at_any_moment():
    for steps in range(5):
        with RolloutEngine(on_cuda(4, devices=("cuda", "cuda"))) as engine:
            ids = engine.submit(EpisodeColumns(range(100), policy=walk)).tolist()
            while steps_of(engine) < 2 * steps:
                pass
        assert sorted(result.id for result in engine) == sorted(ids)


def logged_lines():
    """What is logged from now on, instead of being printed."""
    lines = queue.SimpleQueue()
    logging.getLogger("doorstep.rollouts").addHandler(QueueHandler(lines))
    return lines


def test_a_replica_on_the_gpu_that_fails_is_restarted():
    told = logged_lines()
    for function in ("cuMemcpyAsync", "cuGraphLaunch", "cuLaunchKernel"):
        requests = requests_for(("random",) if function == "cuGraphLaunch" else ("random", walk), 20, 9)
        expected = play(SimulatorConfig(4, num_threads=1), requests)
        with RolloutEngine(on_cuda(4).replace(max_restarts=2)) as engine:
            results_of(engine, requests[:2])
            for restarts in (1, 2):
                driver.fail(function, 5, driver.OUT_OF_MEMORY)
                assert_equal_results(results_of(engine, requests), expected)
                assert info_of(engine).restarts == restarts
            while not told.empty():
                assert "OutOfMemoryError" in told.get().getMessage()
            assert engine.replicas == (0,)
            driver.fail(function, 5, driver.OUT_OF_MEMORY)
            engine.submit([replace(request, max_steps=None) for request in requests])
            with pytest.raises(doorstep.StateError, match="OutOfMemoryError"):
                list(engine)
            assert not engine.replicas
            while engine.outstanding:
                with contextlib.suppress(doorstep.StateError):
                    engine.get_outputs()
        driver.clear()


def test_continuations_are_the_same_on_both_devices():
    for max_levels in (0, 1):
        rules = {"num_threads": 1, "max_levels": max_levels}
        with doorstep.Simulator(3, seed=5, device="cuda", **rules) as sim:
            for step in range(9):
                sim.actions = np.random.default_rng(step).integers(0, (4, 8, 5, 2), (3, 2, 4), np.int32)
                sim.step()
            states = [sim.save([world]) for world in range(3)]
        requests = requests_for(("random", walk), 12, 12, least=10, records=[(), *[("observations", "stream")] * 3])
        requests = [replace(one, state=states[one.seed % 3], n=2) for one in requests]
        with RolloutEngine(SimulatorConfig(7, **rules)) as engine:
            expected = engine.run([replace(request, record=()) for request in requests])
        assert_equal_results(play(on_cuda(2, devices=("cuda", "cpu"), **rules), requests), expected)
