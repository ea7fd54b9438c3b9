"""The operators keep PyTorch's rules, compile without breaks, and refuse tensors that their tables do not allow."""

import os

import pytest
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.torch.test_batch import assert_equal_states  # noqa: E402

import doorstep.torch as doorstep_torch  # noqa: E402
from doorstep._native.tensor_calls import OperandAccess, TensorSpec  # noqa: E402
from doorstep.torch import _batch_operators  # noqa: E402
from doorstep.torch._operators import OperatorSpec  # noqa: E402

SIZES = [4, 3, 2]
OPERATORS = torch.ops.doorstep


def steps(dtype=torch.float32):
    numbers = [torch.randn(6, 5, dtype=dtype) for _ in range(3)]
    return [*numbers, torch.rand(6, 5) < 0.2, torch.rand(6, 5) < 0.2]


def calls(dtype):
    """Arguments for every operator but those of worlds."""
    inputs, logits = steps(dtype), torch.randn(7, 9, dtype=dtype, requires_grad=True)
    actions = torch.zeros(7, 3, dtype=torch.int32)
    return {
        "generalized_advantages": (*inputs, 0.99, 0.95),
        "v_trace": (torch.randn(6, 5, dtype=dtype), *inputs, 0.99, 0.95, 1.0, 1.0),
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


def without_memory(arguments):
    return [one.detach().to("meta") if isinstance(one, torch.Tensor) else one for one in arguments]


def test_results_without_memory_are_shaped_and_checked_as_others():
    for name, arguments in calls(torch.float64).items():
        operator = getattr(OPERATORS, name)
        results, shaped = operator(*arguments), operator(*without_memory(arguments))
        pairs = zip(results, shaped, strict=True) if isinstance(results, tuple) else [(results, shaped)]
        for result, one in pairs:
            assert (one.shape, one.dtype, one.device.type) == (result.shape, result.dtype, "meta")
    rooms = doorstep_torch.make(3)
    for name, numbers in (("create_", (1, 0)), ("step_", ([],))):
        operator, tensors = getattr(OPERATORS, name), without_memory(rooms._arguments(rooms.init(1)))
        operator(*tensors, *rooms._rules, *numbers)
        with pytest.raises(doorstep.ArgumentError, match=r"is of shape \[3, .*; it must be of shape \[2, "):
            operator(tensors[0][:2], *tensors[1:], *rooms._rules, *numbers)


def test_what_an_operator_writes_is_in_its_schema():
    schema = OPERATORS.step_.default._schema
    written = {argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write}
    assert written == {operand.name for operand in _batch_operators.STEP.operands} - {"level_weights", "levels"}
    for name in calls(torch.float32):
        assert not any(argument.alias_info for argument in getattr(OPERATORS, name).default._schema.arguments)


def test_a_step_reads_values_instead_of_what_its_tensors_hold():
    rooms = doorstep_torch.make(3)
    state, expected = rooms.init(1), rooms.init(2)
    tensors = rooms._arguments(state)
    values = _batch_operators.read_by_step(rooms._arguments(rooms.init(2)))
    worlds, before = state.worlds.clone(), [tensor.clone() for tensor in values]
    for wrong in (values[1:], [values[0][:1], *values[1:]], [values[0].float(), *values[1:]]):
        refuses("values is", OPERATORS.step_, *tensors, *rooms._rules, wrong)
    assert torch.equal(state.worlds, worlds)
    OPERATORS.step_(*tensors, *rooms._rules, values)
    rooms.step(expected)
    assert_equal_states(state, expected)
    assert all(torch.equal(one, other) for one, other in zip(values, before, strict=True))


# ---- What tables do not allow

BAD = [  # replaced arguments of generalized_advantages, and what the error says
    (1, torch.zeros(5, 6), r"values is of shape \[5, 6\]; it must be of shape \[6, 5\]"),
    (0, torch.zeros(30), r"values is of shape \[6, 5\]; it must be of shape \[30\]"),
    (2, torch.zeros(5, 6).t(), r"next_values is not contiguous.*\.contiguous\(\)"),
    (1, torch.zeros(6, 5, dtype=torch.int64), r"values is torch.int64.*\.to\(torch.float32\)"),
    (1, torch.zeros(6, 5, dtype=torch.float64), "values is torch.float64; it must be torch.float32"),
    (0, torch.zeros(6, 5, dtype=torch.float16), r"rewards is torch.float16.*\.float\(\).*autocast"),
    (3, torch.zeros(6, 5), "terminations is torch.float32; it must be torch.bool or torch.uint8"),
    (0, torch.zeros(6, 5, dtype=torch.complex64), "rewards is torch.complex64"),
]


def test_a_tensor_that_the_table_does_not_allow_is_refused_by_name():
    for index, tensor, message in BAD:
        arguments = steps()
        arguments[index] = tensor
        refuses(message, doorstep_torch.generalized_advantages, *arguments)


def test_a_tensor_that_is_negated_only_when_it_is_read_counts_as_negated():
    inputs = steps()
    expected = doorstep_torch.generalized_advantages(-inputs[0], *inputs[1:])
    found = doorstep_torch.generalized_advantages(torch._neg_view(inputs[0]), *inputs[1:])
    assert torch.equal(found[0], expected[0])


def test_autocast_does_not_reach_the_operators_and_its_results_are_refused_with_a_hint():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = torch.nn.Linear(3, 9)(torch.zeros(4, 3))
        refuses(r"logits is torch.bfloat16.*\.float\(\)", doorstep_torch.multi_discrete_sample, logits, SIZES)
        actions, *_ = doorstep_torch.multi_discrete_sample(logits.float(), SIZES)
    assert actions.shape == (4, 3)


# ---- The check itself, on an operator made for it

READ = [TensorSpec(name, "float", ("N",)) for name in ("read", "also_read")]
WRITTEN = TensorSpec("written", "float", ("N",), OperandAccess.WRITE)
KEPT = TensorSpec("kept", "float32", ("2",), OperandAccess.READ_WRITE, optional=True)
TABLE = OperatorSpec("table", (*READ, WRITTEN, KEPT), (), "int number")


def test_a_table_says_what_is_written_and_refuses_what_shares_it():
    schema = "table(Tensor read, Tensor also_read, Tensor(a2!) written, Tensor(a3!)? kept, int number) -> ()"
    assert TABLE.schema() == schema
    memory, zeros = torch.zeros(10), torch.zeros(4)
    TABLE.read((memory[:4], memory[2:6], memory[6:], None))
    TABLE.read((torch.zeros(4, requires_grad=True), zeros, torch.zeros(4), None))
    sharing = "partly the same memory as"
    for tensors, message in (
        ((memory[:4], memory[2:6], memory[5:9], None), sharing),
        ((memory[:4], memory[6:], memory[2:6], None), sharing),
        ((memory[:4], memory[:4], memory[4:8], memory[7:9]), sharing),
        ((memory[:4], memory[:4], memory[4:8], memory[:2]), sharing),
        ((zeros, zeros, torch.zeros(4, requires_grad=True), None), "written is a tensor that requires grad"),
        ((zeros, None, torch.zeros(4), None), r"also_read is NoneType; it must be a torch\.Tensor"),
    ):
        refuses(message, TABLE.read, tensors)


def test_a_step_refuses_to_write_what_it_reads_or_writes_elsewhere():
    """Where fast calls check it, and where Python does."""
    level = doorstep.levels.reference()
    rooms = doorstep_torch.make(2, levels=[level, level])
    floats = rooms.init(0).tensors
    for name, other in (("level_weights", "lidar"), ("level_weights", "rewards"), ("final_lidar", "lidar")):
        state = rooms.init(0)
        worlds, before = state.worlds.clone(), state.tensors["lidar"].clone()
        state.tensors[name] = state.tensors[other].view(-1)[: floats[name].numel()].view(floats[name].shape)
        refuses("is partly the same memory as", rooms.step, state)
        assert torch.equal(state.worlds, worlds)
        assert torch.equal(state.tensors["lidar"], before)


# ---- Without fast calls

SAME_RESULTS = """
import torch
import doorstep
import doorstep.torch as doorstep_torch

torch.manual_seed(0)
logits = torch.randn(40, 9)
actions, log_probabilities, entropies = doorstep_torch.multi_discrete_sample(logits, [4, 3, 2])
numbers, flags = torch.randn(3, 6, 5), torch.rand(2, 6, 5) < 0.2
advantages, targets = doorstep_torch.generalized_advantages(*numbers, *flags)
rooms = doorstep_torch.make(2, num_agents=1)
state = rooms.init(seed=3)
for _ in range(3):
    rooms.step(state)
print(actions.sum().item(), *(tensor.double().sum().item() for tensor in (log_probabilities, entropies, advantages)))
print(state.worlds.sum().item(), state.lidar.double().sum().item())
state.tensors["final_lidar"] = state.tensors["lidar"]
try:
    rooms.step(state)
except doorstep.ArgumentError as error:
    print(error)
"""


def test_results_are_the_same_without_fast_calls(run_new_python):
    found = [run_new_python(SAME_RESULTS, **{**os.environ, "DOORSTEP_FAST_CALLS": switch}) for switch in "10"]
    assert found[0] == found[1] != ""
