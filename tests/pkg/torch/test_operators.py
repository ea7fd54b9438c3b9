"""The operators keep PyTorch's rules, compile without breaks, and refuse tensors that their tables do not allow."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import doorstep

torch = pytest.importorskip("torch")

import doorstep.torch as doorstep_torch  # noqa: E402
from doorstep._native.tensor_calls import OperandAccess, TensorSpec  # noqa: E402
from doorstep.torch import _batch_operators  # noqa: E402
from doorstep.torch._operators import OperatorSpec  # noqa: E402

SIZES = [4, 3, 2]


def steps(dtype: Any = torch.float32) -> list[Any]:
    numbers = [torch.randn(6, 5, dtype=dtype) for _ in range(3)]
    return [*numbers, torch.rand(6, 5) < 0.2, torch.rand(6, 5) < 0.2]


def calls(dtype: Any) -> dict[str, tuple[Any, ...]]:
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
@pytest.mark.parametrize("name", calls(torch.float32))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_operators_keep_the_rules_of_pytorch(name: str, dtype: Any) -> None:
    torch.library.opcheck(getattr(torch.ops.doorstep, name).default, calls(dtype)[name])


def without_memory(arguments: Any) -> list[Any]:
    return [one.detach().to("meta") if isinstance(one, torch.Tensor) else one for one in arguments]


@pytest.mark.parametrize("name", calls(torch.float32))
def test_results_without_memory_are_shaped_as_others(name: str) -> None:
    operator, arguments = getattr(torch.ops.doorstep, name), calls(torch.float64)[name]
    results, shaped = operator(*arguments), operator(*without_memory(arguments))
    pairs = zip(results, shaped, strict=True) if isinstance(results, tuple) else [(results, shaped)]
    for result, one in pairs:
        assert (one.shape, one.dtype, one.device.type) == (result.shape, result.dtype, "meta")


@pytest.mark.parametrize(("name", "numbers"), [("create_", (1, 0)), ("step_", ([],))])
def test_worlds_without_memory_are_checked_as_others(name: str, numbers: Any) -> None:
    rooms, operator = doorstep_torch.make(3), getattr(torch.ops.doorstep, name)
    tensors = without_memory(rooms._arguments(rooms.init(1)))
    operator(*tensors, *rooms._rules, *numbers)
    with pytest.raises(doorstep.ArgumentError, match=r"is of shape \[3, .*; it must be of shape \[2, "):
        operator(tensors[0][:2], *tensors[1:], *rooms._rules, *numbers)


@pytest.mark.slow
def test_operators_of_worlds_keep_the_rules_of_pytorch() -> None:
    rooms = doorstep_torch.make(3)
    tensors, values = rooms._arguments(rooms.init(1)), _batch_operators.read_by_step(rooms._arguments(rooms.init(2)))
    for given in ([], values):
        torch.library.opcheck(torch.ops.doorstep.step_.default, (*tensors, *rooms._rules, given))
    torch.library.opcheck(torch.ops.doorstep.create_.default, (*tensors, *rooms._rules, 1, 0))


def update(logits: Any, uniforms: Any, *inputs: Any) -> tuple[Any, ...]:
    """What an update of a policy computes, with PyTorch's own operations in between."""
    log_probabilities, entropies, actions = torch.ops.doorstep.multi_discrete_sample(logits * 2, uniforms, SIZES)
    again, _ = doorstep_torch.multi_discrete_evaluate(logits.sin() * 3, actions, SIZES)
    advantages, targets = doorstep_torch.generalized_advantages(inputs[0] + 1, *inputs[1:])
    return (log_probabilities * again).sum() + entropies.sum() + advantages.sum(), actions, targets


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.usefixtures("inductor")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_programs_have_no_breaks_and_the_same_results(backend: str) -> None:
    arguments = (torch.randn(7, 9, requires_grad=True), torch.rand(7, 3), *steps())
    loss, actions, targets = update(*arguments)
    compiled = torch.compile(update, fullgraph=True, backend=backend)
    compiled_loss, compiled_actions, compiled_targets = compiled(*arguments)
    assert torch.equal(actions, compiled_actions)
    torch.testing.assert_close(compiled_loss, loss)
    torch.testing.assert_close(compiled_targets, targets)
    torch.testing.assert_close(
        torch.autograd.grad(compiled_loss, arguments[0]), torch.autograd.grad(loss, arguments[0])
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.usefixtures("inductor")
def test_compiled_sampling_draws_what_pytorchs_generator_says() -> None:
    logits = torch.randn(50, 9)
    compiled = torch.compile(lambda given: doorstep_torch.multi_discrete_sample(given, SIZES)[0], fullgraph=True)
    torch.manual_seed(1)
    expected = doorstep_torch.multi_discrete_sample(logits, SIZES)[0]
    torch.manual_seed(1)
    assert torch.equal(compiled(logits), expected)


def test_what_an_operator_writes_is_in_its_schema() -> None:
    schema = torch.ops.doorstep.step_.default._schema
    written = {argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write}
    read = {"level_weights", "levels"}
    assert written == {operand.name for operand in _batch_operators.STEP.operands} - read
    for name in calls(torch.float32):
        arguments = getattr(torch.ops.doorstep, name).default._schema.arguments
        assert not any(argument.alias_info for argument in arguments)


def test_a_step_reads_values_instead_of_what_its_tensors_hold() -> None:
    rooms = doorstep_torch.make(3)
    state, expected = rooms.init(1), rooms.init(2)
    values = _batch_operators.read_by_step(rooms._arguments(rooms.init(2)))
    before = [tensor.clone() for tensor in values]
    torch.ops.doorstep.step_(*rooms._arguments(state), *rooms._rules, values)
    rooms.step(expected)
    assert torch.equal(state.worlds, expected.worlds)
    assert all(torch.equal(state.tensors[name], tensor) for name, tensor in expected.tensors.items())
    assert all(torch.equal(one, other) for one, other in zip(values, before, strict=True))


def test_values_of_another_kind_are_refused() -> None:
    rooms = doorstep_torch.make(3)
    state = rooms.init(1)
    worlds, tensors = state.worlds.clone(), rooms._arguments(state)
    values = _batch_operators.read_by_step(tensors)
    for wrong in (values[1:], [values[0][:1], *values[1:]], [values[0].float(), *values[1:]]):
        with pytest.raises(doorstep.ArgumentError, match="values is"):
            torch.ops.doorstep.step_(*tensors, *rooms._rules, wrong)
    assert torch.equal(state.worlds, worlds)


# ---- What tables do not allow


def bad_arguments() -> dict[str, tuple[dict[int, Any], str]]:
    """Replaced arguments of generalized_advantages, and what the error says."""
    return {
        "shape": ({1: torch.zeros(5, 6)}, r"values is of shape \[5, 6\]; it must be of shape \[6, 5\]"),
        "rank": ({0: torch.zeros(30)}, r"values is of shape \[6, 5\]; it must be of shape \[30\]"),
        "strides": ({2: torch.zeros(5, 6).t()}, r"next_values is not contiguous.*\.contiguous\(\)"),
        "integers": ({1: torch.zeros(6, 5, dtype=torch.int64)}, r"values is torch.int64.*\.to\(torch.float32\)"),
        "other float": (
            {1: torch.zeros(6, 5, dtype=torch.float64)},
            "values is torch.float64; it must be torch.float32",
        ),
        "half": ({0: torch.zeros(6, 5, dtype=torch.float16)}, r"rewards is torch.float16.*\.float\(\).*autocast"),
        "bfloat": ({0: torch.zeros(6, 5, dtype=torch.bfloat16)}, r"rewards is torch.bfloat16.*autocast"),
        "flags": ({3: torch.zeros(6, 5)}, "terminations is torch.float32; it must be torch.bool or torch.uint8"),
        "complex": ({0: torch.zeros(6, 5, dtype=torch.complex64)}, "rewards is torch.complex64"),
    }


@pytest.mark.parametrize("case", bad_arguments())
def test_a_tensor_that_the_table_does_not_allow_is_refused_by_name(case: str) -> None:
    replaced, message = bad_arguments()[case]
    arguments = [replaced.get(index, argument) for index, argument in enumerate(steps())]
    with pytest.raises(doorstep.ArgumentError, match=message):
        doorstep_torch.generalized_advantages(*arguments)


def test_a_tensor_that_is_negated_only_when_it_is_read_counts_as_negated() -> None:
    inputs = steps()
    expected = doorstep_torch.generalized_advantages(-inputs[0], *inputs[1:])
    found = doorstep_torch.generalized_advantages(torch._neg_view(inputs[0]), *inputs[1:])
    assert torch.equal(found[0], expected[0])


@pytest.mark.parametrize(("name", "value"), [("gamma", 1.5), ("gamma", float("nan")), ("gae_lambda", -0.1)])
def test_numbers_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"{name} is"):
        doorstep_torch.generalized_advantages(*steps(), **{name: value})  # type: ignore[arg-type,unused-ignore]


def test_autocast_does_not_reach_the_operators_and_its_results_are_refused_with_a_hint() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = torch.nn.Linear(3, 9)(torch.zeros(4, 3))
        with pytest.raises(doorstep.ArgumentError, match=r"logits is torch.bfloat16.*\.float\(\)"):
            doorstep_torch.multi_discrete_sample(logits, SIZES)
        actions, *_ = doorstep_torch.multi_discrete_sample(logits.float(), SIZES)
    assert actions.shape == (4, 3)


# ---- The check itself, on an operator made for it

TABLE = OperatorSpec(
    "table",
    (
        TensorSpec("read", "float", ("N",)),
        TensorSpec("also_read", "float", ("N",)),
        TensorSpec("written", "float", ("N",), OperandAccess.WRITE),
        TensorSpec("kept", "float32", ("2",), OperandAccess.READ_WRITE, optional=True),
    ),
    (),
    "int number",
)


def test_the_schema_says_what_is_written() -> None:
    assert TABLE.schema() == (
        "table(Tensor read, Tensor also_read, Tensor(a2!) written, Tensor(a3!)? kept, int number) -> ()"
    )


def test_what_is_written_shares_nothing() -> None:
    memory = torch.zeros(10)
    TABLE.read((memory[:4], memory[2:6], memory[6:], None))
    for tensors in (
        (memory[:4], memory[2:6], memory[5:9], None),
        (memory[:4], memory[6:], memory[2:6], None),
        (memory[:4], memory[:4], memory[4:8], memory[7:9]),
        (memory[:4], memory[:4], memory[4:8], memory[:2]),
    ):
        with pytest.raises(doorstep.ArgumentError, match="partly the same memory as"):
            TABLE.read(tensors)


def test_what_is_written_does_not_require_grad() -> None:
    with pytest.raises(doorstep.ArgumentError, match="written is a tensor that requires grad"):
        TABLE.read((torch.zeros(4), torch.zeros(4), torch.zeros(4, requires_grad=True), None))
    TABLE.read((torch.zeros(4, requires_grad=True), torch.zeros(4), torch.zeros(4), None))


def test_only_optional_tensors_may_be_missing() -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"also_read is NoneType; it must be a torch\.Tensor"):
        TABLE.read((torch.zeros(4), None, torch.zeros(4), None))


# ---- Without fast calls

SAME_RESULTS = """
import torch
import doorstep
import doorstep.torch as doorstep_torch
from doorstep import _native

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
"""


def test_results_are_the_same_without_fast_calls() -> None:
    found = [
        subprocess.run(
            [sys.executable, "-c", SAME_RESULTS],
            env={**os.environ, "DOORSTEP_FAST_CALLS": switch},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for switch in ("1", "0")
    ]
    assert found[0] == found[1] != ""


def test_pytorch_is_imported_by_nothing_else() -> None:
    code = "import sys, doorstep; print('torch' in sys.modules, 'doorstep.torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False False\n"
