#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "functions.h"

namespace stand_in {

FileDescriptor FileDescriptor::of(int number) {
    struct stat status;
    if (fstat(number, &status)) return {};
    return {number, status.st_dev, status.st_ino};
}

bool FileDescriptor::is_open() const {
    const FileDescriptor now = of(number);
    return now.number >= 0 && now.device == device && now.file == file;
}

uint64_t FileDescriptor::size() const {
    struct stat status;
    return fstat(number, &status) ? 0 : static_cast<uint64_t>(status.st_size);
}

// The link of a memory file reads "/memfd:name (deleted)".
std::string FileDescriptor::name() const {
    char target[PATH_MAX];
    const ssize_t length = readlink(text("/proc/self/fd/%d", number).c_str(), target, sizeof target);
    const std::string link(target, length > 0 ? static_cast<size_t>(length) : 0), prefix = "/memfd:";
    if (!link.starts_with(prefix)) return "";
    return link.substr(prefix.size(), link.find(' ') - prefix.size());
}

FileDescriptor make_file(const char* name, uint64_t bytes) {
    const int number = memfd_create(name, MFD_CLOEXEC);
    if (number < 0 || ftruncate(number, static_cast<off_t>(bytes))) return {};
    return FileDescriptor::of(number);
}

void close_owned(const FileDescriptor& descriptor) {
    if (descriptor.is_open()) close(descriptor.number);
    else refuse(0, text("somebody else has closed file descriptor %d", descriptor.number));
}

}  // namespace stand_in

using namespace stand_in;

// ---- Allocations, address ranges, mappings and exports

// As NVIDIA documents them.
struct CUmemAllocationProp {
    int kind, exports, location_kind, location;
    void* security;
    unsigned char compression, remote;
    unsigned short usage;
    unsigned char reserved[4];
};

struct CUmemAccessDesc { int location_kind, location, flags; };

namespace {

int check_properties(const CUmemAllocationProp& properties) {
    const bool of_device = properties.kind == kAllocationPinned && properties.location_kind == kLocationDevice;
    REFUSE_IF(!of_device || properties.security, kInvalidValue, "only pinned memory of a device is known");
    if (properties.location < 0 || properties.location >= driver().settings.devices) return kInvalidDevice;
    REFUSE_IF(properties.exports & ~kExportFileDescriptor, kInvalidValue, "exports are %d", properties.exports);
    return driver().settings.sharing ? kSuccess : kNotSupported;
}

// The reserved range with exactly these addresses; null after a violation.
AddressRange* find_range(uint64_t address, uint64_t bytes) {
    const auto found = driver().address_ranges.find(address);
    if (found != driver().address_ranges.end() && found->second.bytes == bytes) return &found->second;
    refuse(0, text("%lu bytes at %#lx are no range that was reserved", bytes, address));
    return nullptr;
}

}  // namespace

#define FIND_RANGE(variable, address, bytes)                    \
    AddressRange* const variable = find_range(address, bytes);  \
    if (!variable) return kInvalidValue

STAND_IN(cuMemGetAllocationGranularity, 10020, (size_t* granularity, const CUmemAllocationProp* properties, int), {
    *granularity = kGranularity;
    return check_properties(*properties);
})

STAND_IN(cuMemCreate, 10020,
         (uint64_t* handle, size_t bytes, const CUmemAllocationProp* properties, unsigned long long flags), {
    TRY(check_properties(*properties));
    REFUSE_IF(flags || bytes == 0 || bytes % kGranularity, kInvalidValue, "%lu bytes, flags %llu", bytes, flags);
    const int device = properties->location;
    const int64_t most = driver().settings.memory_bytes - static_cast<int64_t>(bytes);
    if (driver().used_bytes(device) > most) return kOutOfMemory;
    const FileDescriptor file = make_file("memory", bytes);
    if (file.number < 0) return kOutOfMemory;
    *handle = driver().physical_memories.add({device, bytes, file});
})

// The bytes exist until all mappings and imports end.
STAND_IN(cuMemRelease, 10020, (uint64_t handle), {
    FIND(memory, physical_memories, handle);
    close_owned(memory->file);
    driver().physical_memories.alive.erase(handle);
})

STAND_IN(cuMemExportToShareableHandle, 10020, (void* exported, uint64_t handle, int kind, unsigned long long flags), {
    FIND(memory, physical_memories, handle);
    REFUSE_IF(kind != kExportFileDescriptor || flags, kInvalidValue, "kind %d, flags %llu", kind, flags);
    const int number = fcntl(memory->file.number, F_DUPFD, 0);
    if (number < 0) return kOperatingSystem;
    std::erase_if(driver().exported_descriptors, [&](const FileDescriptor& earlier) {
        return !earlier.is_open() || earlier.number == number;
    });
    driver().exported_descriptors.push_back(FileDescriptor::of(number));
    *static_cast<int*>(exported) = number;
})

STAND_IN(cuMemAddressReserve, 10020,
         (uint64_t* address, size_t bytes, size_t alignment, uint64_t wanted, unsigned long long flags), {
    const bool has_options = alignment || wanted || flags;
    REFUSE_IF(has_options || bytes == 0 || bytes % kGranularity, kInvalidValue, "%lu bytes, or an option", bytes);
    *address = reserve_addresses(bytes, kGranularity);
    if (!*address) return kOutOfMemory;
    driver().address_ranges[*address] = {bytes, nullptr};
})

STAND_IN(cuMemAddressFree, 10020, (uint64_t address, size_t bytes), {
    FIND_RANGE(range, address, bytes);
    REFUSE_IF(range->mapped, kInvalidValue, "memory is mapped there");
    driver().address_ranges.erase(address);
})

STAND_IN(cuMemMap, 10020, (uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags), {
    FIND_RANGE(range, address, bytes);
    FIND(memory, physical_memories, handle);
    const bool is_whole = !offset && !flags && bytes == memory->bytes;
    REFUSE_IF(range->mapped || !is_whole, kInvalidValue, "the range is in use, or not that of all the memory");
    range->mapped = map_file(memory->file.number, bytes, memory->device, address);
    if (!range->mapped) return kOutOfMemory;
    range->mapped->accessible = false;
    driver().memory[address] = range->mapped;
})

STAND_IN(cuMemUnmap, 10020, (uint64_t address, size_t bytes), {
    FIND_RANGE(range, address, bytes);
    REFUSE_IF(!range->mapped, kInvalidValue, "nothing is mapped there");
    TRY(refuse_beside_capture());
    check_unused(*range->mapped);
    range->mapped->freeing = true;
    forget(range->mapped);
    range->mapped = nullptr;
})

STAND_IN(cuMemSetAccess, 10020, (uint64_t address, size_t bytes, const CUmemAccessDesc* access, size_t count), {
    FIND_RANGE(range, address, bytes);
    REFUSE_IF(!range->mapped, kInvalidValue, "nothing is mapped there");
    const bool of_device = access->location_kind == kLocationDevice && access->location == range->mapped->device;
    const bool is_whole = count == 1 && access->flags == kAccessReadWrite;
    REFUSE_IF(!of_device || !is_whole, kInvalidValue, "only its own device reads and writes the memory");
    range->mapped->accessible = true;
})

// ---- Memory and semaphores that another API of the process has exported

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

uint64_t load(const uint64_t* value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }

// Checks and sets the value of a binary semaphore or a timeline.
void signal(ExternalSemaphore& semaphore, uint64_t value) {
    const uint64_t before = load(semaphore.value);
    if (semaphore.timeline ? value <= before : before != 0)
        refuse(0, text("a semaphore that is at %lu is set to %lu", before, value));
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

int begin_semaphores(const uint64_t* handles, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* params, unsigned count,
                     uint64_t stream_handle, bool waits) {
    FIND_STREAM(stream, stream_handle);
    for (unsigned i = 0; i < count; ++i) {
        FIND(semaphore, external_semaphores, handles[i]);
        const bool fits = semaphore->context == stream->context;
        REFUSE_IF(!fits, kInvalidHandle, "the semaphore is of another context than the stream");
        const uint64_t value = params[i].value;
        const bool is_value = !params[i].flags && (semaphore->timeline || !value);
        REFUSE_IF(!is_value, kInvalidValue, "a value or flags of no meaning");
        Task task{text("%s semaphore %#lx", waits ? "waiting for" : "signalling", handles[i])};
        task.begun = [semaphore](const OperationRef&) { ++semaphore->unfinished; };
        if (waits) task.ready = [semaphore, value] { return is_signalled(*semaphore, value); };
        task.run = [semaphore, value, waits] { waits ? end_wait(*semaphore) : signal(*semaphore, value); };
        TRY(begin(*stream, std::move(task)));
    }
    return kSuccess;
}

}  // namespace

// Afterwards the memory that imported the buffer may be destroyed.
int stand_in::free_external_buffer(const AllocationRef& allocation) {
    for (const auto& [handle, memory] : driver().external_memories.alive) {
        if (memory->buffer != allocation) continue;
        check_unused(*allocation);
        allocation->freeing = true;
        forget(allocation);
        memory->buffer = nullptr;
        return kSuccess;
    }
    return refuse(kInvalidValue, "the memory is mapped, and has to be unmapped");
}

// On success the driver takes the file descriptor over.
STAND_IN(cuImportExternalMemory, 10000, (uint64_t* handle, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* described), {
    FIND_CONTEXT(context);
    const bool known = described->kind == kOpaqueDescriptor && !(described->flags & ~uint32_t{kDedicated});
    REFUSE_IF(!known, kInvalidValue, "the description");
    const FileDescriptor file = FileDescriptor::of(described->descriptor);
    if (file.number < 0) return kOperatingSystem;
    if (file.name() != (described->flags ? "dedicated-memory" : "memory")) return kInvalidValue;
    if (described->bytes == 0 || described->bytes > file.size()) return kInvalidValue;
    *handle = driver().external_memories.add({context, described->bytes, file, nullptr});
})

STAND_IN(cuExternalMemoryGetMappedBuffer, 10000,
         (uint64_t* address, uint64_t handle, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* described), {
    FIND(memory, external_memories, handle);
    const bool is_whole = !described->flags && !described->offset && described->bytes == memory->bytes;
    REFUSE_IF(!is_whole, kInvalidValue, "only a buffer of everything is known");
    REFUSE_IF(memory->buffer, kInvalidValue, "it is mapped already");
    memory->buffer = map_file(memory->file.number, memory->bytes, memory->context->device);
    if (!memory->buffer) return kOutOfMemory;
    *address = memory->buffer->address;
    driver().memory[*address] = memory->buffer;
})

STAND_IN(cuDestroyExternalMemory, 10000, (uint64_t handle), {
    FIND(memory, external_memories, handle);
    REFUSE_IF(memory->buffer, kInvalidHandle, "its buffer has not been freed");
    close_owned(memory->file);
    driver().external_memories.alive.erase(handle);
})

STAND_IN(cuImportExternalSemaphore, 10000, (uint64_t* handle, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* described), {
    FIND_CONTEXT(context);
    const bool timeline = described->kind == kTimelineSemaphore;
    const bool known = timeline || described->kind == kBinarySemaphore;
    REFUSE_IF(!known || described->flags, kInvalidValue, "the description");
    REFUSE_IF(timeline && !driver().settings.sharing, kNotSupported, "timeline");
    const FileDescriptor file = FileDescriptor::of(described->descriptor);
    if (file.number < 0) return kOperatingSystem;
    if (file.name() != (timeline ? "timeline-semaphore" : "binary-semaphore")) return kInvalidValue;
    void* value = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
    if (value == MAP_FAILED) return kOperatingSystem;
    *handle = driver().external_semaphores.add({context, timeline, file, static_cast<uint64_t*>(value)});
})

STAND_IN(cuSignalExternalSemaphoresAsync, 10000,
         (const uint64_t* semaphores, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* params, unsigned count, uint64_t stream),
         { return begin_semaphores(semaphores, params, count, stream, false); })

STAND_IN(cuWaitExternalSemaphoresAsync, 10000,
         (const uint64_t* semaphores, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* params, unsigned count, uint64_t stream),
         { return begin_semaphores(semaphores, params, count, stream, true); })

STAND_IN(cuDestroyExternalSemaphore, 10000, (uint64_t handle), {
    FIND(semaphore, external_semaphores, handle);
    REFUSE_IF(semaphore->unfinished, kInvalidHandle, "work with it has not ended");
    munmap(semaphore->value, sizeof(uint64_t));
    close_owned(semaphore->file);
    driver().external_semaphores.alive.erase(handle);
})
