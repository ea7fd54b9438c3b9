// Host reads and writes of worlds on a CUDA device, in runs copied through pinned memory.
#include "exec/cuda/cuda_simulator.h"
#include "exec/cuda/world_staging.h"
#include "runtime/hash.h"

namespace doorstep {
namespace {

// Calls function(index in the list, index in the run) for every listed world of a run.
template <class Function>
void for_each_listed(const WorldList& worlds, int64_t first, int64_t count, const Function& function) {
    for (int64_t i = 0; i < worlds.size; ++i) {
        const int64_t place = worlds[i] - first;
        if (place >= 0 && place < count) function(i, place);
    }
}

}  // namespace

ds_status CudaSimulator::visit_blocks(const uint8_t* mask, VisitBlock visit, void* context) {
    WorldStaging staging(*order_, saved_parts(*this), kBlockPart, kBlockPart + 1, world_staging_);
    const int64_t world_bytes = static_cast<int64_t>(model_->world_bytes);
    return staging.for_each_run(config_.num_worlds, mask, "a read of the worlds", [&](int64_t first, int64_t count) {
        if (const ds_status status = staging.read(first, count)) return status;
        const char* blocks = staging.host().parts[kBlockPart].start;
        for (int64_t i = 0; i < count; ++i) {
            if (!mask || mask[first + i]) visit(context, first + i, blocks + i * world_bytes);
        }
        return DS_STATUS_OK;
    });
}

ds_status CudaSimulator::hash(const uint8_t* mask, uint64_t* hashes, uint64_t* sum) {
    uint64_t total = 0;
    const ds_status status = visit_blocks(mask, [&](int64_t world, const char* block) {
        const uint64_t hash = hash_bytes(block, model_->world_bytes);
        if (hashes) hashes[world] = hash;
        total += hash;
    });
    if (!status) *sum = total;
    return status;
}

ds_status CudaSimulator::find_bad_action(bool* found, BadAction* bad) {
    WorldStaging staging(*order_, saved_parts(*this), kActionPart, kActionPart + 1, world_staging_);
    Simulation staged = simulation_;
    staged.tensors.actions = reinterpret_cast<int32_t*>(staging.host().parts[kActionPart].start);
    *found = false;
    const char* operation = "a check of the actions (create the simulator with action_check=\"clamp\")";
    return staging.for_each_run(config_.num_worlds, nullptr, operation, [&](int64_t first, int64_t count) {
        if (*found) return DS_STATUS_OK;
        if (const ds_status status = staging.read(first, count)) return status;
        *found = model_->find_bad_action(staged, 0, count, bad);
        if (*found) bad->world += first;
        return DS_STATUS_OK;
    });
}

ds_status CudaSimulator::save(const WorldList& worlds, char* saved) {
    WorldStaging staging(*order_, saved_parts(*this), 0, kSavedParts, world_staging_);
    const int64_t bytes = staging.host().bytes();
    return staging.for_each_run(config_.num_worlds, worlds.mask, "a save", [&](int64_t first, int64_t count) {
        if (const ds_status status = staging.read(first, count)) return status;
        for_each_listed(worlds, first, count, [&](int64_t i, int64_t place) {
            staging.host().save(place, saved + i * bytes);
        });
        return DS_STATUS_OK;
    });
}

ds_status CudaSimulator::restore(const WorldList& worlds, const char* saved) {
    WorldStaging staging(*order_, saved_parts(*this), 0, kSavedParts, world_staging_);
    const int64_t bytes = staging.host().bytes();
    return staging.for_each_run(config_.num_worlds, worlds.mask, "a restore", [&](int64_t first, int64_t count) {
        if (const ds_status status = staging.read(first, count)) return status;  // keeps the worlds that are not listed
        for_each_listed(worlds, first, count, [&](int64_t i, int64_t place) {
            staging.host().restore(place, saved + i * bytes);
        });
        return staging.write(first, count);
    });
}

}  // namespace doorstep
