"""Threads at exit, forks, signals, import orders, subinterpreters and memory limits, each in a process of its own."""

import sys

from tests.interop.modes import both_modes, environment


def test_other_errors_of_daemon_threads_are_reported_at_exit(run_python):
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
def test_a_forked_child_steps_the_same_worlds_and_can_make_its_own(mode, run_python):
    for hard in (True, False):
        code = FORK.format(in_child="sim.step(); print(sim.hash())", hard=hard)
        child, parent = run_python(code + "print(sim.hash())", **environment(mode)).split("\n", 1)
        assert parent == f"2\n{child}\n"
    in_child = "sim.close(); other = doorstep.Simulator(8, num_threads=2); other.step(); print(other.step_count)"
    assert run_python(FORK.format(in_child=in_child, hard=False)) == "1\n2\n"


@both_modes
def test_ctrl_c_during_a_wait_raises(mode, run_python):
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


def test_a_subinterpreter_is_refused(run_python):
    modern = sys.version_info >= (3, 13)
    module = "_interpreters" if modern else "_xxsubinterpreters"
    inside = """
try:
    import doorstep
except ImportError as error:
    print(type(error).__name__, error.hint)
"""
    hint = "import doorstep in the main interpreter; for work in parallel use threads or processes"
    first = "import doorstep; doorstep.Simulator(2).step()"  # beside it
    for create in ("isolated", "legacy"):
        create = f"create({create!r})" if modern else f"create(isolated={create == 'isolated'})"
        code = f"import sys, {module} as interpreters\n{first}\ninterpreter = interpreters.{create}\n"
        code += f"interpreters.run_string(interpreter, f'import sys; sys.path[:] = {{sys.path!r}}' + {inside!r})\n"
        assert run_python(code + "interpreters.destroy(interpreter)") == f"LibraryError {hint}\n"


def test_memory_that_cannot_be_had_is_an_error_and_leaves_nothing(run_python):
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
