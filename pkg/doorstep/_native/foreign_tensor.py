"""The record of a tensor of another library, and the names of DLPack's numbers for element types and devices."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from doorstep._native._generated import PythonLibrary, PythonTensor
from doorstep._native.calls import sized

# ---- Names; native/src/interop/python/tensor_description.cpp has the same ----

SIGNED, UNSIGNED, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6
_FLOAT8 = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")  # codes from 7 on

DTYPE_NAMES: dict[tuple[int, int], str] = {
    **{(SIGNED, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(UNSIGNED, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{(FLOAT, bits): f"float{bits}" for bits in (16, 32, 64)},
    **{(COMPLEX, bits): f"complex{bits}" for bits in (32, 64, 128)},
    (BFLOAT, 16): "bfloat16",
    (BOOL, 8): "bool",
    **{(7 + i, 8): f"float8_{name}" for i, name in enumerate(_FLOAT8)},
    (17, 4): "float4_e2m1fn",
}

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
DEVICE_NAMES = {
    CPU: "cpu",
    CUDA: "cuda",
    CUDA_HOST: "cuda_host",
    7: "vulkan",
    8: "metal",
    10: "rocm",
    11: "rocm_host",
    CUDA_MANAGED: "cuda_managed",
    14: "oneapi",
}


class ElementType(NamedTuple):
    """The type of a tensor's elements.

    Attributes:
        name: "float32", "bfloat16", "bool", ...
        itemsize: bytes of one element, at least 1.
        code: of DLPack, as are bits and lanes; UNNAMED if DLPack has no code for it.
    """

    name: str
    itemsize: int
    code: int
    bits: int
    lanes: int


UNNAMED = -1


@functools.lru_cache(maxsize=256)
def element_type(code: int, bits: int, lanes: int = 1) -> ElementType:
    """Named "float32"; "float4_e2m1fn_x2" for more than one lane; by the numbers where there is no name."""
    name = DTYPE_NAMES.get((code, bits), f"dlpack{code}_{bits}")
    name = name if lanes == 1 else f"{name}_x{lanes}"
    return ElementType(name, max(1, (bits * lanes + 7) // 8), code, bits, lanes)


ELEMENT_TYPES = {name: element_type(code, bits) for (code, bits), name in DTYPE_NAMES.items()}


@functools.lru_cache(maxsize=256)
def device_name(device_type: int, index: int) -> str:
    """ "cpu", "cuda:1"; the number for a device type without a name."""
    if device_type == CPU:
        return "cpu"
    return f"{DEVICE_NAMES.get(device_type, f'dlpack{device_type}')}:{index}"


# ---- The record ----


class ForeignTensor(NamedTuple):
    """A tensor of another library as it was when it was read.

    Attributes:
        owner: the object that was read. It keeps the memory valid unless the object is given other memory.
        library: its library.
        pointer: address of the first element; 0 if there are none.
        dtype: type of the elements.
        shape: elements per dimension.
        strides: bytes from one element to the next, per dimension.
        device_type: DLPack's number of the kind of device.
        device_index: which of them.
        contiguous: whether the elements lie side by side in row-major order.
        requires_grad: whether PyTorch records gradients for it.
        read_only: whether the memory must not be written to. PyTorch does not tell: False.
        stream: the CUstream on which its library uses the memory; None on the host, and if the library does not tell.
    """

    owner: object
    library: PythonLibrary
    pointer: int
    dtype: ElementType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device_type: int
    device_index: int
    contiguous: bool
    requires_grad: bool = False
    read_only: bool = False
    stream: int | None = None

    @property
    def device(self) -> str:
        """ "cpu", "cuda:1", ..."""
        return device_name(self.device_type, self.device_index)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements side by side."""
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def element_strides(self) -> tuple[int, ...]:
        """Elements from one to the next, per dimension."""
        itemsize = self.dtype.itemsize
        return tuple([stride // itemsize for stride in self.strides])

    def write_struct(self, struct: PythonTensor) -> None:
        """Fills in the C API's form of the record, for tensors of at most 16 dimensions."""
        rank = len(self.shape)
        struct.rank = rank
        struct.data = self.pointer
        struct.count = self.size
        struct.device_type = self.device_type
        struct.device_index = self.device_index
        struct.dtype_code, struct.dtype_bits, struct.dtype_lanes = self.dtype[2:]
        struct.contiguous = self.contiguous
        struct.requires_grad = self.requires_grad
        struct.read_only = self.read_only
        struct.library = self.library
        struct.shape[:rank] = list(self.shape)
        struct.strides[:rank] = list(self.element_strides)

    def struct(self) -> PythonTensor:
        """A new struct with this record."""
        made = sized(PythonTensor)
        self.write_struct(made)
        return made


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether elements lie side by side in row-major order. Strides are in bytes."""
    if 0 in shape:
        return True
    packed = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != packed:
            return False
        packed *= extent
    return True


def packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Bytes from one element to the next, per dimension, of elements side by side in row-major order."""
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides[: len(shape)])
