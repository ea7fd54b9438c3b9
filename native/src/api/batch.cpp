// Batches: worlds in the caller's memory.
#include <string.h>

#include "api/arguments.h"
#include "api/call.h"
#include "exec/batch.h"
#include "exec/simulator.h"

namespace doorstep {
namespace {

// ---- Checks of every call: the batch's size and device

ds_status check_kind(const ds_batch& batch) {
    if (const ds_status status = check_num_agents(batch.num_agents)) return status;
    if (const ds_status status = check_range("max_levels", "0 plays the reference's levels only", batch.max_levels, 0,
                                             DS_MAX_LEVELS)) {
        return status;
    }
    if (const ds_status status = check_device(batch.device_kind, batch.device_index)) return status;
    if (batch.observations) {
        const char* remedy = "pass each ds_observation_part at most once, with a scale above 0";
        const ds_status status = check_observations(*batch.observations, batch.num_agents, remedy);
        if (status) return status;
    }
    return check_cpu();
}

bool is_on_cuda(const ds_batch& batch) { return batch.device_kind == DS_DEVICE_CUDA; }

// A forked process creates new threads for its batches.
ds_status watch_forks_of_batches() {
    if (has_fork_handlers()) return DS_STATUS_OK;
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "close other simulators, or raise the memory limit",
                "no memory is left for the fork handlers");
}

// ---- Checks of calls that work on worlds

ds_status check_rules(const ds_batch& batch) {
    if (const ds_status status = check_num_worlds(batch.num_worlds)) return status;
    if (const ds_status status = check_episode_length(batch.episode_length)) return status;
    if (const ds_status status = check_flag("auto_reset", batch.auto_reset)) return status;
    if (batch.action_check == DS_ACTION_CHECK_CLAMP || batch.action_check == DS_ACTION_CHECK_OFF) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "action_check", "pass DS_ACTION_CHECK_CLAMP or DS_ACTION_CHECK_OFF",
                "a batch clamps actions or leaves them unchecked; it cannot refuse a step (action_check is %d)",
                batch.action_check);
}

// alignment: a power of two
ds_status check_address(const char* argument, const void* address, uint64_t alignment) {
    if (!address) return fail_null(argument);
    if ((reinterpret_cast<uint64_t>(address) & (alignment - 1)) == 0) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass memory that begins at a multiple of the alignment",
                "%s is at %p; it must be aligned to %lu bytes", argument, address, alignment);
}

constexpr uint64_t kAlignments[DS_TENSOR_COUNT] = {
#define DS_ALIGNMENT(name, dtype, ...) sizeof(Element_##dtype),
    DS_TENSOR_TABLE(DS_ALIGNMENT)
#undef DS_ALIGNMENT
};

bool may_be_absent(const ds_batch& batch, const TensorRow& row) {
    return row.presence == Presence::FLAT || (row.presence == Presence::LEVELS && batch.max_levels == 0);
}

// The common case, without a branch per tensor.
bool all_in_order(const ds_batch& batch) {
    uint64_t wrong = 0;
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        const uint64_t address = reinterpret_cast<uint64_t>(batch.tensors[tensor]);
        wrong |= address & (kAlignments[tensor] - 1);
        wrong |= static_cast<uint64_t>(!address & !may_be_absent(batch, kTensorRows[tensor]));
    }
    return wrong == 0;
}

ds_status check_addresses(const ds_batch& batch) {
    if (const ds_status status = check_address("worlds", batch.worlds, 64)) return status;
    if (!batch.tensors) return fail_null("tensors");
    if (all_in_order(batch)) return DS_STATUS_OK;
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        const void* address = batch.tensors[tensor];
        const TensorRow& row = kTensorRows[tensor];
        if (!address && may_be_absent(batch, row)) continue;
        if (const ds_status status = check_address(row.name, address, kAlignments[tensor])) return status;
    }
    return DS_STATUS_OK;
}

// Its contents are the caller's promise: checks would take longer than the steps of few worlds, and cannot be made on a
// device.
ds_status check_table(const ds_batch& batch) {
    return batch.max_levels > 0 ? check_address("levels", batch.levels, alignof(ds_level)) : DS_STATUS_OK;
}

ds_status check_given(const ds_batch& batch) { return batch.reward ? check_rewards(*batch.reward) : DS_STATUS_OK; }

ds_status check_batch(const ds_batch& batch) {
    if (const ds_status status = check_kind(batch)) return status;
    if (const ds_status status = check_rules(batch)) return status;
    if (const ds_status status = check_addresses(batch)) return status;
    if (const ds_status status = check_table(batch)) return status;
    if (const ds_status status = check_given(batch)) return status;
    if (is_on_cuda(batch)) return check_address("scratch", batch.scratch, 256);
    return watch_forks_of_batches();
}

ds_status copy(const ds_batch& batch, void* to, const void* from, int64_t bytes) {
    if (is_on_cuda(batch)) return copy_on_cuda(batch, to, from, bytes);
    memcpy(to, from, static_cast<size_t>(bytes));
    return DS_STATUS_OK;
}

ds_status clear(const ds_batch& batch, void* memory, int64_t bytes) {
    if (is_on_cuda(batch)) return clear_on_cuda(batch, memory, bytes);
    memset(memory, 0, static_cast<size_t>(bytes));
    return DS_STATUS_OK;
}

// seed_and_offset: on the batch's device; null: use the numbers instead.
ds_status create_checked(const ds_batch& batch, uint32_t seed, uint64_t world_offset, const uint32_t* seed_and_offset) {
    // Cleared first: the bytes between two worlds belong to the first one's block
    const int64_t world_bytes = static_cast<int64_t>(prepared_model(kind_of(batch)).world_bytes);
    if (const ds_status status = clear(batch, batch.worlds, batch.num_worlds * world_bytes)) return status;
    if (is_on_cuda(batch)) return create_on_cuda(batch, seed, world_offset, seed_and_offset);
    return create_on_cpu(batch, seed_and_offset ? seed_and_offset[0] : seed,
                         seed_and_offset ? seed_and_offset[1] : world_offset);
}

ds_status step_checked(const ds_batch& batch) { return is_on_cuda(batch) ? step_on_cuda(batch) : step_on_cpu(batch); }

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_batch_get_info(const ds_batch* batch, ds_batch_info* info) {
    const Given<ds_batch> given(batch, "batch");
    if (given.status()) return given.status();
    if (const ds_status status = check_kind(*given)) return status;
    Results<ds_batch_info> results(info, "info");
    if (results.status()) return results.status();
    if (const ds_status status = check_num_worlds(given->num_worlds)) return status;
    const WorldModel& model = prepared_model(kind_of(*given));
    const int64_t world_bytes = static_cast<int64_t>(model.world_bytes);
    ds_batch_info found = {sizeof found, layout_of(*given).size, world_bytes, 0, 0};
    if (is_on_cuda(*given))
        if (const ds_status status = size_scratch_on_cuda(*given, &found)) return status;
    *results.fields() = found;
    return results.give();
}

ds_status ds_batch_prepare(const ds_batch* batch) {
    const Given<ds_batch> given(batch, "batch");
    if (given.status()) return given.status();
    if (const ds_status status = check_kind(*given)) return status;
    return is_on_cuda(*given) ? prepare_on_cuda(*given) : DS_STATUS_OK;
}

ds_status ds_batch_release(const ds_batch* batch) {
    const Given<ds_batch> given(batch, "batch");
    if (given.status()) return given.status();
    if (const ds_status status = check_kind(*given)) return status;
    return is_on_cuda(*given) ? release_on_cuda(*given) : DS_STATUS_OK;
}

ds_status ds_batch_create(const ds_batch* batch, int64_t seed, int64_t world_offset) {
    const Given<ds_batch> given(batch, "batch");
    if (given.status()) return given.status();
    if (const ds_status status = check_batch(*given)) return status;
    if (const ds_status status = check_seed(seed)) return status;
    if (const ds_status status = check_world_offset(world_offset, given->num_worlds)) return status;
    return create_checked(*given, static_cast<uint32_t>(seed), static_cast<uint64_t>(world_offset), nullptr);
}

ds_status ds_batch_create_from(const ds_batch* batch, const uint32_t* seed_and_offset) {
    const Given<ds_batch> given(batch, "batch");
    if (given.status()) return given.status();
    if (const ds_status status = check_batch(*given)) return status;
    if (const ds_status status = check_address("seed_and_offset", seed_and_offset, sizeof(uint32_t))) return status;
    return create_checked(*given, 0, 0, seed_and_offset);
}

ds_status ds_batch_step(const ds_batch* batch) {
    const Given<ds_batch> given(batch, "batch");
    if (given.status()) return given.status();
    if (const ds_status status = check_batch(*given)) return status;
    return step_checked(*given);
}

ds_status ds_batch_step_from(const ds_batch* batch, const int32_t* actions, const int32_t* resets) {
    const Given<ds_batch> given(batch, "batch");
    if (given.status()) return given.status();
    if (const ds_status status = check_batch(*given)) return status;
    if (const ds_status status = check_address("actions", actions, sizeof(int32_t))) return status;
    const int64_t reset_bytes = given->num_worlds * static_cast<int64_t>(sizeof(int32_t));
    const int64_t action_bytes = reset_bytes * given->num_agents * DS_ACTION_COMPONENT_COUNT;
    void* const* tensors = given->tensors;
    if (const ds_status status = copy(*given, tensors[DS_TENSOR_actions], actions, action_bytes)) return status;
    const ds_status status = resets ? copy(*given, tensors[DS_TENSOR_resets], resets, reset_bytes)
                                    : clear(*given, tensors[DS_TENSOR_resets], reset_bytes);
    return status ? status : step_checked(*given);
}
