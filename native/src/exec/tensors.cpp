#include "exec/tensors.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "runtime/status.h"

namespace doorstep {
namespace {

// ---- Shapes

// The value of "N", "A", "A-1", "F", "L" or a number.
int64_t dimension(const char* text, const Dimensions& dimensions) {
    switch (*text) {
        case 'N': return dimensions.num_worlds;
        case 'A': return dimensions.num_agents + strtoll(text + 1, nullptr, 10);
        case 'F': return dimensions.flat_observation_size;
        case 'L': return dimensions.max_levels;
        default: return strtoll(text, nullptr, 10);
    }
}

// The length of the last axis in a shape that ends with a digit.
constexpr int64_t last_length(const char* shape) {
    while (shape[1]) ++shape;
    return *shape - '0';
}
static_assert(last_length(kTensorRows[DS_TENSOR_actions].shape) == DS_ACTION_COMPONENT_COUNT);

// ---- Copies

constexpr int64_t kStagingBytes = int64_t{4} << 20;

// Calls function(offset) for every element in C order; offsets in bytes.
template <class Function>
void for_each_element(const ds_tensor_info& info, int axis, int64_t offset, const Function& function) {
    if (axis == info.rank) return function(offset);
    for (int64_t i = 0; i < info.shape[axis]; ++i) {
        for_each_element(info, axis + 1, offset + i * info.strides[axis], function);
    }
}

void gather(const ds_tensor_info& info, const char* strided, char* packed) {
    const int64_t bytes = dtype_bytes(info.dtype);
    for_each_element(info, 0, 0, [&](int64_t offset) {
        memcpy(packed, strided + offset, static_cast<size_t>(bytes));
        packed += bytes;
    });
}

void scatter(const ds_tensor_info& info, const char* packed, char* strided) {
    const int64_t bytes = dtype_bytes(info.dtype);
    for_each_element(info, 0, 0, [&](int64_t offset) {
        memcpy(strided + offset, packed, static_cast<size_t>(bytes));
        packed += bytes;
    });
}

bool is_contiguous(const ds_tensor_info& info) {
    int64_t stride = dtype_bytes(info.dtype);
    for (int axis = info.rank; axis-- > 0; stride *= info.shape[axis]) {
        if (info.shape[axis] != 1 && info.strides[axis] != stride) return false;
    }
    return true;
}

// Calls function(part, the part's first byte in the packed array, staging) for runs of the first axis that fit.
template <class Function>
ds_status for_each_part(const ds_tensor_info& info, const Function& function) {
    const int64_t rows = info.rank > 0 ? info.shape[0] : 1, pitch = info.rank > 0 ? info.strides[0] : 0;
    DS_ASSERT(rows > 0);  // tensors without elements are not copied
    const int64_t fitting = pitch > 0 ? std::max<int64_t>(1, kStagingBytes / pitch) : rows;
    ds_tensor_info part = info;
    if (info.rank > 0) part.shape[0] = std::min(rows, fitting);
    char* staging = static_cast<char*>(malloc(static_cast<size_t>(tensor_extent(part))));
    if (!staging) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "close other simulators, or raise the memory limit",
                    "no memory is left for %ld bytes of staging", tensor_extent(part));
    }
    const int64_t packed_row = tensor_bytes(info) / rows;
    ds_status status = DS_STATUS_OK;
    for (int64_t first = 0; first < rows && !status; first += fitting) {
        if (info.rank > 0) part.shape[0] = std::min(rows - first, fitting);
        part.data = static_cast<char*>(info.data) + first * pitch;
        status = function(part, first * packed_row, staging);
    }
    free(staging);
    return status;
}

}  // namespace

void describe_tensor(const TensorRow& row, const Dimensions& dimensions, ds_tensor_info* info) {
    info->dtype = row.dtype;
    info->access = row.access;
    info->rank = 0;
    for (const char* text = row.shape; text; text = strchr(text, ',')) {
        if (*text == ',') ++text;
        DS_ASSERT(info->rank < DS_MAX_DIMENSIONS);
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

int64_t tensor_extent(const ds_tensor_info& info) {
    DS_ASSERT(info.rank >= 0 && info.rank <= DS_MAX_DIMENSIONS);
    int64_t last = 0;
    bool empty = false;
    for (int axis = 0; axis < info.rank; ++axis) {
        const int64_t length = info.shape[axis], stride = info.strides[axis];
        if (length < 0 || stride < 0 || stride % dtype_bytes(info.dtype) != 0) return -1;
        empty = empty || length == 0;
        int64_t reach;
        if (length > 0 && (__builtin_mul_overflow(length - 1, stride, &reach) ||
                           __builtin_add_overflow(last, reach, &last))) {
            return -1;
        }
    }
    return empty ? 0 : last + dtype_bytes(info.dtype);
}

ds_status read_tensor(Memory& memory, const ds_tensor_info& info, void* host) {
    DS_ASSERT(memory.contains(info.data, tensor_extent(info)));
    if (tensor_extent(info) == 0) return DS_STATUS_OK;
    if (is_contiguous(info)) return memory.read(info.data, tensor_bytes(info), host);
    return for_each_part(info, [&](const ds_tensor_info& part, int64_t packed, char* staging) {
        const ds_status status = memory.read(part.data, tensor_extent(part), staging);
        if (!status) gather(part, staging, static_cast<char*>(host) + packed);
        return status;
    });
}

ds_status write_tensor(Memory& memory, const ds_tensor_info& info, const void* host) {
    DS_ASSERT(memory.contains(info.data, tensor_extent(info)));
    if (tensor_extent(info) == 0) return DS_STATUS_OK;
    if (is_contiguous(info)) return memory.write(info.data, tensor_bytes(info), host);
    return for_each_part(info, [&](const ds_tensor_info& part, int64_t packed, char* staging) {
        if (const ds_status status = memory.read(part.data, tensor_extent(part), staging)) return status;
        scatter(part, static_cast<const char*>(host) + packed, staging);
        return memory.write(part.data, tensor_extent(part), staging);
    });
}

}  // namespace doorstep
