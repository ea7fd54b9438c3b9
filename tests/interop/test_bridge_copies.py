"""Copies between tensors and raw addresses, new tensors like old ones, and streams; layouts are in test_exchange.py."""

import numpy as np
import pytest
from tests.refuses import refuses

from doorstep import DeviceError, Simulator
from doorstep._native import fast_calls

torch = pytest.importorskip("torch")

GUARD = 64


def guarded(nbytes):
    return np.full(nbytes + 2 * GUARD, 0xA5, np.uint8)


def check_guards(target):
    assert (target[:GUARD] == 0xA5).all()
    assert (target[-GUARD:] == 0xA5).all()


@pytest.mark.skipif(fast_calls() is None, reason="fast calls are off")
def test_tensors_are_packed_one_behind_the_other():
    """By the builtin that copies the weights of policies."""
    pack = fast_calls()["pack"]
    tensors = [torch.arange(3.0), torch.arange(6).reshape(2, 3).T, torch.ones(2, dtype=torch.bfloat16), np.ones(0)]
    expected = b"".join(tensor.contiguous().view(torch.uint8).numpy().tobytes() for tensor in tensors[:3])
    target = guarded(len(expected))
    assert pack(tensors, target.ctypes.data + GUARD, len(expected)) == 0
    check_guards(target)
    assert target[GUARD:-GUARD].tobytes() == expected
    assert pack(tensors[:1], target.ctypes.data + GUARD, 20) == 8
    for bad in ([torch.zeros(3)] * 2, [torch.zeros(3, device="meta")], [3.0]):
        refuses(None, pack, bad, target.ctypes.data + GUARD, 12)
    refuses(None, pack, tensors, 0, error=TypeError)
    check_guards(target)


def test_a_copy_into_a_tensor_that_requires_grad_is_not_seen_by_autograd(bridge):
    parameter, source = torch.nn.Parameter(torch.zeros(3)), np.array([1, 2, 3], np.float32)
    bridge.copy_from_pointer(parameter, source.ctypes.data, 12)
    assert (parameter.tolist(), parameter.requires_grad, parameter.grad_fn) == ([1, 2, 3], True, None)
    for empty in (torch.zeros(0, 3), np.zeros((3, 0))):
        bridge.copy_to_pointer(empty, 0, 0)
        bridge.copy_from_pointer(empty, 0, 0)


def test_bad_copies_are_refused_and_change_nothing(bridge):
    target, fours = guarded(16), torch.ones(4)
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


def test_new_tensors_are_like_the_old_ones(bridge):
    jax = pytest.importorskip("jax")
    olds = [
        *(torch.ones(4, 5).t(), torch.nn.Parameter(torch.ones(3)), torch.ones((), dtype=torch.bfloat16)),
        *(torch.ones(0, 3, dtype=torch.bool), torch.ones(2, 3, 4, dtype=torch.complex64)[:, ::2]),
        *(torch.ones(7, dtype=torch.uint8).expand(3, 7), np.ones((4, 3), np.int16).T),
        jax.numpy.ones((2, 3), jax.numpy.bfloat16),
    ]
    for old in olds:
        for new in (bridge.empty_like(old), bridge.zeros_like(old)):
            assert type(new) is (torch.Tensor if isinstance(old, torch.Tensor) else type(old))
            assert (new.shape, new.dtype, str(new.device)) == (old.shape, old.dtype, str(old.device))
            assert (bridge.describe(new).contiguous, bridge.describe(new).requires_grad) == (True, False)
        assert (new == 0).all()
        if not isinstance(old, jax.Array):
            new[...] = 1  # it is a tensor like any other
            assert 0 in new.shape or bridge.describe(new).pointer != bridge.describe(old).pointer


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
