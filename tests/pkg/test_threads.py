"""Several Python threads at one simulator."""

import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.scenes import steps

import doorstep


def test_other_python_threads_run_during_a_step():
    begun, turns, end, interval = threading.Event(), [], time.monotonic() + 60, sys.getswitchinterval()

    def take_a_turn():
        begun.wait()
        turns.append(True)

    thread = threading.Thread(target=take_a_turn)
    thread.start()
    with doorstep.Simulator(2048, num_threads=1) as sim:
        try:
            sys.setswitchinterval(1000)  # seconds: now only a thread that gives up the interpreter lets another run
            begun.set()
            while not turns and time.monotonic() < end:
                sim.step()
            assert turns
        finally:
            sys.setswitchinterval(interval)
            thread.join()


def test_close_from_another_thread_ends_stepping_with_closed_error():
    sim, begun = doorstep.Simulator(16), threading.Barrier(4)

    def step_for_ever():
        sim.step()
        begun.wait()
        while True:
            sim.step()

    with ThreadPoolExecutor(3) as pool:
        ends = [pool.submit(step_for_ever) for _ in range(3)]
        begun.wait()
        sim.close()
        for end in ends:
            with pytest.raises(doorstep.ClosedError):
                end.result(60)


def test_messages_belong_to_the_thread_that_failed():
    def message(seed):
        with doorstep.Simulator(2, seed=seed, action_check="raise") as sim:
            sim.actions.to_numpy()[0, 0, 0] = seed
            with pytest.raises(doorstep.ArgumentError) as caught:
                sim.step()
            return str(caught.value)

    with ThreadPoolExecutor(4) as pool:
        for seed, text in zip(range(100, 200), pool.map(message, range(100, 200)), strict=True):
            assert str(seed) in text


def test_calls_fit_into_the_smallest_stack_of_a_thread():
    """A step takes 180 KB of stack where there is room for it."""
    with doorstep.Simulator(200, num_threads=2) as sim, doorstep.Simulator(200) as plain:

        def play(sim):
            sim.step()
            sim.reset()
            sim.step()

        before = threading.stack_size(64 << 10)
        try:
            thread = threading.Thread(target=play, args=(sim,))
            thread.start()
        finally:
            threading.stack_size(before)
        thread.join()
        play(plain)
        assert (sim.step_count, sim.hash()) == (2, plain.hash())


def test_the_stack_of_the_first_thread_grows_once(run_python):
    """A process that cannot have more memory ends when it grows."""
    code = """
import doorstep
def stack():
    with open("/proc/self/status") as status:
        return next(line for line in status if line.startswith("VmStk"))
doorstep.Simulator(1).close()
grown = stack()
with doorstep.Simulator(40, num_agents=8, max_levels=2, num_threads=1) as sim:
    for _ in range(20):
        sim.step()
assert stack() == grown, (stack(), grown)
"""
    run_python(code)


def test_threads_use_one_simulator_and_many_at_once():
    with doorstep.Simulator(8) as shared, doorstep.Simulator(8) as alone, ThreadPoolExecutor(8) as pool:
        begin = threading.Barrier(8)

        def work(seed):
            begin.wait()  # all find the first tensor, and its type, at once
            with doorstep.Simulator(2, seed=seed % 2, num_threads=1) as own:
                for _ in range(20):
                    shared.step()
                    own.step()
                    assert len(shared.save()) > 0
                    assert np.from_dlpack(own.observations).shape == np.asarray(own.observations).shape
                return own.hash()

        hashes = list(pool.map(work, range(8)))
        steps(160, alone)
        assert (shared.step_count, shared.hash()) == (160, alone.hash())
    for seed in range(2):
        with doorstep.Simulator(2, seed=seed) as alone:
            steps(20, alone)
            assert set(hashes[seed::2]) == {alone.hash()}


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a GIL")
def test_an_interpreter_without_a_gil_stays_without():
    code = "import doorstep, sys; doorstep.Simulator(2).step(); print(sys._is_gil_enabled())"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
