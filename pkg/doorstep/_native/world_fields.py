"""Copies of single worlds to the host, on any device."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native._generated import STATE_FIELDS, Dtype, TensorInfo
from doorstep._native.calls import sized
from doorstep._native.session import Session


@final
class WorldFields:
    """Fields of the state, to be read world by world.

    Those that change lie in one block per world. One copy reads all requested fields of a block, so that no step can
    change them in between.

    Args:
        session: the simulator.
        names: of the fields.
    """

    def __init__(self, session: Session, names: Collection[str]) -> None:
        self._memory = session.memory
        fields = {
            row.name: session.viewed_state_info(index) for index, row in enumerate(STATE_FIELDS) if row.name in names
        }
        self._own = {name: info for name, info in fields.items() if info.strides[0]}
        shared = {name: info for name, info in fields.items() if not info.strides[0]}  # equal for all worlds
        self._shared = self._read(shared, 0)

    def read(self, world: int) -> dict[str, NDArray[Any]]:
        """New arrays with the fields of one world."""
        return {**self._read(self._own, world), **{name: values.copy() for name, values in self._shared.items()}}

    def _read(self, fields: Mapping[str, TensorInfo], world: int) -> dict[str, NDArray[Any]]:
        if not fields:
            return {}
        begin = min(_offset(info, world) for info in fields.values())
        end = max(_offset(info, world) + _extent(info) for info in fields.values())
        block = np.empty(end - begin, np.uint8)
        self._memory.read(_bytes_at(begin, end - begin), block)
        return {name: _view(info, block, _offset(info, world) - begin).copy() for name, info in fields.items()}


def _offset(info: TensorInfo, world: int) -> int:
    return (info.data or 0) + world * int(info.strides[0])


def _extent(info: TensorInfo) -> int:
    """Bytes from the first element of a world to the end of its last."""
    axes = zip(info.shape[1 : info.rank], info.strides[1 : info.rank], strict=True)
    return _dtype(info).itemsize + sum((int(count) - 1) * int(stride) for count, stride in axes)


def _view(info: TensorInfo, block: NDArray[np.uint8], offset: int) -> NDArray[Any]:
    shape, strides = tuple(info.shape[1 : info.rank]), tuple(info.strides[1 : info.rank])
    view: NDArray[Any] = np.ndarray(shape, _dtype(info), block.data, offset, strides)
    return view


def _dtype(info: TensorInfo) -> np.dtype[Any]:
    return np.dtype(Dtype(info.dtype).name.lower())


def _bytes_at(address: int, count: int) -> TensorInfo:
    info = sized(TensorInfo, dtype=Dtype.UINT8, rank=1, data=address)
    info.shape[0], info.strides[0] = count, 1
    return info
