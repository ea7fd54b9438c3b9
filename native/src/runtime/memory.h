// The one block of memory behind a simulator: worlds, tensors and tables. It is mapped once, and unmapped when the
// simulator and everyone who holds a view of it have let go.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/reference.h"

namespace doorstep {

// How much memory can be had right now, and what stands in the way of more.
struct AvailableMemory {
    int64_t bytes;
    const char* limit;  // for messages: "the memory limit of this control group"
};

// root: where /proc and /sys are looked for, for tests.
AvailableMemory available_memory(const char* root = "");

class Memory : public RefCounted {
public:
    // Zeroed, page-aligned memory. Null, with the thread's error set, if `bytes` cannot be had: the amount is compared
    // with what is available first, because Linux grants what it does not have and later kills the process.
    static Ref<Memory> map(int64_t bytes, const char* argument);
    ~Memory();

    char* data() const { return data_; }
    int64_t bytes() const { return bytes_; }
    bool contains(const void* start, int64_t bytes) const;

private:
    Memory(char* data, int64_t bytes);

    char* data_;
    int64_t bytes_;
};

}  // namespace doorstep
