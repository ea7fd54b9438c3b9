// A batch: worlds whose blocks and tensors are in the caller's memory. ds_batch in the terms of the simulation and the
// executors. Nothing here checks arguments (api/ does).
#pragma once

#include "doorstep.h"
#include "sim/world_model.h"

namespace doorstep {

inline TensorPointers tensors_of(void* const* addresses) {
    TensorPointers tensors;
#define DS_SET_POINTER(name, dtype, shape, access, sentence) \
    tensors.name = static_cast<DS_CTYPE_##dtype*>(addresses[DS_TENSOR_##name]);
    DS_TENSOR_TABLE(DS_SET_POINTER)
#undef DS_SET_POINTER
    return tensors;
}

inline Simulation simulation_of(const ds_batch& batch) {
    const Rules rules{static_cast<int32_t>(batch.episode_length), batch.auto_reset, batch.action_check, 0};
    return {batch.worlds, tensors_of(batch.tensors), rules};
}

}  // namespace doorstep
