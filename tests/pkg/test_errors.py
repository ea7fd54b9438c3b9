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


def test_an_error_carries_what_it_tells_also_when_pickled_and_copied():
    for error in (*ERROR_CLASSES.values(), doorstep.ReplayError):
        assert error("it went wrong").driver_code == 0
        raised = error("it went wrong", argument="seed", hint="do better", driver_code=2)
        assert ERROR_CLASSES[raised.status] is error or error is doorstep.ReplayError
        if error is doorstep.ReplayError:
            assert (raised.equal_step, raised.different_step, raised.worlds) == (None, 0, ())
            raised.equal_step, raised.different_step, raised.worlds = 64, 128, (3, 5)
        for other in (raised, pickle.loads(pickle.dumps(raised)), copy.copy(raised)):
            assert (type(other), str(other), vars(other)) == (error, "it went wrong (do better)", vars(raised))
            assert (other.argument, other.hint, other.driver_code) == ("seed", "do better", 2)
