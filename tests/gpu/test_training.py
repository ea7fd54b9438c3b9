"""doorstep.torch on a real GPU: the CPU's bits, PyTorch's streams, graphs, compiled programs."""

from typing import Any

import pytest
from tests.cuda.twins import some_levels
from tests.gpu.frameworks import cuda_torch
from tests.scenes import random_actions

import doorstep

torch = cuda_torch()

import doorstep.torch as doorstep_torch  # noqa: E402
from doorstep._level_table import REFERENCE  # noqa: E402

SIZES = doorstep.ACTIONS
LONG = 1_000_000_000  # clock cycles: about half a second


@pytest.fixture(scope="module", autouse=True)
def _kernels_stay() -> None:
    """Loads what stays loaded until the process ends, before objects are counted."""
    zeros, flags = torch.zeros(1, 1, device="cuda"), torch.zeros(1, 1, dtype=torch.bool, device="cuda")
    doorstep_torch.generalized_advantages(zeros, zeros, zeros, flags, flags)
    doorstep_torch.make(1, device="cuda").init(0)
    doorstep_torch.make(1, device="cuda", levels=some_levels(2)).init(0)


def steps(dtype: Any) -> list[Any]:
    torch.manual_seed(0)
    numbers = [torch.randn(64, 3000, dtype=dtype) for _ in range(3)]
    return [*numbers, torch.rand(64, 3000) < 0.02, torch.rand(64, 3000) < 0.02]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_advantages_are_the_cpus(dtype: Any) -> None:
    inputs = steps(dtype)
    log_ratios = torch.randn_like(inputs[0])
    on_gpu = [tensor.cuda() for tensor in (log_ratios, *inputs)]
    for found, expected in (
        (doorstep_torch.generalized_advantages(*on_gpu[1:]), doorstep_torch.generalized_advantages(*inputs)),
        (doorstep_torch.v_trace(*on_gpu), doorstep_torch.v_trace(log_ratios, *inputs)),
    ):
        assert all(torch.equal(one.cpu(), other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_multi_discrete_actions_and_gradients_are_the_cpus(dtype: Any) -> None:
    logits, uniforms = torch.randn(5000, 19, dtype=dtype) * 4, torch.rand(5000, 4, dtype=dtype)
    logits[::7, 3] = float("-inf")
    results = []
    for device in ("cpu", "cuda"):
        given = logits.to(device, copy=True).requires_grad_()
        made = torch.ops.doorstep.multi_discrete_sample(given, uniforms.to(device), SIZES)
        (made[0].sum() + made[1].square().sum()).backward()
        results.append([*(tensor.detach().cpu() for tensor in made), given.grad.cpu()])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_an_action_out_of_range_gives_nan() -> None:
    actions = torch.zeros(5, 4, dtype=torch.int32, device="cuda")
    actions[2, 1] = 8
    log_probabilities, entropies = doorstep_torch.multi_discrete_evaluate(
        torch.zeros(5, 19, device="cuda"), actions, SIZES
    )
    assert log_probabilities.isnan().tolist() == [False, False, True, False, False]
    assert entropies.isfinite().all()


def test_work_goes_to_the_current_stream() -> None:
    inputs = [tensor.cuda() for tensor in steps(torch.float32)]
    expected, _ = doorstep_torch.generalized_advantages(*inputs)

    def shifted_there_and_back() -> Any:
        return doorstep_torch.generalized_advantages((inputs[0] + 1) - 1, *inputs[1:])[0]

    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        shifted_there_and_back()  # loads kernels and takes memory, which may wait for all work
        torch.cuda._sleep(LONG)
        found = shifted_there_and_back()
        assert not torch.cuda.current_stream().query(), "the long kernel was to be running still"
        torch.cuda.current_stream().synchronize()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("plays_levels", [False, True])
def test_worlds_in_tensors_are_the_cpus_also_in_a_graph(plays_levels: bool) -> None:
    actions = torch.from_numpy(random_actions(5, 20, 100))
    levels: Any = some_levels(2) if plays_levels else REFERENCE
    rooms, cpu = (
        doorstep_torch.make(100, device=device, episode_length=9, levels=levels) for device in ("cuda", "cpu")
    )
    state, expected = rooms.init(3), cpu.init(3)
    chosen = actions[0].cuda()
    rooms.step(rooms.init(0), chosen)  # libraries initialise themselves outside the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rooms.step(state, chosen)
    for step_actions in actions:
        chosen.copy_(step_actions)
        graph.replay()
        cpu.step(expected, step_actions)
    assert torch.equal(state.worlds.cpu(), expected.worlds)
    for name, tensor in expected.tensors.items():
        assert torch.equal(state.tensors[name].cpu(), tensor), name


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_program_is_the_same() -> None:
    logits, actions = torch.randn(300, 19, device="cuda"), torch.zeros(300, 4, dtype=torch.int32, device="cuda")

    def evaluate(logits: Any) -> Any:
        return doorstep_torch.multi_discrete_evaluate(logits * 2, actions, SIZES)[0] * 3

    assert torch.equal(torch.compile(evaluate, fullgraph=True, backend="aot_eager")(logits), evaluate(logits))


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_rollout_is_the_same() -> None:
    rooms = doorstep_torch.make(100, device="cuda", episode_length=3)
    actions = torch.from_numpy(random_actions(5, 4, 100)).cuda()

    def roll_out(state: Any, actions: Any) -> Any:
        shown = []
        for step_actions in actions:
            rooms.step(state, step_actions)
            shown.append(state.lidar.clone())
        return torch.stack(shown)

    state, expected = rooms.init(3), rooms.init(3)
    compiled = torch.compile(roll_out, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(state, actions), roll_out(expected, actions))
    assert torch.equal(state.worlds, expected.worlds)
    assert all(torch.equal(state.tensors[name], tensor) for name, tensor in expected.tensors.items())
