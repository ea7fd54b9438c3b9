// Batches: worlds whose blocks and tensors are in the caller's memory. Nothing here checks arguments (api/ does).
#pragma once

#include "doorstep/rooms.h"
#include "exec/arena.h"
#include "sim/observation_layout.h"
#include "sim/reference_level.h"

namespace doorstep {

inline FlatLayout layout_of(const ds_batch& batch) {
    const ds_observations& parts = batch.observations ? *batch.observations : kDefaultObservations;
    return layout_of(parts, static_cast<int>(batch.num_agents));
}

// ds_batch in the terms of the simulation.
inline Simulation simulation_of(const ds_batch& batch) {
    const Rules rules{static_cast<int32_t>(batch.episode_length), batch.auto_reset, batch.action_check, 0};
    return {batch.worlds,     tensors_of(batch.tensors), rules,           batch.levels,
            batch.max_levels, given(batch.reward),       layout_of(batch), static_cast<int32_t>(batch.num_agents)};
}

inline WorldKind kind_of(const ds_batch& batch) { return {static_cast<int>(batch.num_agents), batch.max_levels > 0}; }

// ---- On the CPU. The calling thread steps a small batch; larger ones take turns on threads that the whole process
// shares. They are created for the first such batch and kept until the process ends.

ds_status create_on_cpu(const ds_batch& batch, uint32_t seed, uint64_t world_offset);
ds_status step_on_cpu(const ds_batch& batch);

// Around a fork: between the first call and one of the others, the threads work on no batch.
void lock_batch_threads();
void unlock_batch_threads();
void forget_batch_threads();  // in the child, where they do not exist

// ---- On CUDA devices: one launch on the caller's stream, which may be captured. A launch also needs kernels and a
// table. They are prepared beforehand, because they cannot be loaded during a capture.

// Kept from the first prepare() until as many releases, per device and kind of world.
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
