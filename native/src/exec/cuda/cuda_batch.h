// Batches on CUDA devices: one launch on the caller's stream, which may be captured. A launch also needs kernels and a
// table. They are prepared beforehand, because they cannot be loaded during a capture.
#pragma once

#include "doorstep.h"

namespace doorstep {

// Kept from the first prepare() until as many releases, per device and number of agents.
ds_status prepare_on_cuda(const ds_batch& batch);
ds_status release_on_cuda(const ds_batch& batch);

// Sets scratch_bytes and smallest_scratch_bytes.
ds_status size_scratch_on_cuda(const ds_batch& batch, ds_batch_info* info);

// seed_and_offset: two words on the device, or null to use the numbers.
ds_status create_on_cuda(const ds_batch& batch, uint32_t seed, uint64_t world_offset, const uint32_t* seed_and_offset);
ds_status step_on_cuda(const ds_batch& batch);

// In the order of the stream.
ds_status copy_on_cuda(const ds_batch& batch, void* to, const void* from, int64_t bytes);
ds_status clear_on_cuda(const ds_batch& batch, void* memory, int64_t bytes);

}  // namespace doorstep
