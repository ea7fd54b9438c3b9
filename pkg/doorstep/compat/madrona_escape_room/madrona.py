"""The submodule `madrona`: execution modes, tensors, and the shapes and dtypes of a step for JAX."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

import numpy as np

import doorstep
from doorstep._arguments import refuse, showing
from doorstep._optional import import_optional

if TYPE_CHECKING:
    import jax
    import torch

__all__ = ["CudaSync", "ExecMode", "Tensor", "TrainInterface"]

_MAX_DIMENSIONS = 16


class ExecMode(IntEnum):
    """The device that steps the worlds."""

    CPU = 0
    CUDA = 1


def check_exec_mode(exec_mode: ExecMode) -> ExecMode:
    """Raises ArgumentError unless it is an ExecMode of this module."""
    if not isinstance(exec_mode, ExecMode):
        refuse("exec_mode", "madrona.ExecMode.CPU or madrona.ExecMode.CUDA", exec_mode)
    return exec_mode


class SupportsDLPack(Protocol):
    """An array that other libraries read in place."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


@final
class Tensor:
    """Memory that PyTorch and JAX read in place: a tensor of a simulator, or any array with DLPack.

    Args:
        array: an array of at most 16 dimensions, which stays alive with this tensor.
    """

    __slots__ = ("_array",)

    def __init__(self, array: SupportsDLPack) -> None:
        if not hasattr(array, "__dlpack__"):
            raise doorstep.ArgumentError(
                f"array must support DLPack, but is a {type(array).__name__}.",
                argument="array",
                hint="Give a numpy, torch or jax array.",
            )
        dimensions = len(getattr(array, "shape", ()))
        if dimensions > _MAX_DIMENSIONS:
            raise doorstep.ArgumentError(
                f"array must have at most {_MAX_DIMENSIONS} dimensions, but has {dimensions}.", argument="array"
            )
        self._array = array

    def to_torch(self) -> torch.Tensor:
        """A PyTorch tensor of this memory, without a copy."""
        made: torch.Tensor = import_optional("torch", "to_torch() needs PyTorch", "torch").from_dlpack(self._array)
        return made

    def to_jax(self) -> jax.Array:
        """A JAX array of this memory, without a copy. The next step overwrites it, which JAX does not expect."""
        made: jax.Array = import_optional("jax", "to_jax() needs JAX", "jax").dlpack.from_dlpack(self._array)
        return made

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        return f"Tensor({self._array!r})"


@final
class CudaSync:
    """A point in a simulator's CUDA work. Waiting is never needed: `step()` returns when the step is done."""

    __slots__ = ()

    __repr__ = showing()

    def wait(self, stream: int) -> None:
        """Makes a CUDA stream wait for the simulator.

        Raises:
            doorstep.DeviceError: always.
        """
        raise doorstep.DeviceError(
            f"There is no CUDA work for stream {stream} to wait for.",
            argument="stream",
            hint="Leave the wait out: step() returns when the step is done.",
        )


Tensors: TypeAlias = "Mapping[str, Tensor | Tensors]"
Shapes: TypeAlias = "dict[str, jax.ShapeDtypeStruct | Shapes]"


@final
class TrainInterface:
    """Names, shapes and dtypes of a step's inputs and outputs, in the form that JAX needs.

    Args:
        step_inputs: tensors by name, or groups of them by name.
        step_outputs: the same of the outputs.
    """

    __slots__ = ("_inputs", "_outputs")

    __repr__ = showing("_inputs", "_outputs")

    def __init__(self, step_inputs: Tensors, step_outputs: Tensors) -> None:
        self._inputs = step_inputs
        self._outputs = step_outputs

    def step_inputs(self) -> Shapes:
        """A jax.ShapeDtypeStruct for each tensor that a step reads."""
        return _shapes(self._inputs)

    def step_outputs(self) -> Shapes:
        """A jax.ShapeDtypeStruct for each tensor that a step writes."""
        return _shapes(self._outputs)


def _shapes(tensors: Tensors) -> Shapes:
    jax = import_optional("jax", "shapes of inputs and outputs need JAX", "jax")
    shapes: Shapes = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, Tensor):
            array = tensor._array
            if not isinstance(array, doorstep.Tensor):
                array = np.from_dlpack(array)
            shapes[name] = jax.ShapeDtypeStruct(array.shape, array.dtype)
        else:
            shapes[name] = _shapes(tensor)
    return shapes
