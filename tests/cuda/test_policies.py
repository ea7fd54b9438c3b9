"""Policies on a GPU: the CPU's bits, on the caller's stream, with the weights where they are."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_gpu, on_stand_in, refused, with_arrays
from tests.cuda.twins import Twins
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
from torch import nn

from doorstep.policy import Heads

GREEDY = SamplingParams(greedy=True)


def every_activation(dtype):
    kinds = [nn.ReLU(), nn.LeakyReLU(0.2), nn.ELU(), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.GELU(), nn.GELU("tanh")]
    kinds += [nn.ReLU6(), nn.CELU(), nn.SELU(), nn.Mish(), nn.Hardsigmoid(), nn.Hardswish(), nn.Softsign()]
    hidden = [module for kind in (*kinds, nn.Softplus()) for module in (nn.Linear(70, 70), kind)]
    heads = Heads(nn.Linear(70, size) for size in doorstep.ACTIONS)
    return nn.Sequential(nn.Linear(NUM_INPUTS, 70), nn.LayerNorm(70), nn.RMSNorm(70), *hidden, heads).to(dtype)


def recurrent(dtype=torch.float32):
    layers = nn.Linear(NUM_INPUTS, 40), nn.LSTM(40, 33), nn.GRU(33, 70, num_layers=2), nn.Linear(70, 19)
    return nn.Sequential(*layers).to(dtype)


def wide(dtype=torch.float32):
    return nn.Sequential(nn.Linear(NUM_INPUTS, 900), nn.Tanh(), nn.Linear(900, 19)).to(dtype)


NETWORKS = (every_activation, recurrent, wide)


def test_logits_states_and_actions_are_the_cpus():
    for network, dtype in itertools.product(NETWORKS, (torch.float32, torch.bfloat16)):
        check_same(network, dtype)


@on_stand_in(compute_capability=75)
def test_networks_that_shared_memory_cannot_hold_give_the_same():
    for network in NETWORKS:
        check_same(network, torch.float32)


@with_arrays
def check_same(stream, arrays, network, dtype):
    torch.manual_seed(1)
    module, sampling = network(dtype), SamplingParams(temperature=0.7, top_p=0.9, seed=5)
    expected, policy = load_policy(module, sampling=sampling), DeviceModule(module, arrays, sampling).policy
    assert (policy.device, policy.state_size, policy.num_inputs) == ("cuda:0", expected.state_size, NUM_INPUTS)
    for num_worlds in (1, 37):
        observations = observe(num_worlds, 2).numpy()
        state = expected.initial_state(num_worlds, 2) if expected.state_size else None
        on_device = arrays.upload(state) if state is not None else None
        for steps in (None, 3, np.arange(num_worlds)):
            seeds = None if steps is None else np.arange(num_worlds) * 7
            actions = expected.act(observations, state, step=steps, seeds=seeds)
            found = policy.act(arrays.upload(observations), on_device, step=steps, seeds=seeds)
            assert (found.read() == actions).all()
        if on_device is not None:
            assert on_device.read().tobytes() == state.tobytes()
            (_, following), (_, found) = expected(observations, state), policy(arrays.upload(observations), on_device)
            assert found.read().tobytes() == following.tobytes() != on_device.read().tobytes()
        logits = policy.forward(arrays.upload(observations)).read()
        assert logits.tobytes() == expected.forward(observations).tobytes()
    driver.synchronize(stream)


@on_gpu()
def test_a_policy_acts_on_a_simulator_without_waiting(stream, arrays):
    module, sampling = every_activation(torch.float32), SamplingParams(seed=1)
    policy, expected = DeviceModule(module, arrays, sampling).policy, load_policy(module, sampling=sampling)
    with Twins(20, stream=stream, seed=3) as (twin, sim):
        policy.act(sim.observations, step=0)
        driver.clear()
        for step in range(12):
            sim.actions = policy.act(sim.observations, step=step)
            sim.step()
            twin.actions = expected.act(twin.observations, step=step)
            twin.step()
        assert not driver.WAITING & set(driver.report().calls)
        assert sim.observations.copy_to_host().tobytes() == twin.observations.to_numpy().tobytes()


@on_gpu()
def test_an_optimisers_step_is_seen_and_a_frozen_policy_keeps_its_weights(stream, arrays):
    module, observations = wide(), observe(5, 2).numpy()
    device = DeviceModule(module, arrays)
    before = load_policy(module).forward(observations)
    frozen = device.policy.freeze()
    with torch.no_grad():
        module[0].weight.mul_(1.5)
    device.update(module[0].weight)
    after = load_policy(module).forward(observations)
    assert device.policy.forward(arrays.upload(observations)).read().tobytes() == after.tobytes()
    del device
    assert frozen.forward(arrays.upload(observations)).read().tobytes() == before.tobytes()
    driver.synchronize(stream)


@on_gpu()
def test_rows_without_a_choice_are_counted(stream, arrays):
    policy, observations = DeviceModule(wide(), arrays).policy, observe(40, 2).numpy()
    observations[3:20, 1] = np.nan
    for times in (1, 2):
        actions = policy.act(arrays.upload(observations), sampling=GREEDY).read()
        assert (actions[3:20, 1] == doorstep.NEUTRAL_ACTION).all()
        assert policy.nonfinite_rows == 17 * times


@on_gpu()
def test_graphs_read_their_step_from_the_gpu_and_what_they_were_given_whatever_follows(stream, arrays):
    module, given, sampling = wide(), observe(30, 2).numpy(), SamplingParams(seed=2, temperature=3)
    policy, expected = DeviceModule(module, arrays, sampling).policy, load_policy(module, sampling=sampling)
    observations, seeds = arrays.upload(given), np.arange(30) * 3
    counter = arrays.upload(np.zeros(1, np.int32))
    counter.device, counter.dtype = "cuda:0", "torch.int32"  # as a tensor of PyTorch has them
    policy.act(observations, step=1)
    with driver.RecordedGraph(stream, driver.GLOBAL) as graph:
        actions = policy.act(observations, step=counter)
        of_seeds = policy.act(observations, step=1, seeds=seeds)
    driver.synchronize(stream)
    kept = list(arrays.kept)
    for other in range(40):
        policy.act(observations, step=1, sampling=sampling.replace(seed=other, temperature=1 + other))
        arrays.forget()
    for step in (0, 4, 2**31 + 5):
        number = np.array([step], np.uint32)
        driver.copy(stream, counter.pointer, number.ctypes.data, 4)
        graph.launch()
        assert (actions.read() == expected.act(given, step=step)).all()
        assert (of_seeds.read() == expected.act(given, step=1, seeds=seeds)).all()
    assert (policy.act(observations, step=7).read() == expected.act(given, step=7)).all()  # with the same keys
    counter.device = SimpleNamespace(index=0)
    del kept


@on_gpu()
def test_calls_on_several_streams_are_executed_in_their_order(first, arrays):
    module, observations = recurrent(), observe(9, 2).numpy()
    expected, policy = load_policy(module, sampling=GREEDY), DeviceModule(module, arrays, GREEDY).policy
    state = expected.initial_state(9, 2)
    inputs, on_device = arrays.upload(observations), arrays.upload(state)
    driver.synchronize(first)
    with driver.users_stream() as second:
        for step in range(6):
            arrays._stream = (first, second)[step % 2]
            policy.act(inputs, on_device, step=step)
            expected.act(observations, state, step=step)
        for stream in (first, second):
            driver.synchronize(stream)
        assert on_device.read().tobytes() == state.tobytes()
        del policy


@on_gpu(devices=2)
def test_arrays_and_layers_of_other_devices_are_refused(stream, arrays):
    with pytest.raises(doorstep.ArgumentError, match=r"observations is float32 on cpu; it must be .* on cuda:0"):
        DeviceModule(wide(), arrays).policy.act(observe(3, 2))
    observations = arrays.upload(observe(3, 2).numpy())
    with pytest.raises(doorstep.ArgumentError, match=r"on cuda:0; it must be .* in the host's memory"):
        load_policy(wide()).act(observations)
    weights = cuda.Buffer(4 * 19 * 19, 0)
    places = [LayerWeights(WeightType.FLOAT32, DeviceKind.CUDA, index, weights.pointer) for index in (0, 1)]
    layers = [LayerHandle.create(LayerKind.LINEAR, 19, 19, 0.0, {}, place) for place in places]
    with pytest.raises(doorstep.ArgumentError, match=r"layers\[1\] is on another device"):
        PolicyHandle.create(layers, 0)


@on_gpu()
def test_players_play_policies_of_both_devices_and_give_functions_what_is_on_the_gpu(stream, arrays):
    torch.manual_seed(2)
    module, sampling, given = wide(), SamplingParams(seed=4), []

    def walk(observations):
        given.append(observations)
        return np.full((*observations.shape[:-1], 4), (2, 1, 3, 0), np.int32)

    walk_by_tensors = lambda tensors: walk(tensors["observations"])  # noqa: E731
    walk_by_tensors.observes = "tensors"
    on_cpu, policy = load_policy(module, sampling=sampling), DeviceModule(module, arrays, sampling).policy
    for here, there in ((policy, on_cpu), (on_cpu, on_cpu), *((one, one) for one in (load_policy("random"), walk))):
        with Twins(5, seed=3) as (twin, sim):
            for one, policy_of_it in ((sim, here), (twin, there)):
                player = Player(policy_of_it, one)
                for _ in range(4):
                    player.act()
                    one.step()
            sim.wait()
            assert (sim.world_hashes() == twin.world_hashes()).all(), here
    with doorstep.Simulator(5, device="cuda") as sim:
        Player(walk_by_tensors, sim).act()
        assert given[0].device == given[-1].device == "cuda:0"


# ---- The precision bfloat16: other bits


def distance(found, expected):
    """As a part of the expected numbers' length."""
    return np.linalg.norm(found.read() - expected.read()) / np.linalg.norm(expected.read())


@on_gpu()
def test_bf16_gives_logits_and_states_near_the_exact_ones(stream, arrays):
    for network in NETWORKS:
        torch.manual_seed(1)
        exact = DeviceModule(network(torch.float32), arrays, GREEDY).policy
        policy = load_policy(exact, precision="bfloat16")
        assert (exact.precision, policy.precision) == ("float32", "bfloat16")
        observations = arrays.upload(observe(20, 2).numpy())
        states = [one.initial_state(20, 2) if one.state_size else None for one in (policy, exact)]
        logits, expected = policy.forward(observations, states[0]), exact.forward(observations, states[1])
        assert 0 < distance(logits, expected) < 0.05
        assert not policy.state_size or 0 < distance(*states) < 0.05
        for same in (policy.freeze(), policy.seeded(3), load_policy(policy), load_policy(policy, sampling=GREEDY)):
            assert same.precision == "bfloat16"
            assert same.forward(observations).read().tobytes() == logits.read().tobytes()
        back = load_policy(policy, precision="float32")
        assert back.forward(observations).read().tobytes() == expected.read().tobytes()
        driver.synchronize(stream)


@on_gpu()
def test_engines_play_policies_of_bf16(stream, arrays):
    policy = DeviceModule(recurrent(), arrays, GREEDY).policy.with_precision("bfloat16")
    driver.synchronize(stream)
    driver.clear()
    with RolloutEngine(RolloutConfig(SimulatorConfig(4), devices=("cuda",))) as engine:
        request = EpisodeRequest(seed=5, policy=policy, max_steps=9, record=("observations",))
        (result,) = results_of(engine, [request])
    assert driver.report().calls.count("cuModuleLoadDataEx") == 1  # of worlds; those of policies are loaded
    state = policy.initial_state(1, 2)
    for observations, actions in zip(result.observations, result.actions, strict=True):
        assert (policy.act(arrays.upload(observations[None]), state).read()[0] == actions).all()


@on_gpu(compute_capability=75)
def test_an_older_gpu_refuses_bf16(stream, arrays):
    exact = DeviceModule(wide(), arrays).policy
    with refused("precision", r"float32 on a GPU of compute capability 7\.5"):
        exact.with_precision("bfloat16")
