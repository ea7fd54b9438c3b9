"""Whatever hands memory over meets whatever uses it: a use does with the bytes what numpy would, or raises an
ArgumentError that names the argument, after which nothing has changed. Layouts are drawn."""

import importlib
import importlib.util
import os
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.interop.exchange_producer import Producer
from tests.interop.places import WAYS, take_way
from tests.pkg.dlpack_only import OldDlpack, OnlyDlpack

import doorstep
from doorstep import ArgumentError, interop
from doorstep._native.dlpack import READ_ONLY

DRAWN = settings(
    max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
    phases=[Phase.generate], report_multiple_bugs=False,
)  # fmt: skip
USUALLY = st.sampled_from((True, True, True, False))
WORLDS, LEVELS = 5, 3
INT_LIMITS = np.iinfo(np.int32)
DTYPES = ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
DTYPES += ("float16", "float32", "float64", "complex64", "complex128")
DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
# Whole shapes and dtypes of tensors that are set or bound.
OWN = {
    "actions": ((WORLDS, 2, 4), "int32"), "resets": ((WORLDS, 1), "int32"),
    "level_weights": ((WORLDS, LEVELS), "float32"), "rewards": ((WORLDS, 2, 1), "float32"),
    "terminations": ((WORLDS, 2, 1), "uint8"),
}  # fmt: skip
# Whether memory lies side by side, and has the shape and the dtype of the tensor.
FITS = [(True, True, True), (False, True, True), (True, True, False), (False, True, False), (True, False, True)]
SETTABLE = ("actions", "resets", "level_weights")
WRONG_SHAPES = [(), (0,), (WORLDS * 8,), (2, WORLDS, 4), (WORLDS - 1, 2, 4), (1, 1, 4), (WORLDS, 2, 0), (1,) * 4]


def library(name):
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


torch, jax, tvm_ffi = library("torch"), library("jax"), library("tvm_ffi")


def shapes_that_fit(own):
    """Worlds and agents may be one dimension; ones at the end may be absent."""
    fitting = {own, (own[0] * own[1], *own[2:])}
    for _ in own:
        fitting |= {shape[:-1] for shape in fitting if shape[-1] == 1 and len(shape) > 1}
    return sorted(fitting)


@st.composite
def layouts(draw, shape, dtype, is_plain):
    """Memory, and a function that cuts a view of this shape out of it: permuted, skipping, backwards, expanded."""
    order = range(len(shape)) if is_plain else draw(st.permutations(range(len(shape))))
    steps = [1 if is_plain else draw(st.sampled_from((1, 1, 2, -1, 0))) for _ in shape]  # 0: expanded
    extents = [count * abs(step) if step else min(count, 1) for count, step in zip(shape, steps, strict=True)]
    offset = draw(st.integers(0, 2))
    numbers = np.random.default_rng(draw(st.integers(0, 9))).integers(-7, 13, offset + int(np.prod(extents)) + 2)
    whole = numbers.astype(dtype)
    if whole.dtype.kind in "iu":
        whole[::7] = np.iinfo(dtype).max
        whole[3::11] = np.iinfo(dtype).min

    def cut(memory):
        view = memory[offset : memory.size - 2].reshape([extents[axis] for axis in order]).transpose(np.argsort(order))
        view = view[tuple(slice(None, None, step or 1) for step in steps)]
        strides = [stride if step else 0 for stride, step in zip(view.strides, steps, strict=True)]
        return np.lib.stride_tricks.as_strided(view, shape, strides)

    return whole, cut


def described_by_hand(array):
    dtype = (DLPACK_CODES[array.dtype.kind], 8 * array.itemsize, 1)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    flags = 0 if array.flags.writeable else READ_ONLY
    made = Producer().tensor(array.ctypes.data, array.shape, strides, dtype=dtype, flags=flags, byte_offset=16)
    made.array = array
    return made


class ByCapsule(OnlyDlpack):
    """Its address is in two parts."""

    def __dlpack__(self, **_):
        self.tensor = described_by_hand(self._array)
        return self.tensor.producer.capsule(self.tensor)


def torch_tensor(array):
    is_possible = torch and array.flags.writeable and all(stride >= 0 for stride in array.strides)
    return torch.from_numpy(array) if is_possible else None


def torch_parameter(array):
    made = torch_tensor(array) if array.dtype.kind in "fc" else None
    return None if made is None else made.requires_grad_()


def negative_view(array):
    made = torch_tensor(array) if array.dtype.kind == "f" else None
    return None if made is None else torch._neg_view(made)


def interface(array, name="__array_interface__"):
    made = {key: array.__array_interface__[key] for key in ("data", "shape", "typestr", "strides", "version")}
    return SimpleNamespace(array=array, **{name: made})


def device_memory(array):
    return interface(array, "__cuda_array_interface__")


def old_dlpack(array):
    return OldDlpack(lambda: array)


# Each makes an object over an array's memory, or None if its library cannot.
PRODUCERS = {
    "numpy": lambda array: array,
    "buffer": memoryview,
    "array interface": interface,
    "dlpack": OnlyDlpack,
    "old dlpack": old_dlpack,
    "exchange api": lambda array: described_by_hand(array) if interop._calls else None,
    "capsule": ByCapsule,
    "torch": torch_tensor,
    "torch with grad": torch_parameter,
    "tvm-ffi": lambda array: tvm_ffi.from_dlpack(array) if tvm_ffi and array.flags.writeable else None,
    "jax": lambda array: jax.numpy.asarray(array) if jax and array.itemsize < 8 else None,
    "copies": lambda array: OldDlpack(array.copy) if array.size else None,  # two without elements lie in one place
    "negative": negative_view,
    "meta": lambda array: torch.empty(array.shape, device="meta") if torch else None,
    "device memory": device_memory,
    "masked": lambda array: np.ma.masked_array(array),
    "foreign byte order": lambda array: array.astype(array.dtype.newbyteorder()) if array.itemsize > 1 else None,
    "list": lambda array: array.tolist(),
}
# Those that nothing reads: their elements do not lie on the host as they are described.
UNREADABLE = ("copies", "negative", "meta", "device memory", "masked", "foreign byte order", "list")
# numpy says since 2.1 that what it exports is read-only, and exported nothing of the kind before.
WITHOUT_READ_ONLY = ("old dlpack", "dlpack") if np.lib.NumpyVersion(np.__version__) < "2.1.0" else ("old dlpack",)
WITHOUT_DLPACK = ("buffer", "array interface")
COPIED_BY_LIBRARY = ("numpy", "buffer", "array interface", "torch", "torch with grad", "jax")  # if they have gaps


def is_readable(kind, array):
    return kind not in UNREADABLE and (array.flags.writeable or kind not in WITHOUT_READ_ONLY)


def objects_over(whole, cut, is_writable):
    """Kind, object, the array that it is made over, and its memory, for each producer that can."""
    for kind, make in PRODUCERS.items():
        memory = whole.copy()
        array = cut(memory)
        if not is_writable:
            array.flags.writeable = False
        value = make(array)
        if value is not None:
            yield kind, value, array, memory


# ---- A simulator's tensors


def facts_of(sim):
    tensors = {name: sim.tensors[name] for name in (*OWN, "dones", "steps_remaining")}
    return {name: (tensor.__array_interface__, tensor.copy_to_host().tobytes()) for name, tensor in tensors.items()}


def check_set(sim, name, kind, value, array):
    shape, dtype = OWN[name]
    from_integers = dtype == "int32" and (array.dtype.kind in "iu" or (name == "resets" and array.dtype == bool))
    converted = from_integers and array.dtype != dtype
    has_dtype = array.dtype == dtype or from_integers
    whole = converted or array.flags.c_contiguous or kind in COPIED_BY_LIBRARY
    fits = is_readable(kind, array) and has_dtype and array.shape in shapes_that_fit(shape) and whole
    tensor, before = sim.tensors[name], facts_of(sim)
    if not fits:
        with pytest.raises(ArgumentError) as caught:
            setattr(sim, name, value)
        assert (caught.value.argument, facts_of(sim)) == (name, before), kind
        return
    setattr(sim, name, value)
    expected = array.astype(object).clip(INT_LIMITS.min, INT_LIMITS.max) if dtype == "int32" else array
    assert sim.tensors[name] is tensor
    assert tensor.copy_to_host().tobytes() == expected.astype(dtype).tobytes(), (kind, array.dtype)
    assert {**facts_of(sim), name: None} == {**before, name: None}


def check_bind(sim, name, kind, value, array):
    shape, dtype = OWN[name]
    has_dtype = array.dtype == dtype or (array.dtype == bool and dtype == "uint8")
    fits = has_dtype and array.shape in shapes_that_fit(shape) and array.flags.c_contiguous and array.flags.writeable
    fits = fits and is_readable(kind, array) and kind not in ("jax", "torch with grad")
    before, other = facts_of(sim), np.full((WORLDS, 2), 7, np.int32)
    if not fits:
        with pytest.raises(ArgumentError) as caught:
            sim.bind(dones=other, **{name: value}, steps_remaining=other.copy())
        assert (caught.value.argument, facts_of(sim)) == (name, before), kind
        assert (other == 7).all()
        return
    sim.bind(dones=other, **{name: value})
    assert sim.tensors[name].__array_interface__["data"][0] == array.ctypes.data, kind
    assert array.tobytes() == before[name][1]  # what it held has moved there
    assert (other.ravel() == np.asarray(sim.dones).ravel()).all()
    sim.bind(**{name: None}, dones=None)
    assert facts_of(sim) == before


@DRAWN
@given(st.data())
def test_tensors_are_set_and_bound_as_numpy_would_or_not_at_all(data):
    with doorstep.Simulator(WORLDS, max_levels=LEVELS, num_threads=1) as sim:
        sim.actions = np.full((WORLDS, 2, 4), 1, np.int32)
        for name, (own_shape, own_dtype) in OWN.items():
            is_plain, has_shape, has_dtype = data.draw(st.sampled_from(FITS))
            shape = data.draw(st.sampled_from(shapes_that_fit(own_shape) if has_shape else WRONG_SHAPES))
            dtype = own_dtype if has_dtype else data.draw(st.sampled_from(DTYPES))
            whole, cut = data.draw(layouts(shape, dtype, is_plain))
            for kind, value, array, memory in objects_over(whole, cut, data.draw(USUALLY)):
                if kind == "exchange api":
                    continue  # read by native code alone
                if name in SETTABLE:
                    check_set(sim, name, kind, value, array)
                    assert memory.tobytes() == whole.tobytes()
                check_bind(sim, name, kind, value, array)


# ---- Functions of doorstep.interop


def check_description(bridge, kind, value, array):
    described = bridge.describe(value)
    assert (described.shape, described.dtype, described.device) == (array.shape, str(array.dtype), "cpu"), kind
    assert (described.size, described.itemsize, described.nbytes) == (array.size, array.itemsize, array.nbytes)
    assert described.readonly == (not array.flags.writeable or kind == "jax"), kind
    assert described.requires_grad == (kind == "torch with grad")
    is_other = kind not in ("numpy", "jax", "torch", "torch with grad")
    assert described.library == ("other" if is_other else kind.partition(" ")[0])
    if kind != "jax":  # which has copied
        assert described.contiguous == array.flags.c_contiguous, kind
        if array.size:
            assert described.pointer == array.ctypes.data, kind
            rows = zip(array.shape, described.strides, array.strides, strict=True)
            assert all(stride * array.itemsize == own for extent, stride, own in rows if extent > 1), kind
    notes = ("strided" * (not described.contiguous), "grad" * described.requires_grad, "readonly" * described.readonly)
    dimensions = "x".join(map(str, array.shape))
    text = ",".join([described.library, f"D{array.ndim}", f"S{array.dtype}", "cpu", dimensions, *filter(None, notes)])
    assert bridge.signature(value) == f"[{text}]"
    before = np.ones(1)
    assert bridge.describe_many([before, value]) == (bridge.describe(before), described)


def check_copies(bridge, kind, value, array, memory, cut):
    """Between guards, in row-major order; what is written reaches the elements and nothing else."""
    packed = np.full(array.nbytes + 32, 0xA5, np.uint8)
    address = packed.ctypes.data + 16
    bridge.copy_to_pointer(value, address, array.nbytes)
    assert packed.tobytes() == b"\xa5" * 16 + array.tobytes() + b"\xa5" * 16, kind
    with pytest.raises(ArgumentError, match=f"nbytes is {array.nbytes + 1}; it must be {array.nbytes}"):
        bridge.copy_to_pointer(value, address, array.nbytes + 1)
    fresh, before = np.ascontiguousarray(array[..., ::-1] if array.ndim else array), memory.copy()
    fresh = np.where(fresh == 0, np.asarray(1, array.dtype), fresh)
    is_expanded = any(stride == 0 and n > 1 for n, stride in zip(array.shape, array.strides, strict=True))
    if not array.flags.writeable or kind == "jax" or (is_expanded and array.size):
        with pytest.raises(ArgumentError, match=r"read-only|share memory|cannot be read") as caught:
            bridge.copy_from_pointer(value, fresh.ctypes.data, fresh.nbytes)
        assert caught.value.argument == "tensor"
        assert memory.tobytes() == before.tobytes(), kind
        return
    bridge.copy_from_pointer(value, fresh.ctypes.data, fresh.nbytes)
    cut(before)[...] = fresh
    assert memory.tobytes() == before.tobytes(), kind


def check_new(bridge, kind, value, array):
    if kind not in ("numpy", "torch", "torch with grad", "jax"):
        return
    for make in (bridge.zeros_like, bridge.empty_like):
        new = make(value)
        described = bridge.describe(new)
        assert (described.shape, described.dtype, described.contiguous) == (array.shape, str(array.dtype), True)
        assert isinstance(new, torch.Tensor if "torch" in kind else type(value))
        assert (described.requires_grad, described.pointer != array.ctypes.data) == (False, True)
        assert make is bridge.empty_like or not np.asarray(new).any()


@DRAWN
@given(st.data())
def test_interop_reads_and_copies_as_numpy_would_or_not_at_all(data):
    shape = tuple(data.draw(st.lists(st.sampled_from((0, 1, 1, 2, 2, 2, 3, 3)), max_size=5)))
    whole, cut = data.draw(layouts(shape, data.draw(st.sampled_from(DTYPES)), data.draw(st.booleans())))
    is_writable = data.draw(USUALLY)
    for way in WAYS if interop._calls else ("python",):
        with pytest.MonkeyPatch.context() as patch:
            bridge = take_way(way, patch)
            for kind, value, array, memory in objects_over(whole, cut, is_writable):
                if kind == "exchange api" and way == "python":
                    continue  # it has no other way
                if not is_readable(kind, array) or kind in WITHOUT_DLPACK:
                    for function in (bridge.describe, bridge.signature, bridge.empty_like):
                        with pytest.raises(ArgumentError) as caught:
                            function(value)
                        assert caught.value.argument == "tensor"
                    assert bridge.is_tensor(value) == hasattr(type(value), "__dlpack__")
                    continue
                check_description(bridge, kind, value, array)
                check_new(bridge, kind, value, array)
                check_copies(bridge, kind, value, array, memory, cut)


def test_without_fast_calls_it_is_the_same(run_python):
    code = """
import sys
sys.modules["torch"] = sys.modules["jax"] = None  # not installed
from doorstep._native import fast_calls
from tests.interop import test_exchange, test_set
assert fast_calls() is None
test_exchange.test_tensors_are_set_and_bound_as_numpy_would_or_not_at_all()
test_exchange.test_interop_reads_and_copies_as_numpy_would_or_not_at_all()
test_set.test_setting_copies_into_bound_memory_from_another_simulator_and_from_itself()
test_set.test_what_does_not_fit_changes_nothing_and_the_error_says_why()
test_set.test_what_was_accepted_once_does_not_let_another_kind_in()
"""
    run_python(code, **{**os.environ, "DOORSTEP_FAST_CALLS": "0"})
