"""The same worlds twice, on the CPU and on a GPU, to be compared."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.scenes import random_actions

import doorstep


class Twins:
    """A simulator on the CPU, with one thread if not told otherwise, and one on the GPU, fed with the same actions."""

    def __init__(
        self, num_worlds: int, device: str = "cuda", *, num_threads: int | None = 1, **options: Any
    ) -> None:
        self.cpu = doorstep.Simulator(num_worlds, num_threads=num_threads, **options)
        self.gpu = doorstep.Simulator(num_worlds, device=device, **options)

    def __enter__(self) -> Twins:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cpu.close()
        self.gpu.close()

    def both(self) -> tuple[doorstep.Simulator, doorstep.Simulator]:
        return self.cpu, self.gpu

    def step(self, actions: npt.NDArray[np.int32]) -> None:
        """One step with these actions."""
        self.cpu.actions.to_numpy()[:] = actions
        self.gpu.actions.copy_from_host(actions)
        for sim in self.both():
            sim.step()

    def step_randomly(self, steps: int, seed: int = 1) -> None:
        """As many steps with random actions."""
        for step in range(steps):
            self.step(random_actions(seed << 32 | step, 1, self.cpu.num_worlds, self.cpu.num_agents)[0])

    def assert_same_worlds(self) -> None:
        np.testing.assert_array_equal(self.gpu.world_hashes(), self.cpu.world_hashes())

    def assert_same(self) -> None:
        """The same worlds, tensors and health, bit for bit."""
        self.assert_same_worlds()
        for name, tensor in self.cpu.tensors.items():
            expected = tensor.to_numpy()
            assert self.gpu.tensors[name].copy_to_host().tobytes() == expected.tobytes(), name
        assert self.gpu.health == self.cpu.health
