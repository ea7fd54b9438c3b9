"""Threads share a simulator: each finds its step on its stream, and no step is lost."""

import sys
import threading
from types import SimpleNamespace

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
        latest = 10**6
        with driver.users_context():
            for _ in range(ROUNDS):
                sim.step()
                driver.synchronize(stream)
                seen = int(driver.peek(sim.steps_remaining).max())  # other threads' steps may have run too
                if seen >= latest or sim.stream != stream:
                    problems.append((stream, seen, latest, sim.stream))
                latest = seen

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


@on_stand_in()
def test_no_step_is_lost_beside_writes_of_the_state() -> None:
    with doorstep.Simulator(64) as cpu, doorstep.Simulator(64, device="cuda", stream=1) as sim:
        kinds = sim.state.static_kinds.copy_to_host()
        stepped = threading.Event()

        def step() -> None:
            for _ in range(ROUNDS):
                sim.step()
            stepped.set()

        thread = threading.Thread(target=step)
        thread.start()
        while not stepped.is_set():
            sim.state.static_kinds.copy_from_host(kinds)
        thread.join()
        cpu.state.static_kinds.to_numpy()[:] = kinds
        for _ in range(ROUNDS):
            cpu.step()
        assert sim.hash() == cpu.hash()
