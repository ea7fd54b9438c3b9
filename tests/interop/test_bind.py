"""What can be bound, and that everything works on bound memory."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.interop.places import WORLDS, Array, make, places_of
from tests.scenes import random_actions

import doorstep


@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("actions", (WORLDS, 2, 4), np.int32),
        ("actions", (WORLDS * 2, 4), np.int32),
        ("rewards", (WORLDS, 2, 1), np.float32),
        ("rewards", (WORLDS, 2), np.float32),
        ("rewards", (WORLDS * 2, 1), np.float32),
        ("rewards", (WORLDS * 2,), np.float32),
        ("terminations", (WORLDS * 2,), np.uint8),
        ("truncations", (WORLDS, 2), np.bool_),
        ("resets", (WORLDS,), np.int32),
        ("observations", (WORLDS * 2, 94), np.float32),
        ("lidar", (WORLDS * 2, 30, 2), np.float32),
    ],
)
def test_worlds_and_agents_may_be_one_dimension_and_ones_absent(name: str, shape: Any, dtype: Any) -> None:
    with make(episode_length=3) as sim, make(episode_length=3) as plain:
        place = np.zeros(shape, dtype)
        sim.bind(**{name: place})
        for _ in range(3):
            sim.step()
            plain.step()
        assert sim.tensors[name].shape == plain.tensors[name].shape
        np.testing.assert_array_equal(place.ravel(), plain.tensors[name].to_numpy().ravel())


def test_what_a_tensor_holds_moves_with_it() -> None:
    with make() as sim:
        first, second = (np.zeros((WORLDS, 2, 4), np.int32) for _ in range(2))
        sim.actions = np.full((WORLDS, 2, 4), 1, np.int32)
        sim.bind(actions=first)
        assert (first == 1).all()
        first[:] = 2
        sim.bind(actions=second)
        assert (second == 2).all()
        second[:] = 3
        sim.bind(actions=None)
        assert (sim.actions.to_numpy() == 3).all()
        assert not np.shares_memory(sim.actions.to_numpy(), second)


def test_binding_reads_any_library_and_any_writable_buffer() -> None:
    torch = pytest.importorskip("torch")
    shared = bytearray(WORLDS * 2 * 4)
    foreign = (ctypes.c_float * (WORLDS * 2))()
    with make() as sim, make() as other:
        for value in (
            torch.zeros(WORLDS, 2),
            torch.nn.Parameter(torch.zeros(WORLDS * 2), requires_grad=False),
            np.frombuffer(shared, np.float32),
            foreign,
        ):
            sim.bind(rewards=value)
            sim.step()
            np.testing.assert_array_equal(np.asarray(value).ravel(), sim.rewards.to_numpy().ravel())
            address = np.asarray(value).ctypes.data
            assert sim.rewards.__array_interface__["data"][0] == address
        sim.bind(rewards=None, actions=other.actions)
        other.actions.to_numpy()[:] = 1
        assert (sim.actions.to_numpy() == 1).all()


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


NOT_PLACES: list[tuple[str, str, Callable[[], Any], str]] = [
    ("int64", "actions", lambda: np.zeros((WORLDS, 2, 4), np.int64), "it must be int32"),
    ("bool for int32", "dones", lambda: np.zeros((WORLDS, 2), bool), "it must be int32"),
    ("uint8 for int32", "dones", lambda: np.zeros((WORLDS, 2), np.uint8), "it must be int32"),
    ("int8 for uint8", "truncations", lambda: np.zeros((WORLDS, 2), np.int8), "it must be uint8"),
    ("a worlds-last shape", "actions", lambda: np.zeros((2, WORLDS, 4), np.int32), "worlds and agents may be one"),
    ("one row", "actions", lambda: np.zeros(WORLDS * 8, np.int32), "worlds and agents may be one"),
    ("one agent merged too many", "lidar", lambda: np.zeros((WORLDS * 60, 2), np.float32), "may be one dimension"),
    ("read-only", "rewards", lambda: read_only(np.zeros((WORLDS, 2), np.float32)), "read-only"),
    ("bytes", "rewards", lambda: np.frombuffer(bytes(WORLDS * 8), np.float32), "read-only"),
    ("gaps", "rewards", lambda: np.zeros((WORLDS, 4), np.float32)[:, ::2], "C-contiguous"),
    ("Fortran order", "actions", lambda: np.zeros((WORLDS, 2, 4), np.int32, "F"), "C-contiguous"),
    ("broadcast", "actions", lambda: np.broadcast_to(np.zeros(4, np.int32), (WORLDS, 2, 4)), "read-only"),
    ("a list", "actions", lambda: [0] * (WORLDS * 8), "it must be a tensor"),
    (
        "half an element off",
        "rewards",
        lambda: np.zeros(WORLDS * 8 + 2, np.uint8)[2:].view(np.float32),
        "multiple of 4",
    ),
]


@pytest.mark.parametrize(
    ("name", "make_value", "message"), [case[1:] for case in NOT_PLACES], ids=[case[0] for case in NOT_PLACES]
)
def test_what_does_not_fit_is_not_bound_and_nothing_else_either(
    name: str, make_value: Callable[[], Any], message: str
) -> None:
    with make() as sim:
        good = {"resets": np.full(WORLDS, 7, np.int32), "final_lidar": np.full((WORLDS, 2, 30, 2), 7, np.float32)}
        before = {tensor: sim.tensors[tensor].__array_interface__["data"] for tensor in sim.tensors}
        with pytest.raises(doorstep.ArgumentError) as caught:
            sim.bind(resets=good["resets"], **{name: make_value()}, final_lidar=good["final_lidar"])
        assert caught.value.argument == name
        assert message in str(caught.value)
        assert {tensor: sim.tensors[tensor].__array_interface__["data"] for tensor in sim.tensors} == before
        assert all((array == 7).all() for array in good.values())
        sim.step()


def test_two_tensors_cannot_share_memory() -> None:
    with make() as sim:
        place = np.zeros((WORLDS * 2 + 1,), np.float32)
        with pytest.raises(doorstep.ArgumentError, match=r"episode_returns .* overlaps that of rewards"):
            sim.bind(rewards=place[:-1], episode_returns=place[1:])
        sim.bind(rewards=place[:-1])
        with pytest.raises(doorstep.ArgumentError, match=r"episode_returns .* overlaps that of rewards"):
            sim.bind(episode_returns=place[1:])
        with pytest.raises(doorstep.ArgumentError, match="rewards is bound to memory that overlaps that of rewards"):
            sim.bind(rewards=place[1:])
        sim.bind(rewards=place[:-1])
        with pytest.raises(doorstep.ArgumentError, match="overlaps that of the simulator itself"):
            sim.bind(actions=sim.actions)
        with pytest.raises(doorstep.ArgumentError, match="overlaps that of the simulator itself"):
            sim.bind(rewards=sim.actions.to_numpy().view(np.float32).ravel()[: WORLDS * 2])


@pytest.mark.parametrize("name", ["acitons", "state", "_session", ""])
def test_binding_what_is_no_tensor_names_the_tensors(name: str) -> None:
    with make() as sim, pytest.raises(doorstep.ArgumentError, match=r"this simulator has resets, actions, ") as caught:
        sim.bind(**{name: None})
    assert caught.value.argument == "tensors"


def test_flat_observations_that_do_not_exist_cannot_be_bound() -> None:
    with (
        doorstep.Simulator(2, observations="by_name") as sim,
        pytest.raises(doorstep.ArgumentError, match="observations is 'by_name'"),
    ):
        sim.bind(observations=np.zeros((4, 94), np.float32))


def test_torch_tensors_with_a_history_or_without_memory_are_refused() -> None:
    torch = pytest.importorskip("torch")
    with make() as sim:
        for value in (
            torch.zeros(WORLDS, 2, requires_grad=True),
            torch.zeros(WORLDS, 2, device="meta"),
            torch.zeros(WORLDS, 2, dtype=torch.cfloat).conj().imag,
        ):
            with pytest.raises(doorstep.ArgumentError) as caught:
                sim.bind(rewards=value)
            assert caught.value.argument == "rewards"


def test_jax_arrays_do_not_change_and_are_refused() -> None:
    jax = pytest.importorskip("jax")
    with make() as sim, pytest.raises(doorstep.ArgumentError, match="read-only") as caught:
        sim.bind(rewards=jax.numpy.zeros((WORLDS, 2)))
    assert caught.value.argument == "rewards"


class OldExporter:
    """Has `__dlpack__` as it was before arguments said whether a copy may be made."""

    def __init__(self, give: Callable[[], Array]) -> None:
        self._give = give

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, stream: object = None) -> object:
        return self._give().__dlpack__()


def test_old_exporters_are_bound_unless_what_they_export_is_a_copy() -> None:
    place = np.zeros((WORLDS, 2), np.float32)
    with make(episode_length=1) as sim:
        with pytest.raises(doorstep.ArgumentError, match="copies only") as caught:
            sim.bind(rewards=OldExporter(place.copy))
        assert caught.value.argument == "rewards"
        with pytest.raises(doorstep.ArgumentError, match="copies only"):
            sim.actions = OldExporter(lambda: np.ones((WORLDS, 2, 4), np.int32))
        sim.bind(rewards=OldExporter(lambda: place))
        assert np.shares_memory(sim.rewards.to_numpy(), place)


class CudaArray:
    """Has an interface of which some entries are as given; the others are those of actions."""

    def __init__(self, **changed: object) -> None:
        whole = {"shape": (WORLDS, 2, 4), "typestr": "<i4", "data": (1 << 20, False), "strides": None, "version": 3}
        self.__cuda_array_interface__ = {**whole, **changed}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": (0, False)}, "address is null"),
        ({"data": (None, False)}, "address is null"),
        ({"data": None}, "cannot be read"),
        ({"data": ("here", False)}, "cannot be read"),
        ({"typestr": "zz"}, "cannot be read"),
        ({"shape": None}, "cannot be read"),
        ({"strides": "packed"}, "cannot be read"),
        ({"strides": (32, 16)}, "cannot be read"),
        ({"data": (1 << 20, True)}, "writable"),
        ({"mask": 0}, "without a mask"),
        ({"shape": (10**14,), "strides": (4,)}, "it must be on cpu"),
    ],
)
def test_interfaces_of_cuda_arrays_that_make_no_sense_are_refused(changed: dict[str, object], message: str) -> None:
    with make() as sim:
        address = sim.actions.__array_interface__["data"]
        with pytest.raises(doorstep.ArgumentError, match=message) as caught:
            sim.bind(actions=CudaArray(**changed))
        assert caught.value.argument == "actions"
        assert sim.actions.__array_interface__["data"] == address


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Python's threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_that_bind_different_tensors_lose_none() -> None:
    with make() as sim:
        places = {name: place for name, place in places_of(sim).items() if not name.startswith("final_")}

        def rebind(name: str) -> None:
            for _ in range(200):
                sim.bind(**{name: None})
                sim.bind(**{name: places[name]})

        threads = [threading.Thread(target=rebind, args=(name,)) for name in places]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {name: np.shares_memory(sim.tensors[name].to_numpy(), place) for name, place in places.items()} == (
            dict.fromkeys(places, True)
        )


def test_everything_works_on_bound_memory() -> None:
    with make(action_check="raise", strict=True, episode_length=9) as sim, make(episode_length=9) as plain:
        places = places_of(sim)
        sim.bind(**places)
        for actions in random_actions(5, 12, WORLDS):
            places["actions"][:] = actions
            plain.actions = actions
            sim.step_async().wait()
            plain.step()
        saved = sim.save()
        sim.reset([1, 2])
        plain.reset([1, 2])
        sim.refresh()
        assert sim.hash() == plain.hash()
        assert sim.health == plain.health
        places["actions"][3, 1, 2] = 5
        with pytest.raises(doorstep.ArgumentError, match=r"actions\[3, 1, 2\] is 5"):
            sim.step()
        sim.restore(saved)
        plain.restore(saved)
        for _ in range(12):
            sim.step()
            plain.step()
        for name, place in places.items():
            if not name.startswith("final_"):
                assert place.tobytes() == plain.tensors[name].copy_to_host().tobytes(), name
        sim.rewards.copy_to_host()
        places["actions"][:] = 0
        sim.actions.copy_from_host(np.ones((WORLDS, 2, 4), np.int32))
        assert (places["actions"] == 1).all()


def test_threads_that_bind_and_step_take_turns() -> None:
    with make(num_threads=2) as sim:
        stop = threading.Event()
        failures: list[BaseException] = []

        def play() -> None:
            try:
                while not stop.is_set():
                    sim.step()
            except BaseException as error:
                failures.append(error)

        players = [threading.Thread(target=play) for _ in range(3)]
        for player in players:
            player.start()
        for _ in range(200):
            sim.bind(rewards=np.zeros((WORLDS, 2), np.float32), actions=np.zeros((WORLDS, 2, 4), np.int32))
        stop.set()
        for player in players:
            player.join()
        assert failures == []
