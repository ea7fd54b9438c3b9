"""Worlds inside JAX programs on a real GPU give the CPU's bits. Also batches without JAX."""

from typing import Any

import numpy as np
import pytest
from tests.cuda.device_batch import DeviceBatch
from tests.cuda.twins import some_levels
from tests.gpu.frameworks import cuda_jax
from tests.gpu.sizes import sized
from tests.scenes import random_actions

import doorstep
from doorstep import cuda
from doorstep._native import check


@pytest.mark.parametrize("plays_levels", [False, True])
def test_a_batch_is_a_simulator(plays_levels: bool) -> None:
    stream, worlds, table = cuda.Stream(), sized(1000, 9), some_levels(2) if plays_levels else []
    batch = DeviceBatch(worlds, stream, episode_length=5, levels=table)
    check(batch.call("ds_batch_prepare"))
    check(batch.call("ds_batch_create", 9, 3))
    with doorstep.Simulator(worlds, seed=9, world_offset=3, episode_length=5, max_levels=len(table)) as sim:
        if table:
            sim.set_levels(table)
        for step, actions in enumerate(random_actions(1, 12, worlds)):
            sim.actions.to_numpy()[:] = actions
            sim.resets.to_numpy()[:] = step == 0  # a simulator's first levels were there before the table
            sim.step()
            batch.write("actions", actions)
            batch.write("resets", np.full_like(batch.read("resets"), step == 0))
            check(batch.call("ds_batch_step"))
            stream.synchronize()
            for name in ("observations", "rewards", "dones", "actions") if step > 0 or not table else ():
                assert batch.read(name).tobytes() == sim.tensors[name].to_numpy().tobytes(), name
    check(batch.call("ds_batch_release"))
    batch.close()


def test_levels_are_played_as_on_the_cpu(rooms: Any) -> None:
    import jax

    import doorstep.jax

    def play(device: str) -> dict[str, Any]:
        made = doorstep.jax.make(200, device=device, episode_length=6, levels=some_levels(2), outputs=("observations",))
        with jax.default_device(jax.devices(device)[0]):
            state = made.init(4)
            for actions in random_actions(3, 20, 200):
                state = made.step(state, jax.numpy.asarray(actions))
            return {name: np.asarray(tensor) for name, tensor in state.tensors.items()}

    found, expected = play("cuda"), play("cpu")
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


@pytest.fixture(scope="module")
def rooms() -> Any:
    """Functions for 500 worlds. The kernels that XLA's programs use stay loaded until the process ends."""
    jax = cuda_jax()
    import doorstep.jax

    with doorstep.Simulator(500, device="cuda", episode_length=6) as sim:
        made = doorstep.jax.make(sim.config, outputs=("observations", "rewards", "final_lidar"))
    made.step(made.init(0), jax.numpy.zeros((500, 2, 4), jax.numpy.int32)).rewards.block_until_ready()
    doorstep.jax.make(1, device="cuda", levels=some_levels(2)).init(0).worlds.block_until_ready()
    return made


def expected(steps: Any) -> Any:
    """The CPU's tensors after every step."""
    with doorstep.Simulator(500, seed=4, episode_length=6) as sim:
        for actions in steps:
            sim.actions.to_numpy()[:] = actions
            sim.step()
        return {name: tensor.copy_to_host() for name, tensor in sim.tensors.items()}


@pytest.mark.parametrize("way", ["loop", "scan", "donated"])
def test_steps_are_those_of_the_cpu(rooms: Any, way: str) -> None:
    import jax

    steps = random_actions(3, 20, 500)
    state = rooms.init(4)
    if way == "scan":
        run = jax.jit(lambda state, steps: jax.lax.scan(lambda s, step: (rooms.step(s, step), None), state, steps)[0])
        state = run(state, steps)
    else:
        step = jax.jit(rooms.step, donate_argnums=0) if way == "donated" else rooms.step
        for actions in steps:
            state = step(state, jax.numpy.asarray(actions))
    for name, tensor in expected(steps).items():
        if name in state.tensors:
            assert np.asarray(state.tensors[name]).tobytes() == tensor.tobytes(), name


def test_a_program_on_the_other_device_is_an_error(rooms: Any) -> None:
    import jax

    import doorstep.jax

    with doorstep.Simulator(4) as sim:
        on_cpu = doorstep.jax.make(sim.config)
    with pytest.raises(Exception, match="device kind differs"):
        on_cpu.init(0).worlds.block_until_ready()
    with jax.default_device(jax.devices("cpu")[0]):
        assert on_cpu.init(0).worlds.shape[0] == 4
