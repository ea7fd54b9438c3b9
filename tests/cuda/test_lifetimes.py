"""Simulators on the GPU come and go: nothing stays, in loops, threads, forks, and at the end of the interpreter."""

import ctypes
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in, run
from tests.cuda.twins import Twins

import doorstep
from doorstep import cuda
from doorstep._native import DeviceKind, check, load
from doorstep._native._generated import SimulatorConfig


@on_stand_in()
def test_a_hundred_simulators_leave_nothing() -> None:
    free = cuda.Device().free_bytes
    for seed in range(100):
        sim = doorstep.Simulator(3, device="cuda", seed=seed)
        sim.step()
        kept = sim.rewards if seed % 3 else sim.step_async()
        if seed % 2:
            sim.close()
        del sim, kept
    gc.collect()
    cuda.Device().synchronize()
    assert cuda.Device().free_bytes == free
    assert driver.report().live == {}


@on_stand_in()
def test_simulator_that_is_not_closed_is_ended_with_its_last_reference() -> None:
    sim = doorstep.Simulator(3, device="cuda")
    sim.step()
    del sim


class OwnedStream:
    """A stream that ends with its object, as other libraries have them."""

    def __init__(self) -> None:
        self.handle = driver.call_for_value("cuStreamCreate", driver.NON_BLOCKING)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __del__(self) -> None:
        driver.call("cuStreamDestroy_v2", ctypes.c_uint64(self.handle))


@on_stand_in()
def test_stream_that_was_given_lives_until_the_simulator_has_ended() -> None:
    with driver.users_context():
        sim = doorstep.Simulator(3, device="cuda", stream=OwnedStream())
        sim.step()
        del sim
        sim = doorstep.Simulator(3, device="cuda", stream=OwnedStream())
        sim.step()
        sim.close()


@on_stand_in()
def test_stream_that_a_simulator_has_left_may_end_before_it() -> None:
    with driver.users_context():
        streams = [OwnedStream(), OwnedStream()]
        handle = ctypes.c_uint64()
        config = SimulatorConfig(struct_size=ctypes.sizeof(SimulatorConfig))
        library = load()
        check(library.ds_simulator_config_default(ctypes.byref(config)))
        config.device_kind, config.stream = DeviceKind.CUDA, streams[0].handle
        check(library.ds_simulator_create(ctypes.byref(config), ctypes.byref(handle)))
        check(library.ds_simulator_step(handle.value))
        check(library.ds_simulator_set_stream(handle.value, streams[1].handle))
        del streams[0]
        check(library.ds_simulator_step(handle.value))
        check(library.ds_simulator_close(handle.value))
        streams.clear()


@on_stand_in()
def test_threads_have_simulators_of_their_own() -> None:
    failures = []

    def play(seed: int) -> None:
        try:
            for _ in range(3):
                with Twins(5, seed=seed) as twins:
                    twins.step_randomly(4, seed=seed)
                    twins.assert_same()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def step_ten_times(sim: doorstep.Simulator) -> None:
    for _ in range(10):
        sim.step()


@on_stand_in()
def test_threads_that_share_a_simulator_take_turns() -> None:
    with doorstep.Simulator(5) as cpu, doorstep.Simulator(5, device="cuda") as sim:
        threads = [threading.Thread(target=step_ten_times, args=(sim,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            sim.hash()
        for thread in threads:
            thread.join()
        for _ in range(40):
            cpu.step()
        assert sim.step_count == 40
        assert sim.hash() == cpu.hash()


def step_forever(sim: doorstep.Simulator) -> None:
    while True:
        sim.step()


@on_stand_in()
def test_closing_in_another_thread_ends_a_simulator_in_use_cleanly() -> None:
    for _ in range(10):
        sim = doorstep.Simulator(5, device="cuda")

        def use(sim: doorstep.Simulator = sim) -> None:
            with pytest.raises(doorstep.ClosedError):
                step_forever(sim)

        thread = threading.Thread(target=use)
        thread.start()
        sim.close()
        thread.join()
        del sim, use, thread


def make_another() -> None:
    doorstep.Simulator(2, device="cuda")


def is_refused_after_fork(call: Callable[[], object]) -> bool:
    try:
        call()
    except doorstep.DeviceError as error:
        return "fork" in str(error)
    return False


@on_stand_in()
def test_forked_child_is_refused_and_the_parent_goes_on() -> None:
    sim = doorstep.Simulator(4, device="cuda")
    sim.step()
    tensor, stream = sim.rewards, cuda.Stream()
    child = os.fork()
    if child == 0:
        calls: tuple[Callable[[], object], ...] = (
            sim.step,
            sim.hash,
            sim.save,
            tensor.copy_to_host,
            stream.synchronize,
            cuda.Stream,
            make_another,
        )
        refused = sum(map(is_refused_after_fork, calls))
        sim.close()
        del sim, tensor, stream
        gc.collect()
        with doorstep.Simulator(2) as cpu:
            cpu.step()
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    sim.step()
    with doorstep.Simulator(4) as cpu:
        cpu.step()
        cpu.step()
        assert sim.hash() == cpu.hash()
    sim.close()


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


@pytest.mark.parametrize(
    "more",
    [
        "",
        "sim.close()",
        "del sim",
        "cycle = [sim, tensor]; cycle.append(cycle); del sim, tensor",
        STEP_IN_A_DAEMON,
        "import atexit; atexit.register(lambda: print(tensor.copy_to_host().shape))",
        "import sys; sys.exit(0)",
        "import builtins; builtins.kept = (sim, tensor, event, stream, buffer)",
    ],
)
def test_interpreter_ends_cleanly_with_everything_alive(more: str, tmp_path: Path) -> None:
    run([LIVE_AT_EXIT.format(more=more)], {"report": str(tmp_path / "report")})
    report = driver.read_report((tmp_path / "report").read_text())
    assert report.violations == []


def test_interpreter_that_ends_while_a_driver_call_fails_ends_cleanly(tmp_path: Path) -> None:
    more = "from tests.cuda import stand_in_driver; [stand_in_driver.fail('', n, 999) for n in range(1, 100)]"
    run([LIVE_AT_EXIT.format(more=more)], {"report": str(tmp_path / "report")})
