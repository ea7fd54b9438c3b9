"""Simulators on the GPU come and go: nothing stays, in loops, threads, forks, and at the end of the interpreter."""

import ctypes
import gc
import os
import threading
from functools import partial

import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.twins import Twins

import doorstep
from doorstep import cuda
from doorstep._native import check, load


class OwnedStream:
    """A stream that ends with its object, as other libraries have them."""

    def __init__(self):
        self.cuda_stream = driver.call_for_value("cuStreamCreate", driver.NON_BLOCKING)

    def __del__(self):
        driver.call("cuStreamDestroy_v2", ctypes.c_uint64(self.cuda_stream))


def test_a_stream_lives_until_the_simulator_has_ended_or_left_it():
    with driver.users_context():
        for close in (True, False):
            sim = doorstep.Simulator(3, device="cuda", stream=OwnedStream())
            sim.step()
            if close:
                sim.close()
            del sim
        streams = [OwnedStream(), OwnedStream()]
        sim = doorstep.Simulator(3, device="cuda", stream=streams[0].cuda_stream)
        check(load().ds_simulator_step(sim.handle))
        check(load().ds_simulator_set_stream(sim.handle, streams[1].cuda_stream))
        del streams[0]
        check(load().ds_simulator_step(sim.handle))
        sim.close()
        streams.clear()


def test_closing_in_another_thread_ends_a_simulator_in_use_cleanly():
    for _ in range(10):
        sim = doorstep.Simulator(5, device="cuda")

        def use(sim=sim):
            with pytest.raises(doorstep.ClosedError):
                any(sim.step() for _ in iter(int, 1))  # for ever

        thread = threading.Thread(target=use)
        thread.start()
        sim.close()
        thread.join()
        del sim, use, thread


def test_a_forked_child_is_refused_before_the_driver_is_called_and_the_parent_goes_on():
    twin, sim = Twins(4)
    sim.step()
    tensor, stream, refused = sim.rewards, cuda.Stream(), 0
    driver.clear()
    child = os.fork()
    if child == 0:
        another = partial(doorstep.Simulator, 2, device="cuda")
        for call in (sim.step, sim.hash, sim.save, tensor.copy_to_host, stream.synchronize, cuda.Stream, another):
            with pytest.raises(doorstep.DeviceError, match="fork"):
                call()
            refused += 1
        sim.close()
        del sim, tensor, stream, call
        gc.collect()
        doorstep.Simulator(2).step()
        os._exit(0 if driver.report().calls else refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    sim.step()
    for _ in range(2):
        twin.step()
    assert sim.hash() == twin.hash()


LIVE_AT_EXIT = """
import doorstep
from doorstep import cuda
sim = doorstep.Simulator(4, device="cuda")
sim.step()
event, tensor, capsule = sim.step_async(), sim.lidar, sim.rewards.__dlpack__(stream=-1)
stream, buffer = cuda.Stream(), cuda.Buffer(100)
{more}
"""
# The interpreter's end closes the simulator, maybe between two steps.
STEP_IN_A_DAEMON = """
import contextlib
import threading

def play():
    with contextlib.suppress(doorstep.ClosedError):
        for _ in range(200):
            sim.step()

threading.Thread(target=play, daemon=True).start()
"""
FAIL = "from tests.cuda import stand_in_driver; [stand_in_driver.fail('', n, 999) for n in range(1, 100)]"
ENDS = [
    "",
    "sim.close()",
    "del sim",
    "cycle = [sim, tensor]; cycle.append(cycle); del sim, tensor",
    STEP_IN_A_DAEMON,
    "import atexit; atexit.register(lambda: print(tensor.copy_to_host().shape))",
    "import sys; sys.exit(0)",
    "import builtins; builtins.kept = (sim, tensor, event, stream, buffer)",
    FAIL,
]


def test_an_interpreter_ends_cleanly_with_everything_alive(tmp_path, run):
    for number, more in enumerate(ENDS):
        path = tmp_path / str(number)
        run([LIVE_AT_EXIT.format(more=more)], {"report": str(path)})
        assert more == FAIL or driver.read_report(path.read_text()).violations == [], more
