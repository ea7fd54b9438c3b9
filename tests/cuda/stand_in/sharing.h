// What the driver shares with other APIs of the process, by file descriptors. Here memory is a file in memory, so that
// a test which maps the file sees what the device's work does to it, and plays the other API; a semaphore is a file
// that holds its value. The files' names tell what they are for.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <memory>
#include <string>

#include "memory.h"

namespace stand_in {

constexpr uint64_t kGranularity = uint64_t{2} << 20;  // of memory that can be exported

// A number for an open file. Whoever closes it must be the one who owns it.
struct FileDescriptor {
    int number = -1;
    dev_t device = 0;
    ino_t file = 0;

    static FileDescriptor of(int number);
    // Whether the number still stands for that file.
    bool is_open() const;
    uint64_t size() const;
    std::string name() const;  // of the file: "memory", ...
};

// A file in memory of that name and size; null (-1) if there is none to be had.
FileDescriptor make_file(const char* name, uint64_t bytes);

// Closes what the driver owns; a violation if somebody else has closed it.
void close_owned(const char* function, const FileDescriptor& descriptor);

// What cuMemCreate gives: bytes without an address.
struct PhysicalMemory {
    int device = 0;
    uint64_t bytes = 0;
    FileDescriptor file;
};

struct AddressRange {
    uint64_t bytes = 0;
    AllocationRef mapped;  // null: nothing
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
    int unfinished = 0;         // operations that were begun with it and have not run
};

// cuMemFree for the memory of a file.
int free_external_buffer(const AllocationRef& allocation);

}  // namespace stand_in
