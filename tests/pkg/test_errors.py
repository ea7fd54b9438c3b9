"""The error tree: one class per status, and what every error carries."""

import copy
import pickle

import doorstep
from doorstep.errors import ERROR_CLASSES, Status

# A parent, a class of Python, and the classes that are both.
TREE = [
    (doorstep.DoorstepError, ValueError, "ArgumentError StateError ShaderError"),
    (doorstep.DoorstepError, RuntimeError, "ClosedError DeviceError SimulationError RendererError"),
    (doorstep.DoorstepError, MemoryError, "OutOfMemoryError"),
    (doorstep.DoorstepError, ImportError, "LibraryError"),
    (doorstep.StateError, ValueError, "ReplayError"),
    (doorstep.DeviceError, RuntimeError, "NoDriverError DriverVersionError NoDeviceError DeviceBusyError"),
    (doorstep.DeviceError, RuntimeError, "DriverFunctionError"),
]


def test_every_status_that_fails_has_a_class_of_its_own_in_the_tree():
    for parent, builtin, names in TREE:
        for error in (getattr(doorstep, name) for name in names.split()):
            assert issubclass(error, parent)
            assert issubclass(error, builtin)
    assert not issubclass(doorstep.ArgumentError, RuntimeError)
    failures = set(Status) - {Status.OK, Status.PENDING}
    assert set(ERROR_CLASSES) == failures
    assert len(set(ERROR_CLASSES.values())) == len(failures)
    assert all(error.status is status for status, error in ERROR_CLASSES.items())


def test_an_error_carries_status_argument_hint_and_code_also_when_pickled_and_copied():
    for error in ERROR_CLASSES.values():
        assert error("it went wrong").driver_code == 0
        raised = error("it went wrong", argument="seed", hint="do better", driver_code=2)
        assert ERROR_CLASSES[raised.status] is error
        for other in (raised, pickle.loads(pickle.dumps(raised)), copy.copy(raised)):
            assert (type(other), str(other)) == (error, "it went wrong (do better)")
            assert (other.argument, other.hint, other.driver_code) == ("seed", "do better", 2)


def test_a_replay_error_keeps_where_the_worlds_differ():
    raised = doorstep.ReplayError("it went wrong")
    assert (raised.equal_step, raised.different_step, raised.worlds) == (None, 0, ())
    raised.equal_step, raised.different_step, raised.worlds = 64, 128, (3, 5)
    for other in (pickle.loads(pickle.dumps(raised)), copy.copy(raised)):
        assert type(other) is doorstep.ReplayError
        assert (other.equal_step, other.different_step, other.worlds) == (64, 128, (3, 5))
