"""Setting a tensor copies, from whatever test_exchange.py hands over: which worlds it reaches, when, and what is said
of values that do not fit."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.interop.modes import both_modes, environment
from tests.interop.places import WORLDS, aligned, make
from tests.pkg.dlpack_only import OldDlpack, OnlyDlpack
from tests.scenes import random_actions, steps

import doorstep
from doorstep import ArgumentError
from doorstep._native import TENSORS

ACTIONS = (WORLDS, 2, 4)


def test_setting_copies_into_bound_memory_from_another_simulator_and_from_itself():
    actions, place = random_actions(3, 1, WORLDS)[0], aligned(ACTIONS, np.int32)
    with make() as sim, make() as other:
        other.actions = actions
        sim.actions = other.actions
        other.actions[:] = 0  # has been copied
        sim.bind(actions=place)
        sim.actions = sim.actions
        assert (place == actions).all()
        sim.actions = memoryview(actions[::-1])
        assert (place == actions[::-1]).all()
        assert (np.asarray(other.actions) == 0).all()


def test_setting_waits_for_the_running_step():
    with doorstep.Simulator(5_000, num_threads=1) as sim, doorstep.Simulator(5_000) as plain:
        actions = random_actions(3, 2, 5_000)
        sim.actions = plain.actions = actions[0]
        event = sim.step_async()
        sim.actions = actions[1]
        assert event.wait(0)
        plain.step()
        plain.actions = actions[1]
        steps(1, sim, plain)
        assert sim.hash() == plain.hash()


def ones(shape=ACTIONS, dtype=np.int32):
    return np.ones(shape, dtype)


def device_memory(**changed):
    whole = {"shape": ACTIONS, "typestr": "<i4", "data": (1 << 20, False), "strides": None, "version": 3}
    return SimpleNamespace(__cuda_array_interface__={**whole, **changed})


# By the name of the tensor that is set, or bound if it is marked with "bind": one of each message.
REFUSED = [
    ("actions", lambda: [[[1, 0, 2, 0]] * 2] * WORLDS, "must be a tensor .*numpy.asarray"),
    ("actions", lambda: None, "actions is None; it must be a tensor"),
    ("actions", lambda: ones(dtype=np.float64), rf"float64 \[{WORLDS}, 2, 4\].* int32 .*array.astype\(numpy.int32\)"),
    ("actions", lambda: ones(dtype=">i4"), "byte order"),
    ("actions", lambda: np.full(ACTIONS, "1"), "array of <U1"),
    ("actions", lambda: ones((2, WORLDS, 4)), r"int32 \[2, 6, 4\]; .* int32 \[6, 2, 4\] .*may be one dimension"),
    ("actions", lambda: np.int32(1), r"actions is int32 \[\]; it"),
    ("actions", lambda: OldDlpack(ones), "copies only"),
    ("actions", lambda: OnlyDlpack(ones((WORLDS, 2, 8))[..., ::2]), "not C-contiguous; it must be C-contiguous"),
    ("actions", device_memory, "it must be on cpu"),
    ("bind actions", lambda: ones(dtype=np.int64), "it must be int32"),
    ("bind dones", lambda: ones((WORLDS, 2), bool), "it must be int32"),
    ("bind rewards", lambda: np.frombuffer(bytes(WORLDS * 8), np.float32), "read-only tensor, .* would be written"),
    ("bind rewards", lambda: ones((WORLDS, 4), np.float32)[:, ::2], "C-contiguous"),
    ("bind rewards", lambda: np.zeros(WORLDS * 8 + 2, np.uint8)[2:].view(np.float32), "multiple of 4"),
    ("bind rewards", lambda: OldDlpack(ones((WORLDS, 2), np.float32).copy), "copies only"),
    ("bind actions", lambda: device_memory(data=(0, False)), "address is null"),
    ("bind actions", lambda: device_memory(data=("here", False)), "interface__ cannot be read"),
    ("bind actions", lambda: device_memory(strides=(32, 16)), r"cannot be read .*3 dimensions, 2 strides"),
    ("bind actions", lambda: device_memory(data=(1 << 20, True)), "read-only"),
    ("bind actions", lambda: device_memory(mask=0), "without a mask"),
    ("bind actions", device_memory, "it must be on cpu"),
]
REFUSED_OF_TORCH = [
    ("actions", lambda torch: torch.ones(ACTIONS), r"tensor\.to\(torch\.int32\)"),
    ("actions", lambda torch: torch.ones(ACTIONS, dtype=torch.int32, device="meta"), "meta"),
    ("bind rewards", lambda torch: torch.zeros(WORLDS, 2, requires_grad=True), "requires grad, .*detach"),
    ("bind rewards", lambda torch: torch.zeros(WORLDS, 2, dtype=torch.cfloat).conj().imag, "negative bit"),
]


def check_refused(name, value, message):
    use, _, name = name.rpartition(" ")
    with make(max_levels=2) as sim:
        other = ones((WORLDS, 2)) * 7
        sim.actions = ones()
        addresses = {tensor: sim.tensors[tensor].__array_interface__["data"] for tensor in sim.tensors}
        with pytest.raises(ArgumentError, match=message) as caught:
            sim.bind(steps_remaining=other, **{name: value}) if use else setattr(sim, name, value)
        assert caught.value.argument == name
        assert {tensor: sim.tensors[tensor].__array_interface__["data"] for tensor in sim.tensors} == addresses
        assert (other == 7).all()
        assert (sim.actions == 1).all()
        sim.step()


def test_what_does_not_fit_changes_nothing_and_the_error_says_why():
    for name, make_value, message in REFUSED:
        check_refused(name, make_value(), message)


def test_what_does_not_fit_of_other_libraries_is_told_their_remedy():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    for name, make_value, message in REFUSED_OF_TORCH:
        check_refused(name, make_value(torch), message)
    check_refused("actions", jax.numpy.ones(ACTIONS), r"array\.astype\(jax\.numpy\.int32\)")
    check_refused("bind rewards", jax.numpy.zeros((WORLDS, 2)), "read-only")


def test_what_was_accepted_once_does_not_let_another_kind_in():
    strided = ones().repeat(2, axis=2)[:, :, ::2]  # not copied by the fast way
    with make() as sim:
        for wrong in (strided.astype(np.float32).repeat(2, axis=2)[:, :, ::2], strided[1:], strided[..., 0]):
            sim.actions = strided
            with pytest.raises(ArgumentError):
                sim.actions = wrong
            with pytest.raises(ArgumentError):
                sim.resets = strided


def test_what_the_simulator_writes_cannot_be_set_and_the_error_names_what_can():
    with make() as sim:
        for name in (row.name for row in TENSORS if not row.writable and not row.levels):
            with pytest.raises(ArgumentError, match="set `actions`, `resets` or `level_weights`") as caught:
                setattr(sim, name, np.zeros(sim.tensors[name].shape, sim.tensors[name].dtype))
            assert caught.value.argument == name


@both_modes
def test_what_tensors_of_others_raise_is_not_lost_nor_taken_for_ours(mode, run_python):
    code = """
import signal, doorstep, doorstep.interop
from doorstep._tensors import callbacks
signal.signal(signal.SIGINT, signal.default_int_handler)

class WithText(Exception):
    status = "x"

class WithNumber(Exception):
    status = 3

class Odd:
    def __dlpack_device__(self):
        raise error() if error else signal.raise_signal(signal.SIGINT)

    def __dlpack__(self, **_):
        pass

def read(*_):
    raise error()

sim, x, error = doorstep.Simulator(3), Odd(), None
for use in (lambda: setattr(sim, "actions", x), lambda: sim.bind(actions=x), lambda: doorstep.interop.describe(x)):
    try:
        use()
    except KeyboardInterrupt:
        sim.step()
print(sim.step_count)
for _ in range(2):
    for error in (WithText, WithNumber, RuntimeError):
        try:
            doorstep.interop.describe(x)
        except doorstep.ArgumentError as caught:
            print(error.__name__ in str(caught))
    callbacks.read = read  # where errors reach native code as they are
"""
    assert run_python(code, **environment(mode)) == "3\n" + "True\n" * 6


def test_integers_beyond_int32_become_its_limits():
    """They stay impossible actions."""
    narrow = np.iinfo(np.int32)
    with doorstep.Simulator(WORLDS) as sim:
        for dtype in ("uint32", "int64", "uint64"):
            for value in (np.iinfo(dtype).min, np.iinfo(dtype).max):
                sim.actions = ones(dtype=dtype) * np.array(value, dtype)
                assert (sim.actions == np.clip(float(value), narrow.min, narrow.max)).all(), (dtype, value)
