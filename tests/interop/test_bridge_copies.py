"""Copies between tensors and raw addresses, and new tensors like old ones."""

from __future__ import annotations

import itertools
import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.interop.bridges import bridge

from doorstep import ArgumentError, DeviceError, Simulator
from doorstep._native import fast_calls

torch: Any = pytest.importorskip("torch")
__all__ = ["bridge"]

GUARD = 64
DTYPES = ("uint8", "int16", "float32", "float64", "complex128")


def random_views(dtype: str, count: int) -> list[NDArray[Any]]:
    """Views of random numbers: permuted, cut, skipping, backwards, with dimensions of one."""
    random_numbers, generator = random.Random(dtype), np.random.default_rng(1)
    views = []
    for _ in range(count):
        shape = [random_numbers.choice((1, 2, 3, 5)) for _ in range(random_numbers.randrange(1, 6))]
        view = generator.integers(0, 100, shape).astype(dtype)
        view = view.transpose(random_numbers.sample(range(len(shape)), len(shape)))
        for axis in range(view.ndim):
            step = random_numbers.choice((1, 1, 2, -1, -2))
            cut = slice(None, None, step) if random_numbers.random() < 0.7 else slice(1, None, abs(step))
            view = view[(slice(None),) * axis + (cut,)]
        views.append(view)
    return views


def guarded(nbytes: int) -> NDArray[np.uint8]:
    return np.full(nbytes + 2 * GUARD, 0xA5, np.uint8)


def check_guards(target: NDArray[np.uint8]) -> None:
    assert (target[:GUARD] == 0xA5).all()
    assert (target[-GUARD:] == 0xA5).all()


def test_tensors_are_packed_one_behind_the_other() -> None:
    """By the builtin that copies the weights of policies."""
    calls = fast_calls()
    if calls is None:
        pytest.skip("fast calls are off")
    pack = calls["pack"]
    tensors = [torch.arange(3.0), torch.arange(6).reshape(2, 3).T, torch.ones(2, dtype=torch.bfloat16), np.ones(0)]
    expected = b"".join(tensor.contiguous().view(torch.uint8).numpy().tobytes() for tensor in tensors[:3])
    target = guarded(len(expected))
    assert pack(tensors, target.ctypes.data + GUARD, len(expected)) == 0
    check_guards(target)
    assert target[GUARD:-GUARD].tobytes() == expected
    assert pack(tensors[:1], target.ctypes.data + GUARD, 20) == 8
    before = target.copy()
    for bad in ([torch.zeros(3)] * 2, [torch.zeros(3, device="meta")], [3.0]):
        with pytest.raises(ArgumentError):
            pack(bad, target.ctypes.data + GUARD, 12)
    with pytest.raises(TypeError):
        pack(tensors, 0)
    assert (target[:GUARD] == before[:GUARD]).all()
    check_guards(target)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_strides_are_copied_out_and_in(bridge: ModuleType, dtype: str) -> None:
    views = random_views(dtype, 60)
    assert any(not view.flags.c_contiguous for view in views)
    for view in views:
        target = guarded(view.nbytes)
        bridge.copy_to_pointer(view, target.ctypes.data + GUARD, view.nbytes)
        check_guards(target)
        assert target[GUARD : GUARD + view.nbytes].tobytes() == view.tobytes()  # in row-major order
        whole = view.base if view.base is not None else view
        between = whole.copy()
        fresh = np.ascontiguousarray(view + np.asarray(1, dtype))
        bridge.copy_from_pointer(view, fresh.ctypes.data, fresh.nbytes)
        assert (view == fresh).all()
        view -= np.asarray(1, dtype)
        assert (whole == between).all()  # nothing else has changed


def test_torch_tensors_of_any_strides_are_copied(bridge: ModuleType) -> None:
    made = torch.arange(120, dtype=torch.int64).reshape(2, 3, 4, 5)
    for axes in itertools.permutations(range(4)):
        for view in (made.permute(axes), made.permute(axes)[:, 1:, ::2], made.permute(axes)[0:1]):
            target = np.zeros(view.numel(), np.int64)
            bridge.copy_to_pointer(view, target.ctypes.data, target.nbytes)
            assert (target == view.reshape(-1).numpy()).all()
            bridge.copy_from_pointer(view, target.ctypes.data, target.nbytes)
    assert (made == torch.arange(120).reshape(2, 3, 4, 5)).all()
    expanded = torch.tensor([1, 2]).expand(3, 2)
    target = np.zeros(6, np.int64)
    bridge.copy_to_pointer(expanded, target.ctypes.data, 48)
    assert target.tolist() == [1, 2, 1, 2, 1, 2]


def test_a_copy_into_a_tensor_that_requires_grad_is_not_seen_by_autograd(bridge: ModuleType) -> None:
    parameter = torch.nn.Parameter(torch.zeros(3))
    source = np.array([1, 2, 3], np.float32)
    bridge.copy_from_pointer(parameter, source.ctypes.data, 12)
    assert parameter.tolist() == [1, 2, 3]
    assert parameter.requires_grad
    assert parameter.grad_fn is None


def test_nothing_is_copied_for_no_elements(bridge: ModuleType) -> None:
    for empty in (torch.zeros(0, 3), np.zeros((3, 0))):
        bridge.copy_to_pointer(empty, 0, 0)
        bridge.copy_from_pointer(empty, 0, 0)


def test_bad_copies_are_refused_and_change_nothing(bridge: ModuleType) -> None:
    target = guarded(16)
    address = target.ctypes.data
    fours = torch.ones(4)
    frozen = np.ones(4, np.float32)
    frozen.flags.writeable = False
    with Simulator(2) as sim:
        refused: list[tuple[str, Any, Any, int, str]] = [
            ("copy_to_pointer", fours, address, 15, "nbytes is 15; it must be 16"),
            ("copy_from_pointer", fours, address, 17, "nbytes is 17; it must be 16"),
            ("copy_to_pointer", fours, 0, 16, "pointer is null"),
            ("copy_to_pointer", fours, -1, 16, "pointer is -1"),
            ("copy_to_pointer", fours, address, -16, "nbytes is -16"),
            ("copy_to_pointer", fours, "here", 16, "pointer is 'here'"),
            ("copy_from_pointer", frozen, address, 16, "read-only"),
            ("copy_from_pointer", sim.rewards, address, 16, "read-only"),
            ("copy_from_pointer", torch.ones(1).expand(4), address, 16, "share memory"),
            ("copy_to_pointer", torch.empty(4, dtype=torch.float4_e2m1fn_x2)[:0].view(0), address, 4, "nbytes"),
            ("copy_to_pointer", "text", address, 16, "no tensor"),
        ]
        for name, tensor, pointer, nbytes, words in refused:
            with pytest.raises(ArgumentError, match=words):
                getattr(bridge, name)(tensor, pointer, nbytes)
    assert (target == 0xA5).all()
    assert (fours == 1).all()
    assert (frozen == 1).all()


def test_large_copies_are_right(bridge: ModuleType) -> None:
    made = torch.arange(3_000_000, dtype=torch.int32).reshape(1000, 3000)
    target = np.zeros((3000, 1000), np.int32)
    bridge.copy_to_pointer(made.t(), target.ctypes.data, target.nbytes)
    assert (target == made.t().numpy()).all()


# ---- New tensors ----


def test_new_torch_tensors_are_like_the_old_ones(bridge: ModuleType) -> None:
    olds = [
        torch.ones(4, 5).t(),
        torch.nn.Parameter(torch.ones(3)),
        torch.ones((), dtype=torch.bfloat16),
        torch.ones(0, 3, dtype=torch.bool),
        torch.ones(2, 3, 4, dtype=torch.complex64)[:, ::2],
        torch.ones(7, dtype=torch.uint8).expand(3, 7),
    ]
    for old in olds:
        for new in (bridge.empty_like(old), bridge.zeros_like(old)):
            assert type(new) is torch.Tensor
            assert (new.shape, new.dtype, new.device) == (old.shape, old.dtype, old.device)
            assert new.is_contiguous()
            assert not new.requires_grad
        assert (new == 0).all()
        new.fill_(1)  # it is a tensor like any other
        assert new.numel() == 0 or new.data_ptr() != old.data_ptr()


def test_new_tensors_of_other_libraries(bridge: ModuleType) -> None:
    array = np.ones((4, 3), np.int16).T
    zeros = bridge.zeros_like(array)
    assert (zeros.shape, zeros.dtype, zeros.flags.c_contiguous, int(zeros.sum())) == ((3, 4), np.int16, True, 0)
    assert bridge.empty_like(array).shape == (3, 4)
    jax = pytest.importorskip("jax")
    made = bridge.zeros_like(jax.numpy.ones((2, 3), jax.numpy.bfloat16))
    assert isinstance(made, jax.Array)
    assert (made.shape, str(made.dtype), float(made.sum())) == ((2, 3), "bfloat16", 0.0)


def test_a_library_that_makes_no_tensors_is_told(bridge: ModuleType) -> None:
    with Simulator(1) as sim, pytest.raises(ArgumentError, match="has no standard way to make tensors"):
        bridge.zeros_like(sim.actions)


# ---- Streams ----


def test_the_cpu_has_stream_0(bridge: ModuleType) -> None:
    jax = pytest.importorskip("jax")
    for tensor in (torch.ones(2), np.ones(2), jax.numpy.ones(2)):
        assert bridge.current_stream(tensor) == 0


def test_a_stream_that_a_library_does_not_tell_is_an_error(bridge: ModuleType) -> None:
    with pytest.raises(DeviceError, match="does not tell"):
        bridge.current_stream(np.ones(2), 0)
    with pytest.raises(ArgumentError, match="device_index is -1"):
        bridge.current_stream(torch.ones(2), -1)
    with pytest.raises(ArgumentError, match="no tensor"):
        bridge.current_stream(5)
    if not torch.backends.cuda.is_built():
        assert bridge.current_stream(torch.ones(2), 0) == 0
