"""What DLPack's numbers of element types and devices are called."""

from __future__ import annotations

# (code, bits, lanes); native/src/interop/python/tensor_names.cpp has the same names.
Dtype = tuple[int, int, int]

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
DTYPES: dict[str, Dtype] = {name: (code, bits, 1) for (code, bits), name in DTYPE_NAMES.items()}

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


def dtype_name(code: int, bits: int, lanes: int) -> str:
    """ "float32"; "float4_e2m1fn_x2" for more than one lane; the numbers for what has no name."""
    name = DTYPE_NAMES.get((code, bits), f"dlpack{code}_{bits}")
    return name if lanes == 1 else f"{name}_x{lanes}"


def device_name(device_type: int, index: int) -> str:
    """ "cpu", "cuda:1"; the number for what has no name."""
    if device_type == CPU:
        return "cpu"
    return f"{DEVICE_NAMES.get(device_type, f'dlpack{device_type}')}:{index}"
