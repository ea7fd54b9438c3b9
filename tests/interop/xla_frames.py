"""Calls of XLA handlers without XLA: call frames made by hand, as XLA makes them."""

import ctypes
from dataclasses import dataclass

import numpy as np

from doorstep._native import OBSERVATION_PARTS, xla_handler
from doorstep._native._generated import LevelRewards

Pointer, Size, Number, Int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int
DTYPES = {"uint8": 6, "int32": 4, "uint32": 8, "float32": 11}
S64, METADATA, EXECUTE = 5, 1, 3
API_FUNCTIONS = 18
ERROR_CREATE, STREAM_GET, DEVICE_ORDINAL_GET = 0, 4, 17
NO_ERROR, ERROR = 0, 0xE
# Among the rules of a call: the numbers of rewards, which count if the inputs say so, and no parts of observations.
NO_REWARD_NO_PARTS = [0] * (len(LevelRewards._fields_) + 1 + 2 * len(OBSERVATION_PARTS))


def struct(name, **fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


BASE = {"struct_size": Size, "extension_start": Pointer}
Extension = struct("Extension", struct_size=Size, type=Int, next=Pointer, metadata=Pointer)
Version = struct("Version", **BASE, major=Int, minor=Int)
Metadata = struct("Metadata", struct_size=Size, version=Version, traits=ctypes.c_uint32)
Buffer = struct("Buffer", **BASE, dtype=Int, data=Pointer, rank=Number, dims=ctypes.POINTER(Number))
Span = struct("Span", text=ctypes.c_char_p, length=Size)
Array = struct("Array", dtype=Int, size=Size, data=Pointer)
List = struct("List", **BASE, size=Number, types=Pointer, items=Pointer)
NamedList = struct("NamedList", **BASE, size=Number, types=Pointer, names=Pointer, items=Pointer)
Api = struct("Api", **BASE, version=Version, internal=Pointer, functions=Pointer * API_FUNCTIONS)
ErrorArguments = struct("ErrorArguments", **BASE, message=ctypes.c_char_p, code=Int)
StreamArguments = struct("StreamArguments", **BASE, context=Pointer, stream=Pointer)
OrdinalArguments = struct("OrdinalArguments", **BASE, context=Pointer, ordinal=ctypes.c_int32)
Frame = struct(
    "Frame", **BASE, api=ctypes.POINTER(Api), context=Pointer, stage=Int, arguments=List, results=List,
    attributes=NamedList, future=Pointer,
)  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """An argument or result: where it lies, its shape and dtype, and what keeps the memory."""

    address: int
    shape: tuple
    dtype: str
    owner: object = None


def tensor(array):
    return Tensor(array.ctypes.data, array.shape, str(array.dtype), array)


def replaced(tensor, **changes):
    return Tensor(**{**vars(tensor), **changes})


class HandlerError(Exception):
    """What a handler answered: XLA's error code and the message."""


def handler_of(name):
    return ctypes.CFUNCTYPE(Pointer, ctypes.POINTER(Frame))(xla_handler(name).value or 0)


def ask_metadata(name):
    """What a handler says of itself."""
    metadata = Metadata(struct_size=ctypes.sizeof(Metadata))
    extension = Extension(ctypes.sizeof(Extension), METADATA, None, ctypes.addressof(metadata))
    frame = Frame(struct_size=ctypes.sizeof(Frame), extension_start=ctypes.addressof(extension))
    assert handler_of(name)(ctypes.byref(frame)) is None
    return metadata


def call(name, arguments, results, rules, *, stream=0, device=0):
    """Calls a handler; raises HandlerError if it answers with an error."""
    kept, errors = [], []

    def address(thing):
        kept.append(thing)
        return ctypes.addressof(thing)

    def listed(tensors):
        buffers = []
        for each in tensors:
            dims = (Number * len(each.shape))(*each.shape)
            kept.append(dims)
            buffer = Buffer(ctypes.sizeof(Buffer), None, DTYPES[each.dtype], each.address, len(dims), dims)
            buffers.append(address(buffer))
        kinds = (Int * len(buffers))(*[1] * len(buffers))
        return List(0, None, len(buffers), address(kinds), address((Pointer * len(buffers))(*buffers)))

    def create_error(given):
        errors.append((given.contents.code, given.contents.message.decode()))
        return ERROR

    def get_stream(given):
        assert given.contents.context == 0xC
        given.contents.stream = stream
        return NO_ERROR

    def get_ordinal(given):
        given.contents.ordinal = device
        return NO_ERROR

    api = Api(struct_size=ctypes.sizeof(Api))
    for place, function, type_ in (
        (ERROR_CREATE, create_error, ErrorArguments),
        (STREAM_GET, get_stream, StreamArguments),
        (DEVICE_ORDINAL_GET, get_ordinal, OrdinalArguments),
    ):
        callback = ctypes.CFUNCTYPE(Size, ctypes.POINTER(type_))(function)
        kept.append(callback)
        api.functions[place] = ctypes.cast(callback, Pointer)

    numbers = np.array(rules or (), np.int64)
    array = Array(S64, len(numbers), numbers.ctypes.data)
    name_of_rules, attribute = (Pointer * 1)(address(Span(b"rules", 5))), (Pointer * 1)(address(array))
    count = 0 if rules is None else 1
    attributes = NamedList(0, None, count, address((Int * 1)(1)), address(name_of_rules), address(attribute))
    frame = Frame(
        ctypes.sizeof(Frame), None, ctypes.pointer(api), 0xC, EXECUTE, listed(arguments), listed(results), attributes,
        None,
    )  # fmt: skip
    assert (handler_of(name)(ctypes.byref(frame)) == ERROR) == bool(errors)
    if errors:
        raise HandlerError(*errors[0])
