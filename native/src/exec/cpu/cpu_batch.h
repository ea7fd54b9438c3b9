// Batches on the CPU. A small one is worked on by the calling thread; larger ones take turns on threads that the whole
// process shares, made when the first of them comes and kept until the process ends.
#pragma once

#include "doorstep.h"

namespace doorstep {

ds_status create_on_cpu(const ds_batch& batch, uint32_t seed, uint64_t world_offset);
ds_status step_on_cpu(const ds_batch& batch);

// Around a fork: no batch is on the threads between the first and one of the others.
void lock_batch_threads();
void unlock_batch_threads();
void forget_batch_threads();  // in the child, where they are gone

}  // namespace doorstep
