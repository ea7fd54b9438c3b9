// The properties that checks of a tensor depend on, as a short text. Tensors with equal signatures pass the same
// checks, so that callers can cache the result.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// Enough for any signature and its terminating 0.
inline constexpr uint64_t kSignatureBytes = 512;

// "[torch,D2,Sfloat32,cpu,4x5]": library, number of dimensions, element type, device, shape; then, where they apply,
// "strided" (not contiguous), "grad" and "readonly". Ends with a 0, which the length does not count.
uint64_t write_signature(const TensorView& view, char* text);

}  // namespace doorstep
