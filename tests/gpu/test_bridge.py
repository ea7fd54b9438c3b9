"""The tensor bridge with PyTorch on a real GPU: devices, current streams, copies of any strides."""

from typing import Any

import pytest
from tests.gpu.frameworks import cuda_torch

import doorstep
from doorstep import ArgumentError, interop

torch = cuda_torch()

LONG = 1_000_000_000  # clock cycles: about half a second


def test_descriptions_of_gpu_tensors_equal_their_attributes() -> None:
    made = torch.arange(20.0, device="cuda").reshape(4, 5)
    for tensor in (made, made.t(), made[1:, ::2], torch.nn.Parameter(made), torch.zeros(0, device="cuda")):
        described = interop.describe(tensor)
        assert described.pointer == tensor.data_ptr()
        assert (described.shape, described.strides) == (tuple(tensor.shape), tensor.stride())
        assert described.device == str(tensor.device)
        assert described.requires_grad == tensor.requires_grad
    with pytest.raises(ArgumentError, match="negative bit"):
        interop.describe(torch._neg_view(made))


def test_the_current_stream_is_pytorchs_on_every_device() -> None:
    for index in range(torch.cuda.device_count()):
        tensor = torch.ones(2, device=f"cuda:{index}")
        assert interop.current_stream(tensor) == torch.cuda.current_stream(index).cuda_stream
        with torch.cuda.stream(torch.cuda.Stream(index)):
            assert interop.current_stream(tensor) == torch.cuda.current_stream(index).cuda_stream != 0


def views(made: Any) -> list[Any]:
    return [made, made.permute(2, 0, 1), made[:, 1:, ::2], made[1], made.permute(1, 2, 0)[::2]]


def test_any_strides_are_copied() -> None:
    made = torch.arange(2 * 3 * 8, dtype=torch.float32, device="cuda").reshape(2, 3, 8)
    for view in views(made):
        packed = torch.empty(view.numel(), device="cuda")
        interop.copy_to_pointer(view, packed.data_ptr(), packed.nbytes)
        assert torch.equal(packed, view.reshape(-1))
        other = torch.zeros_like(made)
        same = other.as_strided(view.shape, view.stride(), view.storage_offset())
        interop.copy_from_pointer(same, packed.data_ptr(), packed.nbytes)
        assert torch.equal(same, view)
        assert torch.count_nonzero(other) == torch.count_nonzero(view)


def test_copies_wait_for_the_work_of_their_stream_and_for_no_other() -> None:
    stream = torch.cuda.Stream()
    source = torch.zeros(1 << 20, device="cuda")
    target = torch.zeros_like(source)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for cycles, value in ((1, 5), (LONG, 7)):  # the first loads kernels, which may wait for all work
            stream.synchronize()
            torch.cuda._sleep(cycles)
            source.fill_(value)
            interop.copy_to_pointer(source, target.data_ptr(), target.nbytes)
        assert not stream.query()  # the copy has only begun
    stream.synchronize()
    assert (target == 7).all()


def test_new_tensors_are_zeros_on_the_current_stream() -> None:
    with torch.cuda.stream(torch.cuda.Stream()):
        old = torch.ones(3, 4, device="cuda", dtype=torch.bfloat16).t()
        new = interop.zeros_like(old)
        assert (new.shape, new.dtype, new.device, new.is_contiguous()) == (old.shape, old.dtype, old.device, True)
        assert not new.any()


def test_a_tensor_over_a_simulators_memory_follows_the_step() -> None:
    with doorstep.Simulator(64, device="cuda") as sim:
        for _ in range(3):
            sim.step()
            assert (sim.steps_remaining.to_torch() == torch.from_dlpack(sim.steps_remaining)).all()
        remaining = sim.steps_remaining.to_torch()
        assert (remaining == 197).all()
        del remaining
