#include "interop/python/tensor_names.h"

#include <string.h>

#include "interop/dlpack.h"

namespace doorstep {
namespace {

// A short text that is copied as a whole, in one instruction.
struct Name {
    char text[23];
    uint8_t length;
};

constexpr Name make_name(const char* text) {
    Name name{};
    for (; text[name.length]; ++name.length) name.text[name.length] = text[name.length];
    return name;
}

char* write(char* text, const Name& name) {
    memcpy(text, name.text, sizeof name.text);
    return text + name.length;
}

constexpr int kNumCodes = 18, kNumWidths = 6;

struct DtypeNames {
    Name names[kNumCodes][kNumWidths];  // by code and by logarithm of a quarter of the bits

    constexpr DtypeNames() : names{} {
        const char* signed_names[] = {"", "int8", "int16", "int32", "int64"};
        const char* unsigned_names[] = {"", "uint8", "uint16", "uint32", "uint64"};
        const char* float_names[] = {"", "", "float16", "float32", "float64"};
        const char* complex_names[] = {"", "", "", "complex32", "complex64", "complex128"};
        const char* float8_names[] = {"float8_e3m4",   "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
                                      "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",    "float8_e8m0fnu"};
        for (int i = 0; i < 5; ++i) {
            names[0][i] = make_name(signed_names[i]);
            names[1][i] = make_name(unsigned_names[i]);
            names[2][i] = make_name(float_names[i]);
        }
        for (int i = 0; i < 6; ++i) names[5][i] = make_name(complex_names[i]);
        for (int i = 0; i < 8; ++i) names[7 + i][1] = make_name(float8_names[i]);
        names[4][2] = make_name("bfloat16");
        names[6][1] = make_name("bool");
        names[17][0] = make_name("float4_e2m1fn");
    }
};

constexpr DtypeNames kDtypes;

const Name* find_dtype(const TensorView& view) {
    const unsigned bits = view.dtype_bits;
    if (view.dtype_code >= kNumCodes || bits < 4 || (bits & (bits - 1))) return nullptr;
    const Name& name = kDtypes.names[view.dtype_code][__builtin_ctz(bits) - 2];
    return name.length ? &name : nullptr;
}

constexpr Name kDlpack = make_name("dlpack"), kCpu = make_name("cpu"), kCuda = make_name("cuda:");

// Device types without a row are "dlpack" and their number.
Name device_prefix(int32_t device_type) {
    switch (device_type) {
        case kDLCPU: return kCpu;
        case kDLCUDA: return kCuda;
        case 3: return make_name("cuda_host:");
        case 7: return make_name("vulkan:");
        case 8: return make_name("metal:");
        case 10: return make_name("rocm:");
        case 11: return make_name("rocm_host:");
        case 13: return make_name("cuda_managed:");
        case 14: return make_name("oneapi:");
        default: break;
    }
    Name name = kDlpack;
    char* end = write_number(name.text + name.length, device_type);
    *end++ = ':';
    name.length = static_cast<uint8_t>(end - name.text);
    return name;
}

}  // namespace

char* write_number(char* text, int64_t number) {
    if (number >= 0 && number < 100) {  // nearly always
        if (number >= 10) *text++ = static_cast<char>('0' + number / 10);
        *text++ = static_cast<char>('0' + number % 10);
        return text;
    }
    uint64_t rest = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    if (number < 0) *text++ = '-';
    char digits[20];
    int count = 0;
    do digits[count++] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    while (count) *text++ = digits[--count];
    return text;
}

char* write_dtype_name(char* text, const TensorView& view) {
    if (const Name* name = find_dtype(view)) {
        text = write(text, *name);
    } else {
        text = write_number(write(text, kDlpack), view.dtype_code);
        *text++ = '_';
        text = write_number(text, view.dtype_bits);
    }
    if (view.dtype_lanes == 1) return text;
    *text++ = '_';
    *text++ = 'x';
    return write_number(text, view.dtype_lanes);
}

char* write_device_name(char* text, const TensorView& view) {
    if (view.device_type == kDLCPU) return write(text, kCpu);
    return write_number(write(text, device_prefix(view.device_type)), view.device_index);
}

const char* library_name(const TensorView& view) {
    switch (view.library) {
        case DS_PYTHON_LIBRARY_TORCH: return "torch";
        case DS_PYTHON_LIBRARY_NUMPY: return "numpy";
        case DS_PYTHON_LIBRARY_JAX: return "jax";
        case DS_PYTHON_LIBRARY_CUPY: return "cupy";
        case DS_PYTHON_LIBRARY_WARP: return "warp";
        case DS_PYTHON_LIBRARY_DOORSTEP: return "doorstep";
        default: return "other";
    }
}

}  // namespace doorstep
