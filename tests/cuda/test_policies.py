"""Policies on a GPU: the CPU's bits, on the caller's stream, with the weights where they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.stand_in_driver import WAITING
from tests.cuda.users_memory import UsersArrays
from tests.pkg.rollouts.playing import results_of

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, cuda, load_policy
from doorstep._native._generated import DeviceKind, LayerKind, WeightType
from doorstep._native.policies import LayerHandle, LayerWeights, PolicyHandle
from doorstep.policy import SamplingParams
from doorstep.policy.playing import Player

pytest.importorskip("torch")

import torch
from tests.cuda.device_module import DeviceModule
from tests.pkg.policy.networks import NUM_INPUTS, observe

from doorstep.policy import Heads

GREEDY = SamplingParams(greedy=True)


def every_activation(dtype: torch.dtype) -> Any:
    nn = torch.nn
    kinds = [nn.ReLU(), nn.LeakyReLU(0.2), nn.ELU(), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.GELU(), nn.GELU("tanh")]
    kinds += [nn.ReLU6(), nn.CELU(), nn.SELU(), nn.Mish(), nn.Hardsigmoid(), nn.Hardswish(), nn.Softsign()]
    kinds += [nn.Softplus()]
    hidden = [module for kind in kinds for module in (nn.Linear(70, 70), kind)]
    heads = Heads(nn.Linear(70, size) for size in doorstep.ACTIONS)
    return nn.Sequential(nn.Linear(NUM_INPUTS, 70), nn.LayerNorm(70), nn.RMSNorm(70), *hidden, heads).to(dtype)


def recurrent(dtype: torch.dtype) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(NUM_INPUTS, 40), nn.LSTM(40, 33), nn.GRU(33, 70, num_layers=2), nn.Linear(70, 19)
    ).to(dtype)


def wide(dtype: torch.dtype) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(NUM_INPUTS, 900), nn.Tanh(), nn.Linear(900, 19)).to(dtype)


NETWORKS = {"activations": every_activation, "recurrent": recurrent, "wide": wide}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("network", NETWORKS)
@on_stand_in()
def test_logits_states_and_actions_are_the_cpus(network: str, dtype: str) -> None:
    _check_same(network, dtype)


@on_stand_in(compute_capability=75)
def test_networks_that_shared_memory_cannot_hold_give_the_same() -> None:
    for network in NETWORKS:
        _check_same(network, "float32")


def _check_same(network: str, dtype: str) -> None:
    torch.manual_seed(1)
    module = NETWORKS[network](getattr(torch, dtype))
    sampling = SamplingParams(temperature=0.7, top_p=0.9, seed=5)
    expected = load_policy(module, sampling=sampling)
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        policy = DeviceModule(module, arrays, sampling).policy
        assert (policy.device, policy.state_size, policy.num_inputs) == ("cuda:0", expected.state_size, NUM_INPUTS)
        for num_worlds in (1, 16, 37):
            observations = observe(num_worlds, 2).numpy()
            state: Any = expected.initial_state(num_worlds, 2) if expected.state_size else None
            on_device = arrays.upload(state) if state is not None else None
            for steps in (None, 3, np.arange(num_worlds)):
                seeds = None if steps is None else np.arange(num_worlds) * 7
                actions = expected.act(observations, state, step=steps, seeds=seeds)
                found = policy.act(arrays.upload(observations), on_device, step=steps, seeds=seeds)
                assert (found.read() == actions).all()
            if on_device is not None:
                assert on_device.read().tobytes() == state.tobytes()
            logits = policy.forward(arrays.upload(observations)).read()
            assert logits.tobytes() == expected.forward(observations).tobytes()
        driver.synchronize(stream)
        del policy


@on_stand_in()
def test_a_policy_acts_on_a_simulator_without_waiting() -> None:
    module = every_activation(torch.float32)
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        policy = DeviceModule(module, arrays, SamplingParams(seed=1)).policy
        expected = load_policy(module, sampling=SamplingParams(seed=1))
        options: dict[str, Any] = {"seed": 3}
        with (
            doorstep.Simulator(20, device="cuda", stream=cuda.Stream.from_handle(stream, 0), **options) as sim,
            doorstep.Simulator(20, **options) as twin,
        ):
            policy.act(sim.observations, step=0)
            driver.clear()
            for step in range(12):
                sim.actions = policy.act(sim.observations, step=step)
                sim.step()
                twin.actions = expected.act(twin.observations, step=step)
                twin.step()
            assert not WAITING & set(driver.report().calls)
            assert sim.observations.copy_to_host().tobytes() == twin.observations.to_numpy().tobytes()
        del policy


@on_stand_in()
def test_an_optimisers_step_is_seen_and_a_frozen_policy_keeps_its_weights() -> None:
    module = wide(torch.float32)
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        device = DeviceModule(module, arrays)
        observations = observe(5, 2).numpy()
        before = load_policy(module).forward(observations)
        frozen = device.policy.freeze()
        with torch.no_grad():
            module[0].weight.mul_(1.5)
        device.update(module[0].weight)
        after = load_policy(module).forward(observations)
        assert device.policy.forward(arrays.upload(observations)).read().tobytes() == after.tobytes()
        policy = device.policy
        del device
        assert frozen.forward(arrays.upload(observations)).read().tobytes() == before.tobytes()
        driver.synchronize(stream)
        del policy, frozen


@on_stand_in()
def test_rows_without_a_choice_are_counted() -> None:
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        policy = DeviceModule(wide(torch.float32), arrays).policy
        observations = observe(40, 2).numpy()
        observations[3:20, 1] = np.nan
        actions = policy.act(arrays.upload(observations), sampling=GREEDY).read()
        assert (actions[3:20, 1] == doorstep.NEUTRAL_ACTION).all()
        assert policy.nonfinite_rows == 17
        del policy


@on_stand_in()
def test_a_captured_call_reads_its_step_from_the_gpu() -> None:
    module = wide(torch.float32)
    sampling = SamplingParams(seed=2, temperature=3)
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        policy = DeviceModule(module, arrays, sampling).policy
        expected = load_policy(module, sampling=sampling)
        given = observe(30, 2).numpy()
        observations = arrays.upload(given)
        counter: Any = arrays.upload(np.zeros(1, np.int32))
        counter.device, counter.dtype = "cuda:0", "torch.int32"  # as a tensor of PyTorch has them
        with driver.RecordedGraph(stream, driver.GLOBAL) as graph:
            actions = policy.act(observations, step=counter)
        for step in (0, 4, 2**31 + 5):
            number = np.array([step], np.uint32)
            driver.copy(stream, counter.pointer, number.ctypes.data, 4)
            graph.launch()
            assert (actions.read() == expected.act(given, step=step)).all()
        assert (policy.act(observations, step=7).read() == expected.act(given, step=7)).all()  # with the same keys
        graph.close()
        counter.device = SimpleNamespace(index=0)
        del policy


@on_stand_in()
def test_a_graph_reads_what_it_was_given_however_many_calls_follow() -> None:
    module, given = wide(torch.float32), observe(30, 2).numpy()
    sampling = SamplingParams(seed=2, temperature=3)
    expected = load_policy(module, sampling=sampling)
    seeds = np.arange(30) * 3
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        policy = DeviceModule(module, arrays, sampling).policy
        observations = arrays.upload(given)
        policy.act(observations, step=1)
        arrays.forget()
        with driver.RecordedGraph(stream) as graph:
            actions = policy.act(observations, step=1)
            of_seeds = policy.act(observations, step=1, seeds=seeds)
        for other in range(40):
            policy.act(observations, step=1, sampling=sampling.replace(seed=other, temperature=1 + other))
            arrays.forget()
        graph.launch()
        assert (actions.read() == expected.act(given, step=1)).all()
        assert (of_seeds.read() == expected.act(given, step=1, seeds=seeds)).all()
        graph.close()
        del policy


@on_stand_in()
def test_calls_on_several_streams_are_executed_in_their_order() -> None:
    module = recurrent(torch.float32)
    expected = load_policy(module, sampling=GREEDY)
    observations = observe(9, 2).numpy()
    state = expected.initial_state(9, 2)
    with driver.users_stream() as first, driver.users_stream() as second:
        arrays = UsersArrays(first)
        policy = DeviceModule(module, arrays, GREEDY).policy
        inputs, on_device = arrays.upload(observations), arrays.upload(state)
        driver.synchronize(first)
        for step in range(6):
            arrays._stream = (first, second)[step % 2]
            policy.act(inputs, on_device, step=step)
            expected.act(observations, state, step=step)
        driver.synchronize(first)
        driver.synchronize(second)
        assert on_device.read().tobytes() == state.tobytes()
        del policy


@on_stand_in()
def test_a_policy_with_memory_returns_the_next_state_on_the_gpu() -> None:
    module, observations = recurrent(torch.float32), observe(9, 2).numpy()
    expected = load_policy(module, sampling=GREEDY)
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        policy = DeviceModule(module, arrays, GREEDY).policy
        state = on_device = None
        for _ in range(3):
            actions, state = expected(observations, state)
            found, following = policy(arrays.upload(observations), on_device)
            assert on_device is None or on_device.read().tobytes() != following.read().tobytes()
            on_device = following
            assert (found.read() == actions).all()
            assert on_device.read().tobytes() == state.tobytes()
        del policy


@on_stand_in()
def test_arrays_of_the_host_are_refused() -> None:
    with driver.users_stream() as stream:
        policy = DeviceModule(wide(torch.float32), UsersArrays(stream)).policy
        with pytest.raises(doorstep.ArgumentError, match=r"observations is float32 on cpu; it must be .* on cuda:0"):
            policy.act(observe(3, 2))
        on_cpu = load_policy(wide(torch.float32))
        with (
            doorstep.Simulator(3, device="cuda") as sim,
            pytest.raises(doorstep.ArgumentError, match=r"on cuda:0; it must be .* in the host's memory"),
        ):
            on_cpu.act(sim.observations)
        del policy


@on_stand_in()
def test_players_play_policies_of_both_devices_and_give_functions_what_is_on_the_gpu() -> None:
    torch.manual_seed(2)
    module = wide(torch.float32)
    given: list[Any] = []

    def walk(observations: Any) -> NDArray[np.int32]:
        given.append(observations)
        return np.full((*observations.shape[:-1], 4), (2, 1, 3, 0), np.int32)

    def walk_by_tensors(tensors: Any) -> NDArray[np.int32]:
        return walk(tensors["observations"])

    walk_by_tensors.observes = "tensors"  # type: ignore[attr-defined]
    on_cpu = load_policy(module, sampling=SamplingParams(seed=4))
    with driver.users_stream() as stream:
        on_gpu = DeviceModule(module, UsersArrays(stream), SamplingParams(seed=4)).policy
        for here, there in ((on_gpu, on_cpu), (on_cpu, on_cpu), *((one, one) for one in (load_policy("random"), walk))):
            with doorstep.Simulator(5, seed=3, device="cuda") as sim, doorstep.Simulator(5, seed=3) as twin:
                players = Player(here, sim), Player(there, twin)
                for _ in range(4):
                    for player, one in zip(players, (sim, twin), strict=True):
                        player.act()
                        one.step()
                sim.wait()
                assert (sim.world_hashes() == twin.world_hashes()).all(), here
        with doorstep.Simulator(5, device="cuda") as sim:
            Player(walk_by_tensors, sim).act()
            assert given[0].device == given[-1].device == "cuda:0"
        del on_gpu, here


# ---- The precision bfloat16: other bits


def _distance(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    """As a part of the expected numbers' length."""
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("network", NETWORKS)
@on_stand_in()
def test_bf16_gives_logits_and_states_near_the_exact_ones(network: str) -> None:
    torch.manual_seed(1)
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        exact = DeviceModule(NETWORKS[network](torch.float32), arrays, GREEDY).policy
        policy = load_policy(exact, precision="bfloat16")
        assert (exact.precision, policy.precision) == ("float32", "bfloat16")
        observations = arrays.upload(observe(20, 2).numpy())
        states: list[Any] = [one.initial_state(20, 2) if one.state_size else None for one in (policy, exact)]
        logits, expected = policy.forward(observations, states[0]), exact.forward(observations, states[1])
        assert 0 < _distance(logits.read(), expected.read()) < 0.05
        if policy.state_size:
            assert 0 < _distance(states[0].read(), states[1].read()) < 0.05
        for same in (policy.freeze(), policy.seeded(3), load_policy(policy), load_policy(policy, sampling=GREEDY)):
            assert same.precision == "bfloat16"
            assert same.forward(observations).read().tobytes() == logits.read().tobytes()
        back = load_policy(policy, precision="float32")
        assert back.forward(observations).read().tobytes() == expected.read().tobytes()
        driver.synchronize(stream)
        del exact, policy, same, back


@on_stand_in()
def test_bf16_rounds_what_it_multiplies_and_adds_in_single_precision() -> None:
    torch.manual_seed(2)
    module, given = torch.nn.Linear(NUM_INPUTS, 19), observe(30, 2)
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        policy = DeviceModule(module, arrays).policy.with_precision("bfloat16")
        found = policy.forward(arrays.upload(given.numpy())).read()
        del policy
    values, weights = given.bfloat16().double(), module.weight.detach().bfloat16().double()
    bias = module.bias.detach().double()
    error = np.abs(found - (values @ weights.T + bias).numpy())
    assert (error <= NUM_INPUTS * 2**-22 * (values.abs() @ weights.abs().T + bias.abs()).numpy()).all()


@on_stand_in()
def test_engines_play_policies_of_bf16() -> None:
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        policy = DeviceModule(recurrent(torch.float32), arrays, GREEDY).policy.with_precision("bfloat16")
        driver.synchronize(stream)
        driver.clear()
        config = RolloutConfig(SimulatorConfig(4), devices=("cuda",))
        with RolloutEngine(config) as engine:
            request = EpisodeRequest(seed=5, policy=policy, max_steps=9, record=("observations",))
            (result,) = results_of(engine, [request])
        assert driver.report().calls.count("cuModuleLoadDataEx") == 1  # of worlds; those of policies are loaded
        state = policy.initial_state(1, 2)
        for observations, actions in zip(result.observations, result.actions, strict=True):
            assert (policy.act(arrays.upload(observations[None]), state).read()[0] == actions).all()
        del policy, state, request, result, engine


@on_stand_in(compute_capability=75)
def test_an_older_gpu_refuses_bf16() -> None:
    with driver.users_stream() as stream:
        exact = DeviceModule(wide(torch.float32), UsersArrays(stream)).policy
        with pytest.raises(doorstep.ArgumentError, match=r"float32 on a GPU of compute capability 7\.5") as found:
            exact.with_precision("bfloat16")
        assert found.value.argument == "precision"
        del exact


@on_stand_in(devices=2)
def test_layers_on_several_devices_are_refused() -> None:
    weights = cuda.Buffer(4 * 19 * 19, 0)
    places = [LayerWeights(WeightType.FLOAT32, DeviceKind.CUDA, index, weights.pointer) for index in (0, 1)]
    layers = [LayerHandle.create(LayerKind.LINEAR, 19, 19, 0.0, {}, place) for place in places]
    with pytest.raises(doorstep.ArgumentError, match=r"layers\[1\] is on another device"):
        PolicyHandle.create(layers, 0)


@pytest.mark.parametrize("function", ["cuModuleLoadDataEx", "cuMemHostAlloc", "cuLaunchKernel"])
@on_stand_in()
def test_a_driver_that_refuses_is_reported_and_nothing_is_left(function: str) -> None:
    module = wide(torch.float32)
    with driver.users_stream() as stream:
        arrays = UsersArrays(stream)
        observations = arrays.upload(observe(3, 2).numpy())
        driver.fail(function, 1, driver.UNKNOWN)
        with pytest.raises(doorstep.DeviceError, match=function):
            DeviceModule(module, arrays).policy.act(observations)
        driver.clear()
        found = DeviceModule(module, arrays).policy.forward(observations).read()
        assert found.tobytes() == load_policy(module).forward(observe(3, 2).numpy()).tobytes()


