// CUDA resources that are shared with other APIs of the process: exported and imported memory, semaphores.
#include <unistd.h>

#include "api/resource.h"
#include "runtime/cuda/exported_memory.h"
#include "runtime/cuda/imported_memory.h"
#include "runtime/cuda/semaphore.h"

using namespace doorstep;

namespace {

ds_status check_flag(const char* argument, int32_t value) {
    return check_range(argument, "pass 0 or 1", value, 0, 1);
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
                "value is %llu, but the semaphore is binary", static_cast<unsigned long long>(value));
}

}  // namespace

// ---- Memory ----

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
