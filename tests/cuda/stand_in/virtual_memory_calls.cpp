// The driver's functions for virtual memory: allocations, address ranges, mappings and exports.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"
#include "functions.h"

using namespace stand_in;

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
