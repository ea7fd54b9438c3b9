"""Worlds in tensors as operators of PyTorch: one makes them, one steps them, both in place."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from doorstep._arguments import refuse
from doorstep._batches import FLAT, INPUTS, OUTLIVING
from doorstep._native._generated import TENSORS, DeviceKind, OperatorFunction
from doorstep._native.batches import batch_info
from doorstep._native.training import Place, TensorCall, batch_struct, create_batch, prepare_batches
from doorstep.torch._library import define, prepare_once
from doorstep.torch._operands import Access, Operand, Operator

STATE_DTYPES = {"int32": torch.int32, "uint8": torch.uint8, "float32": torch.float32}


def _operands(inputs: Access) -> tuple[Operand, ...]:
    worlds = Operand("worlds", "int32", ("N", "W"), inputs)
    scratch = Operand("scratch", "uint8", ("X",), Access.WRITE)
    tensors = []
    for row in TENSORS:
        access = inputs if row.name in INPUTS else Access.READ_WRITE if row.name in OUTLIVING else Access.WRITE
        tensors.append(Operand(row.name, row.dtype, row.shape, access, optional=row.name in FLAT))
    return (worlds, *tensors, scratch)


RULES = "int num_agents, int episode_length, bool auto_reset, int action_check"
CREATE = Operator("create_", _operands(Access.WRITE), (), f"{RULES}, int seed, int world_offset")
STEP = Operator("step_", _operands(Access.READ_WRITE), (), f"{RULES}, Tensor[] values")
COUNT = len(STEP.operands)


class Rules(NamedTuple):
    """What a step does, beside what is in the worlds."""

    num_agents: int
    episode_length: int
    auto_reset: bool
    action_check: int


def extents_of(place: Place, num_worlds: int, num_agents: int) -> dict[str, int]:
    """The extents of all tensors of a batch, by symbol."""
    info = batch_info(place.device_kind, place.device_index, num_worlds, num_agents)
    return {
        "N": num_worlds,
        "A": num_agents,
        "A-1": num_agents - 1,
        "F": info.flat_observation_size,
        "W": info.world_bytes // 4,
        "X": info.scratch_bytes,
    }


def _prepare(worlds: torch.Tensor, num_agents: int) -> None:
    """Loads what work on the worlds needs."""
    if worlds.is_cuda:
        prepare_once(prepare_batches, worlds.get_device(), num_agents)


@functools.cache
def _extents(num_agents: int) -> dict[str, int]:
    """Those that the number of agents decides. Scratch memory may have any size that the library takes."""
    extents = extents_of(Place(DeviceKind.CPU, 0, 0), 1, num_agents)
    return {symbol: extent for symbol, extent in extents.items() if symbol not in ("N", "X")}


@functools.cache
def _call(rules: Rules) -> TensorCall:
    fields = {"N": "num_worlds", "X": "scratch_bytes"}
    extents = _extents(rules.num_agents)
    return TensorCall(OperatorFunction.STEP, batch_struct(*rules), STEP.rows(), extents, fields)


def _create(*arguments: Any) -> None:
    tensors, rules, seed, world_offset = arguments[:COUNT], Rules(*arguments[COUNT:-2]), *arguments[-2:]
    _prepare(tensors[0], rules.num_agents)
    operands = CREATE.read(tensors, **_extents(rules.num_agents))
    create_batch(_call(rules).fill(operands.place, None, operands.extents, operands.addresses), seed, world_offset)


def _step(*arguments: Any) -> None:
    tensors, rules, values = arguments[:COUNT], Rules(*arguments[COUNT:-1]), arguments[-1]
    _prepare(tensors[0], rules.num_agents)
    if values:
        _check_values(tensors, values)
        _take_values(tensors, values)
    STEP.run(_call(rules), tensors, **_extents(rules.num_agents))


def _check_values(tensors: Sequence[torch.Tensor | None], values: Sequence[torch.Tensor]) -> None:
    wanted, found = (
        [(tensor.dtype, tensor.shape, tensor.device) for tensor in group] for group in (read_by_step(tensors), values)
    )
    if found != wanted:
        refuse("values", "empty, or a tensor for each that a step reads, of its dtype, shape and device", found)


def _take_values(tensors: Sequence[torch.Tensor | None], values: Sequence[torch.Tensor]) -> None:
    """Copies what is not there already: as a rule, a value is the tensor itself."""
    for tensor, value in zip(read_by_step(tensors), values, strict=True):
        if not tensor.is_set_to(value):
            tensor.copy_(value)


def read_by_step(tensors: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
    """Those of a step's tensors that it reads."""
    operands = zip(STEP.operands, tensors, strict=True)
    return [tensor for operand, tensor in operands if tensor is not None and operand.access is Access.READ_WRITE]


def _create_fake(*arguments: Any) -> None:
    CREATE.check(arguments[:COUNT], **_extents(arguments[COUNT]))


def _step_fake(*arguments: Any) -> None:
    STEP.check(arguments[:COUNT], **_extents(arguments[COUNT]))
    if arguments[-1]:
        _check_values(arguments[:COUNT], arguments[-1])


define(CREATE, _create, _create_fake)
define(STEP, _step, _step_fake)


def step_in_place(tensors: Sequence[torch.Tensor | None], rules: Rules) -> None:
    """Steps worlds, given the tensors of a state in the order of the operands.

    In compiled programs, the operator also gets what it reads as arguments that it does not change. For those that it
    changes, inductor makes copies; of a tensor that a slice was copied to, it copies the first slice, whichever it was.
    """
    values = read_by_step(tensors) if torch.compiler.is_compiling() else []
    torch.ops.doorstep.step_(*tensors, *rules, values)
