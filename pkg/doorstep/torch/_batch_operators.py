"""Worlds in tensors as operators of PyTorch: one makes them, one steps them, both in place."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from doorstep._batches import FLAT, INPUTS, LEVEL_NAMES, LEVEL_WORDS, OUTLIVING, BatchRules
from doorstep._native import TENSORS
from doorstep._native._generated import DeviceKind, OperatorFunction
from doorstep._native.batches import batch_info, batch_struct, create_batch, prepare_batches
from doorstep._native.tensor_calls import DeviceStream, OperandAccess, TensorCall, TensorSpec
from doorstep._tensors.checks import refuse_tensor
from doorstep.torch._operators import OperatorSpec, define, prepare_once

Pair = tuple[torch.Tensor, torch.Tensor]

STATE_DTYPES = {"int32": torch.int32, "uint8": torch.uint8, "float32": torch.float32}


def _operands(inputs: OperandAccess) -> tuple[TensorSpec, ...]:
    """inputs: how worlds, resets and actions are used."""
    worlds = TensorSpec("worlds", "int32", ("N", "W"), inputs)
    table = TensorSpec("levels", "int32", ("L", str(LEVEL_WORDS)), optional=True)
    scratch = TensorSpec("scratch", "uint8", ("X",), OperandAccess.WRITE)
    tensors = []
    for row in TENSORS:
        optional = row.name in (*FLAT, *LEVEL_NAMES)
        tensors.append(TensorSpec(row.name, row.dtype, row.shape, _access_of(row.name, inputs), optional))
    return (worlds, *tensors, table, scratch)


def _access_of(name: str, inputs: OperandAccess) -> OperandAccess:
    if name == "level_weights":
        return OperandAccess.READ
    if name in INPUTS or name == "level_indices":
        return inputs
    return OperandAccess.READ_WRITE if name in OUTLIVING else OperandAccess.WRITE


RULES = (
    "int num_agents, int episode_length, bool auto_reset, int action_check, int max_levels, "
    "float[] observation_parts, float[] reward"
)
CREATE = OperatorSpec("create_", _operands(OperandAccess.WRITE), (), f"{RULES}, int seed, int world_offset")
STEP = OperatorSpec("step_", _operands(OperandAccess.READ_WRITE), (), f"{RULES}, Tensor[] values")
COUNT = len(STEP.operands)
READ_AT = [index for index, operand in enumerate(STEP.operands) if operand.access is OperandAccess.READ_WRITE]


def extents_of(where: DeviceStream, num_worlds: int, rules: BatchRules) -> dict[str, int]:
    """The extents of all tensors of a batch, by symbol."""
    info = batch_info(where.device_kind, where.device_index, num_worlds, *rules.kind)
    return {
        "N": num_worlds,
        "A": rules.num_agents,
        "A-1": rules.num_agents - 1,
        "F": info.flat_observation_size,
        "L": rules.max_levels,
        "W": info.world_bytes // 4,
        "X": info.scratch_bytes,
    }


def _prepare(worlds: torch.Tensor, rules: BatchRules) -> None:
    """Loads what work on the worlds needs."""
    if worlds.is_cuda:
        prepare_once(prepare_batches, worlds.get_device(), rules.num_agents, min(rules.max_levels, 1))


@functools.cache
def _extents(rules: BatchRules) -> dict[str, int]:
    """Those that the rules decide. Scratch memory may have any size that the library takes."""
    extents = extents_of(DeviceStream(DeviceKind.CPU, 0, 0), 1, rules)
    return {symbol: extent for symbol, extent in extents.items() if symbol not in ("N", "X")}


@functools.cache
def _call(rules: BatchRules) -> TensorCall:
    fields = {"N": "num_worlds", "X": "scratch_bytes"}
    extents = _extents(rules)
    return TensorCall(OperatorFunction.STEP, batch_struct(*rules), STEP.tensors(), extents, fields)


def _rules(arguments: Sequence[Any]) -> BatchRules:
    return BatchRules._make([*arguments[:-2], *map(tuple, arguments[-2:])])  # PyTorch passes lists


def _create(*arguments: Any) -> None:
    tensors, rules, seed, world_offset = arguments[:COUNT], _rules(arguments[COUNT:-2]), *arguments[-2:]
    _prepare(tensors[0], rules)
    operands = CREATE.read(tensors, **_extents(rules))
    create_batch(_call(rules).fill(operands.where, None, operands.extents, operands.addresses), seed, world_offset)


def _step(*arguments: Any) -> None:
    tensors, rules, values = arguments[:COUNT], _rules(arguments[COUNT:-1]), arguments[-1]
    _prepare(tensors[0], rules)
    if values:
        _take_values(tensors, values)
    STEP.run(_call(rules), tensors, **_extents(rules))


def _take_values(tensors: Sequence[torch.Tensor | None], values: Sequence[torch.Tensor]) -> None:
    """Copies values to the tensors that a step reads. Most are in place: inductor made no copy of their tensors."""
    elsewhere = [(tensor, value) for tensor, value in _pairs(tensors, values) if not tensor.is_set_to(value)]
    _check_values(elsewhere)
    for tensor, value in elsewhere:
        tensor.copy_(value)


def _pairs(tensors: Sequence[torch.Tensor | None], values: Sequence[torch.Tensor]) -> list[Pair]:
    read = read_by_step(tensors)
    if len(read) != len(values):
        refuse_tensor("values", f"a list of {len(values)}", f"empty, or a list of the {len(read)} that a step reads")
    return list(zip(read, values, strict=True))


def _check_values(pairs: Sequence[Pair]) -> None:
    for tensor, value in pairs:
        if value.dtype != tensor.dtype or value.shape != tensor.shape or value.device != tensor.device:
            found, wanted = (f"{each.dtype} {list(each.shape)} on {each.device}" for each in (value, tensor))
            refuse_tensor("values", f"a list with {found}", f"a list with {wanted} in its place")


def read_by_step(tensors: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
    """The tensors of a step that it reads."""
    return [tensor for tensor in (tensors[index] for index in READ_AT) if tensor is not None]


def _create_fake(*arguments: Any) -> None:
    CREATE.check(arguments[:COUNT], **_extents(_rules(arguments[COUNT:-2])))


def _step_fake(*arguments: Any) -> None:
    STEP.check(arguments[:COUNT], **_extents(_rules(arguments[COUNT:-1])))
    if arguments[-1]:
        _check_values(_pairs(arguments[:COUNT], arguments[-1]))


define(CREATE, _create, _create_fake)
define(STEP, _step, _step_fake)


def step_in_place(tensors: Sequence[torch.Tensor | None], rules: BatchRules) -> None:
    """Steps worlds, given the tensors of a state in the order of the operands.

    In compiled programs, the operator also gets what it reads as arguments that it does not change. For those that it
    changes, inductor makes copies; of a tensor that a slice was copied to, it copies the first slice, whichever it was.
    """
    values = read_by_step(tensors) if torch.compiler.is_compiling() else []
    torch.ops.doorstep.step_(*tensors, *rules, values)
