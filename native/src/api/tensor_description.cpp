#include "api/tensor_description.h"

#include "api/call.h"
#include "exec/tensor_copy.h"

namespace doorstep {
namespace {

ds_status fail_description(const char* what) {
    return fail(DS_STATUS_INVALID_ARGUMENT, "info", "pass a struct filled by ds_simulator_get_tensor or _get_state",
                "the tensor description has %s", what);
}

// A stride of zero allows more elements than the memory can contain.
bool is_countable(const ds_tensor_info& info) {
    int64_t elements = 4;
    for (int axis = 0; axis < info.rank; ++axis) {
        if (__builtin_mul_overflow(elements, info.shape[axis], &elements)) return false;
    }
    return true;
}

}  // namespace

ds_status check_description(const Memory& memory, const ds_tensor_info& info) {
    if (info.dtype < DS_DTYPE_UINT8 || info.dtype > DS_DTYPE_FLOAT32) return fail_description("an unknown dtype");
    if (info.access != DS_ACCESS_READ && info.access != DS_ACCESS_READ_WRITE) {
        return fail_description("an unknown access");
    }
    if (info.rank < 0 || info.rank > DS_MAX_DIMENSIONS) return fail_description("a rank outside 0 to 5");
    const int64_t bytes = tensor_extent(info);
    if (bytes < 0 || !is_countable(info)) return fail_description("an impossible shape or strides");
    if (!memory.contains(info.data, bytes)) return fail_description("elements outside the memory");
    return DS_STATUS_OK;
}

ds_status check_tensor(const Simulator& simulator, int64_t tensor) {
    if (const ds_status status = check_range("tensor", "pass a ds_tensor_id", tensor, 0, DS_TENSOR_COUNT - 1)) {
        return status;
    }
    if (simulator.has_tensor(static_cast<int>(tensor))) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "tensor", "create the simulator with flat_observations=True",
                "this simulator has no tensor %s", kTensorRows[tensor].name);
}

}  // namespace doorstep
