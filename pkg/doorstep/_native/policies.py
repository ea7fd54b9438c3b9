"""Handles of policies and their layers."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native._generated import (
    DeviceKind,
    LayerConfig,
    LayerKind,
    LayerShape,
    PolicyCall,
    PolicyInfo,
    Precision,
    WeightType,
)
from doorstep._native.calls import check, fast_calls, read_struct, sized
from doorstep._native.handle import Handle, new_handle
from doorstep._native.library import PYTHON, load

SAMPLING = np.dtype([("temperature", np.float32), ("top_p", np.float32)])
SAMPLING_KEY = np.dtype([("key", np.uint32, 2), ("step", np.uint32), ("agent", np.uint32)])


@dataclass(frozen=True)
class LayerWeights:
    """The addresses of a layer's arrays, and the object that keeps them valid. None: the layer has no such array."""

    weight_type: WeightType = WeightType.FLOAT32
    device_kind: DeviceKind = DeviceKind.CPU
    device_index: int = 0
    weights: int | None = None
    biases: int | None = None
    hidden_weights: int | None = None
    hidden_biases: int | None = None
    owner: object = None


class PolicyRows(NamedTuple):
    """Contiguous rows of observations and states, by the addresses of the first ones, and the CUstream of a call."""

    num_rows: int
    observations: int
    num_inputs: int
    states: int | None
    state_size: int
    stream: int = 0

    def call(self, **outputs: int) -> PolicyCall:
        return sized(
            PolicyCall,
            num_rows=self.num_rows,
            observations=self.observations,
            observation_stride=self.num_inputs,
            states=self.states,
            state_stride=self.state_size,
            stream=self.stream,
            **outputs,
        )


class PreparedAct(NamedTuple):
    """A call of act() for other rows of the same shape.

    Attributes:
        run: a function of observations, of actions to write and of a function that counts steps. False, with nothing
            done, if the observations are not plain float32 of the host of that shape.
        shape: of the actions.
        kept: what the call reads.
    """

    run: Callable[[Any, NDArray[np.int32], Callable[[], int]], bool]
    shape: tuple[int, ...]
    kept: tuple[Any, ...]


def address_of(array: NDArray[Any]) -> int:
    """Of its first element; `array.ctypes.data` takes three times as long."""
    address: int = array.__array_interface__["data"][0]
    return address


# ---- Handles ----


@final
class LayerHandle(Handle):
    """A layer of policies."""

    def __init__(self, value: int) -> None:
        super().__init__(value, load().ds_layer_release)

    @classmethod
    def create(
        cls,
        kind: LayerKind,
        num_inputs: int,
        num_outputs: int,
        parameter: float,
        shape: Mapping[str, int],
        weights: LayerWeights,
    ) -> LayerHandle:
        """A layer that reads these weights in place; a reference to their owner is released with it. shape: the numbers
        of its `LayerShape` that are not 0."""
        functions, made = load(), ctypes.c_uint64()
        config = sized(
            LayerConfig,
            kind=kind,
            num_inputs=num_inputs,
            num_outputs=num_outputs,
            weight_type=weights.weight_type,
            parameter=parameter,
            weights=weights.weights,
            biases=weights.biases,
            hidden_weights=weights.hidden_weights,
            hidden_biases=weights.hidden_biases,
            device_kind=weights.device_kind,
            device_index=weights.device_index,
            shape=LayerShape(**shape),
            owner=id(weights.owner),
            release_owner=ctypes.cast(functions.ds_python_release, ctypes.c_void_p).value,
        )
        owner = ctypes.py_object(weights.owner)
        PYTHON.Py_IncRef(owner)
        status = functions.ds_layer_create(ctypes.byref(config), ctypes.byref(made))
        if status:
            PYTHON.Py_DecRef(owner)
        check(status)
        return cls(made.value)

    def config(self) -> LayerConfig:
        return read_struct(load().ds_layer_get_config, LayerConfig, self.value)


@final
class PolicyHandle(Handle):
    """A network that chooses actions."""

    def __init__(self, value: int) -> None:
        super().__init__(value, load().ds_policy_release)
        self._kept: dict[int, Any] = {}

    def keep(self, *objects: Any) -> None:
        """Keeps what the policy's work may use until the policy has ended, after its work."""
        self._kept.update((id(one), one) for one in objects)

    @classmethod
    def create(
        cls, layers: Sequence[LayerHandle], num_heads: int, precision: Precision = Precision.FLOAT32
    ) -> PolicyHandle:
        handles = (ctypes.c_uint64 * len(layers))(*(layer.value for layer in layers))
        return cls(new_handle(load().ds_policy_create, handles, len(layers), num_heads, precision))

    def info(self) -> PolicyInfo:
        return read_struct(load().ds_policy_get_info, PolicyInfo, self.value)

    def layer(self, index: int) -> LayerHandle:
        return LayerHandle(new_handle(load().ds_policy_get_layer, self.value, index))

    def freeze(self, stream: int) -> PolicyHandle:
        return PolicyHandle(new_handle(load().ds_policy_freeze, self.value, stream))

    def forward(self, rows: PolicyRows, logits: int) -> None:
        """logits: where they go."""
        check(load().ds_policy_forward(self.value, ctypes.byref(rows.call(logits=logits))))

    def act(self, rows: PolicyRows, **arrays: int) -> None:
        """arrays: addresses of sampling and keys (of the dtypes SAMPLING and SAMPLING_KEY, a row each) and of actions,
        and the step or the address of its counter."""
        check(load().ds_policy_act(self.value, ctypes.byref(rows.call(**arrays))))

    def prepare_act(
        self, rows: PolicyRows, shape: tuple[int, ...], owners: tuple[Any, ...], **arrays: int
    ) -> PreparedAct | None:
        """act() of other rows on the host. shape: of the actions. owners: of the arrays. None without fast calls."""
        calls = fast_calls()
        if calls is None:
            return None
        call = rows.call(**arrays)
        return PreparedAct(functools.partial(calls["act"], self.value, ctypes.addressof(call)), shape, (call, *owners))
