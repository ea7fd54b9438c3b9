"""A tensor in the memory of a GPU never pretends to be an array of the host."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.users_memory import UsersArray

import doorstep

USES: dict[str, Callable[[doorstep.Tensor], Any]] = {
    "index": lambda tensor: tensor[0],
    "write": lambda tensor: tensor.__setitem__(0, 1),
    "iterate": lambda tensor: list(tensor),
    "in": lambda tensor: 1 in tensor,
    "truth": bool,
    "==": lambda tensor: tensor == 1,
    "array ==": lambda tensor: np.zeros(4, np.int32) == tensor,
    "+": lambda tensor: 1 + tensor,
    "+=": lambda tensor: tensor.__iadd__(1),
    "numpy": np.exp,
}


@on_stand_in()
def test_what_works_on_the_cpu_raises_and_names_what_to_use() -> None:
    with doorstep.Simulator(2, device="cuda") as sim:
        before = sim.actions.copy_to_host()
        for name, use in USES.items():
            with pytest.raises(TypeError) as caught:
                use(sim.actions)
            assert "cuda:0, writable) is GPU memory, where" in str(caught.value), name
            assert "not supported; use to_torch(), to_jax() or copy_to_host()" in str(caught.value), name
        assert (sim.actions.copy_to_host() == before).all()


@on_stand_in()
def test_sizes_and_repr_need_no_copy() -> None:
    with doorstep.Simulator(3, device="cuda") as sim:
        sim.wait()
        driver.clear()
        assert (len(sim.actions), sim.actions.ndim, sim.actions.size, sim.actions.nbytes) == (3, 3, 24, 96)
        assert repr(sim.actions) == "Tensor(actions, int32 [3, 2, 4], cuda:0, writable)"
        assert "Tensor(actions" in sim.actions._repr_html_()
        assert "<td>actions</td>" in sim._repr_html_()
        assert not driver.report().calls
        with pytest.raises(AttributeError, match="is GPU memory; it has a __cuda_array_interface__"):
            sim.actions.__array_interface__  # noqa: B018
        with pytest.raises(BufferError, match="is GPU memory, which has no buffer; use copy_to_host"):
            sim.actions.__buffer__(0)


@on_stand_in()
def test_integers_of_the_host_are_converted_and_those_of_the_device_need_their_library() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(3, device="cuda") as sim:
        actions = np.random.default_rng(0).integers(0, doorstep.ACTIONS, (3, 2, 4))
        sim.actions = actions
        np.testing.assert_array_equal(sim.actions.copy_to_host(), actions)
        with pytest.raises(doorstep.ArgumentError, match=r"actions is int64 .* must be int32"):
            sim.actions = UsersArray((3, 2, 4), np.int64, stream)
        np.testing.assert_array_equal(sim.actions.copy_to_host(), actions)


@on_stand_in()
def test_batches_are_made_where_the_config_says() -> None:
    from doorstep._batches import usable_device
    from doorstep._native import DeviceKind

    for device, expected in (("cpu", DeviceKind.CPU), ("auto", DeviceKind.CUDA), ("cuda:0", DeviceKind.CUDA)):
        assert usable_device(doorstep.SimulatorConfig(2, device=device)) == (expected, 0)
    with pytest.raises(doorstep.NoDeviceError):
        usable_device(doorstep.SimulatorConfig(2, device="cuda:3"))
