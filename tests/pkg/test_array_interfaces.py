"""`__cuda_array_interface__` of others is read whole or refused; no GPU is touched."""

from types import SimpleNamespace
from typing import Any

import pytest

import doorstep
from doorstep._tensors.array_interfaces import read_cuda_interface
from doorstep._tensors.checks import ReadRules


def array(device: object = 0, **changed: object) -> Any:
    whole = {"version": 3, "typestr": "<i4", "shape": (2, 3), "strides": None, "data": (64, False), "stream": None}
    return SimpleNamespace(__cuda_array_interface__={**whole, **changed}, device=device)


@pytest.mark.parametrize(
    ("device", "index"),
    [(0, 0), (1, 1), ("cuda", 0), ("cuda:1", 1), (SimpleNamespace(index=2), 2), (SimpleNamespace(id=3), 3)],
)
def test_the_device_is_what_the_object_tells(device: object, index: int) -> None:
    assert read_cuda_interface(array(device), ReadRules(written=True)).device_index == index


@pytest.mark.parametrize(
    ("strides", "bytes_apart", "contiguous"),
    [(None, (12, 4), True), ((12, 4), (12, 4), True), ((24, 8), (24, 8), False)],
)
def test_strides_are_bytes_and_absent_ones_are_those_of_c_order(
    strides: object, bytes_apart: tuple[int, ...], contiguous: bool
) -> None:
    found = read_cuda_interface(array(strides=strides), ReadRules())
    assert (found.strides, found.contiguous) == (bytes_apart, contiguous)


@pytest.mark.parametrize(
    "changed",
    [{"data": None}, {"data": (0, False)}, {"data": (64, True)}, {"typestr": "zz"}, {"strides": (4,)}, {"mask": 1}],
)
def test_what_cannot_be_written_to_is_refused_by_name(changed: dict[str, object]) -> None:
    with pytest.raises(doorstep.ArgumentError, match="tensor is") as caught:
        read_cuda_interface(array(**changed), ReadRules(written=True))
    assert caught.value.argument == "tensor"
