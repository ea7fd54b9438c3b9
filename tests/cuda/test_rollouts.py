"""Episodes with seeds and levels of their own, and engines, give the same bits on both devices."""

import contextlib
import ctypes
import dataclasses
import logging
from typing import Any

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.twins import Twins
from tests.cuda.users_memory import UsersArrays
from tests.pkg.rollouts.playing import SHUFFLED, assert_equal_results, results_of, steps_of, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, levels
from doorstep._native import _generated as native
from doorstep._native.calls import check
from doorstep._native.library import load
from doorstep.levels.native import to_native
from doorstep.policy import SamplingParams
from doorstep.rollouts import PriorityScheduler, core
from doorstep.rollouts.request import Recorded

pytest.importorskip("torch")

import torch
from tests.cuda.device_module import DeviceModule
from tests.pkg.policy.networks import late_infinity

from doorstep.policy import Heads

CAPTURE_UNSUPPORTED = 900  # CUresult


def begin(sim: doorstep.Simulator, starts: list[tuple[int, int, int, Any]]) -> None:
    """starts: world, seed, max_steps, level or None."""
    kept = [None if level is None else to_native(level) for *_, level in starts]
    structs = (native.EpisodeStart * len(starts))()
    for struct, (world, seed, max_steps, _), level in zip(structs, starts, kept, strict=True):
        struct.world, struct.seed, struct.max_steps = world, seed, max_steps
        struct.level = None if level is None else ctypes.addressof(level)
    check(load().ds_simulator_begin(sim._session.handle, structs, len(starts)))


@pytest.mark.parametrize("max_levels", [0, 2])
@pytest.mark.parametrize("num_agents", [1, 2, 5])
@on_stand_in()
def test_given_episodes_are_the_same_on_both_devices(num_agents: int, max_levels: int) -> None:
    table: list[Any] = [None]
    if max_levels:
        table += [level for level in levels.curated().values() if len(level.spawns) >= num_agents]
        table.append(levels.GeneratedLevel(room_types=("any", "any", "any"), episode_length=(5, 30)))
    options: dict[str, Any] = {"num_agents": num_agents, "max_levels": max_levels}
    with Twins(35, seed=3, **options) as twins:
        twins.step_randomly(5)
        for attempt in range(6):
            worlds = np.random.default_rng(attempt).permutation(35)[: 1 + 6 * attempt].tolist()
            starts = [(w, 1000 * w + attempt, w % 3 * 4, table[w % len(table)]) for w in worlds]
            for sim in twins.both():
                begin(sim, starts)
            twins.assert_same()
            twins.step_randomly(10, seed=attempt)
            twins.assert_same()


def _requests(max_levels: int) -> list[EpisodeRequest]:
    table = [None, *levels.curated().values()] if max_levels else [None]
    policies = ("random", walk, ("idle", walk))
    return [
        EpisodeRequest(
            seed=seed,
            max_steps=1 + seed * 7 % 30,
            policy=policies[seed % 3],
            level=table[seed % len(table)],
            record=("observations", "stream") if seed % 2 else (),
        )
        for seed in range(60)
    ]


@pytest.mark.parametrize("max_levels", [0, 1])
@on_stand_in()
def test_engines_play_the_same_episodes_on_both_devices(max_levels: int) -> None:
    requests = _requests(max_levels)
    rules: dict[str, Any] = {"num_threads": 1, "max_levels": max_levels, "observations": SHUFFLED}
    with RolloutEngine(SimulatorConfig(7, **rules)) as engine:
        expected = results_of(engine, requests)
    for devices in (("cuda",), ("cuda", "cpu")):
        config = RolloutConfig(SimulatorConfig(9, **rules), devices=devices)
        with RolloutEngine(config) as engine:
            results = results_of(engine, requests)
        assert_equal_results(results, expected)
        for result, other in zip(results, expected, strict=True):
            if result.observations is not None:
                assert (result.observations == other.observations).all()
                assert (result.rewards == other.rewards).all()
                assert (result.actions == other.actions).all()


def _networks() -> list[Any]:
    torch.manual_seed(3)
    nn = torch.nn
    plain = nn.Sequential(nn.Linear(94, 40), nn.LayerNorm(40), nn.Tanh(), nn.Linear(40, 19))
    recurrent = nn.Sequential(nn.Linear(94, 24), nn.GRU(24, 20), nn.LSTM(20, 24), nn.Linear(24, 19))
    return [plain, recurrent]


def _play(policies: list[Any], config: RolloutConfig, records: bool) -> list[Any]:
    """Episodes of all lengths, of which several begin and end within most steps."""
    players = ["random", "idle", *policies, (policies[0], "random"), (policies[1], policies[0])]
    players += [walk] if records else []
    requests = [
        EpisodeRequest(
            seed=seed,
            max_steps=1 + seed * 7 % 23,
            policy=players[seed % len(players)],
            record=("observations",) if records and seed % 5 == 0 else (),
        )
        for seed in range(90)
    ]
    with RolloutEngine(config) as engine:
        return results_of(engine, requests)


@pytest.mark.parametrize("records", [False, True])
@on_stand_in()
def test_native_policies_act_on_the_gpu_with_the_cpus_results(records: bool) -> None:
    modules = _networks()
    simulators = SimulatorConfig(9, num_threads=1, observations=SHUFFLED)
    expected = _play([doorstep.load_policy(one) for one in modules], RolloutConfig(simulators), records)
    with driver.users_stream() as stream:
        policies = [DeviceModule(one, UsersArrays(stream)).policy for one in modules]
        driver.synchronize(stream)
        for devices in (("cuda",), ("cuda", "cuda")):
            driver.clear()
            results = _play(policies, RolloutConfig(simulators, devices=devices), records)
            assert_equal_results(results, expected)
            assert records or "cuGraphLaunch" in driver.report().calls
        del policies


@on_stand_in()
def test_episodes_fail_alike_where_logits_are_not_finite() -> None:
    module, walker = late_infinity(), torch.nn.Linear(94, 19)
    simulators = SimulatorConfig(5, num_threads=1)

    def play(policies: list[Any], config: RolloutConfig, records: tuple[Any, ...]) -> list[Any]:
        failing, other = policies
        players = (failing, (other, failing), other, (failing, "idle"), ("random", failing), (walk, failing))
        requests = [
            EpisodeRequest(seed=seed, max_steps=8 + seed % 3, policy=players[seed % len(players)], record=records)
            for seed in range(30)
        ]
        with RolloutEngine(config, on_error="return") as engine:
            return results_of(engine, requests)

    policies = [doorstep.load_policy(one) for one in (module, walker)]
    with driver.users_stream() as stream:
        on_device = [DeviceModule(one, UsersArrays(stream)).policy for one in (module, walker)]
        driver.synchronize(stream)
        on_cuda = RolloutConfig(simulators, devices=("cuda",))
        for records in ((), ("observations",)):
            expected = play(policies, RolloutConfig(simulators), records)
            assert {result.reason for result in expected} == {"failed", "time"}
            for pair in (on_device, policies, [on_device[0], policies[1]]):
                results = play(pair, on_cuda, records)
                assert_equal_results(results, expected)
                assert [result.error for result in results] == [result.error for result in expected]
        del on_device, pair


def _networks_with_values() -> list[Any]:
    """One without a memory, and two with memories of different sizes."""
    torch.manual_seed(4)
    nn = torch.nn

    def network(*layers: Any) -> Any:
        heads = Heads([nn.Linear(20, size) for size in doorstep.ACTIONS], value=nn.Linear(20, 1))
        return nn.Sequential(nn.Linear(94, 20), nn.Tanh(), *layers, heads)

    return [network(), network(nn.GRU(20, 20)), network(nn.LSTM(20, 33), nn.Linear(33, 20))]


def _recorded(policies: list[Any], config: RolloutConfig) -> list[Any]:
    plain, gru, lstm = policies
    players = (plain, gru, (lstm, gru), ("random", lstm), (plain, "idle"), (walk, gru))
    records: tuple[tuple[Recorded, ...], ...] = (
        ("observations", "log_probs", "values", "states"), ("states",), ("values", "stream"), ("log_probs",), (),
    )  # fmt: skip
    requests = [
        EpisodeRequest(
            seed=seed,
            max_steps=1 + seed * 5 % 7,
            policy=players[seed % len(players)],
            sampling=SamplingParams(temperature=0.5 + seed % 3, top_p=0.9, greedy=seed % 7 == 0),
            priority=seed,
            record=records[seed % len(records)],
        )
        for seed in range(30)
    ]
    with RolloutEngine(config) as engine:
        ids = [one for request in requests for one in engine.submit([request])]  # each is the most urgent one
        results = {result.id: result for result in engine}
    return [results[one] for one in ids]


def _assert_same_records(results: list[Any], expected: list[Any]) -> None:
    assert_equal_results(results, expected)
    names = ("actions", "log_probs", "versions", "values", "states", "last_states", "observations", "rewards")
    for result, other in zip(results, expected, strict=True):
        for name in names:
            recorded, same = getattr(result, name), getattr(other, name)
            assert (recorded is None) == (same is None), name
            assert recorded is None or (recorded.shape, recorded.tobytes()) == (same.shape, same.tobytes()), name


@on_stand_in()
def test_what_acting_records_is_the_same_on_both_devices() -> None:
    modules = _networks_with_values()
    simulators = SimulatorConfig(5, num_threads=1, observations=SHUFFLED)
    on_host = [doorstep.load_policy(one).freeze() for one in modules]  # of version 0, as those on the device
    expected = _recorded(on_host, RolloutConfig(simulators))
    assert any(result.states is not None and result.states.any() for result in expected)
    with driver.users_stream() as stream:
        on_device = [DeviceModule(one, UsersArrays(stream)).policy for one in modules]
        driver.synchronize(stream)
        on_cuda = RolloutConfig(simulators, devices=("cuda",))
        preempts = on_cuda.replace(devices=("cuda", "cuda"), scheduler=PriorityScheduler(preempts=True))
        _assert_same_records(_recorded(on_device, on_cuda), expected)
        _assert_same_records(_recorded(on_host, preempts), expected)
        _assert_same_records(_recorded([on_device[0], on_host[1], on_device[2]], preempts), expected)
        del on_device


@on_stand_in()
def test_a_cancelled_episode_on_the_gpu_ends_with_the_state_after_its_last_step() -> None:
    module = _networks_with_values()[1]
    played: list[int] = []

    def cancels(observations: Any) -> Any:
        played.append(len(observations))
        if len(played) == 6:
            engine.cancel(request_id)
        return np.zeros((len(observations), 4), np.int32)

    with driver.users_stream() as stream:
        policy = DeviceModule(module, UsersArrays(stream)).policy
        driver.synchronize(stream)
        with RolloutEngine(RolloutConfig(SimulatorConfig(1), devices=("cuda",))) as engine:
            request_id = engine.submit(EpisodeRequest(policy=(cancels, policy), record=("states", "observations")))
            (result,) = engine
        del policy
    assert result.reason == "cancelled"
    assert 5 <= result.length <= 6
    assert result.states is not None
    assert result.last_states is not None
    assert result.observations is not None
    with torch.no_grad():
        state = torch.zeros(1, 20)
        for step in range(result.length):
            assert np.allclose(result.states[step, 1], state[0], atol=1e-5)
            inputs = module[1](module[0](torch.from_numpy(result.observations[step, 1:].copy())))
            state = module[2](inputs[None], state[None])[1][0]
    assert np.allclose(result.last_states[1], state[0], atol=1e-5)


@on_stand_in()
def test_a_step_on_the_gpu_is_one_launch_and_one_copy_of_ends() -> None:
    module = _networks()[0]
    with driver.users_stream() as stream:
        policy = DeviceModule(module, UsersArrays(stream)).policy
        driver.synchronize(stream)
        with RolloutEngine(RolloutConfig(SimulatorConfig(16), devices=("cuda",))) as engine:
            driver.clear()
            engine.submit_batch(range(16), policy=policy, max_steps=150)
            assert len(list(engine)) == 16
            calls = driver.report().calls
        steps = calls.count("cuGraphLaunch")
        assert steps == 150
        assert calls.count("cuStreamBeginCapture") == 1
        assert calls.count("cuLaunchKernel") < 20  # captured once, and the begin of the episodes
        assert calls.count("cuMemcpyAsync") < 2 * steps + 60
        assert calls.count("cuStreamSynchronize") < steps + 60
        del policy


@on_stand_in()
def test_only_the_worlds_whose_episodes_end_cross_the_bus() -> None:
    worlds = 400
    with doorstep.Simulator(1) as sim:
        world_bytes = len(sim.save())
    with RolloutEngine(RolloutConfig(SimulatorConfig(worlds), devices=("cuda",))) as engine:
        engine.submit_batch([1], policy="random", max_steps=3)
        assert len(list(engine)) == 1
        driver.clear()
        engine.submit_batch([1], policy="random", max_steps=3)
        assert len(list(engine)) == 1
        assert driver.report().bus_bytes < worlds * world_bytes / 2


@on_stand_in()
def test_policies_act_side_by_side_and_share_a_module() -> None:
    modules = [*_networks(), torch.nn.Linear(94, 19)]
    with driver.users_stream() as stream:
        policies = [DeviceModule(one, UsersArrays(stream)).policy for one in modules]
        driver.synchronize(stream)
        with RolloutEngine(RolloutConfig(SimulatorConfig(6), devices=("cuda",))) as engine:
            requests = [EpisodeRequest(seed=seed, policy=policies[seed % 3], max_steps=5) for seed in range(6)]
            assert len(results_of(engine, requests)) == 6
            calls = driver.report().calls
        assert calls.count("cuModuleLoadDataEx") == 2  # of worlds, of policies
        begin, end = calls.index("cuStreamBeginCapture"), calls.index("cuStreamEndCapture")
        assert calls[begin:end].count("cuStreamWaitEvent") == 2 * (len(policies) - 1)
        del policies, requests


@on_stand_in()
def test_a_capture_that_other_code_ends_is_repeated() -> None:
    with RolloutEngine(RolloutConfig(SimulatorConfig(4), devices=("cuda",))) as engine:
        driver.clear()
        driver.fail("cuLaunchKernel", 2, CAPTURE_UNSUPPORTED)  # the first begins the episodes
        ids = engine.submit_batch(range(4), policy="random", max_steps=5).tolist()
        assert sorted(result.id for result in engine) == sorted(ids)
        assert driver.report().calls.count("cuStreamBeginCapture") == 2


@on_stand_in()
def test_engines_leave_captures_of_other_code_alone() -> None:
    modules = _networks()
    with (
        driver.users_stream() as stream,
        driver.users_stream() as recorded,
        doorstep.Simulator(4, device="cuda", stream=recorded) as sim,
        doorstep.Simulator(4) as twin,
    ):
        devices = [DeviceModule(one, UsersArrays(stream)) for one in modules]
        driver.synchronize(stream)
        with RolloutEngine(RolloutConfig(SimulatorConfig(4), devices=("cuda",))) as engine:
            for device in devices:
                engine.policies["now"] = device.policy
                engine.submit_batch(range(4), policy="now", max_steps=5)
                list(engine)
            with driver.RecordedGraph(recorded, driver.GLOBAL) as graph:
                sim.step()
                for device in devices:
                    engine.policies["now"] = device.policy
                    engine.submit_batch(range(4), policy="now", max_steps=5)
                    assert len(list(engine)) == 4
        graph.launch()
        twin.step()
        assert sim.hash() == twin.hash()
        graph.close()
        del devices, device


@on_stand_in()
def test_a_level_is_uploaded_once_for_all_worlds_that_begin_with_it() -> None:
    worlds = 48
    table = list(levels.curated().values())[:2]
    kept = [to_native(level) for level in table]
    structs = (native.EpisodeStart * worlds)()
    for world, struct in enumerate(structs):
        struct.world, struct.seed, struct.level = world, world, ctypes.addressof(kept[world % 2])
    with doorstep.Simulator(worlds, device="cuda", max_levels=1) as sim:
        check(load().ds_simulator_begin(sim._session.handle, structs, worlds))
        sim.wait()
        driver.clear()
        check(load().ds_simulator_begin(sim._session.handle, structs, worlds))
        assert driver.report().waits <= 2  # for the staging memory
        assert driver.report().bus_bytes < worlds * ctypes.sizeof(kept[0]) / 4


@on_stand_in()
def test_episodes_with_a_policy_of_another_device_fail_and_say_why() -> None:
    with driver.users_stream() as stream:
        policy = DeviceModule(_networks()[0], UsersArrays(stream)).policy
        driver.synchronize(stream)
        with RolloutEngine(SimulatorConfig(4), on_error="return") as engine:
            engine.submit(EpisodeRequest(seed=1, policy=policy))
            (result,) = engine
        assert result.reason == "failed"
        assert "on a CUDA device where the replica is not" in result.error
        del policy


@on_stand_in()
def test_engines_on_gpus_close_at_any_moment() -> None:
    for steps in range(5):
        with RolloutEngine(RolloutConfig(SimulatorConfig(4), devices=("cuda", "cuda"))) as engine:
            ids = engine.submit_batch(range(100), policy=walk).tolist()
            while steps_of(engine) < 2 * steps:
                pass
        assert sorted(result.id for result in engine) == sorted(ids)


class _Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.mark.parametrize("function", ["cuMemcpyAsync", "cuGraphLaunch", "cuLaunchKernel"])
@on_stand_in()
def test_a_replica_on_the_gpu_that_fails_is_restarted(function: str) -> None:
    policies = ("random",) if function == "cuGraphLaunch" else ("random", walk)
    requests = [
        EpisodeRequest(seed=seed, max_steps=1 + seed % 9, policy=policies[seed % len(policies)]) for seed in range(20)
    ]
    simulators, told = SimulatorConfig(4, num_threads=1), _Lines()
    logging.getLogger("doorstep.rollouts").addHandler(told)
    with RolloutEngine(simulators) as engine:
        expected = results_of(engine, requests)
    with RolloutEngine(RolloutConfig(simulators, devices=("cuda",), max_restarts=2)) as engine:
        results_of(engine, requests[:2])
        for restarts in (1, 2):
            driver.fail(function, 5, driver.OUT_OF_MEMORY)
            assert_equal_results(results_of(engine, requests), expected)
            assert engine._core.handle.info().restarts == restarts
        assert all("OutOfMemoryError" in line for line in told.lines)
        assert engine.replicas == (0,)
        driver.fail(function, 5, driver.OUT_OF_MEMORY)
        engine.submit([dataclasses.replace(request, max_steps=None) for request in requests])
        with pytest.raises(doorstep.StateError, match="OutOfMemoryError"):
            list(engine)
        assert not engine.replicas
        while engine.outstanding:
            with contextlib.suppress(doorstep.StateError):
                engine.get_outputs()


@on_stand_in(devices=2)
def test_a_replica_of_the_current_device_stays_there_when_it_is_restarted() -> None:
    logging.getLogger("doorstep.rollouts").addHandler(_Lines())
    core.resolve_device = lambda device: device  # type: ignore[attr-defined]  # the library chooses
    module = _networks()[0]
    with driver.users_stream() as stream:
        of_first = DeviceModule(module, UsersArrays(stream)).policy
        driver.synchronize(stream)
        with driver.users_context(1):
            engine = RolloutEngine(RolloutConfig(SimulatorConfig(4), devices=("cuda",)), on_error="return")
        with engine:
            for restarts in (0, 1):
                assert engine._core.handle.info().restarts == restarts
                (result,) = engine.run([EpisodeRequest(policy=of_first, max_steps=2)])
                assert "on a CUDA device where the replica is not" in result.error
                driver.fail("cuMemcpyAsync", 2, driver.OUT_OF_MEMORY)
                assert all(result.finished for result in engine.run([EpisodeRequest(max_steps=9)] * 5))
        del of_first


@on_stand_in()
def test_replicas_on_the_gpu_wait_for_room() -> None:
    requests = [
        EpisodeRequest(seed=seed, max_steps=1 + seed % 7, policy=policy, record=("stream", "actions"))
        for seed, policy in enumerate(("random", walk) * 15)
    ]
    simulators = SimulatorConfig(4, num_threads=1)
    with RolloutEngine(simulators) as engine:
        expected = results_of(engine, requests)
    config = RolloutConfig(simulators, devices=("cuda", "cpu"))
    for limited in (config.replace(output_capacity=3), config.replace(output_bytes=100)):
        with RolloutEngine(limited) as engine:
            ids = engine.submit(requests)
            while not engine._core.handle.info().full_readers:
                pass
            assert engine.num_outputs <= 3
            results = {result.id: result for result in engine}
        assert_equal_results([results[one] for one in ids], expected)


@pytest.mark.parametrize("max_levels", [0, 1])
@on_stand_in()
def test_continuations_and_interruptions_are_the_same_on_both_devices(max_levels: int) -> None:
    rules: dict[str, Any] = {"num_threads": 1, "max_levels": max_levels}
    with doorstep.Simulator(3, seed=5, device="cuda", **rules) as sim:
        for step in range(9):
            sim.actions = np.random.default_rng(step).integers(0, (4, 8, 5, 2), (3, 2, 4), np.int32)
            sim.step()
        states = [sim.save([world]) for world in range(3)]
    requests = [
        EpisodeRequest(
            state=states[number % 3],
            policy=("random", walk)[number % 2],
            seed=number,
            max_steps=10 + number,
            priority=number,
            record=("observations", "stream") if number % 4 else (),
            n=2,
        )
        for number in range(12)
    ]
    with RolloutEngine(SimulatorConfig(7, **rules)) as engine:
        expected = engine.run([dataclasses.replace(request, record=()) for request in requests])
    scheduler = PriorityScheduler(preempts=True)
    config = RolloutConfig(SimulatorConfig(2, **rules), scheduler=scheduler, devices=("cuda", "cpu"))
    with RolloutEngine(config) as engine:
        ids = [one for request in requests for one in engine.submit([request])]
        results = {result.id: result for result in engine}
    assert_equal_results([results[one] for one in ids], expected)
