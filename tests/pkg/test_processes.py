"""Interpreter exit, fork, signals, import orders, subinterpreters and memory limits, each in a process of its own."""

import importlib.util
import sys
from collections.abc import Callable

import pytest
from tests.interop.modes import both_modes, environment

RunPython = Callable[..., str]

AT_EXIT = {
    "an open simulator": "sim = doorstep.Simulator(64); sim.step()",
    "live tensors": "sim = doorstep.Simulator(64); rewards = sim.rewards; sim.close()",
    "live arrays": "import numpy; array = numpy.asarray(doorstep.Simulator(64).rewards)",
    "an unconsumed capsule": "capsule = doorstep.Simulator(64).rewards.__dlpack__(max_version=(1, 0))",
    "a legacy capsule": "capsule = doorstep.Simulator(64).rewards.__dlpack__()",
    "a running step": "sim = doorstep.Simulator(4096); event = sim.step_async()",
    "a reference cycle": "sim = doorstep.Simulator(64); cycle = [sim]; cycle.append(cycle); del sim",
    "things hidden in a module": "import sys; sys.s = doorstep.Simulator(64); sys.c = sys.s.rewards.__dlpack__()",
    "a bound step": "step = doorstep.Simulator(64).step; step()",
    "a bound step hidden in a module": "import sys; sys.step = doorstep.Simulator(64).step; sys.step()",
    "the C API": "import sys; sys.api = doorstep.capi()",
    "an exit handler that steps": "import atexit; sim = doorstep.Simulator(64); atexit.register(sim.step)",
    "daemon threads that step": """
import threading, time, weakref
weakref.finalize(threading, time.sleep, 0.2)  # runs after the simulator's end: its threads notice
sim = doorstep.Simulator(256)
def loop():
    while True:
        sim.step()
for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.05)
""",
    "a daemon thread that draws": """
import threading, time, weakref
weakref.finalize(threading, time.sleep, 0.2)
sim = doorstep.Simulator(2)
def loop():
    while True:
        sim.render(width=64, height=48)
threading.Thread(target=loop, daemon=True).start()
time.sleep(0.2)
""",
}


@both_modes
@pytest.mark.parametrize("code", AT_EXIT.values(), ids=AT_EXIT)
def test_interpreter_exits_cleanly_with(code: str, mode: str, run_python: RunPython) -> None:
    assert run_python("import doorstep\n" + code, **environment(mode)) == ""


def test_other_errors_of_daemon_threads_are_reported_at_exit(run_python: RunPython) -> None:
    code = """
import doorstep, os, sys, threading, time, weakref
weakref.finalize(threading, lambda: thread.join(60))
sys.stderr = sys.stdout
sim = doorstep.Simulator(64)
def loop():
    try:
        while True:
            sim.step()
    except doorstep.ClosedError:
        raise ValueError("of the user") from None
thread = threading.Thread(target=loop, daemon=True)
thread.start()
time.sleep(0.05)
"""
    assert "ValueError: of the user" in run_python(code)


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
import doorstep
sim = doorstep.Simulator(64, num_threads=2)
sim.step()
{before}
child = os.fork()
if child == 0:
    {in_child}
    sys.stdout.flush()
    os._exit(0) if {hard} else sys.exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
sim.step()
print(sim.step_count)
"""


@both_modes
@pytest.mark.parametrize("hard", [True, False], ids=["_exit", "sys.exit"])
def test_a_forked_child_steps_the_same_worlds(hard: bool, mode: str, run_python: RunPython) -> None:
    code = FORK.format(before="", in_child="sim.step(); print(sim.hash())", hard=hard)
    child, parent = run_python(code + "print(sim.hash())", **environment(mode)).split("\n", 1)
    assert parent == f"2\n{child}\n"


def test_a_forked_child_can_make_and_close_simulators(run_python: RunPython) -> None:
    in_child = "sim.close(); other = doorstep.Simulator(8, num_threads=2); other.step(); print(other.step_count)"
    assert run_python(FORK.format(before="", in_child=in_child, hard=False)) == "1\n2\n"


@both_modes
def test_ctrl_c_during_a_wait_raises(mode: str, run_python: RunPython) -> None:
    code = """
import doorstep, os, signal, threading
sim = doorstep.Simulator(512, num_threads=1)
for _ in range(400):
    last = sim.step_async()
try:
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        sim.step()
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run_python(code, **environment(mode)) == "interrupted\n"


# What another library makes of a tensor, as an array whose sum is an integer.
CONVERSIONS = {
    "jax": "sim.steps_remaining.to_jax(copy=True)",
    "numpy": "numpy.asarray(sim.steps_remaining)",
    "torch": "sim.steps_remaining.to_torch()",
    "warp": "warp.from_dlpack(sim.steps_remaining).numpy()",
}


@both_modes
@pytest.mark.parametrize("other", CONVERSIONS)
@pytest.mark.parametrize("first", ["doorstep", "other"])
def test_import_order_does_not_matter(other: str, first: str, mode: str, run_new_python: RunPython) -> None:
    if importlib.util.find_spec(other) is None:
        pytest.skip(f"{other} is not installed")
    imports = ["import doorstep; sim = doorstep.Simulator(8); sim.step()", f"import {other}"]
    code = "\n".join(imports if first == "doorstep" else imports[::-1])
    if other == "warp":  # tells much about itself, on stderr that there is no driver
        code += "\nimport os; os.dup2(os.open(os.devnull, os.O_WRONLY), 2); warp.init()"
    output = run_new_python(f"{code}\nprint(int({CONVERSIONS[other]}.sum()))", "-W", "ignore", **environment(mode))
    assert output.splitlines()[-1] == str(8 * 2 * 199)


@pytest.mark.parametrize("kind", ["isolated", "legacy"])
@pytest.mark.parametrize("first", ["", "import doorstep; doorstep.Simulator(2).step()"], ids=["alone", "beside"])
def test_a_subinterpreter_is_refused(kind: str, first: str, run_python: RunPython) -> None:
    modern = sys.version_info >= (3, 13)
    module = "_interpreters" if modern else "_xxsubinterpreters"
    create = f"create({kind!r})" if modern else f"create(isolated={kind == 'isolated'})"
    inside = """
try:
    import doorstep
except ImportError as error:
    print(type(error).__name__, error.hint)
"""
    code = f"import sys, {module} as interpreters\n{first}\ninterpreter = interpreters.{create}\n"
    code += f"interpreters.run_string(interpreter, f'import sys; sys.path[:] = {{sys.path!r}}' + {inside!r})\n"
    hint = "import doorstep in the main interpreter; for work in parallel use threads or processes"
    assert run_python(code + "interpreters.destroy(interpreter)") == f"LibraryError {hint}\n"


def test_memory_that_cannot_be_had_is_an_error_and_leaves_nothing(run_python: RunPython) -> None:
    code = """
import doorstep, resource
doorstep.Simulator(8).step()
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
for num_worlds in (2**30, 2**27):
    try:
        doorstep.Simulator(num_worlds)
    except doorstep.OutOfMemoryError as error:
        print(error.argument, any(doorstep.live_counts().values()))
doorstep.Simulator(8).step()
"""
    assert run_python(code) == "num_worlds False\n" * 2
