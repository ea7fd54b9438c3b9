"""A batch in device memory, with everything its calls need, from the C API and as the custom calls of XLA."""

import ctypes

import numpy as np
from tests.interop import xla_frames

from doorstep import cuda
from doorstep._native import TENSORS, DeviceKind, batch_info, load
from doorstep._native._generated import Batch, Level
from doorstep.levels.native import to_native_array

DTYPES = {row.name: row.dtype for row in TENSORS}
LEVEL_BYTES = ctypes.sizeof(Level)


class DeviceBatch:
    """Worlds in buffers of their own, on a stream. Memory is not zero beforehand. Levels are all equally likely."""

    def __init__(self, num_worlds, stream, *, num_agents=2, episode_length=200, levels=()):
        self.stream, self.num_worlds, self.num_agents = stream, num_worlds, num_agents
        self.info = batch_info(DeviceKind.CUDA, 0, num_worlds, num_agents, len(levels))
        sizes = {"N": num_worlds, "A": num_agents, "A-1": num_agents - 1, "F": self.info.flat_observation_size}
        sizes["L"] = len(levels)
        self.shapes = {row.name: tuple(int(sizes.get(size, size)) for size in row.shape) for row in TENSORS}
        self.worlds = self.take(num_worlds * self.info.world_bytes)
        self.tensors = {row.name: self.take(max(1, self.nbytes(row.name))) for row in TENSORS}
        self.scratch = self.take(self.info.scratch_bytes)
        self.trouble = self.take(12)
        self.table = self.take(max(1, LEVEL_BYTES * len(levels)))
        if levels:
            self.table.copy_from_host(np.frombuffer(bytes(to_native_array(levels)), np.uint8))
            self.write("level_weights", np.ones(self.shapes["level_weights"]))
        self.addresses = (ctypes.c_void_p * len(TENSORS))(*(buffer.pointer for buffer in self.tensors.values()))
        batch = self.batch = Batch(ctypes.sizeof(Batch), device_kind=DeviceKind.CUDA, stream=stream.handle)
        batch.num_worlds, batch.num_agents, batch.max_levels = num_worlds, num_agents, len(levels)
        batch.episode_length, batch.auto_reset = episode_length, 1
        batch.worlds, batch.tensors = self.worlds.pointer, ctypes.addressof(self.addresses)
        batch.scratch, batch.scratch_bytes = self.scratch.pointer, self.info.scratch_bytes
        batch.trouble, batch.levels = self.trouble.pointer, self.table.pointer

    def nbytes(self, name):
        return int(np.prod(self.shapes[name])) * np.dtype(DTYPES[name]).itemsize

    def take(self, nbytes):
        buffer = cuda.Buffer(nbytes, stream=self.stream)
        buffer.copy_from_host(np.full(nbytes, 0xA5, np.uint8))
        return buffer

    def call(self, function, *arguments):
        """Calls a function of the C API with the batch; its status."""
        return getattr(load(), function)(ctypes.byref(self.batch), *arguments)

    def read(self, name):
        """A tensor, copied out."""
        values = self.tensors[name].copy_to_host(np.uint8)[: self.nbytes(name)]
        return values.view(DTYPES[name]).reshape(self.shapes[name])

    def write(self, name, values):
        self.tensors[name].copy_from_host(np.ascontiguousarray(values, DTYPES[name]))

    # ---- As XLA calls it

    def xla_tensor(self, name):
        return xla_frames.Tensor(self.tensors[name].pointer, self.shapes[name], DTYPES[name])

    def xla_results(self, outputs, scratch):
        worlds = xla_frames.Tensor(self.worlds.pointer, (self.num_worlds, self.info.world_bytes // 4), "uint32")
        return [worlds, xla_frames.Tensor(scratch.pointer, (scratch.nbytes,), "uint8"), *map(self.xla_tensor, outputs)]

    def xla_levels(self):
        """The arguments of a call that plays levels."""
        shape = self.batch.max_levels, LEVEL_BYTES // 4
        return [self.xla_tensor("level_weights"), xla_frames.Tensor(self.table.pointer, shape, "uint32")]

    def rules(self, outputs, *, resets=False):
        inputs = resets + 2 * (self.batch.max_levels > 0)
        numbers = [DeviceKind.CUDA, self.num_agents, self.batch.episode_length, 1, 0, inputs]
        return [*map(int, numbers), *xla_frames.NO_REWARD_NO_PARTS, *map(list(DTYPES).index, outputs)]

    def close(self):
        for buffer in (self.worlds, *self.tensors.values(), self.scratch, self.trouble, self.table):
            buffer.close()
