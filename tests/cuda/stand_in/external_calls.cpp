// The driver's functions for memory and semaphores that another API of the process has exported.
#include <sys/mman.h>

#include "driver.h"
#include "functions.h"

using namespace stand_in;

// As NVIDIA documents them; parts of handles for systems other than Linux are omitted.
struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    int kind;
    alignas(8) int descriptor;
    void* unused;
    uint64_t bytes;
    uint32_t flags, reserved[16];
};

struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    uint64_t offset, bytes;
    uint32_t flags, reserved[16];
};

struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
    int kind;
    alignas(8) int descriptor;
    void* unused;
    uint32_t flags, reserved[16];
};

struct CUDA_EXTERNAL_SEMAPHORE_PARAMS {
    uint64_t value, others[8];
    uint32_t flags, reserved[16];
};

namespace {

template <class Described>
bool is_plain(const Described& described) {
    uint32_t sum = 0;
    for (const uint32_t word : described.reserved) sum |= word;
    return sum == 0;
}

uint64_t load(const uint64_t* value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }

// Checks and sets the value of a binary semaphore or a timeline.
void signal(ExternalSemaphore& semaphore, uint64_t value) {
    const uint64_t before = load(semaphore.value);
    if (semaphore.timeline ? value <= before : before != 0)
        driver().report.violation(text("a semaphore that is at %lu is set to %lu", before, value));
    __atomic_store_n(semaphore.value, semaphore.timeline ? value : 1, __ATOMIC_RELEASE);
    --semaphore.unfinished;
}

bool is_signalled(const ExternalSemaphore& semaphore, uint64_t value) {
    return semaphore.timeline ? load(semaphore.value) >= value : load(semaphore.value) != 0;
}

void end_wait(ExternalSemaphore& semaphore) {
    if (!semaphore.timeline) __atomic_store_n(semaphore.value, 0, __ATOMIC_RELEASE);
    --semaphore.unfinished;
}

int begin_semaphores(const char* function, const uint64_t* handles, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* params,
                     unsigned count, uint64_t stream_handle, bool waits) {
    Stream* stream = find_stream(function, stream_handle);
    if (!stream) return kInvalidHandle;
    for (unsigned i = 0; i < count; ++i) {
        const auto semaphore = find(function, driver().external_semaphores, handles[i]);
        if (!semaphore) return kInvalidHandle;
        if (semaphore->context != stream->context)
            return refuse(kInvalidHandle, text("%s: the semaphore is of another context than the stream", function));
        if (!is_plain(params[i]) || params[i].flags || (!semaphore->timeline && params[i].value))
            return refuse(kInvalidValue, text("%s: a value or flags of no meaning", function));
        const uint64_t value = params[i].value;
        Task task{text("%s semaphore %#lx", waits ? "waiting for" : "signalling", handles[i])};
        task.begun = [semaphore](const OperationRef&) { ++semaphore->unfinished; };
        if (waits) {
            task.ready = [semaphore, value] { return is_signalled(*semaphore, value); };
            task.run = [semaphore] { end_wait(*semaphore); };
        } else {
            task.run = [semaphore, value] { signal(*semaphore, value); };
        }
        if (const int code = begin(*stream, std::move(task))) return code;
    }
    return kSuccess;
}

}  // namespace

// Afterwards the memory that imported the buffer may be destroyed.
int stand_in::free_external_buffer(const AllocationRef& allocation) {
    for (const auto& [handle, memory] : driver().external_memories.alive) {
        if (memory->buffer != allocation) continue;
        check_unused("cuMemFree", *allocation);
        allocation->freeing = true;
        forget(allocation);
        memory->buffer = nullptr;
        return kSuccess;
    }
    return refuse(kInvalidValue, "cuMemFree: the memory is mapped, and has to be unmapped");
}

extern "C" {

// On success the driver takes the file descriptor over.
int cuImportExternalMemory(uint64_t* handle, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* described) {
    return call("cuImportExternalMemory", [&]() -> int {
        Context* context = current_context("cuImportExternalMemory");
        if (!context) return kInvalidContext;
        if (described->kind != kOpaqueDescriptor || !is_plain(*described) || described->flags & ~uint32_t{kDedicated})
            return refuse(kInvalidValue, "cuImportExternalMemory: the description");
        const FileDescriptor file = FileDescriptor::of(described->descriptor);
        if (file.number < 0) return kOperatingSystem;
        if (file.name() != (described->flags ? "dedicated-memory" : "memory")) return kInvalidValue;
        if (described->bytes == 0 || described->bytes > file.size()) return kInvalidValue;
        *handle = driver().external_memories.add({context, described->bytes, file, nullptr});
        return kSuccess;
    });
}

int cuExternalMemoryGetMappedBuffer(uint64_t* address, uint64_t handle,
                                    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* described) {
    return call("cuExternalMemoryGetMappedBuffer", [&]() -> int {
        const auto memory = find("cuExternalMemoryGetMappedBuffer", driver().external_memories, handle);
        if (!memory) return kInvalidHandle;
        if (!is_plain(*described) || described->flags || described->offset || described->bytes != memory->bytes)
            return refuse(kInvalidValue, "cuExternalMemoryGetMappedBuffer: only a buffer of everything is known");
        if (memory->buffer) return refuse(kInvalidValue, "cuExternalMemoryGetMappedBuffer: it is mapped already");
        memory->buffer = map_file(memory->file.number, memory->bytes, memory->context->device);
        if (!memory->buffer) return kOutOfMemory;
        *address = memory->buffer->address;
        driver().memory[*address] = memory->buffer;
        return kSuccess;
    });
}

int cuDestroyExternalMemory(uint64_t handle) {
    return call("cuDestroyExternalMemory", [&]() -> int {
        const auto memory = find("cuDestroyExternalMemory", driver().external_memories, handle);
        if (!memory) return kInvalidHandle;
        if (memory->buffer) return refuse(kInvalidHandle, "cuDestroyExternalMemory: its buffer has not been freed");
        close_owned("cuDestroyExternalMemory", memory->file);
        driver().external_memories.alive.erase(handle);
        return kSuccess;
    });
}

int cuImportExternalSemaphore(uint64_t* handle, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* described) {
    return call("cuImportExternalSemaphore", [&]() -> int {
        Context* context = current_context("cuImportExternalSemaphore");
        if (!context) return kInvalidContext;
        const bool timeline = described->kind == kTimelineSemaphore;
        if ((!timeline && described->kind != kBinarySemaphore) || !is_plain(*described) || described->flags)
            return refuse(kInvalidValue, "cuImportExternalSemaphore: the description");
        if (timeline && !driver().settings.sharing) return refuse(kNotSupported, "cuImportExternalSemaphore: timeline");
        const FileDescriptor file = FileDescriptor::of(described->descriptor);
        if (file.number < 0) return kOperatingSystem;
        if (file.name() != (timeline ? "timeline-semaphore" : "binary-semaphore")) return kInvalidValue;
        void* value = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
        if (value == MAP_FAILED) return kOperatingSystem;
        *handle = driver().external_semaphores.add({context, timeline, file, static_cast<uint64_t*>(value)});
        return kSuccess;
    });
}

int cuSignalExternalSemaphoresAsync(const uint64_t* semaphores, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* params,
                                    unsigned count, uint64_t stream) {
    return call("cuSignalExternalSemaphoresAsync", [&] {
        return begin_semaphores("cuSignalExternalSemaphoresAsync", semaphores, params, count, stream, false);
    });
}

int cuWaitExternalSemaphoresAsync(const uint64_t* semaphores, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* params,
                                  unsigned count, uint64_t stream) {
    return call("cuWaitExternalSemaphoresAsync", [&] {
        return begin_semaphores("cuWaitExternalSemaphoresAsync", semaphores, params, count, stream, true);
    });
}

int cuDestroyExternalSemaphore(uint64_t handle) {
    return call("cuDestroyExternalSemaphore", [&]() -> int {
        const auto semaphore = find("cuDestroyExternalSemaphore", driver().external_semaphores, handle);
        if (!semaphore) return kInvalidHandle;
        if (semaphore->unfinished)
            return refuse(kInvalidHandle, "cuDestroyExternalSemaphore: work with it has not ended");
        munmap(semaphore->value, sizeof(uint64_t));
        close_owned("cuDestroyExternalSemaphore", semaphore->file);
        driver().external_semaphores.alive.erase(handle);
        return kSuccess;
    });
}

}  // extern "C"
