"""Lifetimes and memory use of simulators on a real GPU."""

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from tests.cuda.twins import Twins
from tests.gpu.sizes import sized

import doorstep
from doorstep import cuda

KIBIBYTE, MEBIBYTE = 2**10, 2**20
SCRATCH_OF_MULTIPROCESSOR = 640 * KIBIBYTE  # of at most 9 blocks


def free_bytes() -> int:
    """The device's free memory once all work on it has ended."""
    gc.collect()
    cuda.Device().synchronize()
    return cuda.Device().free_bytes


def lost_bytes(action: Callable[[int], object], rounds: int) -> float:
    """Device memory that each round of an action leaves taken: the least of three series. The first loads what stays,
    and other processes take memory in the meantime, or give some back."""
    losses = []
    for _ in range(3):
        before = free_bytes()
        for number in range(rounds):
            action(number)
        losses.append((before - free_bytes()) / rounds)
    return min(losses)


def test_two_simulators_at_once() -> None:
    one_size, other_size = sized((300, 500), (5, 9))
    with (
        Twins(one_size, num_threads=None, seed=1) as one,
        Twins(other_size, num_threads=None, seed=2, num_agents=3) as other,
    ):
        for seed in range(sized(10, 2)):
            one.step_randomly(3, seed=seed)
            other.step_randomly(2, seed=seed)
        one.assert_same()
        other.assert_same()


def test_threads_with_simulators_of_their_own() -> None:
    failures: list[BaseException] = []

    def play(seed: int) -> None:
        try:
            with Twins(sized(200, 5), seed=seed) as twins:
                twins.step_randomly(sized(50, 3), seed=seed)
                twins.assert_same()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_thousand_simulators_leave_the_devices_memory_as_it_was() -> None:
    def play(number: int) -> None:
        sim = doorstep.Simulator(64, device="cuda", seed=number, num_agents=1 + number % 2)
        sim.step()
        if number // 2 % 2:
            sim.close()

    # The worlds alone take 100 KiB of each, and the driver's pools grow by 32 MiB at a time.
    assert lost_bytes(play, sized(400, 12)) < 16 * KIBIBYTE


def test_device_memory_is_at_most_3_kib_a_world_and_scratch_memory() -> None:
    most = 65536 * 3 * 1024 + cuda.Device().multiprocessors * SCRATCH_OF_MULTIPROCESSOR + 8 * MEBIBYTE
    kept = doorstep.Simulator(64, device="cuda")  # the context, the kernels and their stacks stay
    kept.step()
    before = free_bytes()
    with doorstep.Simulator(65536, device="cuda", observations="by_name") as sim:
        sim.step()
        sim.wait()
        # The driver's pools grow by 32 MiB at a time.
        assert before - free_bytes() <= most + 32 * MEBIBYTE
        assert sim.allocated_bytes <= most
    kept.close()


def test_running_out_of_device_memory_is_an_error_and_other_simulators_continue() -> None:
    worlds = min(cuda.Device().total_bytes // 1000, 2**30)
    with Twins(100) as twins:
        with pytest.raises(doorstep.OutOfMemoryError):
            doorstep.Simulator(worlds, device="cuda")
        twins.step_randomly(5)
        twins.assert_same()


def test_forked_child_is_refused_and_the_parent_continues() -> None:
    with Twins(50) as twins:
        child = os.fork()
        if child == 0:
            try:
                twins.gpu.step()
            except doorstep.DeviceError as error:
                os._exit(7 if "fork" in str(error) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        twins.step_randomly(5)
        twins.assert_same()


def test_interpreter_ends_cleanly_with_everything_alive() -> None:
    code = (
        "import doorstep; from doorstep import cuda; sim = doorstep.Simulator(100, device='cuda'); sim.step();"
        "event, tensor, stream, buffer = sim.step_async(), sim.lidar, cuda.Stream(), cuda.Buffer(10)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
