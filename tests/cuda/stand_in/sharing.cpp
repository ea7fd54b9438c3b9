#include "sharing.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"
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

void close_owned(const char* function, const FileDescriptor& descriptor) {
    const int number = descriptor.number;
    if (descriptor.is_open()) close(number);
    else driver().report.violation(text("%s: somebody else has closed file descriptor %d", function, number));
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

struct CUmemAccessDesc {
    int location_kind, location, flags;
};

namespace {

int check_properties(const char* function, const CUmemAllocationProp& properties) {
    for (const unsigned char byte : properties.reserved)
        if (byte) return refuse(kInvalidValue, text("%s: reserved bytes are not zero", function));
    if (properties.kind != kAllocationPinned || properties.location_kind != kLocationDevice || properties.security)
        return refuse(kInvalidValue, text("%s: only pinned memory of a device is known", function));
    if (properties.location < 0 || properties.location >= driver().settings.devices) return kInvalidDevice;
    if (properties.exports & ~kExportFileDescriptor)
        return refuse(kInvalidValue, text("%s: exports are %d", function, properties.exports));
    return driver().settings.sharing ? kSuccess : kNotSupported;
}

// The contents of new memory are undefined.
void fill_with_garbage(const FileDescriptor& file, uint64_t bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
    if (mapped == MAP_FAILED) return;
    memset(mapped, kGarbage, bytes);
    munmap(mapped, bytes);
}

// The reserved range with exactly these addresses; null after a violation.
AddressRange* find_range(const char* function, uint64_t address, uint64_t bytes) {
    const auto found = driver().address_ranges.find(address);
    if (found != driver().address_ranges.end() && found->second.bytes == bytes) return &found->second;
    driver().report.violation(text("%s: %lu bytes at %#lx are no range that was reserved", function, bytes, address));
    return nullptr;
}

}  // namespace

extern "C" {

int cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties, int) {
    return call("cuMemGetAllocationGranularity", [&]() -> int {
        *granularity = kGranularity;
        return check_properties("cuMemGetAllocationGranularity", *properties);
    });
}

int cuMemCreate(uint64_t* handle, size_t bytes, const CUmemAllocationProp* properties, unsigned long long flags) {
    return call("cuMemCreate", [&]() -> int {
        if (const int code = check_properties("cuMemCreate", *properties)) return code;
        if (flags || bytes == 0 || bytes % kGranularity)
            return refuse(kInvalidValue, text("cuMemCreate: %lu bytes, flags %llu", bytes, flags));
        const int device = properties->location;
        if (driver().used_bytes(device) > driver().settings.memory_bytes - static_cast<int64_t>(bytes))
            return kOutOfMemory;
        const FileDescriptor file = make_file("memory", bytes);
        if (file.number < 0) return kOutOfMemory;
        fill_with_garbage(file, bytes);
        *handle = driver().physical_memories.add({device, bytes, file});
        return kSuccess;
    });
}

// The bytes exist until all mappings and imports end.
int cuMemRelease(uint64_t handle) {
    return call("cuMemRelease", [&]() -> int {
        const std::shared_ptr<PhysicalMemory> memory = find("cuMemRelease", driver().physical_memories, handle);
        if (!memory) return kInvalidValue;
        close_owned("cuMemRelease", memory->file);
        driver().physical_memories.alive.erase(handle);
        return kSuccess;
    });
}

int cuMemExportToShareableHandle(void* exported, uint64_t handle, int kind, unsigned long long flags) {
    return call("cuMemExportToShareableHandle", [&]() -> int {
        const auto memory = find("cuMemExportToShareableHandle", driver().physical_memories, handle);
        if (!memory) return kInvalidValue;
        if (kind != kExportFileDescriptor || flags)
            return refuse(kInvalidValue, text("cuMemExportToShareableHandle: kind %d, flags %llu", kind, flags));
        const int number = fcntl(memory->file.number, F_DUPFD, 0);
        if (number < 0) return kOperatingSystem;
        std::erase_if(driver().exported_descriptors, [](const FileDescriptor& earlier) { return !earlier.is_open(); });
        std::erase_if(driver().exported_descriptors,
                      [&](const FileDescriptor& earlier) { return earlier.number == number; });
        driver().exported_descriptors.push_back(FileDescriptor::of(number));
        *static_cast<int*>(exported) = number;
        return kSuccess;
    });
}

int cuMemAddressReserve(uint64_t* address, size_t bytes, size_t alignment, uint64_t wanted, unsigned long long flags) {
    return call("cuMemAddressReserve", [&]() -> int {
        if (bytes == 0 || bytes % kGranularity || alignment || wanted || flags)
            return refuse(kInvalidValue, text("cuMemAddressReserve: %lu bytes, or an option", bytes));
        *address = reserve_addresses(bytes, kGranularity);
        if (!*address) return kOutOfMemory;
        driver().address_ranges[*address] = {bytes, nullptr};
        return kSuccess;
    });
}

int cuMemAddressFree(uint64_t address, size_t bytes) {
    return call("cuMemAddressFree", [&]() -> int {
        const AddressRange* range = find_range("cuMemAddressFree", address, bytes);
        if (!range) return kInvalidValue;
        if (range->mapped) return refuse(kInvalidValue, "cuMemAddressFree: memory is mapped there");
        driver().address_ranges.erase(address);
        return kSuccess;
    });
}

int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags) {
    return call("cuMemMap", [&]() -> int {
        AddressRange* range = find_range("cuMemMap", address, bytes);
        const std::shared_ptr<PhysicalMemory> memory = find("cuMemMap", driver().physical_memories, handle);
        if (!range || !memory) return kInvalidValue;
        if (range->mapped || offset || flags || bytes != memory->bytes)
            return refuse(kInvalidValue, "cuMemMap: the range is in use, or not that of all the memory");
        range->mapped = map_file(memory->file.number, bytes, memory->device, address);
        if (!range->mapped) return kOutOfMemory;
        range->mapped->accessible = false;
        driver().memory[address] = range->mapped;
        return kSuccess;
    });
}

int cuMemUnmap(uint64_t address, size_t bytes) {
    return call("cuMemUnmap", [&]() -> int {
        AddressRange* range = find_range("cuMemUnmap", address, bytes);
        if (!range) return kInvalidValue;
        if (!range->mapped) return refuse(kInvalidValue, "cuMemUnmap: nothing is mapped there");
        if (const int code = refuse_beside_capture()) return code;
        check_unused("cuMemUnmap", *range->mapped);
        range->mapped->freeing = true;
        forget(range->mapped);
        range->mapped = nullptr;
        return kSuccess;
    });
}

int cuMemSetAccess(uint64_t address, size_t bytes, const CUmemAccessDesc* access, size_t count) {
    return call("cuMemSetAccess", [&]() -> int {
        const AddressRange* range = find_range("cuMemSetAccess", address, bytes);
        if (!range) return kInvalidValue;
        if (!range->mapped) return refuse(kInvalidValue, "cuMemSetAccess: nothing is mapped there");
        if (count != 1 || access->location_kind != kLocationDevice || access->flags != kAccessReadWrite ||
            access->location != range->mapped->device)
            return refuse(kInvalidValue, "cuMemSetAccess: only its own device reads and writes the memory");
        range->mapped->accessible = true;
        return kSuccess;
    });
}

}  // extern "C"

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
