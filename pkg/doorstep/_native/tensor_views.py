"""PythonTensors made and used without fast calls."""

from __future__ import annotations

import ctypes

from doorstep._native._generated import PYTHON_SIGNATURE_BYTES, PythonTensor
from doorstep._native.library import load
from doorstep._native.status import check
from doorstep._native.tensor_reader import Rules, read_into


def read(tensor: object, rules: Rules) -> PythonTensor:
    """What a tensor is; raises as read_into() does."""
    view = PythonTensor(struct_size=ctypes.sizeof(PythonTensor))
    read_into(view, tensor, rules)
    return view


def signature(view: PythonTensor) -> str:
    text = ctypes.create_string_buffer(PYTHON_SIGNATURE_BYTES)
    check(load().ds_python_signature(ctypes.byref(view), text, None))
    return text.value.decode()


def copy(view: PythonTensor, stream: int, pointer: int, nbytes: int, *, to_pointer: bool) -> None:
    """Begins a copy between all elements and an address."""
    function = load().ds_python_copy_out if to_pointer else load().ds_python_copy_in
    check(function(ctypes.byref(view), stream, pointer, nbytes))
