"""From the driver to thirty steps, a line a rung: the first that fails or hangs names what is wrong.

    python -m tests.gpu.contact.ladder
"""

from __future__ import annotations

import ctypes
import functools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tests.cuda import stand_in_driver as driver
from tests.cuda.training_calls import advantages, assert_same, prepared
from tests.cuda.twins import Twins

import doorstep
from doorstep import cuda
from doorstep._native import LIBRARY_PATH, cuda_driver

sys.path.append(str(Path(__file__).resolve().parents[3] / "wheel_build"))

from kernel_image_file import PTX, ImageName, unpack

AGENTS = 2
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CUjit_option


def device() -> str:
    version, found = cuda_driver().version, cuda.Device()
    return (
        f"CUDA {version // 1000}.{version % 1000 // 10}, {found.name}, {'.'.join(map(str, found.compute_capability))}"
    )


def context() -> str:
    with driver.users_context() as context:
        return f"{context:#x}"


def pool() -> str:
    with driver.users_stream() as stream:
        handle = ctypes.c_uint64(driver.call_for_value("cuDeviceGetDefaultMemPool", 0))
        size = ctypes.c_size_t(1 << 20)
        memory = driver.call_for_value("cuMemAllocFromPoolAsync", size, handle, ctypes.c_uint64(stream))
        driver.call("cuMemFreeAsync", ctypes.c_uint64(memory), ctypes.c_uint64(stream))
        driver.synchronize(stream)
    return "1 MiB"


def pinned_copy() -> str:
    sent = np.arange(1 << 18, dtype=np.int32)
    pinned, memory = cuda.Buffer.pinned(sent.nbytes), cuda.Buffer(sent.nbytes)
    np.asarray(pinned)[:] = sent.view(np.uint8)
    memory.copy_from_host(np.asarray(pinned))
    assert memory.copy_to_host(np.int32).tobytes() == sent.tobytes()
    return "1 MiB there and back"


@functools.cache
def images() -> dict[ImageName, bytes]:
    return unpack(Path(LIBRARY_PATH).read_bytes())


def load(name: ImageName) -> str:
    """Gives the driver the module of steps in this form, without the library."""
    log = ctypes.create_string_buffer(400)
    options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log) - 1)
    module = ctypes.c_uint64()
    with driver.users_context():
        code = driver.library().cuModuleLoadDataEx(ctypes.byref(module), images()[name], 2, options, values)
        if code:
            raise RuntimeError(f"the driver refuses it: code {code} {log.value.decode(errors='replace')!r}")
        driver.call("cuModuleUnload", module)
    return f"{len(images()[name]):,} bytes"


def machine_code() -> str:
    major, minor = cuda.Device().compute_capability
    fitting = [
        name
        for name in images()
        if name.module == AGENTS and name.architecture // 10 == major and name.architecture % 10 <= minor
    ]
    if not fitting:
        return f"the library has none for {major}.{minor}"
    return f"sm_{max(fitting).architecture}, {load(max(fitting))}"


def smallest_kernel() -> str:
    with prepared():
        assert_same("generalized_advantages", advantages("float32", 1, 1))
    return "advantages of one step"


def steps(count: int) -> str:
    with Twins(1) as twins:
        twins.step_randomly(count)
        twins.assert_same()
    return "the CPU's bits"


def created() -> str:
    with doorstep.Simulator(1, device="cuda") as sim:
        return f"{sim.allocated_bytes:,} bytes"


def rungs() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "driver and device", device
    yield "context", context
    yield "pool", pool
    yield "pinned copy", pinned_copy
    yield "machine code of steps", machine_code
    yield "PTX of steps, compiled by the driver", functools.partial(load, ImageName(AGENTS, PTX))
    yield "smallest kernel", smallest_kernel
    yield "create", created
    yield "1 step", functools.partial(steps, 1)
    yield "30 steps", functools.partial(steps, 30)


def main() -> int:
    failed = 0
    for name, climb in rungs():
        print(f"{name}: ", end="", flush=True)
        begin = time.monotonic()
        try:
            found = climb()
        except Exception as error:
            failed += 1
            found = f"FAILED: {str(error)[:600]}"
        print(f"{found} ({time.monotonic() - begin:.1f} s)", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
