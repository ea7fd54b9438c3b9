#include "interop/python/tensor_signature.h"

#include <string.h>

#include "interop/python/tensor_names.h"

namespace doorstep {
namespace {

template <size_t kBytes>
char* write(char* text, const char (&literal)[kBytes]) {
    memcpy(text, literal, kBytes - 1);
    return text + kBytes - 1;
}

char* write_library(char* text, const TensorView& view) {
    if (view.library == DS_PYTHON_LIBRARY_TORCH) return write(text, "[torch,D");
    *text++ = '[';
    const char* name = library_name(view);
    const size_t length = strlen(name);
    memcpy(text, name, length);
    return write(text + length, ",D");
}

char* write_shape(char* text, const TensorView& view) {
    for (int axis = 0; axis < view.rank; ++axis) {
        text = write_number(text, view.shape[axis]);
        *text++ = 'x';
    }
    return text - (view.rank > 0);
}

}  // namespace

uint64_t write_signature(const TensorView& view, char* text) {
    char* end = write_library(text, view);
    end = write(write_number(end, view.rank), ",S");
    end = write_dtype_name(end, view);
    *end++ = ',';
    end = write_device_name(end, view);
    *end++ = ',';
    end = write_shape(end, view);
    if (!view.contiguous) end = write(end, ",strided");
    if (view.requires_grad) end = write(end, ",grad");
    if (view.read_only) end = write(end, ",readonly");
    *end++ = ']';
    *end = 0;
    return static_cast<uint64_t>(end - text);
}

}  // namespace doorstep
