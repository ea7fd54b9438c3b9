"""Reading tensors: what is said of them is what their libraries say, and what cannot be read in place is refused.
Layouts and libraries meet in test_exchange.py; here are the kinds of tensors of one library."""

import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from tests.interop.places import WAYS, take_way
from tests.pkg.dlpack_only import OnlyDlpack
from tests.refuses import refuses

from doorstep import ArgumentError, DeviceError, Simulator, interop
from doorstep._native.foreign_tensor import ELEMENT_TYPES
from doorstep._native.object_layout import find_torch_layout
from doorstep._tensors import types

torch = pytest.importorskip("torch")
needs_builtins = pytest.mark.skipif(interop._calls is None, reason="fast calls are off")

# What PyTorch says of kinds of tensors that it means to give up.
pytestmark = pytest.mark.filterwarnings("ignore:.*(quantize|nested tensors|CSR|ComplexHalf|torch.jit.script)")

TORCH_DTYPES = [name for name in ELEMENT_TYPES if hasattr(torch, name)]


@pytest.fixture(params=WAYS)
def bridge(request, monkeypatch):
    """doorstep.interop, going through the native library or through Python alone."""
    return take_way(request.param, monkeypatch)


class Subclass(torch.Tensor):
    pass


def torch_zoo():
    """Tensors of PyTorch that can be read."""
    made, leaf = torch.arange(20, dtype=torch.float32).reshape(4, 5), torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        inferred = torch.ones(2, 3)
    with torch.no_grad():
        quiet = leaf * 2
    parameter = torch.nn.Parameter(made)
    return [
        *(made, made.T, made[2:, 1:], torch.ones(1, 4).expand(3, 4), torch.tensor(3.0), torch.ones((1, 2) * 8)),
        *(leaf, leaf * 2, leaf[1:], leaf.detach(), quiet, parameter, parameter.t()[1:]),
        *(torch.nn.Parameter(made, requires_grad=False), made.as_subclass(Subclass), inferred, torch.zeros(0, 3)),
        torch.Tensor._make_subclass(Subclass, made, True),
        *(torch.empty(2, dtype=getattr(torch, name)) for name in TORCH_DTYPES),
    ]


def test_a_torch_tensor_is_what_its_attributes_say(bridge):
    for tensor in torch_zoo():
        described = bridge.describe(tensor)
        assert described.pointer == (tensor.data_ptr() if tensor.numel() else 0)
        assert (described.shape, described.strides) == (tuple(tensor.shape), tensor.stride())
        assert described.dtype == str(tensor.dtype).removeprefix("torch.")
        assert (described.device, described.library, described.readonly) == ("cpu", "torch", False)
        assert (described.size, described.itemsize) == (tensor.numel(), tensor.element_size())
        assert described.nbytes == tensor.numel() * tensor.element_size()
        assert described.contiguous == tensor.is_contiguous()
        assert described.requires_grad == tensor.requires_grad
    assert len(TORCH_DTYPES) > 18
    pairs = bridge.describe(torch.empty(1, dtype=torch.float4_e2m1fn_x2))
    assert (pairs.dtype, pairs.itemsize) == ("float4_e2m1fn_x2", 1)


def test_tensors_of_other_libraries_are_read_in_place(bridge, monkeypatch):
    jax = pytest.importorskip("jax")
    with Simulator(2) as sim:
        for tensor in (*sim.tensors.values(), sim.state.body_positions):
            described = bridge.describe(tensor)
            assert described.pointer == (tensor.to_numpy().ctypes.data if tensor.size else 0)
            assert (described.dtype, described.shape) == (str(tensor.dtype), tensor.shape)
            assert (described.readonly, described.library) == (tensor.readonly, "doorstep")
            assert tuple(stride * tensor.dtype.itemsize for stride in described.strides) == tensor.strides
        refuses("has no standard way to make tensors", bridge.zeros_like, sim.actions)
    array, half = jax.numpy.arange(6.0).reshape(2, 3), jax.numpy.ones(3, jax.numpy.bfloat16)
    described = bridge.describe(array)
    assert described.pointer == array.unsafe_buffer_pointer()
    assert (described.dtype, described.shape, described.library) == ("float32", (2, 3), "jax")
    assert bridge.describe(half).dtype == bridge.describe(np.ones(3, half.dtype)).dtype == "bfloat16"
    array.delete()
    refuses("cannot be read in place", bridge.describe, array)
    refuses(None, jax.jit(bridge.describe), half)
    made = ModuleType("warp")
    made.zeros, made.empty = (lambda *_, dtype, device: (dtype, device)), None
    monkeypatch.setitem(sys.modules, "warp", made)
    for name in ("warp", "cupy"):
        own = type("array", (OnlyDlpack,), {"__module__": f"{name}.types", "dtype": "f", "device": "d", "shape": (3,)})
        assert bridge.describe(own(np.ones(3))).library == name
        assert name == "cupy" or bridge.zeros_like(own(np.ones(3))) == ("f", "d")


# ---- Refusals


def make_fake():
    with torch._subclasses.FakeTensorMode():
        return torch.zeros(3)


class Wrapper(torch.Tensor):
    """A tensor without memory of its own."""

    @staticmethod
    def __new__(cls, like):
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError


def resized(tensor, nbytes):
    interop.describe(tensor)  # with this its kind is known
    tensor.untyped_storage().resize_(nbytes)
    return tensor


REFUSED = {
    "no tensor": (lambda: [1.0, 2.0], "a list, which is no tensor", "__dlpack__"),
    "numpy scalar": (lambda: np.float32(1), "no tensor", "__dlpack__"),
    "fake": (make_fake, "fake tensor", "real one"),
    "empty fake": (lambda: make_fake()[:0], "fake tensor", "real one"),
    "meta": (lambda: torch.zeros(2, device="meta"), "meta device", "real device"),
    "sparse": (lambda: torch.eye(3).to_sparse(), "sparse_coo", "to_dense"),
    "mkldnn": (lambda: torch.ones(2, 2).to_mkldnn(), "mkldnn", "to_dense"),
    "quantised": (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8), "quantised", "dequantize"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested", "padded"),
    "jagged": (lambda: torch.nested.nested_tensor([torch.ones(2)] * 2, layout=torch.jagged), "nested", "padded"),
    "conjugate": (lambda: torch.ones(3, dtype=torch.complex64).conj(), "conjugate bit", "resolve_conj"),
    "negative": (lambda: torch._neg_view(torch.ones(3)), "negative bit", "resolve_neg"),
    "negative real part": (lambda: torch.ones(3, dtype=torch.complex64).conj().imag, "negative bit", "resolve_neg"),
    "functional": (lambda: torch._to_functional_tensor(torch.ones(3)), "without memory", "functional"),
    "wrapper": (lambda: Wrapper(torch.ones(3)), "without memory", "wrapped"),
    "zero tensor": (lambda: torch._efficientzerotensor((3,)), "without memory", ""),
    "no storage": (lambda: resized(torch.zeros(5), 0), "without memory", ""),
    "no storage, from an offset": (lambda: resized(torch.zeros(10)[5:], 0), "40 bytes .* resized to 0", "resize"),
    "less storage": (lambda: resized(torch.zeros(10)[5:], 39), "40 bytes .* resized to 39", "resize"),
    "less strided": (lambda: resized(torch.zeros(4, 4).t()[1:, ::2], 47), "48 bytes .* resized to 47", "resize"),
    "not initialised": (torch.nn.UninitializedParameter, "cannot be read in place .*uninitialized", "copy"),
    "seventeen dimensions": (lambda: torch.ones((1,) * 17), "17 dimensions", "16 or fewer"),
    "masked": (lambda: np.ma.masked_array([1.0, 2.0], [True, False]), "masked array", "filled"),
    "text": (lambda: np.array(["a"]), "array of <U1", "plain numbers"),
    "records": (lambda: np.zeros(3, [("a", "f4")]), "array of", "plain numbers"),
    "foreign byte order": (lambda: np.zeros(3, ">f4"), "array of >f4", "byte order"),
    "long double": (lambda: np.zeros(3, np.longdouble), "array of", "plain numbers"),
    "cut records": (lambda: np.zeros(3, [("a", "u1"), ("b", "f4")])["b"], "parts of elements", "copy"),
}


def test_what_does_not_lie_in_memory_as_described_is_refused(bridge):
    for make, words, hint in REFUSED.values():
        tensor = make()
        with pytest.raises(ArgumentError, match=words) as caught:
            bridge.describe(tensor)
        assert caught.value.argument == "tensor"
        assert hint in caught.value.hint
        refuses(rf"^tensors\[1\] is .*{words}", bridge.describe_many, [torch.ones(2), tensor])
        for function in (bridge.signature, bridge.empty_like, lambda tensor: bridge.copy_to_pointer(tensor, 8, 8)):
            refuses(words, function, tensor)


def test_a_library_that_another_thread_imports_at_this_moment_is_not_asked(bridge):
    class Capsules:  # read in Python
        def __init__(self, array):
            self.__dlpack_device__ = array.__dlpack_device__

        def __dlpack__(self, **options):
            return array.__dlpack__()

    for module in ("numpy.ma", "torch", "torch._subclasses.fake_tensor"):
        fresh_type, masked_type = type("Fresh", (np.ndarray,), {}), type("Masked", (np.ma.MaskedArray,), {})
        array, tensor, masked = np.ones(2), torch.nn.Parameter(torch.ones(2)), masked_type([1, 2])
        with pytest.MonkeyPatch.context() as patch:
            if module == "numpy.ma":
                patch.delattr(np, "ma")
            patch.setitem(sys.modules, module, ModuleType(module))
            for value in (array.view(fresh_type), Capsules(array), *([] if module == "torch" else [tensor])):
                assert bridge.describe(value).shape == (2,)
            refuses("masked array", bridge.describe, masked)


def test_tensors_within_transforms_are_refused(bridge):
    seen = []

    def body(inside):
        refuses(r"torch\.func|without memory", bridge.describe, inside)
        seen.append(inside)
        return inside.sum()

    ones = torch.ones(3)
    torch.vmap(body)(torch.ones(2, 3))
    torch.func.grad(body)(ones)
    torch.func.jvp(body, (ones,), (ones,))
    torch.func.functionalize(body)(ones)
    assert len(seen) == 4


def test_a_class_that_watches_its_attributes_is_not_asked(bridge):
    class Watching(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *arguments):
            raise RuntimeError("code of a user has run")

    class Exporting(np.ndarray):
        def __buffer__(self, flags):
            return memoryview(bytearray(5))

    made = torch.ones(2, 3)
    for requires_grad in (False, True):
        described = bridge.describe(torch.Tensor._make_subclass(Watching, made, requires_grad))
        assert (described.pointer, described.requires_grad) == (made.data_ptr(), requires_grad)
    array = np.arange(6.0).reshape(2, 3).view(Exporting)
    described = bridge.describe(array)
    assert (described.pointer, described.shape, described.dtype) == (array.ctypes.data, (2, 3), "float64")


def test_what_a_storage_still_holds_is_read(bridge):
    made = resized(torch.zeros(10), 24)
    assert (bridge.describe(made[2:6]).shape, bridge.describe(made[1:6:2]).strides) == ((4,), (2,))
    assert bridge.describe(made[:0]).size == 0


# ---- Descriptions


def test_descriptions_do_not_change(bridge):
    array = np.zeros((2, 3))
    described = bridge.describe(array)
    assert described == bridge.describe(array)
    assert isinstance(described, interop.TensorDescription)
    for name in ("shape", "pointer", "something"):
        refuses(None, setattr, described, name, (1,), error=AttributeError)
    assert described != bridge.describe(np.zeros((2, 3)))  # elsewhere
    square, frozen = np.zeros((2, 2)), np.zeros((2, 2))[:]
    frozen.flags.writeable = False
    others = (square, square.T, square[:1], square.view(np.int64), frozen, frozen.base, torch.from_numpy(square))
    assert len({bridge.describe(other) for other in others}) == len(others)
    assert repr(described) == "TensorDescription(numpy, float64 [2, 3], cpu)"
    array.flags.writeable = False
    assert repr(bridge.describe(array.T)) == "TensorDescription(numpy, float64 [3, 2], cpu, strided, read-only)"
    assert "requires grad" in repr(bridge.describe(torch.ones(1, requires_grad=True)))


def test_is_tensor_knows_tensors_from_other_things(bridge):
    with Simulator(1) as sim:
        for tensor in (torch.ones(1), np.ones(1), np.ma.ones(1), make_fake(), sim.actions):
            assert bridge.is_tensor(tensor)
    for other in (None, 1, "text", [1], torch.Tensor, np.float64(1), object(), torch, b"bytes", range(3)):
        assert not bridge.is_tensor(other)


# ---- PyTorch without what makes it fast


def test_without_the_exchange_api_or_the_layout_results_are_the_same_and_a_warning_comes_once(monkeypatch):
    class Old(torch.Tensor):
        __dlpack_c_exchange_api__ = None

    class Unknown(torch.Tensor):
        pass

    made = torch.arange(6.0).reshape(2, 3)
    for cls in (Old, Unknown):
        monkeypatch.setattr(types, "_warned", False)
        with pytest.warns(RuntimeWarning, match="exchange API") as warned:
            described = interop.describe(made.T.as_subclass(cls))
        assert len(warned) == 1
        assert described == interop.describe(made.T)
        refuses("negative bit", interop.describe, torch._neg_view(made).as_subclass(cls))
        refuses("conjugate bit", interop.describe, made.to(torch.complex64).conj().as_subclass(cls))
        assert (interop.zeros_like(made.T.as_subclass(cls)) == torch.zeros(3, 2)).all()
        monkeypatch.setattr(types, "torch_layout", lambda: None)


def test_a_pytorch_that_answers_differently_has_no_layout():
    def keys_are(raw):
        internals = SimpleNamespace(**vars(torch._C))
        internals._dispatch_keys = lambda tensor: SimpleNamespace(raw_repr=lambda: raw(tensor))
        return SimpleNamespace(**{**vars(torch), "_C": internals})

    def true_keys(tensor):
        return int(torch._C._dispatch_keys(tensor).raw_repr())

    assert find_torch_layout(keys_are(true_keys)) == find_torch_layout(torch) is not None
    assert find_torch_layout(keys_are(lambda tensor: 12345678987654321)) is None  # not to be found anywhere
    assert find_torch_layout(keys_are(lambda tensor: true_keys(tensor) ^ tensor.is_neg())) is None
    assert find_torch_layout(SimpleNamespace(_C=torch._C)) is None


@needs_builtins
def test_what_is_switched_on_when_the_first_tensor_is_met_makes_no_difference(run_python):
    program = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch's own, and of forks
import torch
from torch._subclasses import FakeTensorMode
from doorstep import interop
from doorstep._tensors import callbacks
from doorstep._tensors.types import TensorKind, find_tensor_type
plain, met = torch.ones(3), []

def look(inside=None):
    met.append(interop.describe(plain))
    return None if inside is None else inside.sum()

def within(mode):
    with mode:
        look()

modes = [
    lambda: within(torch.inference_mode()), lambda: within(FakeTensorMode()), lambda: within(torch.device("meta")),
    lambda: torch.func.grad(look)(torch.ones(3)), lambda: torch.func.functionalize(look)(torch.ones(3)),
]
for mode in modes:
    child = os.fork()
    if child == 0:
        mode()
        assert find_tensor_type(torch.Tensor).kind == TensorKind.TORCH
        del callbacks.read  # from now on only native code reads
        assert met == [interop.describe(plain)]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    run_python(program)


# ---- Many types, many threads


@needs_builtins
def test_more_types_than_are_kept_are_read_all_the_same_and_a_library_s_own_find_a_place(run_python):
    program = """
import numpy as np, torch
from doorstep import interop
from doorstep._tensors import callbacks
for i in range(300):  # more than there are places
    assert interop.describe(np.ones(3).view(type("T", (np.ndarray,), {}))).shape == (3,)
    assert not interop.is_tensor(type("O", (), {})())
tensors = [np.ones(1), torch.ones(1), torch.nn.Parameter(torch.ones(1))]
said = interop.describe_many(tensors)
assert [one.library for one in said] == ["numpy", "torch", "torch"]
del callbacks.examine_type  # from now on only what is kept is known
assert interop.describe_many(tensors) == said
"""
    run_python(program)


def test_torch_is_never_imported_for_what_is_not_its_own(run_python):
    program = """
import sys, numpy, doorstep.interop as interop
interop.describe(numpy.zeros(3)), interop.is_tensor(5), interop.zeros_like(numpy.zeros(3))
assert not {"torch", "jax"} & sys.modules.keys()
"""
    run_python(program)


def test_threads_read_at_once():
    def read(i):
        tensor = torch.full((i + 1, 2), float(i))
        for _ in range(200):
            assert interop.describe(tensor).shape == (i + 1, 2)
            refuses("negative", interop.describe, torch._neg_view(tensor))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(read, range(8)))


# ---- Copies between tensors and raw addresses, and streams


def test_a_copy_into_a_tensor_that_requires_grad_is_not_seen_by_autograd(bridge):
    parameter, source = torch.nn.Parameter(torch.zeros(3)), np.array([1, 2, 3], np.float32)
    bridge.copy_from_pointer(parameter, source.ctypes.data, 12)
    assert (parameter.tolist(), parameter.requires_grad, parameter.grad_fn) == ([1, 2, 3], True, None)
    for empty in (torch.zeros(0, 3), np.zeros((3, 0))):
        bridge.copy_to_pointer(empty, 0, 0)
        bridge.copy_from_pointer(empty, 0, 0)


def test_bad_copies_are_refused_and_change_nothing(bridge):
    target, fours = np.full(64, 0xA5, np.uint8), torch.ones(4)
    address = target.ctypes.data
    with Simulator(2) as sim:
        for name, tensor, pointer, nbytes, words in (
            ("copy_to_pointer", fours, address, 15, "nbytes is 15; it must be 16"),
            ("copy_from_pointer", fours, address, 17, "nbytes is 17; it must be 16"),
            ("copy_to_pointer", fours, 0, 16, "pointer is null"),
            ("copy_to_pointer", fours, -1, 16, "pointer is -1"),
            ("copy_to_pointer", fours, address, -16, "nbytes is -16"),
            ("copy_to_pointer", fours, "here", 16, "pointer is 'here'"),
            ("copy_from_pointer", sim.rewards, address, 16, "read-only"),
            ("copy_from_pointer", torch.ones(1).expand(4), address, 16, "share memory"),
            ("copy_from_pointer", torch.ones(2, 1).expand(2, 2), address, 16, "share memory"),
            ("copy_from_pointer", torch.ones(2).expand(2, 2), address, 16, "share memory"),
            ("copy_to_pointer", "text", address, 16, "no tensor"),
        ):
            refuses(words, getattr(bridge, name), tensor, pointer, nbytes)
    assert (target == 0xA5).all()
    assert (fours == 1).all()


def test_the_stream_of_the_cpu_is_0_and_what_a_library_does_not_tell_is_an_error(bridge):
    jax = pytest.importorskip("jax")
    for tensor in (torch.ones(2), np.ones(2), jax.numpy.ones(2)):
        assert bridge.current_stream(tensor) == 0
    refuses("does not tell", bridge.current_stream, np.ones(2), 0, error=DeviceError)
    refuses("device_index is -1", bridge.current_stream, torch.ones(2), -1)
    refuses("no tensor", bridge.current_stream, 5)
    if not torch.backends.cuda.is_built():
        assert bridge.current_stream(torch.ones(2), 0) == 0


def test_references_and_memory_are_as_before(run_python):
    run_python("import torch\nfrom tests.interop.soak_bridge import soak\nsoak(20_000, 3_000)")
