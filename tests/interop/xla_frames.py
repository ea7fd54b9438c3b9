"""Calls of XLA handlers without XLA: call frames made by hand, as XLA makes them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from doorstep._native import OBSERVATION_PARTS, xla_handler
from doorstep._native._generated import LevelRewards

Pointer = ctypes.c_void_p
DTYPES = {"uint8": 6, "int32": 4, "uint32": 8, "float32": 11}
S64, METADATA, EXECUTE = 5, 1, 3
API_FUNCTIONS = 18
ERROR_CREATE, STREAM_GET, DEVICE_ORDINAL_GET = 0, 4, 17
NO_ERROR = 0
# Among the rules of a call: the numbers of rewards, which count if the inputs say so, and no parts of observations.
NO_REWARD_NO_PARTS = [0] * (len(LevelRewards._fields_) + 1 + 2 * len(OBSERVATION_PARTS))


class Base(ctypes.Structure):
    _fields_: ClassVar = [("struct_size", ctypes.c_size_t), ("extension_start", Pointer)]


class Extension(ctypes.Structure):
    _fields_: ClassVar = [
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", Pointer),
        ("metadata", Pointer),
    ]


class Version(Base):
    _fields_: ClassVar = [("major", ctypes.c_int), ("minor", ctypes.c_int)]


class Metadata(ctypes.Structure):
    _fields_: ClassVar = [("struct_size", ctypes.c_size_t), ("version", Version), ("traits", ctypes.c_uint32)]


class Buffer(Base):
    _fields_: ClassVar = [
        ("dtype", ctypes.c_int),
        ("data", Pointer),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]


class Span(ctypes.Structure):
    _fields_: ClassVar = [("text", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Array(ctypes.Structure):
    _fields_: ClassVar = [("dtype", ctypes.c_int), ("size", ctypes.c_size_t), ("data", Pointer)]


class List(Base):
    _fields_: ClassVar = [("size", ctypes.c_int64), ("types", Pointer), ("items", Pointer)]


class NamedList(Base):
    _fields_: ClassVar = [("size", ctypes.c_int64), ("types", Pointer), ("names", Pointer), ("items", Pointer)]


class Api(Base):
    _fields_: ClassVar = [("version", Version), ("internal", Pointer), ("functions", Pointer * API_FUNCTIONS)]


class ErrorArguments(Base):
    _fields_: ClassVar = [("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class StreamArguments(Base):
    _fields_: ClassVar = [("context", Pointer), ("stream", Pointer)]


class OrdinalArguments(Base):
    _fields_: ClassVar = [("context", Pointer), ("ordinal", ctypes.c_int32)]


class Frame(Base):
    _fields_: ClassVar = [
        ("api", ctypes.POINTER(Api)),
        ("context", Pointer),
        ("stage", ctypes.c_int),
        ("arguments", List),
        ("results", List),
        ("attributes", NamedList),
        ("future", Pointer),
    ]


@dataclass(frozen=True)
class Tensor:
    """An argument or result: where it lies, its shape and dtype, and what keeps the memory."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    owner: object = None


class HandlerError(Exception):
    """What a handler answered: XLA's error code and the message."""


def handler_of(name: str) -> Any:
    return ctypes.CFUNCTYPE(Pointer, ctypes.POINTER(Frame))(xla_handler(name).value or 0)


def ask_metadata(name: str) -> Metadata:
    """What a handler says of itself."""
    metadata = Metadata(struct_size=ctypes.sizeof(Metadata))
    extension = Extension(ctypes.sizeof(Extension), METADATA, None, ctypes.addressof(metadata))
    frame = Frame(struct_size=ctypes.sizeof(Frame), extension_start=ctypes.addressof(extension))
    assert handler_of(name)(ctypes.byref(frame)) is None
    return metadata


def call(
    name: str,
    arguments: Sequence[Tensor],
    results: Sequence[Tensor],
    rules: Sequence[int] | None,
    *,
    stream: int = 0,
    device: int = 0,
) -> None:
    """Calls a handler; raises HandlerError if it answers with an error."""
    kept: list[Any] = []

    def address(thing: Any) -> int:
        kept.append(thing)
        return ctypes.addressof(thing)

    def listed(tensors: Sequence[Tensor]) -> List:
        buffers = []
        for tensor in tensors:
            dims = (ctypes.c_int64 * len(tensor.shape))(*tensor.shape)
            kept.append(dims)
            buffer = Buffer(ctypes.sizeof(Buffer), None, DTYPES[tensor.dtype], tensor.address, len(dims), dims)
            buffers.append(address(buffer))
        kinds = (ctypes.c_int * len(buffers))(*[1] * len(buffers))
        return List(0, None, len(buffers), address(kinds), address((Pointer * len(buffers))(*buffers)))

    errors: list[tuple[int, str]] = []

    def create_error(given: Any) -> int:
        error = given.contents
        errors.append((error.code, error.message.decode()))
        return 0xE

    def get_stream(given: Any) -> int:
        assert given.contents.context == 0xC
        given.contents.stream = stream
        return NO_ERROR

    def get_ordinal(given: Any) -> int:
        given.contents.ordinal = device
        return NO_ERROR

    api = Api(struct_size=ctypes.sizeof(Api))
    for place, function, type_ in (
        (ERROR_CREATE, create_error, ErrorArguments),
        (STREAM_GET, get_stream, StreamArguments),
        (DEVICE_ORDINAL_GET, get_ordinal, OrdinalArguments),
    ):
        callback = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.POINTER(type_))(function)
        kept.append(callback)
        api.functions[place] = ctypes.cast(callback, Pointer)

    numbers = (ctypes.c_int64 * len(rules or ()))(*(rules or ()))
    array = Array(S64, len(numbers), address(numbers))
    attributes = NamedList(
        0,
        None,
        0 if rules is None else 1,
        address((ctypes.c_int * 1)(1)),
        address((Pointer * 1)(address(Span(b"rules", 5)))),
        address((Pointer * 1)(address(array))),
    )
    frame = Frame(
        ctypes.sizeof(Frame),
        None,
        ctypes.pointer(api),
        0xC,
        EXECUTE,
        listed(arguments),
        listed(results),
        attributes,
        None,
    )
    answer = handler_of(name)(ctypes.byref(frame))
    assert (answer == 0xE) == bool(errors)
    if errors:
        raise HandlerError(*errors[0])
