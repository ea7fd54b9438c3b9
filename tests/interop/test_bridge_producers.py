"""Libraries that offer DLPack's exchange API, or only `__dlpack__`, in all their versions."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tests.interop.exchange_producer import Producer

from doorstep import ArgumentError, DeviceError, interop
from doorstep._native._generated import PythonRules, PythonTensor
from doorstep._native.library import LIBRARY_PATH
from doorstep.errors import Status

torch: Any = pytest.importorskip("torch")
READ_ONLY, IS_COPIED = 1, 2

needs_builtins = pytest.mark.skipif(interop._calls is None, reason="fast calls are off")


@pytest.fixture
def memory() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.arange(12, dtype=np.float32)


# ---- The exchange API of any library ----


@needs_builtins
def test_a_library_with_the_exchange_api_is_read_through_it(memory: Any) -> None:
    producer = Producer()
    tensor = producer.tensor(memory.ctypes.data, (2, 3), (6, 2), byte_offset=8)
    described = interop.describe(tensor)
    assert (described.pointer, described.shape, described.strides) == (memory.ctypes.data, (2, 3), (6, 2))
    assert (described.dtype, described.device, described.library) == ("float32", "cpu", "other")
    assert (described.contiguous, described.readonly) == (False, False)
    assert producer.calls == ["from_object"]
    assert (producer.alive, producer.deleted) == (0, 1)
    target = np.zeros(6, np.float32)
    interop.copy_to_pointer(tensor, target.ctypes.data, 24)
    assert target.tolist() == [0, 2, 4, 6, 8, 10]


@needs_builtins
def test_the_read_only_flag_is_kept(memory: Any) -> None:
    tensor = Producer().tensor(memory.ctypes.data, (12,), flags=READ_ONLY)
    assert interop.describe(tensor).readonly
    with pytest.raises(ArgumentError, match=r"read-only|cannot be read"):
        interop.copy_from_pointer(tensor, memory.ctypes.data, 48)


@needs_builtins
def test_a_newer_version_is_used_through_its_older_self(memory: Any) -> None:
    known = Producer()
    newer = Producer(version=(2, 0), previous=known)
    tensor = newer.tensor(memory.ctypes.data, (12,))
    assert interop.describe(tensor).shape == (12,)
    assert (newer.calls, known.calls) == ([], ["from_object"])


@needs_builtins
def test_a_version_that_is_not_known_is_left_alone(memory: Any) -> None:
    newer = Producer(version=(2, 0))
    with pytest.raises(ArgumentError, match="exports through its exchange API only"):
        interop.describe(newer.tensor(memory.ctypes.data, (12,)))
    assert newer.calls == ["__dlpack__ {'max_version': (1, 0), 'copy': False}"]


@needs_builtins
@pytest.mark.parametrize("options", [{"flags": IS_COPIED}, {"shape": (1,) * 17}])
def test_what_the_view_cannot_hold_is_not_read_and_not_kept(memory: Any, options: dict[str, Any]) -> None:
    producer = Producer()
    tensor = producer.tensor(memory.ctypes.data, **{"shape": (12,), **options})
    with pytest.raises(ArgumentError):
        interop.describe(tensor)
    assert (producer.alive, producer.deleted) == (0, 1)


@needs_builtins
def test_a_failing_export_leaves_no_exception_behind(memory: Any) -> None:
    producer = Producer(failing={"from_object"})
    with pytest.raises(ArgumentError, match="cannot be read in place") as caught:
        interop.describe(producer.tensor(memory.ctypes.data, (12,)))
    assert "BufferError" in str(caught.value)
    assert interop.describe(memory).shape == (12,)


@needs_builtins
def test_the_stream_is_that_of_the_device_asked_for() -> None:
    producer = Producer(streams={0: 0, 1: 0x1234, 3: 0x9876543210})
    tensor = producer.tensor(64, (1,), device=(2, 3))
    assert interop.current_stream(tensor) == 0x9876543210
    assert [interop.current_stream(tensor, i) for i in (0, 1)] == [0, 0x1234]
    assert producer.calls[-3:] == ["stream of 2:3", "stream of 2:0", "stream of 2:1"]
    with pytest.raises(DeviceError, match="without an exception"):
        interop.current_stream(tensor, 2)


@needs_builtins
def test_an_allocator_that_fails_says_why(memory: Any) -> None:
    producer = Producer()
    with pytest.raises(MemoryError, match="the device is full"):
        interop.empty_like(producer.tensor(memory.ctypes.data, (12,)))
    assert producer.alive == 0


@needs_builtins
def test_an_allocator_that_fails_without_a_word_has_failed(memory: Any) -> None:
    producer = Producer(failing={"allocate"})
    with pytest.raises(MemoryError, match="without an exception"):
        interop.empty_like(producer.tensor(memory.ctypes.data, (12,)))


# ---- Memory handed over ----


def c_function(name: str, *types: Any) -> Any:
    function = getattr(ctypes.PyDLL(LIBRARY_PATH), name)
    function.argtypes = types
    return function


def test_a_tensor_that_cannot_be_handed_over_is_deleted(memory: Any) -> None:
    producer = Producer()
    over = c_function("ds_python_tensor_over", ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)
    made = ctypes.c_void_p()
    for cls, device in ((producer.Tensor, (1, 0)), (torch.Tensor, (99, 0)), (np.ndarray, (1, 0)), (int, (1, 0))):
        managed = producer.managed(producer.tensor(memory.ctypes.data, (12,), device=device))
        assert over(cls, managed, ctypes.byref(made)) != Status.OK
        assert producer.alive == 0
        assert made.value is None
    assert producer.deleted == 4


def test_a_tensor_that_is_handed_over_is_deleted_with_the_last_view(memory: Any) -> None:
    producer = Producer()
    over = c_function("ds_python_tensor_over", ctypes.py_object, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))
    made = ctypes.py_object()
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


# ---- Rules of the C API ----


def read(objects: list[Any], rules: PythonRules | None, count: int | None = None) -> tuple[int, Any]:
    function = c_function("ds_python_read_tensors", ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
    array = (ctypes.py_object * len(objects))(*objects)
    views = (PythonTensor * len(objects))(*[PythonTensor(struct_size=ctypes.sizeof(PythonTensor)) for _ in objects])
    status = function(array, len(objects) if count is None else count, ctypes.byref(rules) if rules else None, views)
    return status, views


def rules(**options: int) -> PythonRules:
    return PythonRules(struct_size=ctypes.sizeof(PythonRules), stream=2**64 - 1, **options)


def message() -> str:
    from doorstep._native.calls import raise_last_error

    with pytest.raises(ArgumentError) as caught:
        raise_last_error(Status.INVALID_ARGUMENT)
    return str(caught.value)


def test_many_tensors_are_read_in_one_call() -> None:
    tensors = [torch.ones(3, i) for i in range(1, 9)] + [np.ones(5)]
    status, views = read(tensors, None)
    assert status == Status.OK
    assert [view.data for view in views] == [*(t.data_ptr() for t in tensors[:-1]), tensors[-1].ctypes.data]
    assert [view.count for view in views] == [3 * i for i in range(1, 9)] + [5]


def test_rules_are_kept() -> None:
    leaf, frozen = torch.ones(2, requires_grad=True), np.ones(2)
    frozen.flags.writeable = False
    assert read([leaf], rules(requires_grad_allowed=1))[0] == Status.OK
    assert read([frozen], rules())[0] == Status.OK
    assert read([torch.ones(1), leaf], None)[0] == Status.INVALID_ARGUMENT
    assert "objects[1] is a tensor that requires grad" in message()
    assert "detach" in message()
    assert read([leaf.t()], rules(written=1))[0] == Status.INVALID_ARGUMENT  # a view, which requires grad too
    assert "requires grad" in message()
    assert read([frozen], rules(written=1))[0] == Status.INVALID_ARGUMENT
    assert "objects[0] is a read-only tensor" in message()
    jax = pytest.importorskip("jax")
    assert read([jax.numpy.ones(2)], rules())[0] == Status.OK
    assert read([jax.numpy.ones(2)], rules(written=1))[0] == Status.INVALID_ARGUMENT
    assert "read-only" in message()


def test_views_and_results_need_grad_only_as_their_library_says() -> None:
    base = torch.ones(4, 4)
    leaf = torch.ones(4, 4, requires_grad=True)
    with torch.no_grad():
        quiet = leaf * 2
    for tensor in (base, base[1:], base.t(), leaf.detach()[1:], quiet, quiet[0]):
        assert read([tensor], None)[0] == Status.OK
    for tensor in (leaf, leaf[1:], leaf.t(), leaf * 2, (leaf * 2)[0]):
        assert read([tensor], None)[0] == Status.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (PythonRules(struct_size=4), "rules.struct_size is 4"),
        (rules(written=2), "rules.written is 2"),
        (rules(requires_grad_allowed=-1), "requires_grad_allowed is -1"),
    ],
)
def test_bad_rules_are_refused(given: PythonRules, words: str) -> None:
    assert read([np.ones(1)], given)[0] == Status.INVALID_ARGUMENT
    assert words in message()


# ---- Only __dlpack__ ----


class Older:
    """As libraries were before DLPack 1.0: no versions, no copies."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, stream: Any = None) -> Any:
        self.streams.append(stream)
        return self._array.__dlpack__()


class Copying(Older):
    """Hands out copies, and says so."""

    def __dlpack__(self, stream: Any = None, **options: Any) -> Any:
        return self._array.__dlpack__(max_version=(1, 0), copy=True)


class Confused(Older):
    def __dlpack__(self, stream: Any = None, **options: Any) -> Any:
        return "no capsule"


def test_older_libraries_are_read_in_place(memory: Any) -> None:
    older = Older(memory.reshape(3, 4)[:, ::2])
    described = interop.describe(older)
    assert (described.pointer, described.shape, described.strides) == (memory.ctypes.data, (3, 2), (4, 2))
    assert set(older.streams) == {None}


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="numpy exports no copies")
def test_copies_are_refused(memory: Any) -> None:
    with pytest.raises(ArgumentError, match="copies only"):
        interop.describe(Copying(memory))


def test_what_is_no_capsule_is_refused(memory: Any) -> None:
    with pytest.raises(ArgumentError, match="cannot be read in place"):
        interop.describe(Confused(memory))
