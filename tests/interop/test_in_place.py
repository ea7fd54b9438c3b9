"""Every tensor is one memory in every library, wherever it lies: the simulator's own, or the caller's by bind()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.interop.places import WORLDS, aligned, make, places_of
from tests.scenes import random_actions

import doorstep
from doorstep._native import TENSORS

NAMES = [row.name for row in TENSORS if not row.levels]


def numpy_pointer(tensor: doorstep.Tensor) -> int:
    return int(np.asarray(tensor).ctypes.data)


def dlpack_pointer(tensor: doorstep.Tensor) -> int:
    return int(np.from_dlpack(tensor).ctypes.data)


def torch_pointer(tensor: doorstep.Tensor) -> int:
    pytest.importorskip("torch")
    return int(tensor.to_torch().data_ptr())


def jax_pointer(tensor: doorstep.Tensor) -> int:
    jax = pytest.importorskip("jax")
    return int(jax.dlpack.from_dlpack(tensor).unsafe_buffer_pointer())


POINTERS = [numpy_pointer, dlpack_pointer, torch_pointer, jax_pointer]


@pytest.mark.parametrize("pointer", POINTERS)
@pytest.mark.parametrize("name", NAMES)
def test_every_library_reads_the_same_memory(name: str, pointer: Callable[[doorstep.Tensor], int]) -> None:
    sim = make()
    own = sim.tensors[name]
    place = aligned(own.shape, own.dtype)
    address = own.__array_interface__["data"][0]
    assert pointer(getattr(sim, name)) == pointer(own) == address
    sim.bind(**{name: place})
    bound = sim.tensors[name]
    assert pointer(getattr(sim, name)) == pointer(bound) == place.ctypes.data
    assert pointer(own) == address
    sim.close()
    assert (pointer(own), pointer(bound)) == (address, place.ctypes.data)


@pytest.mark.parametrize("pointer", [numpy_pointer, torch_pointer])
def test_every_library_reads_the_state_where_it_is(pointer: Callable[[doorstep.Tensor], int]) -> None:
    with make() as sim:
        for name in (row for row in dir(type(sim.state)) if not row.startswith("_")):
            field = getattr(sim.state, name)
            assert pointer(field) == field.__array_interface__["data"][0], name


def test_the_simulator_reads_and_writes_bound_memory_and_nothing_else() -> None:
    with make(episode_length=5) as sim, make(episode_length=5) as plain:
        places = places_of(sim)
        untouched = {name: tensor.copy_to_host() for name, tensor in sim.tensors.items()}
        before = dict(sim.tensors)
        sim.bind(**places)
        for actions in random_actions(1, 12, WORLDS):
            places["actions"][:] = actions
            plain.actions = actions
            sim.step()
            plain.step()
            for name, place in places.items():
                assert place.tobytes() == plain.tensors[name].copy_to_host().tobytes(), name
        for name, tensor in before.items():
            assert tensor.copy_to_host().tobytes() == untouched[name].tobytes(), name


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 3}, {"num_agents": 5}, {"num_agents": 1}])
def test_binding_changes_no_bit_over_many_episodes(options: dict[str, Any]) -> None:
    with make(episode_length=17, **options) as sim, make(episode_length=17, **options) as plain:
        places = places_of(sim)
        for step, actions in enumerate(random_actions(2, 120, WORLDS, sim.num_agents)):
            if step % 40 == 10:
                sim.bind(**places)
            if step % 40 == 30:
                sim.bind(**dict.fromkeys(places))
            for one in (sim, plain):
                one.actions = actions
                if step % 25 == 7:
                    one.resets = np.arange(WORLDS, dtype=np.int32) % 2
                if step % 50 == 20:
                    one.reset([4, 1])
                one.step()
            for name, tensor in plain.tensors.items():
                assert sim.tensors[name].copy_to_host().tobytes() == tensor.copy_to_host().tobytes(), (step, name)
        assert sim.hash() == plain.hash()
        assert sim.health == plain.health
        assert sim.save() == plain.save()
