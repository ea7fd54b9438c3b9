"""CuPy and JAX read the simulator's memory in place."""

import numpy as np
import pytest
from tests.gpu.frameworks import cuda_jax

import doorstep
from doorstep import cuda


def test_cupy_reads_and_writes_in_place() -> None:
    cupy = pytest.importorskip("cupy")
    with doorstep.Simulator(100, device="cuda") as sim:
        for tensor in (*sim.tensors.values(), sim.state.body_positions):
            address = tensor.__cuda_array_interface__["data"][0]
            for array in (cupy.asarray(tensor), cupy.from_dlpack(tensor)):
                assert array.shape == tensor.shape
                assert array.data.ptr == address or array.size == 0
        cupy.asarray(sim.actions)[:] = 1
        cupy.cuda.Device().synchronize()
        assert (sim.actions.copy_to_host() == 1).all()
        sim.step()
        assert (cupy.asnumpy(cupy.asarray(sim.steps_remaining)) == 199).all()
        del array


def test_cupys_stream_may_be_passed() -> None:
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream, doorstep.Simulator(100, device="cuda", stream=stream.ptr) as sim:
        sim.step()
        assert (cupy.asnumpy(cupy.asarray(sim.steps_remaining)) == 199).all()


def test_cupy_reads_buffers() -> None:
    cupy = pytest.importorskip("cupy")
    buffer = cuda.Buffer(800)
    buffer.copy_from_host(np.arange(100))
    array = cupy.asarray(buffer).view(np.int64)
    assert array.data.ptr == buffer.pointer
    assert int(array.sum()) == 4950
    del array


def test_jax_reads_in_place() -> None:
    cuda_jax()
    with doorstep.Simulator(100, device="cuda") as sim:
        sim.step()
        array = sim.lidar.to_jax()
        assert array.unsafe_buffer_pointer() == sim.lidar.__cuda_array_interface__["data"][0]
        assert (np.asarray(array) == sim.lidar.copy_to_host()).all()
        copied = sim.lidar.to_jax(copy=True)
        assert copied.unsafe_buffer_pointer() != array.unsafe_buffer_pointer()
        del array, copied
