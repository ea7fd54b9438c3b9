// Batches on the CPU. The calling thread steps a small one; larger ones take turns on threads that the whole process
// shares. They are created for the first such batch and kept until the process ends.
#pragma once

#include "doorstep.h"

namespace doorstep {

ds_status create_on_cpu(const ds_batch& batch, uint32_t seed, uint64_t world_offset);
ds_status step_on_cpu(const ds_batch& batch);

// Around a fork: between the first call and one of the others, the threads work on no batch.
void lock_batch_threads();
void unlock_batch_threads();
void forget_batch_threads();  // in the child, where they do not exist

}  // namespace doorstep
