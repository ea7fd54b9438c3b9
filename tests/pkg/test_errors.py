"""The error tree: one class per status, and what every error carries."""

import copy
import pickle

import pytest

import doorstep
from doorstep.errors import ERROR_CLASSES, Status

TREE = [
    (doorstep.ArgumentError, doorstep.DoorstepError, ValueError),
    (doorstep.StateError, doorstep.DoorstepError, ValueError),
    (doorstep.ReplayError, doorstep.StateError, ValueError),
    (doorstep.ClosedError, doorstep.DoorstepError, RuntimeError),
    (doorstep.OutOfMemoryError, doorstep.DoorstepError, MemoryError),
    (doorstep.LibraryError, doorstep.DoorstepError, ImportError),
    (doorstep.DeviceError, doorstep.DoorstepError, RuntimeError),
    (doorstep.NoDriverError, doorstep.DeviceError, RuntimeError),
    (doorstep.DriverVersionError, doorstep.DeviceError, RuntimeError),
    (doorstep.NoDeviceError, doorstep.DeviceError, RuntimeError),
    (doorstep.DeviceBusyError, doorstep.DeviceError, RuntimeError),
    (doorstep.DriverFunctionError, doorstep.DeviceError, RuntimeError),
    (doorstep.SimulationError, doorstep.DoorstepError, RuntimeError),
    (doorstep.RendererError, doorstep.DoorstepError, RuntimeError),
    (doorstep.ShaderError, doorstep.DoorstepError, ValueError),
]


@pytest.mark.parametrize(("error", "parent", "builtin"), TREE)
def test_class_derives_from_its_parent_and_a_builtin(
    error: type[Exception], parent: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(error, parent)
    assert issubclass(error, builtin)


def test_an_argument_error_is_no_runtime_error() -> None:
    assert not issubclass(doorstep.ArgumentError, RuntimeError)


def test_every_status_that_fails_has_its_own_class() -> None:
    failures = set(Status) - {Status.OK, Status.PENDING}
    assert set(ERROR_CLASSES) == failures
    assert len(set(ERROR_CLASSES.values())) == len(failures)
    assert all(error.status is status for status, error in ERROR_CLASSES.items())


@pytest.mark.parametrize("error", list(ERROR_CLASSES.values()))
def test_error_carries_status_argument_and_hint(error: type[doorstep.DoorstepError]) -> None:
    raised = error("it went wrong", argument="seed", hint="do better")
    assert str(raised) == "it went wrong (do better)"
    assert (raised.argument, raised.hint, raised.driver_code) == ("seed", "do better", 0)
    assert error("it went wrong", driver_code=999).driver_code == 999
    assert ERROR_CLASSES[raised.status] is error


def test_a_replay_error_keeps_where_the_worlds_differ() -> None:
    raised = doorstep.ReplayError("it went wrong")
    assert (raised.equal_step, raised.different_step, raised.worlds) == (None, 0, ())
    raised.equal_step, raised.different_step, raised.worlds = 64, 128, (3, 5)
    for other in (pickle.loads(pickle.dumps(raised)), copy.copy(raised)):
        assert type(other) is doorstep.ReplayError
        assert (other.equal_step, other.different_step, other.worlds) == (64, 128, (3, 5))


@pytest.mark.parametrize("error", list(ERROR_CLASSES.values()))
def test_error_survives_pickling_and_copying(error: type[doorstep.DoorstepError]) -> None:
    raised = error("it went wrong", argument="seed", hint="do better", driver_code=2)
    for other in (pickle.loads(pickle.dumps(raised)), copy.copy(raised)):
        assert type(other) is error
        assert (str(other), other.argument, other.hint) == (str(raised), "seed", "do better")
        assert other.driver_code == 2
