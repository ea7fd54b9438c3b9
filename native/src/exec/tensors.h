// Tensors and state fields as data: the rows of the tables of doorstep.h, descriptions made from them, and copies
// between tensors in a simulator's memory, of any strides and on any device, and contiguous host arrays.
#pragma once

#include <stdint.h>

#include "doorstep/rooms.h"
#include "math/base.h"
#include "runtime/memory.h"

namespace doorstep {

// ---- The tables

// Which simulators have a tensor: all, those with flat observations, those with max_levels.
enum class Presence { ALWAYS, FLAT, LEVELS };

// The columns of DS_TENSOR_TABLE; state fields have those of the first line only.
struct TensorRow {
    const char* name;
    ds_dtype dtype;
    const char* shape;  // "N,A,4"
    ds_access access;

    Presence presence = Presence::ALWAYS;
    bool outlives_step = false;  // written where an episode ends, and kept until the next one does
    bool saved = false;
};

namespace columns {
constexpr bool STEP = false, EPISODE = true;
constexpr bool UNSAVED = false, SAVED = true;
}  // namespace columns

inline constexpr TensorRow kTensorRows[DS_TENSOR_COUNT] = {
#define DS_ROW(name, dtype, shape, access, presence, lifetime, saving, sentence) \
    {#name, DS_DTYPE_##dtype, shape, DS_ACCESS_##access, Presence::presence, columns::lifetime, columns::saving},
    DS_TENSOR_TABLE(DS_ROW)
#undef DS_ROW
};
inline constexpr TensorRow kStateRows[DS_STATE_COUNT] = {
#define DS_ROW(name, dtype, shape, access, sentence) {#name, DS_DTYPE_##dtype, shape, DS_ACCESS_##access},
    DS_STATE_TABLE(DS_ROW)
#undef DS_ROW
};

// Bytes of an element.
constexpr int64_t dtype_bytes(int32_t dtype) {
#define DS_BYTES(name, number, type, dlpack_code) sizeof(type),
    constexpr int64_t kBytes[DS_DTYPE_COUNT] = {DS_DTYPE_TABLE(DS_BYTES)};
#undef DS_BYTES
    DS_ASSERT(dtype >= 0 && dtype < DS_DTYPE_COUNT);
    return kBytes[dtype];
}

// ---- Descriptions

// The values of a shape's symbols in one simulator.
struct Dimensions {
    int64_t num_worlds;             // N
    int64_t num_agents;             // A
    int64_t flat_observation_size;  // F
    int64_t max_levels;             // L
};

// Fills in dtype, access, rank, shape and C-contiguous strides of a tensor; not its address.
void describe_tensor(const TensorRow& row, const Dimensions& dimensions, ds_tensor_info* info);

// Bytes of a described C-contiguous tensor.
int64_t tensor_bytes(const ds_tensor_info& info);

// Bytes from the start of the first to the end of the last element. -1 unless strides are nonnegative multiples of the
// element size and the product stays in range.
int64_t tensor_extent(const ds_tensor_info& info);

// ---- Copies

// The description has been checked and is inside the memory. OUT_OF_MEMORY if the staging for a tensor that is not
// contiguous cannot be allocated; otherwise as Memory::read() and write(). A write keeps the bytes between elements.
ds_status read_tensor(Memory& memory, const ds_tensor_info& info, void* host);
ds_status write_tensor(Memory& memory, const ds_tensor_info& info, const void* host);

}  // namespace doorstep
