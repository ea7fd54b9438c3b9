"""Threads with streams of their own share a simulator: each finds its step on its stream."""

import sys
import threading
from types import SimpleNamespace

import numpy as np
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in

import doorstep

ROUNDS = 200


class TorchOfThreads:
    """As much of PyTorch as doorstep asks for the current stream, which every thread has for itself."""

    def __init__(self) -> None:
        self.here = threading.local()
        internals = SimpleNamespace(_cuda_getCurrentRawStream=lambda _: self.here.stream)
        cuda = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0)
        sys.modules["torch"] = SimpleNamespace(cuda=cuda, _C=internals)  # type: ignore[assignment]


@on_stand_in()
def test_work_of_each_thread_follows_its_own_stream() -> None:
    torch = TorchOfThreads()
    problems: list[object] = []

    def use(sim: doorstep.Simulator, stream: int) -> None:
        torch.here.stream = stream
        seen = np.empty(sim.steps_remaining.shape, np.int32)
        address = sim.steps_remaining.__cuda_array_interface__["data"][0]
        latest = 10**6
        with driver.users_context():
            for _ in range(ROUNDS):
                sim.step()
                driver.copy(stream, seen.ctypes.data, address, seen.nbytes)
                driver.synchronize(stream)
                if seen.max() >= latest or sim.stream != stream:
                    problems.append((stream, seen.max(), latest, sim.stream))
                latest = int(seen.max())

    with driver.users_stream() as one, driver.users_stream() as other:
        torch.here.stream = one
        with doorstep.Simulator(3, device="cuda", episode_length=1_000_000) as sim:
            threads = [threading.Thread(target=use, args=(sim, stream)) for stream in (one, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert problems == []
            assert sim.step_count == 2 * ROUNDS
            assert (sim.steps_remaining.copy_to_host() == 1_000_000 - 2 * ROUNDS).all()
        del sys.modules["torch"]
