#include "exec/tensor_table.h"

#include <stdlib.h>
#include <string.h>

namespace doorstep {
namespace {

// The value of "N", "A", "A-1", "F" or a number.
int64_t dimension(const char* text, const Dimensions& dimensions) {
    switch (*text) {
        case 'N': return dimensions.num_worlds;
        case 'A': return dimensions.num_agents + strtoll(text + 1, nullptr, 10);
        case 'F': return dimensions.flat_observation_size;
        default: return strtoll(text, nullptr, 10);
    }
}

}  // namespace

#define DS_ROW(name, dtype, shape, access, sentence) {#name, DS_DTYPE_##dtype, shape, DS_ACCESS_##access},
const TensorRow kTensorRows[DS_TENSOR_COUNT] = {DS_TENSOR_TABLE(DS_ROW)};
const TensorRow kStateRows[DS_STATE_COUNT] = {DS_STATE_TABLE(DS_ROW)};
#undef DS_ROW

int64_t dtype_bytes(int32_t dtype) { return dtype == DS_DTYPE_UINT8 ? 1 : 4; }

void describe_tensor(const TensorRow& row, const Dimensions& dimensions, ds_tensor_info* info) {
    info->dtype = row.dtype;
    info->access = row.access;
    info->rank = 0;
    for (const char* text = row.shape; text; text = strchr(text, ',')) {
        if (*text == ',') ++text;
        info->shape[info->rank++] = dimension(text, dimensions);
    }
    int64_t stride = dtype_bytes(row.dtype);
    for (int axis = info->rank; axis-- > 0; stride *= info->shape[axis]) info->strides[axis] = stride;
}

int64_t tensor_bytes(const ds_tensor_info& info) {
    int64_t bytes = dtype_bytes(info.dtype);
    for (int axis = 0; axis < info.rank; ++axis) bytes *= info.shape[axis];
    return bytes;
}

}  // namespace doorstep
