// Checks that memory is available before Embree needs it: if an allocation fails inside Embree the process may end,
// because its `operator new` exits. All work in Embree therefore takes a margin first, larger than what the same work
// allocated when measured. Other code in the process can still use the memory up between the check and the work.
#pragma once

#include <stdint.h>

#include "doorstep/rooms.h"

namespace doorstep {

// Opening the device and building the agent's mesh: 1.2 MB measured.
constexpr int64_t kDeviceBytes = 4 << 20;
// Creating a scene, before its first commit: 2 KB.
constexpr int64_t kSceneBytes = 32 << 10;
// A commit: 0.8 MB, most of which Embree's task scheduler allocates and frees per commit, and 150 bytes per object.
constexpr int64_t kCommitBytes = 2 << 20;
constexpr int64_t kCommitBytesPerObject = 256;
// Address space of the heap that a thread's first allocation creates: glibc temporarily maps twice as much.
constexpr int64_t kThreadHeapBytes = 64 << 20;

// The margins of all threads add up until they end.
class MemoryMargin {
public:
    MemoryMargin() = default;
    ~MemoryMargin();
    MemoryMargin(const MemoryMargin&) = delete;

    // OUT_OF_MEMORY if the operating system would not grant `bytes` of memory, and the heaps of `new_threads` threads
    // that have not allocated yet, in addition to the other margins. Touches no memory. what: "build a scene". Call
    // once.
    ds_status take(const char* what, int64_t bytes, int64_t new_threads = 0);

private:
    int64_t memory_ = 0;
    int64_t address_space_ = 0;
};

// Creates the calling thread's heap. Threads that were counted as new call it first, so that only one at a time maps
// twice as much.
void make_thread_heap();

// In a forked child, where the threads that held margins do not exist.
void forget_memory_margins();

}  // namespace doorstep
