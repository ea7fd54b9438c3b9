// New tensors of other libraries.
#pragma once

#include "interop/dlpack_exchange.h"
#include "interop/python/tensor_bridge.h"

namespace doorstep {

// A new C-contiguous tensor of the same library, shape, dtype and device, without gradients. zeros: cleared on the
// library's current stream; otherwise its contents are undefined. *made is a new reference.
ds_status make_like(PyObject* object, bool zeros, PyObject** made);

// A tensor of a class with the exchange API over memory, which is taken over, also on failure. INVALID_ARGUMENT if the
// class has no exchange API. *made is a new reference.
ds_status make_over(PyObject* cls, DLManagedTensorVersioned* managed, PyObject** made);

}  // namespace doorstep
