"""Programs with a time limit, and where they hung."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]

PASSED, FAILED, TIMED_OUT, NOTHING_DONE, ENDED = "passed", "failed", "timed out", "nothing done", "ended"
NOT_HERE = 77  # exit status of programs that cannot do their work on this machine
NO_TESTS = 5  # of pytest, where a whole file is skipped
GRACE_PERIOD = 5.0  # seconds in which a process that is ended may say where it was
DEBUGGER_SECONDS = 20.0

KERNELS = ("-batch", "-ex", "set pagination off", "-ex", "info cuda kernels", "-ex", "info cuda blocks", "-ex", "where")


def find_tool(name: str) -> str | None:
    """The path of a program of the CUDA toolkit."""
    beside_toolkit = sorted(Path("/usr/local").glob(f"cuda*/bin/{name}"))
    return shutil.which(name) or (str(beside_toolkit[-1]) if beside_toolkit else None)


def run_program(
    program: Sequence[str], end: float, last: float, log: Path, environment: Mapping[str, str], stop: threading.Event
) -> str:
    """Runs a program, with all that it prints in its log; what became of it.

    At `end`, in time.monotonic(), the debugger tells which kernels run, Pythons say where they are, and all processes
    of its session are ended. At `last`, or when `stop` is set, they are ended at once.
    """
    with log.open("wb") as output:
        try:
            process = begin(program, environment, output.fileno())
        except OSError as error:
            output.write(f"{error}\n".encode())
            return FAILED
        while process.poll() is None and time.monotonic() < end and not stop.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        code = process.poll()
        hangs = code is None and end < last and not stop.is_set()
        if hangs:
            show_kernels(process.pid, output.fileno(), environment)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGABRT)
        if not end_session(process, GRACE_PERIOD if hangs else 0.0):
            output.write(b"The process does not end: the driver holds it.\n")
    if code is None:
        return TIMED_OUT if hangs else ENDED
    return PASSED if code == 0 else NOTHING_DONE if code in (NOT_HERE, NO_TESTS) else FAILED


def begin(program: Sequence[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[bytes]:
    """Starts a program as the first process of a session."""
    return subprocess.Popen(
        program,
        cwd=PROJECT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def end_session(process: subprocess.Popen[bytes], grace: float = 0.0) -> bool:
    """Waits a moment for its first process, and kills what is left of it; whether that ended it."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(GRACE_PERIOD)
    except subprocess.TimeoutExpired:
        return False
    return True


def show_kernels(process: int, output: int, environment: Mapping[str, str]) -> None:
    """Writes which kernels a process runs, and where its main thread is."""
    debugger = find_tool("cuda-gdb")
    if debugger is None:
        os.write(output, b"cuda-gdb is not here\n")
        return
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [debugger, *KERNELS, "-p", str(process)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=DEBUGGER_SECONDS,
            check=False,
        )
