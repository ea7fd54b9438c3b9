"""Setting a tensor copies from any library, and refuses what does not fit."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.interop.modes import both_modes, environment
from tests.interop.places import WORLDS, Array, aligned, make
from tests.scenes import random_actions

import doorstep
from doorstep._native import TENSORS


def array_like_kinds(actions: Array) -> dict[str, Any]:
    kinds: dict[str, Any] = {
        "numpy": actions,
        "flat": actions.reshape(-1, 4),
        "strided": np.repeat(actions, 2, axis=2)[:, :, ::2],
        "a buffer": np.ascontiguousarray(actions).data,
        "read-only": np.frombuffer(actions.tobytes(), np.int32).reshape(actions.shape),
    }
    return kinds


@pytest.mark.parametrize("kind", ["numpy", "flat", "strided", "a buffer", "read-only"])
@pytest.mark.parametrize("bound", [False, True], ids=["own", "bound"])
def test_setting_copies_from_arrays_of_numpy(kind: str, bound: bool) -> None:
    actions = random_actions(3, 1, WORLDS)[0]
    with make() as sim:
        place = aligned(actions.shape, np.int32)
        if bound:
            sim.bind(actions=place)
        before = sim.actions
        sim.actions = array_like_kinds(actions)[kind]
        np.testing.assert_array_equal(sim.actions, actions)
        assert sim.actions is before
        assert (place == actions).all() == bound


@pytest.mark.parametrize("kind", ["plain", "strided", "expanded", "Parameter"])
def test_setting_copies_from_tensors_of_torch(kind: str) -> None:
    torch = pytest.importorskip("torch")
    actions = torch.from_numpy(random_actions(3, 1, WORLDS)[0].copy())
    tensor = {
        "plain": actions,
        "strided": actions.permute(2, 0, 1).contiguous().permute(1, 2, 0),
        "expanded": torch.tensor([3, 7, 4, 1], dtype=torch.int32).expand(WORLDS, 2, 4),
        "Parameter": torch.nn.Parameter(actions, requires_grad=False),
    }[kind]
    with make() as sim:
        sim.actions = tensor
        np.testing.assert_array_equal(sim.actions, tensor.detach().numpy())


def test_setting_copies_from_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    actions = random_actions(3, 1, WORLDS)[0]
    with make() as sim:
        sim.actions = jax.numpy.asarray(actions)
        np.testing.assert_array_equal(sim.actions, actions)


def test_setting_copies_from_another_simulator_and_from_itself() -> None:
    with make() as sim, make() as other:
        other.actions = random_actions(3, 1, WORLDS)[0]
        sim.actions = other.actions
        np.testing.assert_array_equal(sim.actions, other.actions)
        sim.actions = sim.actions
        np.testing.assert_array_equal(sim.actions, other.actions)


@pytest.mark.parametrize("shape", [(WORLDS, 1), (WORLDS,)])
def test_resets_are_set_like_actions(shape: tuple[int, ...]) -> None:
    with make() as sim:
        index = sim.state.episode_index.to_numpy().copy()
        sim.resets = np.array([0, 1, 0, 0, 0, 1], np.int32).reshape(shape)
        sim.step()
        np.testing.assert_array_equal(sim.state.episode_index.to_numpy() - index, [0, 1, 0, 0, 0, 1])


def test_setting_waits_for_the_running_step() -> None:
    with doorstep.Simulator(20_000, num_threads=1) as sim, doorstep.Simulator(20_000) as plain:
        actions = random_actions(3, 2, 20_000)
        for one in (sim, plain):
            one.actions = actions[0]
        event = sim.step_async()
        sim.actions = actions[1]
        assert event.wait(0)
        sim.step()
        plain.step()
        plain.actions = actions[1]
        plain.step()
        assert sim.hash() == plain.hash()


NOT_ACTIONS: list[tuple[str, Callable[[], Any], str]] = [
    ("a list", lambda: [[[1, 0, 2, 0]] * 2] * WORLDS, "numpy.asarray(value, numpy.int32)"),
    ("a number", lambda: 1, "it must be a tensor"),
    ("None", lambda: None, "it must be a tensor"),
    ("float64", lambda: np.ones((WORLDS, 2, 4)), "array.astype(numpy.int32)"),
    ("float32", lambda: np.ones((WORLDS, 2, 4), np.float32), "it must be int32"),
    ("big-endian", lambda: np.ones((WORLDS, 2, 4), ">i4"), "byte order"),
    ("text", lambda: np.full((WORLDS, 2, 4), "1"), "array of <U1"),
    ("one world less", lambda: np.ones((WORLDS - 1, 2, 4), np.int32), f"it must be int32 [{WORLDS}, 2, 4]"),
    ("agents first", lambda: np.ones((2, WORLDS, 4), np.int32), f"actions is int32 [2, {WORLDS}, 4]; it"),
    ("all in a row", lambda: np.ones(WORLDS * 8, np.int32), f"actions is int32 [{WORLDS * 8}]; it"),
    ("broadcast", lambda: np.ones((1, 1, 4), np.int32), "actions is int32 [1, 1, 4]; it"),
    ("without dimensions", lambda: np.int32(1), "actions is int32 []; it"),
]


@pytest.mark.parametrize(("make_value", "message"), [case[1:] for case in NOT_ACTIONS], ids=[c[0] for c in NOT_ACTIONS])
def test_what_does_not_fit_is_not_set_and_the_error_says_why(make_value: Callable[[], Any], message: str) -> None:
    with make() as sim:
        before = sim.actions.copy_to_host()
        with pytest.raises(doorstep.ArgumentError) as caught:
            sim.actions = make_value()
        assert caught.value.argument == "actions"
        assert message in str(caught.value)
        np.testing.assert_array_equal(sim.actions, before)


def test_torch_is_told_how_to_convert() -> None:
    torch = pytest.importorskip("torch")
    with make() as sim:
        with pytest.raises(doorstep.ArgumentError, match=r"tensor\.to\(torch\.int32\)"):
            sim.actions = torch.ones(WORLDS, 2, 4)
        with pytest.raises(doorstep.ArgumentError, match="meta"):
            sim.actions = torch.ones(WORLDS, 2, 4, dtype=torch.int32, device="meta")


def test_what_was_accepted_once_does_not_let_another_kind_in() -> None:
    good = np.ones((1, 2, 4), np.int32).repeat(WORLDS, axis=0)
    strided = good.repeat(2, axis=2)[:, :, ::2]  # not copied by the fast way
    with make() as sim:
        for wrong in (strided.astype(np.float32).repeat(2, axis=2)[:, :, ::2], strided[1:], strided[..., 0]):
            sim.actions = strided
            with pytest.raises(doorstep.ArgumentError):
                sim.actions = wrong
            with pytest.raises(doorstep.ArgumentError):
                sim.resets = strided


@both_modes
@pytest.mark.parametrize("use", ["sim.actions = x", "sim.bind(actions=x)", "doorstep.interop.describe(x)"])
def test_an_interrupt_while_a_tensor_is_read_is_not_lost(use: str, mode: str, run_python: Callable[..., str]) -> None:
    code = f"""
import signal, doorstep, doorstep.interop
signal.signal(signal.SIGINT, signal.default_int_handler)

class Slow:
    def __dlpack_device__(self):
        signal.raise_signal(signal.SIGINT)

    def __dlpack__(self, **_):
        pass

sim, x = doorstep.Simulator(3), Slow()
try:
    {use}
except KeyboardInterrupt:
    print("interrupted")
sim.step()
print(sim.step_count)
"""
    assert run_python(code, **environment(mode)) == "interrupted\n1\n"


@both_modes
def test_errors_of_others_are_not_taken_for_those_of_doorstep(mode: str, run_python: Callable[..., str]) -> None:
    code = """
import doorstep, doorstep.interop
from doorstep._tensors import callbacks

class WithText(Exception):
    status = "x"

class WithNumber(Exception):
    status = 3

class Odd:
    def __dlpack_device__(self):
        raise error

    def __dlpack__(self, **_):
        pass

def read(*_):
    raise error

def outcome():
    try:
        doorstep.interop.describe(Odd())
    except doorstep.errors.DoorstepError as caught:
        return type(caught).__name__, type(error).__name__ in str(caught)

for error in (WithText("text"), WithNumber(), RuntimeError()):
    print(*outcome())
callbacks.read = read  # where errors reach native code as they are
for error in (WithText("text"), WithNumber(), RuntimeError()):
    print(*outcome())
"""
    assert run_python(code, **environment(mode)) == "ArgumentError True\n" * 6


@pytest.mark.parametrize("name", [row.name for row in TENSORS if not row.writable and not row.levels])
def test_what_the_simulator_writes_cannot_be_set_and_the_error_names_what_can(name: str) -> None:
    names = "set `actions`, `resets` or `level_weights`"
    with make() as sim, pytest.raises(doorstep.ArgumentError, match=names) as caught:
        setattr(sim, name, np.zeros(sim.tensors[name].shape, sim.tensors[name].dtype))
    assert caught.value.argument == name


def test_a_closed_simulator_is_neither_set_nor_bound() -> None:
    sim = make()
    sim.close()
    with pytest.raises(doorstep.ClosedError):
        sim.actions = np.ones((WORLDS, 2, 4), np.int32)
    with pytest.raises(doorstep.ClosedError):
        sim.actions = [1]
    with pytest.raises(doorstep.ClosedError):
        sim.bind(actions=np.ones((WORLDS, 2, 4), np.int32))


def test_setting_without_fast_calls_is_the_same(run_python: Callable[..., str]) -> None:
    code = """
import numpy, doorstep
from doorstep._native import fast_calls
assert fast_calls() is None
with doorstep.Simulator(3) as sim:
    sim.actions = numpy.full((6, 4), 1, numpy.int32)
    place = numpy.zeros((3, 2), numpy.float32)
    sim.bind(rewards=place)
    sim.step()
    try:
        sim.actions = numpy.ones((3, 2, 4))
    except doorstep.ArgumentError as error:
        print(error.argument, sim.actions.to_numpy().sum(), numpy.shares_memory(sim.rewards.to_numpy(), place))
"""
    assert run_python(code, **{**os.environ, "DOORSTEP_FAST_CALLS": "0"}) == "actions 24 True\n"
