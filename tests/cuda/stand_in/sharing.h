// Memory and semaphores that the driver shares with other APIs of the process, by file descriptors. Memory is a memory
// file, so that a test that maps the file sees the device's writes and acts as the other API; a semaphore is a file
// that contains its value. The files' names describe their use.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <memory>
#include <string>

#include "memory.h"

namespace stand_in {

constexpr uint64_t kGranularity = uint64_t{2} << 20;  // of memory that can be exported

// The number of an open file. Only its owner may close it.
struct FileDescriptor {
    int number = -1;
    dev_t device = 0;
    ino_t file = 0;

    static FileDescriptor of(int number);
    // Whether the number still refers to that file.
    bool is_open() const;
    uint64_t size() const;
    std::string name() const;  // of the file: "memory", ...
};

// A memory file of that name and size; null (-1) on failure.
FileDescriptor make_file(const char* name, uint64_t bytes);

// Closes a descriptor that the driver owns; a violation if other code has closed it.
void close_owned(const char* function, const FileDescriptor& descriptor);

// The result of cuMemCreate: bytes without an address.
struct PhysicalMemory {
    int device = 0;
    uint64_t bytes = 0;
    FileDescriptor file;
};

struct AddressRange {
    uint64_t bytes = 0;
    AllocationRef mapped;  // null: not mapped
};

struct ExternalMemory {
    Context* context = nullptr;
    uint64_t bytes = 0;
    FileDescriptor file;
    AllocationRef buffer;  // null: not mapped
};

struct ExternalSemaphore {
    Context* context = nullptr;
    bool timeline = false;
    FileDescriptor file;
    uint64_t* value = nullptr;  // of the file
    int unfinished = 0;         // operations that use it and have not run
};

// cuMemFree for the memory of a file.
int free_external_buffer(const AllocationRef& allocation);

}  // namespace stand_in
