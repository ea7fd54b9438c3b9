"""This process and machine: the Python interpreter, live objects, the CPU, the CUDA driver and its GPUs.

Imported before everything else, because subinterpreters are refused here: neither numpy nor the library supports them.
"""

from __future__ import annotations

from doorstep.errors import LibraryError

INTERPRETER_HINT = "import doorstep in the main interpreter; for work in parallel use threads or processes"

try:
    import ctypes
except ImportError as error:  # raised by Python 3.12 in interpreters with a GIL of their own
    raise LibraryError(f"doorstep cannot be imported in this interpreter: {error}", hint=INTERPRETER_HINT) from error

from doorstep._native._generated import (  # noqa: E402
    CudaCompileInfo,
    CudaDeviceInfo,
    CudaDriverInfo,
    CudaKernelInfo,
    Kernel,
    LiveKind,
)
from doorstep._native.calls import read_struct, read_value  # noqa: E402
from doorstep._native.library import PYTHON, load, open_library  # noqa: E402

# ---- The interpreter ----


def _check_interpreter() -> None:
    """Raises LibraryError in every interpreter but the first."""
    current = getattr(PYTHON, "PyInterpreterState_Get", None)
    number = getattr(PYTHON, "PyInterpreterState_GetID", None)
    if current is None or number is None:  # libpython is visible to its own program alone, which has one interpreter
        return
    current.restype = ctypes.c_void_p
    number.argtypes = (ctypes.c_void_p,)
    number.restype = ctypes.c_int64
    if number(current()) != 0:
        raise LibraryError("doorstep cannot be imported in a subinterpreter", hint=INTERPRETER_HINT)


_check_interpreter()


# ---- The process and its CPU ----


def live_counts() -> dict[str, int]:
    """Number of native objects of each kind alive in this process; all zero once everything has been released.

    >>> import doorstep
    >>> sim = doorstep.Simulator(2)
    >>> doorstep.live_counts()["simulator"]
    1
    >>> sim.close()
    >>> doorstep.live_counts()["simulator"]
    0
    """
    return {kind.name.lower(): read_value(load().ds_live_count, ctypes.c_int64, kind) for kind in LiveKind}


def default_thread_count() -> int:
    """Threads that a simulator uses here by default, by CPU affinity and cgroup quota."""
    count: int = read_value(load().ds_default_thread_count, ctypes.c_int64)
    return count


def cpu_features() -> dict[str, bool]:
    """CPU features that the library needs and whether this CPU has them; works also where load() refuses the CPU."""
    function = open_library().ds_cpu_features
    function.restype = ctypes.c_char_p
    pairs = (entry.partition("=") for entry in function().decode().split(","))
    return {name: value == "1" for name, _, value in pairs}


def stage_names() -> list[str]:
    """The stages of a step, in order."""
    function = load().ds_stage_name
    names: list[str] = []
    while (name := function(len(names))) is not None:
        names.append(name.decode())
    return names


# ---- The CUDA driver and its devices ----


def cuda_driver() -> CudaDriverInfo:
    """Describes the driver. The first call opens it."""
    return read_struct(load().ds_cuda_get_driver, CudaDriverInfo)


def cuda_device(index: int) -> CudaDeviceInfo:
    """Describes a GPU. The first call opens the driver."""
    return read_struct(load().ds_cuda_get_device, CudaDeviceInfo, index)


def cuda_kernel(index: int, num_agents: int, kernel: Kernel) -> CudaKernelInfo:
    """Describes a kernel on a GPU. Loads it for that."""
    return read_struct(load().ds_cuda_get_kernel, CudaKernelInfo, index, num_agents, kernel)


def cuda_compile(architecture: str, num_agents: int) -> CudaCompileInfo:
    """Compiles the kernels for an architecture ("sm_103"); needs neither GPU nor driver."""
    return read_struct(load().ds_cuda_compile, CudaCompileInfo, architecture.encode(), num_agents)


def cuda_architectures() -> list[str]:
    """The architectures that the library has machine code for; empty if it has PTX alone."""
    text: bytes = load().ds_cuda_architectures()
    return text.decode().split(",") if text else []
