"""Libraries that offer DLPack's exchange API in all its versions, memory handed over, and the rules of the C API."""

import ctypes

import numpy as np
import pytest
from tests.interop.exchange_producer import Producer
from tests.pkg.dlpack_only import OldDlpack
from tests.refuses import refuses

from doorstep import ArgumentError, DeviceError, interop
from doorstep._native import dlpack
from doorstep._native._generated import PythonRules, PythonTensor
from doorstep._native.calls import raise_last_error
from doorstep._native.library import LIBRARY_PATH
from doorstep.errors import Status

torch = pytest.importorskip("torch")

needs_builtins = pytest.mark.skipif(interop._calls is None, reason="fast calls are off")


@pytest.fixture
def memory():
    return np.arange(12, dtype=np.float32)


# ---- The exchange API of any library


@needs_builtins
def test_a_library_with_the_exchange_api_is_read_through_it_and_keeps_nothing(memory):
    producer = Producer()
    tensor = producer.tensor(memory.ctypes.data, (2, 3), (6, 2), byte_offset=8)
    described = interop.describe(tensor)
    assert (described.pointer, described.shape, described.strides) == (memory.ctypes.data, (2, 3), (6, 2))
    assert (described.dtype, described.device, described.library) == ("float32", "cpu", "other")
    assert (described.contiguous, described.readonly) == (False, False)
    assert (producer.calls, producer.alive, producer.deleted) == (["from_object"], 0, 1)
    target = np.zeros(6, np.float32)
    interop.copy_to_pointer(tensor, target.ctypes.data, 24)
    assert target.tolist() == [0, 2, 4, 6, 8, 10]
    for options in ({"flags": dlpack.IS_COPIED}, {"shape": (1,) * 17}):  # what a view cannot hold
        refuses(None, interop.describe, producer.tensor(memory.ctypes.data, **{"shape": (12,), **options}))
    assert (producer.alive, producer.deleted) == (0, 4)


@needs_builtins
def test_the_newest_version_that_is_known_is_used(memory):
    known = Producer()
    newer = Producer(version=(2, 0), previous=known)
    assert interop.describe(newer.tensor(memory.ctypes.data, (12,))).shape == (12,)
    assert (newer.calls, known.calls) == ([], ["from_object"])
    assert interop.describe(Producer(version=(3, 0), previous=newer).tensor(memory.ctypes.data, (12,))).shape == (12,)
    unknown = Producer(version=(2, 0))
    refuses("exports through its exchange API only", interop.describe, unknown.tensor(memory.ctypes.data, (12,)))
    assert unknown.calls == ["__dlpack__ {'max_version': (1, 0), 'copy': False}"]


@needs_builtins
def test_a_failing_export_leaves_no_exception_behind(memory):
    producer = Producer(failing={"from_object"})
    refuses(r"cannot be read in place .*BufferError", interop.describe, producer.tensor(memory.ctypes.data, (12,)))
    assert interop.describe(memory).shape == (12,)


@needs_builtins
def test_the_stream_is_that_of_the_device_asked_for():
    producer = Producer(streams={0: 0, 1: 0x1234, 3: 0x9876543210})
    tensor = producer.tensor(64, (1,), device=(2, 3))
    assert interop.current_stream(tensor) == 0x9876543210
    assert [interop.current_stream(tensor, i) for i in (0, 1)] == [0, 0x1234]
    assert producer.calls[-3:] == ["stream of 2:3", "stream of 2:0", "stream of 2:1"]
    refuses("without an exception", interop.current_stream, tensor, 2, error=DeviceError)


@needs_builtins
def test_an_allocator_that_fails_says_why_or_has_failed_all_the_same(memory):
    failing = Producer(failing={"allocate"})
    for producer, words in ((Producer(), "the device is full"), (failing, "without an exception")):
        refuses(words, interop.empty_like, producer.tensor(memory.ctypes.data, (12,)), error=MemoryError)
        assert producer.alive == 0


# ---- Memory handed over


def c_function(name, *types):
    function = getattr(ctypes.PyDLL(LIBRARY_PATH), name)
    function.argtypes = types
    return function


def test_a_tensor_that_cannot_be_handed_over_is_deleted(memory):
    producer, made = Producer(), ctypes.c_void_p()
    over = c_function("ds_python_tensor_over", ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)
    for cls, device in ((producer.Tensor, (1, 0)), (torch.Tensor, (99, 0)), (np.ndarray, (1, 0)), (int, (1, 0))):
        managed = producer.managed(producer.tensor(memory.ctypes.data, (12,), device=device))
        assert over(cls, managed, ctypes.byref(made)) != Status.OK
        assert (producer.alive, made.value) == (0, None)
    assert producer.deleted == 4


def test_a_tensor_that_is_handed_over_is_deleted_with_the_last_view(memory):
    producer, made = Producer(), ctypes.py_object()
    over = c_function("ds_python_tensor_over", ctypes.py_object, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))
    assert over(torch.Tensor, producer.managed(producer.tensor(memory.ctypes.data, (3, 4))), ctypes.byref(made)) == 0
    tensor = made.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(tensor))  # the reference that `made` was given
    assert tensor.data_ptr() == memory.ctypes.data
    view = tensor[1:]
    del tensor, made
    assert producer.alive == 1
    view[0, 0] = 100
    assert memory[4] == 100
    del view
    assert producer.alive == 0


# ---- Rules of the C API


def read(objects, rules):
    function = c_function("ds_python_read_tensors", ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
    array = (ctypes.py_object * len(objects))(*objects)
    views = (PythonTensor * len(objects))(*[PythonTensor(struct_size=ctypes.sizeof(PythonTensor)) for _ in objects])
    return function(array, len(objects), ctypes.byref(rules) if rules else None, views), views


def rules(**options):
    return PythonRules(struct_size=ctypes.sizeof(PythonRules), stream=2**64 - 1, **options)


def refusal(objects, given):
    assert read(objects, given)[0] == Status.INVALID_ARGUMENT
    with pytest.raises(ArgumentError) as caught:
        raise_last_error(Status.INVALID_ARGUMENT)
    return str(caught.value)


def test_rules_are_kept():
    jax = pytest.importorskip("jax")
    leaf, frozen, of_jax = torch.ones(2, requires_grad=True), np.ones(2), jax.numpy.ones(2)
    frozen.flags.writeable = False
    with torch.no_grad():
        quiet = leaf * 2
    for tensor in (leaf.detach()[1:], quiet, quiet[0], frozen, of_jax):
        assert read([tensor], rules())[0] == Status.OK
    assert read([leaf], rules(requires_grad_allowed=1))[0] == Status.OK
    for tensor in (leaf, leaf[1:], leaf * 2, (leaf * 2)[0]):
        for given in (None, rules(written=1)):
            said = refusal([torch.ones(1), tensor], given)
            assert "objects[1] is a tensor that requires grad" in said
            assert "detach" in said
    for tensor in (frozen, of_jax):
        assert "objects[0] is a read-only tensor" in refusal([tensor], rules(written=1))
    for given, words in (
        (PythonRules(struct_size=4), "rules.struct_size is 4"),
        (rules(written=2), "rules.written is 2"),
        (rules(requires_grad_allowed=-1), "requires_grad_allowed is -1"),
    ):
        assert words in refusal([np.ones(1)], given)


# ---- Only __dlpack__


def test_older_libraries_are_read_in_place_and_what_is_no_capsule_is_refused(memory):
    older = OldDlpack(lambda: memory.reshape(3, 4)[:, ::2])
    described = interop.describe(older)
    assert (described.pointer, described.shape, described.strides) == (memory.ctypes.data, (3, 2), (4, 2))
    assert set(older.streams) == {None}

    class Copying(OldDlpack):
        """Hands out copies, and says so."""

        def __dlpack__(self, stream=None, **options):
            return memory.__dlpack__(max_version=(1, 0), copy=True)

    class Confused(OldDlpack):
        def __dlpack__(self, stream=None, **options):
            return "no capsule"

    refuses("cannot be read in place", interop.describe, Confused(None))
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # exports copies
        refuses("copies only", interop.describe, Copying(None))
