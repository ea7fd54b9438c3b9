"""Reading tensors: what is said of them is what their libraries say, and what cannot be read in place is refused."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.conftest import RunPython
from tests.interop.bridges import bridge, take_way

from doorstep import ArgumentError, Simulator, interop
from doorstep._native._generated import PythonTensor
from doorstep._native.foreign_tensor import ELEMENT_TYPES
from doorstep._native.object_layout import find_torch_layout
from doorstep._tensors import callbacks, types

torch: Any = pytest.importorskip("torch")
needs_builtins = pytest.mark.skipif(interop._calls is None, reason="fast calls are off")
__all__ = ["bridge"]

# What PyTorch says of kinds of tensors that it means to give up.
pytestmark = pytest.mark.filterwarnings("ignore:.*(quantize|nested tensors|CSR|ComplexHalf|torch.jit.script)")

NUMPY_DTYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NUMPY_DTYPES += ["float16", "float32", "float64", "complex64", "complex128", "bool"]

TORCH_DTYPES = ("int64", "bfloat16", "bool", "complex64", "float8_e4m3fn", "float8_e5m2")

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda made: made,
    "transposed": lambda made: made.T,
    "every other": lambda made: made[:, ::2],
    "one row": lambda made: made[1],
    "one element": lambda made: made[1, 1],
    "nothing": lambda made: made[:0],
    "shifted": lambda made: made[2:, 1:],
}


class Subclass(torch.Tensor):  # type: ignore[misc]
    pass


def torch_zoo() -> dict[str, Any]:
    """Tensors of PyTorch that can be read."""
    made = torch.arange(20, dtype=torch.float32).reshape(4, 5)
    leaf = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        inferred = torch.ones(2, 3)
    return {
        **{name: layout(made) for name, layout in LAYOUTS.items() if name != "one element"},
        **{name: torch.zeros(2, dtype=getattr(torch, name)) for name in TORCH_DTYPES},
        "no dimension": torch.tensor(3.0),
        "expanded": torch.ones(1, 4).expand(3, 4),
        "leaf": leaf,
        "result": leaf * 2,
        "detached": leaf.detach(),
        "parameter": torch.nn.Parameter(made),
        "frozen": torch.nn.Parameter(made, requires_grad=False),
        "subclass": made.as_subclass(Subclass),
        "subclass with grad": torch.Tensor._make_subclass(Subclass, made, True),
        "inferred": inferred,
        "empty": torch.zeros(0, 3),
        "sixteen dimensions": torch.ones((1, 2) * 8),
    }


ZOO = torch_zoo()


@pytest.mark.parametrize("name", ZOO)
def test_a_torch_tensor_is_what_its_attributes_say(bridge: ModuleType, name: str) -> None:
    tensor = ZOO[name]
    described = bridge.describe(tensor)
    assert described.pointer == (tensor.data_ptr() if tensor.numel() else 0)
    assert described.shape == tuple(tensor.shape)
    assert described.strides == tensor.stride()
    assert described.dtype == str(tensor.dtype).removeprefix("torch.")
    assert (described.device, described.library) == ("cpu", "torch")
    assert (described.size, described.itemsize) == (tensor.numel(), tensor.element_size())
    assert described.nbytes == tensor.numel() * tensor.element_size()
    assert described.contiguous == tensor.is_contiguous()
    assert described.requires_grad == tensor.requires_grad
    assert not described.readonly


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_is_what_its_attributes_say(bridge: ModuleType, dtype: str, layout: str) -> None:
    array = np.asarray(LAYOUTS[layout](np.ones((4, 5), dtype)))
    described = bridge.describe(array)
    assert described.pointer == (array.ctypes.data if array.size else 0)
    assert described.shape == array.shape
    assert tuple(stride * array.itemsize for stride in described.strides) == array.strides
    assert (described.dtype, described.device, described.library) == (dtype, "cpu", "numpy")
    assert (described.size, described.itemsize, described.nbytes) == (array.size, array.itemsize, array.nbytes)
    assert described.contiguous == array.flags.c_contiguous
    assert not described.readonly
    assert not described.requires_grad


def test_arrays_tell_that_they_are_read_only_or_run_backwards(bridge: ModuleType) -> None:
    array = np.arange(6.0)
    array.flags.writeable = False
    assert bridge.describe(array).readonly
    backwards = np.arange(6.0)[::-1]
    described = bridge.describe(backwards)
    assert (described.strides, described.pointer, described.contiguous) == ((-1,), backwards.ctypes.data, False)


def test_tensors_of_a_simulator_are_read_in_place(bridge: ModuleType) -> None:
    with Simulator(2) as sim:
        rewards, actions = bridge.describe(sim.rewards), bridge.describe(sim.actions)
        assert rewards.pointer == sim.rewards.to_numpy().ctypes.data
        assert (rewards.dtype, rewards.shape) == ("float32", (2, 2, 1))
        assert (rewards.readonly, rewards.library) == (True, "doorstep")
        assert (actions.dtype, actions.readonly) == ("int32", False)
        positions = bridge.describe(sim.state.body_positions)
        assert not positions.contiguous
        assert tuple(4 * stride for stride in positions.strides) == sim.state.body_positions.strides


def test_tensors_of_jax_are_read_in_place_and_read_only(bridge: ModuleType) -> None:
    jax = pytest.importorskip("jax")
    array = jax.numpy.arange(6.0).reshape(2, 3)
    described = bridge.describe(array)
    assert described.pointer == array.unsafe_buffer_pointer()
    assert (described.dtype, described.shape, described.library) == ("float32", (2, 3), "jax")
    assert described.readonly
    half = jax.numpy.ones(3, jax.numpy.bfloat16)
    assert bridge.describe(half).dtype == "bfloat16"
    assert bridge.describe(np.ones(3, half.dtype)).dtype == "bfloat16"  # a numpy array of JAX's type
    array.delete()
    with pytest.raises(ArgumentError, match="cannot be read in place"):
        bridge.describe(array)
    with pytest.raises(ArgumentError):
        jax.jit(lambda traced: bridge.describe(traced))(half)


def test_arrays_of_warp_are_read_in_place(bridge: ModuleType) -> None:
    warp = pytest.importorskip("warp")
    array = warp.zeros((2, 3), dtype=warp.float32, device="cpu")
    described = bridge.describe(array)
    assert (described.pointer, described.dtype, described.shape) == (array.ptr, "float32", (2, 3))
    assert described.library == "warp"


# ---- Refusals ----


def make_fake() -> Any:
    with torch._subclasses.FakeTensorMode():
        return torch.zeros(3)


class Wrapper(torch.Tensor):  # type: ignore[misc]
    """A tensor without memory of its own."""

    @staticmethod
    def __new__(cls, like: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError


def resized(tensor: Any, nbytes: int) -> Any:
    interop.describe(tensor)  # with this its kind is known
    tensor.untyped_storage().resize_(nbytes)
    return tensor


def cut_record() -> Any:
    return np.zeros(3, np.dtype([("a", "u1"), ("b", "f4")]))["b"]


REFUSED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "no tensor": (lambda: [1.0, 2.0], "a list, which is no tensor", "__dlpack__"),
    "number": (lambda: 5, "no tensor", "__dlpack__"),
    "class": (lambda: torch.Tensor, "no tensor", "__dlpack__"),
    "numpy scalar": (lambda: np.float32(1), "no tensor", "__dlpack__"),
    "fake": (make_fake, "fake tensor", "real one"),
    "empty fake": (lambda: make_fake()[:0], "fake tensor", "real one"),
    "meta": (lambda: torch.zeros(2, device="meta"), "meta device", "real device"),
    "sparse": (lambda: torch.eye(3).to_sparse(), "sparse_coo", "to_dense"),
    "sparse rows": (lambda: torch.eye(3).to_sparse_csr(), "sparse_csr", "to_dense"),
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
    "dates": (lambda: np.array(["2020-01-01"], "M8[D]"), "datetime64", "plain numbers"),
    "objects": (lambda: np.array([None]), "array of object", "plain numbers"),
    "records": (lambda: np.zeros(3, [("a", "f4")]), "array of", "plain numbers"),
    "foreign byte order": (lambda: np.zeros(3, ">f4"), "array of >f4", "byte order"),
    "long double": (lambda: np.zeros(3, np.longdouble), "array of", "plain numbers"),
    "cut records": (cut_record, "parts of elements", "copy"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_lie_in_memory_as_described_is_refused(bridge: ModuleType, name: str) -> None:
    make, words, hint = REFUSED[name]
    tensor = make()
    with pytest.raises(ArgumentError, match=words) as caught:
        bridge.describe(tensor)
    assert caught.value.argument == "tensor"
    assert hint in caught.value.hint
    with pytest.raises(ArgumentError, match=rf"^tensors\[1\] is .*{words}") as caught:
        bridge.describe_many([torch.ones(2), tensor])
    for function in (bridge.signature, bridge.empty_like, bridge.zeros_like):
        with pytest.raises(ArgumentError, match=words):
            function(tensor)
    with pytest.raises(ArgumentError, match=words):
        bridge.copy_to_pointer(tensor, 8, 8)


@pytest.mark.parametrize("module", ["numpy.ma", "torch", "torch._subclasses.fake_tensor"])
def test_a_library_that_another_thread_imports_at_this_moment_is_not_asked(
    bridge: ModuleType, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    class Fresh(np.ndarray):  # whose kind is not known yet
        pass

    class Masked(np.ma.MaskedArray):
        pass

    class Capsules:  # read in Python
        def __init__(self, array: Any) -> None:
            self.__dlpack_device__ = array.__dlpack_device__

        def __dlpack__(self, **options: Any) -> Any:
            return array.__dlpack__()

    array, tensor, masked = np.ones(2), torch.nn.Parameter(torch.ones(2)), Masked([1, 2])
    if module == "numpy.ma":
        monkeypatch.delattr(np, "ma")
    fresh, capsules = array.view(Fresh), Capsules(array)
    monkeypatch.setitem(sys.modules, module, ModuleType(module))
    readable = (fresh, capsules) if module == "torch" else (fresh, capsules, tensor)
    assert {bridge.describe(value).shape for value in readable} == {(2,)}
    with pytest.raises(ArgumentError, match="masked array"):
        bridge.describe(masked)


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp", "functionalize"])
def test_tensors_within_transforms_are_refused(bridge: ModuleType, transform: str) -> None:
    def body(inside: Any) -> Any:
        with pytest.raises(ArgumentError, match=r"torch\.func|without memory"):
            bridge.describe(inside)
        return inside.sum()

    ones = torch.ones(3)
    calls = {
        "vmap": lambda: torch.vmap(body)(torch.ones(2, 3)),
        "grad": lambda: torch.func.grad(body)(ones),
        "jvp": lambda: torch.func.jvp(body, (ones,), (ones,)),
        "functionalize": lambda: torch.func.functionalize(body)(ones),
    }
    calls[transform]()


def test_a_class_that_watches_its_attributes_is_not_asked(bridge: ModuleType) -> None:
    class Watching(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, *arguments: Any) -> Any:
            raise RuntimeError("code of a user has run")

    made = torch.ones(2, 3)
    for requires_grad in (False, True):
        watching = torch.Tensor._make_subclass(Watching, made, requires_grad)
        described = bridge.describe(watching)
        assert (described.pointer, described.requires_grad) == (made.data_ptr(), requires_grad)


# ---- Both ways ----


def test_both_ways_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [np.asarray(layout(np.ones((4, 5), dtype))) for dtype in NUMPY_DTYPES for layout in LAYOUTS.values()]
    tensors = [*ZOO.values(), *arrays]
    said = {}
    for way in ("native", "python"):
        with monkeypatch.context() as context:
            module = take_way(way, context)
            said[way] = [(module.describe(t), repr(module.describe(t)), module.signature(t)) for t in tensors]
            assert module.describe_many(tensors) == tuple(row[0] for row in said[way])
    for native, python in zip(said["native"], said["python"], strict=True):
        assert native == python
        assert hash(native[0]) == hash(python[0])
        assert type(native[0]) is not type(python[0])


def test_native_names_are_those_of_the_table() -> None:
    if interop._calls is None:
        pytest.skip("fast calls are off")
    names = [name for name in ELEMENT_TYPES if hasattr(torch, name)]
    assert len(names) > 18
    assert [interop.describe(torch.empty(1, dtype=getattr(torch, name))).dtype for name in names] == names
    pairs = torch.empty(1, dtype=torch.float4_e2m1fn_x2)
    described = interop.describe(pairs)
    assert (described.dtype, described.itemsize) == ("float4_e2m1fn_x2", 1)


def test_descriptions_do_not_change(bridge: ModuleType) -> None:
    array, other = np.zeros((2, 3)), np.zeros((2, 3))
    described = bridge.describe(array)
    assert described == bridge.describe(array)
    assert isinstance(described, interop.TensorDescription)
    for name in ("shape", "pointer", "something"):
        with pytest.raises(AttributeError):
            setattr(described, name, (1,))
    assert described != bridge.describe(other)  # elsewhere
    assert described != "something else"
    assert repr(described) == "TensorDescription(numpy, float64 [2, 3], cpu)"


def test_builtins_are_documented_as_the_functions_they_stand_for() -> None:
    if interop._calls is None:
        pytest.skip("fast calls are off")
    for name, function in interop.__test__.items():
        first = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
        assert (interop._calls[name].__doc__ or "").strip() == first


def test_is_tensor_knows_tensors_from_other_things(bridge: ModuleType) -> None:
    with Simulator(1) as sim:
        for tensor in (torch.ones(1), np.ones(1), np.ma.ones(1), make_fake(), sim.actions):
            assert bridge.is_tensor(tensor)
    for other in (None, 1, "text", [1], torch.Tensor, np.float64(1), object(), torch, b"bytes", range(3)):
        assert not bridge.is_tensor(other)


def test_a_signature_says_what_decides(bridge: ModuleType) -> None:
    made = torch.ones(4, 5)
    assert bridge.signature(made) == "[torch,D2,Sfloat32,cpu,4x5]"
    assert bridge.signature(made.t()) == "[torch,D2,Sfloat32,cpu,5x4,strided]"
    assert bridge.signature(torch.nn.Parameter(made)) == "[torch,D2,Sfloat32,cpu,4x5,grad]"
    assert bridge.signature(torch.tensor(1)) == "[torch,D0,Sint64,cpu,]"
    array = np.ones((1, 1234567, 0), np.uint8)
    array.flags.writeable = False
    assert bridge.signature(array) == "[numpy,D3,Suint8,cpu,1x1234567x0,readonly]"
    assert len({bridge.signature(tensor) for tensor in (made, made.double(), made[:3], made[None], made.numpy())}) == 5


# ---- PyTorch without what makes it fast ----


@pytest.fixture
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(types, "_warned", False)


@pytest.mark.usefixtures("unwarned")
def test_without_the_exchange_api_results_are_the_same_and_a_warning_comes_once() -> None:
    class Old(torch.Tensor):  # type: ignore[misc]
        __dlpack_c_exchange_api__ = None

    made = torch.arange(6.0).reshape(2, 3)
    old = made.T.as_subclass(Old)
    with pytest.warns(RuntimeWarning, match="exchange API") as warned:
        described = interop.describe(old)
    assert len(warned) == 1
    assert described == interop.describe(made.T)
    with pytest.raises(ArgumentError, match="negative bit"):
        interop.describe(torch._neg_view(made).as_subclass(Old))
    assert (interop.zeros_like(old) == torch.zeros(3, 2)).all()


@pytest.mark.usefixtures("unwarned")
def test_without_the_layout_results_are_the_same_and_a_warning_comes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unknown(torch.Tensor):  # type: ignore[misc]
        pass

    monkeypatch.setattr(types, "torch_layout", lambda: None)
    made = torch.arange(6.0).reshape(2, 3)
    with pytest.warns(RuntimeWarning, match="exchange API"):
        described = interop.describe(made.as_subclass(Unknown))
    assert described == interop.describe(made)
    with pytest.raises(ArgumentError, match="conjugate bit"):
        interop.describe(made.to(torch.complex64).conj().as_subclass(Unknown))


def test_the_layout_is_found_on_this_pytorch() -> None:
    assert find_torch_layout(torch) is not None


def test_a_pytorch_that_answers_differently_has_no_layout() -> None:
    def keys_are(raw: Callable[[Any], int]) -> Any:
        internals = SimpleNamespace(**vars(torch._C))
        internals._dispatch_keys = lambda tensor: SimpleNamespace(raw_repr=lambda: raw(tensor))
        return SimpleNamespace(**{**vars(torch), "_C": internals})

    def true_keys(tensor: Any) -> int:
        return int(torch._C._dispatch_keys(tensor).raw_repr())

    assert find_torch_layout(keys_are(true_keys)) == find_torch_layout(torch)
    assert find_torch_layout(keys_are(lambda tensor: 12345678987654321)) is None  # not to be found anywhere
    assert find_torch_layout(keys_are(lambda tensor: true_keys(tensor) ^ tensor.is_neg())) is None
    assert find_torch_layout(SimpleNamespace(_C=torch._C)) is None


MODES = {
    "no grad": "with torch.no_grad(): look()",
    "inference": "with torch.inference_mode(): look()",
    "fake": "with torch._subclasses.FakeTensorMode(): look()",
    "default device": "with torch.device('meta'): look()",
    "vmap": "torch.vmap(look)(torch.ones(2, 3))",
    "grad": "torch.func.grad(look)(torch.ones(3))",
    "jvp": "torch.func.jvp(look, (torch.ones(3),), (torch.ones(3),))",
    "functionalize": "torch.func.functionalize(look)(torch.ones(3))",
}


@needs_builtins
@pytest.mark.parametrize("mode", MODES)
def test_what_is_switched_on_when_the_first_tensor_is_met_makes_no_difference(
    mode: str, run_python: RunPython
) -> None:
    program = (
        "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"  # PyTorch's own
        "import torch\n"
        "from doorstep import interop\n"
        "from doorstep._tensors import callbacks\n"
        "from doorstep._tensors.types import TensorKind, find_tensor_type\n"
        "plain, met = torch.ones(3), []\n"
        "def look(inside=None):\n"
        "    met.append(interop.describe(plain))\n"
        "    return None if inside is None else inside.sum()\n"
        f"{MODES[mode]}\n"
        "assert find_tensor_type(torch.Tensor).kind == TensorKind.TORCH\n"
        "del callbacks.read\n"  # from now on only native code reads
        "assert met == [interop.describe(plain)]\n"
    )
    run_python(program)


def test_torch_is_never_imported_for_what_is_not_its_own(run_new_python: RunPython) -> None:
    program = (
        "import sys, numpy, doorstep.interop as interop\n"
        "interop.describe(numpy.zeros(3)), interop.is_tensor(5), interop.zeros_like(numpy.zeros(3))\n"
        "assert not {'torch', 'jax'} & sys.modules.keys()\n"
        "import torch\n"
        "assert interop.describe(torch.zeros(3)).library == 'torch'\n"
    )
    run_new_python(program)


def test_what_a_storage_still_holds_is_read(bridge: ModuleType) -> None:
    made = resized(torch.zeros(10), 24)
    assert bridge.describe(made[2:6]).shape == (4,)
    assert bridge.describe(made[1:6:2]).strides == (2,)
    assert bridge.describe(made[:0]).size == 0


def test_a_tensor_without_elements_vouches_for_no_other() -> None:
    view = PythonTensor()
    for tensor, vouches in ((torch.ones(2), True), (torch.ones(0), False), (torch.ones(3, 0), False)):
        assert callbacks.read(tensor, ctypes.addressof(view), "tensor", True, False, 0) is vouches
        assert view.count == tensor.numel()


def test_an_array_that_exports_itself_otherwise_is_read_by_its_attributes(bridge: ModuleType) -> None:
    class Exporting(np.ndarray[Any, Any]):
        def __buffer__(self, flags: int) -> memoryview:
            return memoryview(bytearray(5))

    array = np.arange(6.0).reshape(2, 3).view(Exporting)
    described = bridge.describe(array)
    assert (described.pointer, described.shape, described.dtype) == (array.ctypes.data, (2, 3), "float64")


# ---- Many types, many threads ----


def test_more_types_than_are_kept_are_read_all_the_same() -> None:
    for i in range(700):
        tensor_class = type(f"Tensor{i}", (np.ndarray,), {})
        assert interop.describe(np.ones(3).view(tensor_class)).shape == (3,)
        assert not interop.is_tensor(type(f"Other{i}", (), {})())
    assert interop.describe(torch.ones(2)).library == "torch"
    assert interop.is_tensor(np.ones(2))


@needs_builtins
def test_a_library_s_own_types_find_a_place_after_any_number_of_others(run_python: RunPython) -> None:
    program = (
        "import numpy as np, torch\n"
        "from doorstep import interop\n"
        "from doorstep._tensors import callbacks\n"
        "for i in range(1000):\n"
        "    interop.describe(np.ones(3).view(type('T', (np.ndarray,), {})))\n"
        "    interop.is_tensor(type('O', (), {})())\n"
        "tensors = [np.ones(1), torch.ones(1), torch.nn.Parameter(torch.ones(1))]\n"
        "said = interop.describe_many(tensors)\n"
        "del callbacks.examine_type\n"  # from now on only what is kept is known
        "assert interop.describe_many(tensors) == said\n"
    )
    run_python(program)


def test_threads_read_at_once() -> None:
    tensors = [torch.full((i + 1, 2), float(i)) for i in range(8)]
    errors: list[BaseException] = []

    def read(i: int) -> None:
        try:
            for _ in range(300):
                assert interop.describe(tensors[i]).shape == (i + 1, 2)
                with pytest.raises(ArgumentError, match="negative"):
                    interop.describe(torch._neg_view(tensors[i]))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
