// CUDA resources for memory: memory pools, device memory, pinned memory; and copies.
#include "api/resource.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/cuda/pinned_memory.h"

namespace doorstep {

ds_status check_bytes(uint64_t bytes) {
    if (bytes) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "bytes", "request at least one byte", "bytes is 0");
}

}  // namespace doorstep

using namespace doorstep;

namespace {

ds_status check_pitch(const char* argument, uint64_t pitch, const ds_row_copy& copy) {
    if (pitch >= copy.row_bytes) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass the distance in bytes between the starts of two rows",
                "%s is %llu, less than the %llu bytes of a row", argument, static_cast<unsigned long long>(pitch),
                static_cast<unsigned long long>(copy.row_bytes));
}

}  // namespace

// ---- Memory pools ----

ds_status ds_memory_pool_default(ds_resource context, ds_resource* pool) {
    if (!pool) return fail_null("pool");
    Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(MemoryPool::default_of(std::move(found)), pool) : last_status();
}

ds_status ds_memory_pool_create(ds_resource context, ds_resource* pool) {
    if (!pool) return fail_null("pool");
    Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(MemoryPool::create(std::move(found)), pool) : last_status();
}

ds_status ds_memory_pool_trim(ds_resource pool, uint64_t keep_bytes) {
    const Ref<MemoryPool> found = find_handle<MemoryPool>(pool, "pool");
    return found ? found->trim(keep_bytes) : last_status();
}

// ---- Device memory ----

ds_status ds_device_memory_create(ds_resource pool, ds_resource stream, uint64_t bytes, ds_resource* memory) {
    if (!memory) return fail_null("memory");
    if (const ds_status status = check_bytes(bytes)) return status;
    Ref<MemoryPool> from = find_handle<MemoryPool>(pool, "pool");
    if (!from) return last_status();
    Ref<Stream> on = find_handle<Stream>(stream, "stream");
    return on ? give_handle(DeviceMemory::create(std::move(from), std::move(on), bytes), memory) : last_status();
}

ds_status ds_device_memory_borrow(ds_resource context, uint64_t raw, uint64_t bytes, void* owner,
                                  ds_release_owner release_owner, ds_resource* memory) {
    if (!memory) return fail_null("memory");
    if (!raw) return fail_null("raw");
    if (const ds_status status = check_bytes(bytes)) return status;
    Ref<Context> found = find_handle<Context>(context, "context");
    if (!found) return last_status();
    return give_handle(DeviceMemory::borrow(std::move(found), raw, bytes, {owner, release_owner}), memory);
}

ds_status ds_device_memory_set_stream(ds_resource memory, ds_resource stream) {
    const Ref<DeviceMemory> freed = find_handle<DeviceMemory>(memory, "memory");
    if (!freed) return last_status();
    Ref<Stream> on = find_handle<Stream>(stream, "stream");
    return on ? freed->set_stream(std::move(on)) : last_status();
}

// ---- Pinned memory, copies ----

ds_status ds_pinned_memory_create(ds_resource context, uint64_t bytes, ds_resource* memory) {
    if (!memory) return fail_null("memory");
    if (const ds_status status = check_bytes(bytes)) return status;
    Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(PinnedMemory::create(std::move(found), bytes), memory) : last_status();
}

ds_status ds_copy(ds_resource stream, uint64_t to, uint64_t from, uint64_t bytes) {
    if (!to) return fail_null("to");
    if (!from) return fail_null("from");
    const Ref<Stream> found = find_handle<Stream>(stream, "stream");
    if (!found) return last_status();
    return bytes ? found->copy(to, from, bytes) : DS_STATUS_OK;
}

ds_status ds_copy_rows(ds_resource stream, const ds_row_copy* copy) {
    if (const ds_status status = check_struct(copy, "copy")) return status;
    if (!copy->destination) return fail_null("destination");
    if (!copy->source) return fail_null("source");
    if (const ds_status status = check_pitch("destination_pitch", copy->destination_pitch, *copy)) return status;
    if (const ds_status status = check_pitch("source_pitch", copy->source_pitch, *copy)) return status;
    const Ref<Stream> found = find_handle<Stream>(stream, "stream");
    if (!found) return last_status();
    return copy->row_bytes && copy->num_rows ? found->copy_rows(*copy) : DS_STATUS_OK;
}
