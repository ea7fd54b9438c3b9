"""The first minute on a GPU: one small check of each kind of work. All are made, whatever fails.

    python -m tests.gpu.contact.smoke
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable

import numpy as np
from tests.cuda import stand_in_driver as driver
from tests.cuda.training_calls import advantages, assert_same, prepared
from tests.cuda.twins import Twins, some_levels
from tests.gpu.sizes import sized
from tests.gpu.workloads import all_pictures, play, policy_on
from tests.scenes import random_actions

import doorstep
from doorstep import cuda

WORLDS, STEPS = sized(1000, 5), sized(30, 3)


def buffer() -> None:
    """Bytes return from the device as they went."""
    sent = np.arange(1 << 20, dtype=np.int32)
    memory = cuda.Buffer(sent.nbytes)
    memory.copy_from_host(sent)
    assert memory.copy_to_host(np.int32).tobytes() == sent.tobytes()


def twice() -> None:
    """The GPU agrees with itself: a difference that moves is a race."""
    hashes = []
    for _ in range(2):
        with doorstep.Simulator(WORLDS, device="cuda", episode_length=20) as sim:
            play(sim, STEPS)
            hashes.append(sim.world_hashes())
    different = np.flatnonzero(hashes[0] != hashes[1])
    assert not different.size, f"worlds {different[:10]} of {WORLDS} differ between two runs of the same program"


def step() -> None:
    """Hashes, tensors and health are the CPU's."""
    with Twins(WORLDS, num_threads=None, episode_length=20) as twins:
        twins.step_randomly(STEPS)
        twins.assert_same()


def levels() -> None:
    """So they are where worlds play levels."""
    table = some_levels(2)
    with Twins(WORLDS, num_threads=None, max_levels=len(table)) as twins:
        for sim in twins.both():
            sim.set_levels(table)
            sim.reset()
        twins.step_randomly(STEPS)
        twins.assert_same()


def act() -> None:
    """Logits of a network are the CPU's."""
    from tests.pkg.policy.networks import mlp, observe  # PyTorch takes seconds

    module, observations = mlp(*sized((256, 256, 256), (32,))), observe(WORLDS, 2).numpy()
    expected = doorstep.load_policy(module).forward(observations)
    with driver.users_stream() as stream, policy_on(stream, module) as (policy, arrays):
        assert policy.forward(arrays.upload(observations)).read().tobytes() == expected.tobytes()
        del policy


def view() -> None:
    """Pixels are the CPU's."""
    with Twins(sized(100, 2), num_threads=None, cameras=all_pictures()) as twins:
        twins.step_randomly(3)
        twins.assert_same()


def graph() -> None:
    """Launches of a recorded graph are steps."""
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(WORLDS, device="cuda", stream=cuda.Stream.from_handle(stream, 0)) as sim,
        doorstep.Simulator(WORLDS) as twin,
    ):
        actions = random_actions(1, 1, WORLDS)
        play(sim, 1)
        twin.actions = random_actions(0, 1, WORLDS)[0]
        twin.step()
        sim.actions.copy_from_host(actions[0])
        twin.actions = actions[0]
        driver.synchronize(stream)
        with driver.RecordedGraph(stream) as recorded:
            sim.step()
        for _ in range(5):
            recorded.launch()
            twin.step()
        assert sim.hash() == twin.hash()
        recorded.close()


def training() -> None:
    """Advantages are the CPU's."""
    with prepared():
        assert_same("generalized_advantages", advantages("float32", 9, 1000))


CHECKS: tuple[Callable[[], None], ...] = (buffer, twice, step, view, graph, levels, training, act)


def main() -> int:
    device = cuda.Device()
    print(f"{device.name}, {device.multiprocessors} multiprocessors, kernels: {device.kernel_source}", flush=True)
    failed = []
    for check in CHECKS:
        begin = time.monotonic()
        try:
            check()
        except Exception:
            failed.append(check.__name__)
            traceback.print_exc()
        result = "failed" if check.__name__ in failed else "ok"
        print(f"{check.__name__}: {result} after {time.monotonic() - begin:.1f} s", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else f"all {len(CHECKS)} checks passed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
