"""Policies on a real GPU: the CPU's bits, PyTorch's streams and memory, graphs, engines."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.gpu.frameworks import cuda_torch, has_bf16
from tests.gpu.workloads import NETWORK

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.policy import SamplingParams

torch = cuda_torch()

from tests.pkg.policy.networks import NUM_INPUTS, mlp  # noqa: E402 (it needs torch)

from doorstep.policy import Heads  # noqa: E402

LONG = 1_000_000_000  # clock cycles: about half a second
DRAWN = SamplingParams(temperature=0.8, top_p=0.95, seed=4)


@pytest.fixture(scope="module", autouse=True)
def _kernels_stay() -> None:
    """Loads what stays loaded until the process ends, before objects are counted."""
    torch.zeros(1, device="cuda")


def every_layer() -> Any:
    nn = torch.nn
    kinds = (nn.ReLU(), nn.LeakyReLU(0.2), nn.ELU(), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.GELU(), nn.GELU("tanh"))
    hidden = [module for kind in kinds for module in (nn.Linear(70, 70), kind)]
    heads = Heads(nn.Linear(33, size) for size in doorstep.ACTIONS)
    memory = (nn.LSTM(70, 40), nn.GRU(40, 33))
    return nn.Sequential(nn.Linear(NUM_INPUTS, 70), nn.LayerNorm(70), *hidden, *memory, heads)


NETWORKS = [
    pytest.param(lambda: mlp(*NETWORK), id="mlp"),
    pytest.param(every_layer, id="every-layer"),
    pytest.param(lambda: mlp(1500, 1500, 1500), id="wide"),
]


def both(module: Any, sampling: SamplingParams = DRAWN) -> tuple[Any, Any]:
    return (
        doorstep.load_policy(module, sampling=sampling),
        doorstep.load_policy(copy.deepcopy(module).cuda(), sampling=sampling),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("make", NETWORKS)
def test_logits_states_and_actions_are_the_cpus(make: Callable[[], Any], dtype: Any) -> None:
    torch.manual_seed(0)
    on_cpu, on_gpu = both(make().to(dtype))
    for num_worlds in (1, 17, 3000):
        observations = torch.randn(num_worlds, 2, NUM_INPUTS)
        states: list[Any] = [
            policy.initial_state(num_worlds, 2) if policy.state_size else None for policy in (on_cpu, on_gpu)
        ]
        for _ in range(3):
            expected = on_cpu.act(observations, states[0])
            found = on_gpu.act(observations.cuda(), states[1])
            assert np.array_equal(found.cpu().numpy(), expected)
        logits = on_gpu.forward(observations.cuda()).cpu().numpy()
        assert logits.tobytes() == on_cpu.forward(observations).tobytes()
        if states[0] is not None:
            assert states[1].cpu().numpy().tobytes() == states[0].tobytes()


def test_weights_are_shared_and_calls_are_ordered_by_the_current_stream() -> None:
    module = mlp(*NETWORK).cuda()
    policy = doorstep.load_policy(module)
    observations = torch.randn(64, 2, NUM_INPUTS, device="cuda")
    frozen = policy.freeze()
    before = policy.forward(observations).clone()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.no_grad():
        for cycles in (1, LONG):  # the first loads kernels and takes memory, which may wait for all work
            stream.synchronize()
            torch.cuda._sleep(cycles)
            module[-1].weight.mul_(2)
            after = policy.forward(observations)
        assert not stream.query(), "the call was to return while the GPU was busy"
    stream.synchronize()
    assert torch.equal(frozen.forward(observations), before)
    expected = doorstep.load_policy(copy.deepcopy(module).cpu()).forward(observations.cpu())
    assert after.cpu().numpy().tobytes() == expected.tobytes()


def test_a_pickle_chooses_the_same_actions_on_its_gpu() -> None:
    _, policy = both(every_layer())
    other, observations = pickle.loads(pickle.dumps(policy)), torch.randn(7, 2, NUM_INPUTS, device="cuda")
    assert other.device == policy.device
    for one, two in zip(policy(observations), other(observations), strict=True):
        assert torch.equal(one, two)


def test_steps_with_a_policy_are_the_cpus_also_in_a_graph() -> None:
    on_cpu, on_gpu = both(mlp(*NETWORK))
    options: dict[str, Any] = {"seed": 2}
    with doorstep.Simulator(100, device="cuda", **options) as sim, doorstep.Simulator(100, **options) as twin:
        step, observations = torch.zeros(1, dtype=torch.int32, device="cuda"), sim.observations.to_torch()
        on_gpu.act(observations, step=step)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            sim.actions = on_gpu.act(observations, step=step)
            sim.step()
            step += 1
        for index in range(300):
            graph.replay()
            twin.actions = on_cpu.act(twin.observations, step=index)
            twin.step()
        torch.cuda.synchronize()
        assert (sim.world_hashes() == twin.world_hashes()).all()


def test_a_first_call_may_be_captured() -> None:
    on_cpu, on_gpu = both(mlp(*NETWORK))
    observations = torch.randn(64, 2, NUM_INPUTS, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        actions = on_gpu.act(observations, step=3)
    graph.replay()
    assert np.array_equal(actions.cpu().numpy(), on_cpu.act(observations.cpu(), step=3))


def test_an_engine_gives_the_cpus_results() -> None:
    on_cpu, on_gpu = both(every_layer())

    def results(policy: Any, config: Any) -> list[Any]:
        requests = [
            EpisodeRequest(seed=seed, max_steps=1 + seed % 90, policy=(policy, "random", "idle")[seed % 3])
            for seed in range(3000)
        ]
        with RolloutEngine(config) as engine:
            ids = engine.submit(requests)
            found = {result.id: result for result in engine}
        return [(found[one].length, found[one].returns.tolist(), found[one].state_hash) for one in ids]

    expected = results(on_cpu, RolloutConfig(SimulatorConfig(256)))
    assert results(on_gpu, RolloutConfig(SimulatorConfig(256), devices=("cuda",))) == expected


# ---- The precision bfloat16: other bits


def test_bf16_rounds_what_it_multiplies_and_adds_in_single_precision() -> None:
    torch.manual_seed(1)
    module, given = torch.nn.Linear(NUM_INPUTS, 19).cuda(), torch.randn(3000, 2, NUM_INPUTS, device="cuda")
    if not has_bf16():
        with pytest.raises(doorstep.ArgumentError, match=r"precision is bfloat16; it must be float32 on a GPU of"):
            doorstep.load_policy(module, precision="bfloat16")
        return
    found = doorstep.load_policy(module, precision="bfloat16").forward(given)
    with torch.no_grad():
        values, weights, bias = given.bfloat16().double(), module.weight.bfloat16().double(), module.bias.double()
        error = (found - (values @ weights.T + bias)).abs()
        assert (error <= NUM_INPUTS * 2**-22 * (values.abs() @ weights.abs().T + bias.abs())).all()


@pytest.mark.parametrize("make", NETWORKS)
def test_bf16_is_near_the_exact_results(make: Callable[[], Any]) -> None:
    if not has_bf16():
        pytest.skip("the tensor cores of this GPU do not multiply bfloat16")
    torch.manual_seed(0)
    exact = doorstep.load_policy(make().cuda())
    policy = doorstep.load_policy(exact, precision="bfloat16")
    for num_worlds in (1, 17, 3000):
        observations = torch.randn(num_worlds, 2, NUM_INPUTS, device="cuda")
        found, expected = policy.forward(observations), exact.forward(observations)
        assert 0 < (found - expected).norm() / expected.norm() < 0.05
        assert torch.equal(policy.forward(observations), found)
