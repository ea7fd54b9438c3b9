// CUDA resources for memory: pools, device memory, pinned memory, copies; and what is shared with other APIs of the
// process: exported and imported memory, semaphores.
#include <unistd.h>

#include "api/call.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/cuda/sharing.h"

using namespace doorstep;

namespace {

constexpr uint64_t kMostPitch = INT32_MAX;  // CU_DEVICE_ATTRIBUTE_MAX_PITCH of every device

ds_status check_pitch(const char* argument, uint64_t pitch, const ds_row_copy& copy) {
    if (pitch > kMostPitch) {
        return fail(DS_STATUS_INVALID_ARGUMENT, argument, "copy the rows one by one", "%s is %lu; it must be at most %lu",
                    argument, pitch, kMostPitch);
    }
    if (pitch >= copy.row_bytes) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass the distance in bytes between the starts of two rows",
                "%s is %lu, less than the %lu bytes of a row", argument, pitch, copy.row_bytes);
}

ds_status check_descriptor(int32_t fd) {
    return check_range("fd", "pass an open file descriptor", fd, 0, INT32_MAX);
}

// A successful import takes the caller's descriptor over.
ds_status give_handle_for(int32_t fd, Ref<Resource> imported, ds_resource* handle) {
    const ds_status status = give_handle(std::move(imported), handle);
    if (!status) close(fd);
    return status;
}

// Binary semaphores have no value.
ds_status check_value(const Semaphore& semaphore, uint64_t value) {
    if (semaphore.is_timeline() || value == 0) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "value", "pass 0, or import a timeline semaphore",
                "value is %lu, but the semaphore is binary", value);
}

}  // namespace

// ---- Memory pools ----

ds_status ds_memory_pool_default(ds_resource context, ds_resource* pool) {
    if (!pool) return fail_null("pool");
    Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(MemoryPool::default_of(std::move(found)), pool) : last_status();
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

ds_status ds_clear(ds_resource stream, uint64_t to, uint64_t bytes) {
    if (!to) return fail_null("to");
    const Ref<Stream> found = find_handle<Stream>(stream, "stream");
    if (!found) return last_status();
    return bytes ? found->fill(to, 0, bytes) : DS_STATUS_OK;
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

// ---- Shared memory ----

ds_status ds_exported_memory_create(ds_resource stream, uint64_t bytes, ds_resource* memory) {
    if (!memory) return fail_null("memory");
    if (const ds_status status = check_bytes(bytes)) return status;
    Ref<Stream> found = find_handle<Stream>(stream, "stream");
    return found ? give_handle(ExportedMemory::create(std::move(found), bytes), memory) : last_status();
}

ds_status ds_exported_memory_export(ds_resource memory, int32_t* fd) {
    if (!fd) return fail_null("fd");
    const Ref<ExportedMemory> found = find_handle<ExportedMemory>(memory, "memory");
    return found ? found->export_descriptor(fd) : last_status();
}

ds_status ds_imported_memory_create(ds_resource stream, int32_t fd, uint64_t bytes, int32_t dedicated,
                                    ds_resource* memory) {
    if (!memory) return fail_null("memory");
    if (const ds_status status = check_descriptor(fd)) return status;
    if (const ds_status status = check_bytes(bytes)) return status;
    if (const ds_status status = check_flag("dedicated", dedicated)) return status;
    Ref<Stream> found = find_handle<Stream>(stream, "stream");
    if (!found) return last_status();
    return give_handle_for(fd, ImportedMemory::create(std::move(found), fd, bytes, dedicated == 1), memory);
}

// ---- Semaphores ----

ds_status ds_semaphore_import(ds_resource context, int32_t fd, int32_t timeline, ds_resource* semaphore) {
    if (!semaphore) return fail_null("semaphore");
    if (const ds_status status = check_descriptor(fd)) return status;
    if (const ds_status status = check_flag("timeline", timeline)) return status;
    Ref<Context> found = find_handle<Context>(context, "context");
    if (!found) return last_status();
    return give_handle_for(fd, Semaphore::import(std::move(found), fd, timeline == 1), semaphore);
}

ds_status ds_semaphore_signal(ds_resource semaphore, ds_resource stream, uint64_t value) {
    const Ref<Semaphore> found = find_handle<Semaphore>(semaphore, "semaphore");
    if (!found) return last_status();
    const Ref<Stream> on = find_handle<Stream>(stream, "stream");
    if (!on) return last_status();
    if (const ds_status status = check_value(*found, value)) return status;
    return found->signal(*on, value);
}

ds_status ds_semaphore_wait(ds_resource semaphore, ds_resource stream, uint64_t value) {
    const Ref<Semaphore> found = find_handle<Semaphore>(semaphore, "semaphore");
    if (!found) return last_status();
    const Ref<Stream> on = find_handle<Stream>(stream, "stream");
    if (!on) return last_status();
    if (const ds_status status = check_value(*found, value)) return status;
    return found->wait(*on, value);
}
