"""Memory shared by file descriptors on a real GPU. CUDA both exports and imports, where the driver allows that. What
needs Vulkan itself (semaphores, memory allocated by Vulkan) is not tested here."""

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.gpu.frameworks import cuda_torch

import doorstep
from doorstep import cuda

IMPORT_IN_ANOTHER_PROCESS = """
import sys
import numpy as np
from doorstep import cuda
buffer = cuda.InteropBuffer.import_fd(int(sys.argv[1]), int(sys.argv[2]))
print(buffer.copy_to_host(np.int64)[:4].tolist())
buffer.copy_in(np.arange(4) * 10)
buffer.close()
"""


def exported(values: list[int]) -> cuda.InteropBuffer:
    buffer = cuda.InteropBuffer(8 * len(values))
    buffer.copy_in(np.array(values))
    buffer.stream.synchronize()
    return buffer


def import_or_skip(buffer: cuda.InteropBuffer) -> cuda.InteropBuffer:
    """Imports the same memory; the driver may refuse memory that another API has not exported."""
    fd = buffer.export()
    try:
        return cuda.InteropBuffer.import_fd(fd, buffer.allocated_bytes)
    except doorstep.DoorstepError as reason:
        os.close(fd)
        pytest.skip(f"this driver does not import its own exports: {reason}")


def test_memory_is_whole_granules_and_tensors_go_in_and_out() -> None:
    with doorstep.Simulator(64, device="cuda", seed=5) as sim, doorstep.Simulator(64, seed=5) as twin:
        buffer = cuda.InteropBuffer(64 * 2 * 8 * 4)
        assert buffer.allocated_bytes % 65536 == 0
        sim.step()
        twin.step()
        buffer.copy_in(sim.self_observations)
        assert (buffer.copy_to_host(np.float32) == twin.self_observations.to_numpy().reshape(-1)).all()
        actions = np.tile(np.array([3, 1, 4, 0], np.int32), (64, 2, 1))
        buffer.copy_in(actions)
        buffer.copy_out(sim.actions)
        twin.actions.to_numpy()[:] = actions
        sim.step()
        twin.step()
        assert sim.hash() == twin.hash()


def test_rows_with_gaps_are_copied() -> None:
    torch = cuda_torch()
    image = torch.arange(4 * 6, dtype=torch.int16, device="cuda").reshape(4, 6)
    buffer = cuda.InteropBuffer(32)
    buffer.copy_in(image[:, 1:5])
    assert (buffer.copy_to_host(np.int16).reshape(4, 4) == np.arange(24).reshape(4, 6)[:, 1:5]).all()
    image.zero_()
    buffer.copy_out(image[:, 2:6])
    assert (image[:, 2:6].cpu().numpy() == np.arange(24).reshape(4, 6)[:, 1:5]).all()
    assert (image[:, :2] == 0).all()


def test_exported_memory_imported_again_is_the_same_memory() -> None:
    buffer = exported([1, 2, 3, 4])
    again = import_or_skip(buffer)
    assert again.pointer != buffer.pointer
    assert again.copy_to_host(np.int64)[:4].tolist() == [1, 2, 3, 4]
    again.copy_in(np.array([5]))
    assert buffer.copy_to_host(np.int64)[0] == 5


def test_exported_memory_is_the_same_in_another_process() -> None:
    buffer = exported([1, 2, 3, 4])
    import_or_skip(buffer).close()
    fd = buffer.export()
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_IN_ANOTHER_PROCESS, str(fd), str(buffer.allocated_bytes)],
        pass_fds=[fd],
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(fd)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 2, 3, 4]\n", "")
    assert buffer.copy_to_host(np.int64).tolist() == [0, 10, 20, 30]


def test_a_descriptor_that_the_driver_refuses_stays_the_callers() -> None:
    fd = os.open("/dev/null", os.O_RDWR)
    with pytest.raises(doorstep.DoorstepError):
        cuda.InteropBuffer.import_fd(fd, 65536)
    with pytest.raises(doorstep.DoorstepError):
        cuda.Semaphore.import_fd(fd)
    os.close(fd)


def test_the_uuid_is_the_one_that_the_system_management_tool_prints() -> None:
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nvidia-smi is not there")
    if "MIG" in listed:
        pytest.skip("parts of a GPU have other UUIDs")
    assert str(cuda.Device().uuid) in listed
