// Names of DLPack's element types and devices; pkg/doorstep/_native/tensor_names.py has the same names.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// Enough for any name and its terminating 0.
inline constexpr int kNameBytes = 48;

// Each writes a name at `text`, without a terminating 0, and returns its end.
char* write_number(char* text, int64_t number);
char* write_dtype_name(char* text, const TensorView& view);   // "float32"
char* write_device_name(char* text, const TensorView& view);  // "cpu", "cuda:1"

const char* library_name(const TensorView& view);  // "torch"; "other" if unknown

}  // namespace doorstep
