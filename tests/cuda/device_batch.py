"""A batch in device memory, with everything its calls need, from the C API and as the custom calls of XLA."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.interop import xla_frames

from doorstep import cuda
from doorstep._native import TENSORS, DeviceKind, batch_info, load
from doorstep._native._generated import Batch, Level
from doorstep.levels.files import AnyLevel
from doorstep.levels.native import to_native_array

NAMES = [row.name for row in TENSORS]
LEVEL_BYTES = ctypes.sizeof(Level)


class DeviceBatch:
    """Worlds in buffers of their own, on a stream. Memory is not zero beforehand. Levels are all equally likely."""

    def __init__(
        self,
        num_worlds: int,
        stream: cuda.Stream,
        *,
        num_agents: int = 2,
        episode_length: int = 200,
        levels: Sequence[AnyLevel] = (),
    ) -> None:
        self.stream = stream
        self.num_worlds = num_worlds
        self.num_agents = num_agents
        self.info = batch_info(DeviceKind.CUDA, 0, num_worlds, num_agents, len(levels))
        symbols = {"N": num_worlds, "A": num_agents, "A-1": num_agents - 1, "F": self.info.flat_observation_size}
        symbols |= {"L": len(levels)}
        self.shapes = {
            row.name: tuple(symbols[size] if size in symbols else int(size) for size in row.shape) for row in TENSORS
        }
        self.worlds = self.take(num_worlds * self.info.world_bytes)
        self.tensors = {row.name: self.take(self.nbytes(row.name)) for row in TENSORS}
        self.scratch = self.take(self.info.scratch_bytes)
        self.trouble = self.take(12)
        self.table = self.take(max(1, LEVEL_BYTES * len(levels)))
        if levels:
            self.table.copy_from_host(np.frombuffer(bytes(to_native_array(levels)), np.uint8))
            self.write("level_weights", np.ones(self.shapes["level_weights"]))
        self.addresses = (ctypes.c_void_p * len(TENSORS))(*(buffer.pointer for buffer in self.tensors.values()))
        self.batch = Batch(
            struct_size=ctypes.sizeof(Batch),
            device_kind=DeviceKind.CUDA,
            stream=stream.handle,
            num_worlds=num_worlds,
            num_agents=num_agents,
            episode_length=episode_length,
            auto_reset=1,
            worlds=self.worlds.pointer,
            tensors=ctypes.addressof(self.addresses),
            scratch=self.scratch.pointer,
            scratch_bytes=self.info.scratch_bytes,
            trouble=self.trouble.pointer,
            levels=self.table.pointer,
            max_levels=len(levels),
        )

    def nbytes(self, name: str) -> int:
        dtype = TENSORS[NAMES.index(name)].dtype
        return max(1, int(np.prod(self.shapes[name])) * np.dtype(dtype).itemsize)

    def take(self, nbytes: int) -> cuda.Buffer:
        buffer = cuda.Buffer(nbytes, stream=self.stream)
        buffer.copy_from_host(np.full(nbytes, 0xA5, np.uint8))
        return buffer

    def call(self, function: str, *arguments: Any) -> int:
        """Calls a function of the C API with the batch; its status."""
        status: int = getattr(load(), function)(ctypes.byref(self.batch), *arguments)
        return status

    def read(self, name: str) -> npt.NDArray[Any]:
        """A tensor, copied out."""
        dtype = TENSORS[NAMES.index(name)].dtype
        size = int(np.prod(self.shapes[name]))
        values: npt.NDArray[Any] = self.tensors[name].copy_to_host(np.uint8)[: size * np.dtype(dtype).itemsize]
        return values.view(dtype).reshape(self.shapes[name])

    def write(self, name: str, values: npt.NDArray[Any]) -> None:
        self.tensors[name].copy_from_host(np.ascontiguousarray(values, self.read(name).dtype))

    # ---- As XLA calls it

    def xla_tensor(self, name: str) -> xla_frames.Tensor:
        return xla_frames.Tensor(self.tensors[name].pointer, self.shapes[name], TENSORS[NAMES.index(name)].dtype)

    def xla_results(self, outputs: Sequence[str], scratch: cuda.Buffer) -> list[xla_frames.Tensor]:
        worlds = xla_frames.Tensor(self.worlds.pointer, (self.num_worlds, self.info.world_bytes // 4), "uint32")
        return [
            worlds,
            xla_frames.Tensor(scratch.pointer, (scratch.nbytes,), "uint8"),
            *map(self.xla_tensor, outputs),
        ]

    def xla_levels(self) -> list[xla_frames.Tensor]:
        """The arguments of a call that plays levels."""
        shape = self.batch.max_levels, LEVEL_BYTES // 4
        return [self.xla_tensor("level_weights"), xla_frames.Tensor(self.table.pointer, shape, "uint32")]

    def rules(self, outputs: Sequence[str], *, resets: bool = False) -> list[int]:
        inputs = resets + 2 * (self.batch.max_levels > 0)
        numbers = [DeviceKind.CUDA, self.num_agents, self.batch.episode_length, 1, 0, inputs]
        return [*map(int, numbers), *xla_frames.NO_REWARD_NO_PARTS, *map(NAMES.index, outputs)]

    def close(self) -> None:
        for buffer in (self.worlds, *self.tensors.values(), self.scratch, self.trouble, self.table):
            buffer.close()
