"""The operators keep PyTorch's rules, compile without breaks, and refuse tensors that their tables do not allow."""

import pytest
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.torch.test_advantages import steps  # noqa: E402

import doorstep.torch as doorstep_torch  # noqa: E402
from doorstep._native.tensor_calls import TensorCall  # noqa: E402
from doorstep.torch import _batch_operators  # noqa: E402

SIZES = [4, 3, 2]
OPERATORS = torch.ops.doorstep


def calls(dtype):
    """Arguments for every operator but those of worlds."""
    *inputs, log_ratios = steps(dtype, 6, 5)
    logits = torch.randn(7, 9, dtype=dtype, requires_grad=True)
    actions = torch.zeros(7, 3, dtype=torch.int32)
    return {
        "generalized_advantages": (*inputs, 0.99, 0.95),
        "v_trace": (log_ratios, log_ratios, *inputs[1:], 0.99, 0.95, 1.0, 1.0),
        "multi_discrete_sample": (logits, torch.rand(7, 3, dtype=dtype), SIZES),
        "multi_discrete_evaluate": (logits, actions, SIZES),
        "multi_discrete_backward": (logits.detach(), actions, *torch.randn(2, 7, dtype=dtype), SIZES),
    }


@pytest.mark.slow
def test_operators_keep_the_rules_of_pytorch():
    for dtype in (torch.float32, torch.float64):
        for name, arguments in calls(dtype).items():
            torch.library.opcheck(getattr(OPERATORS, name).default, arguments)
    rooms = doorstep_torch.make(3)
    tensors, values = rooms._arguments(rooms.init(1)), _batch_operators.read_by_step(rooms._arguments(rooms.init(2)))
    for given in ([], values):
        torch.library.opcheck(OPERATORS.step_.default, (*tensors, *rooms._rules, given))
    torch.library.opcheck(OPERATORS.create_.default, (*tensors, *rooms._rules, 1, 0))


def test_tensors_without_memory_are_checked_as_others():
    rooms = doorstep_torch.make(3)
    for name, numbers in (("create_", (1, 0)), ("step_", ([],))):
        tensors = [one if one is None else one.to("meta") for one in rooms._arguments(rooms.init(1))]
        getattr(OPERATORS, name)(*tensors, *rooms._rules, *numbers)
        with pytest.raises(doorstep.ArgumentError, match=r"is of shape \[3, .*; it must be of shape \[2, "):
            getattr(OPERATORS, name)(tensors[0][:2], *tensors[1:], *rooms._rules, *numbers)


# ---- What tables do not allow


def test_a_tensor_that_is_negated_only_when_it_is_read_counts_as_negated():
    inputs = steps()[:5]
    expected = doorstep_torch.generalized_advantages(-inputs[0], *inputs[1:])
    found = doorstep_torch.generalized_advantages(torch._neg_view(inputs[0]), *inputs[1:])
    assert torch.equal(found[0], expected[0])


def test_a_step_refuses_to_write_what_it_reads_or_writes_elsewhere():
    """Where fast calls check it, and where Python does."""
    level = doorstep.levels.reference()
    rooms = doorstep_torch.make(2, levels=[level, level])
    pairs = [("level_weights", "rewards"), ("rewards", "level_weights"), ("final_lidar", "lidar")]
    for name, other in pairs:  # which begins in the middle of the first one
        state = rooms.init(0)
        first, second = state.tensors[name], state.tensors[other]
        memory, half = torch.ones(first.numel() + second.numel()), first.numel() // 2
        state.tensors[name] = memory[: 2 * half].view(first.shape)
        state.tensors[other] = memory[half : half + second.numel()].view(second.shape)
        worlds = state.worlds.clone()
        refuses("is partly the same memory as", rooms.step, state)
        assert torch.equal(state.worlds, worlds)
        assert memory.eq(1).all()
    state = rooms.init(0)
    state.rewards.requires_grad_()
    refuses("rewards is a tensor that requires grad", rooms.step, state)


# ---- Without fast calls


def test_results_are_the_same_without_fast_calls(monkeypatch):
    rooms = doorstep_torch.make(2, num_agents=1)
    given = [(getattr(OPERATORS, name), arguments) for name, arguments in calls(torch.float64).items()]
    told = []
    for is_fast in (True, False):
        if not is_fast:
            monkeypatch.setattr(TensorCall, "__call__", lambda call, *tensors: False)
        state = rooms.step(rooms.step(rooms.init(seed=3)))
        results = [operator(*arguments) for operator, arguments in given]
        told.append([state.worlds, state.lidar, *(part for one in results for part in one)])
    assert all(torch.equal(one, other) for one, other in zip(*told, strict=True))
