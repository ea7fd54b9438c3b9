// What DLPack's numbers of element types and devices are called; pkg/doorstep/_native/tensor_names.py has the same.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// Enough for any name and the 0 at its end.
inline constexpr int kNameBytes = 48;

// Each writes a name from `text` on, without a 0, and gives its end.
char* write_number(char* text, int64_t number);
char* write_dtype_name(char* text, const TensorView& view);   // "float32"
char* write_device_name(char* text, const TensorView& view);  // "cpu", "cuda:1"

const char* library_name(const TensorView& view);  // "torch"; "other" if it is not known

}  // namespace doorstep
