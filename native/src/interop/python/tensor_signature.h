// What decides whether a tensor can be used in a certain place, as a short text: who has checked a signature once need
// not check another tensor with the same.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// Enough for any signature and the 0 at its end.
inline constexpr uint64_t kSignatureBytes = 512;

// "[torch,D2,Sfloat32,cpu,4x5]": library, number of dimensions, type of elements, device, shape; then, where it is so,
// "strided" (not contiguous), "grad" and "readonly". Ends with a 0, which the length does not count.
uint64_t write_signature(const TensorView& view, char* text);

}  // namespace doorstep
