"""`__cuda_array_interface__` of others is read whole or refused; no GPU is touched."""

from types import SimpleNamespace

import pytest

from doorstep import ArgumentError
from doorstep._tensors.array_interfaces import read_cuda_interface
from doorstep._tensors.checks import ReadRules


def array(device=0, **changed):
    whole = {"version": 3, "typestr": "<i4", "shape": (2, 3), "strides": None, "data": (64, False), "stream": None}
    return SimpleNamespace(__cuda_array_interface__={**whole, **changed}, device=device)


def test_device_strides_and_stream_are_what_the_object_tells():
    for device, index in (
        *((0, 0), (1, 1), ("cuda", 0), ("cuda:1", 1)),
        *((SimpleNamespace(index=2), 2), (SimpleNamespace(id=3), 3)),
    ):
        assert read_cuda_interface(array(device), ReadRules(written=True)).device_index == index
    for strides, apart, contiguous in ((None, (12, 4), True), ((12, 4), (12, 4), True), ((24, 8), (24, 8), False)):
        found = read_cuda_interface(array(strides=strides), ReadRules())
        assert (found.pointer, found.strides, found.contiguous) == (64, apart, contiguous)
    assert [read_cuda_interface(array(stream=s), ReadRules()).stream for s in (None, 1, 77)] == [None, 1, 77]
    assert read_cuda_interface(array(data=(64, True)), ReadRules()).read_only


def test_what_cannot_be_written_to_is_refused_by_name():
    for changed in ({"data": None}, {"data": (0, False)}, {"data": (64, True)}, {"typestr": "zz"}, {"strides": (4,)},
                    {"mask": 1}):  # fmt: skip
        with pytest.raises(ArgumentError, match="tensor is") as caught:
            read_cuda_interface(array(**changed), ReadRules(written=True))
        assert caught.value.argument == "tensor"
