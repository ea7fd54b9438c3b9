// Memory for Embree, proven before it is needed: where an allocation fails inside Embree the process may end, because
// its `operator new` exits. So whatever works in Embree first takes a margin, larger than what that work was measured
// to allocate. Between the proof and the work another part of the process can still use the memory up.
#pragma once

#include <stdint.h>

#include "doorstep.h"

namespace doorstep {

// Opening the device and building the agent's mesh; 1.2 MB were measured.
constexpr int64_t kDeviceBytes = 4 << 20;
// Making a scene, before its first commit: 2 KB.
constexpr int64_t kSceneBytes = 32 << 10;
// A commit: 0.8 MB, most of which Embree's task scheduler takes for each commit and frees again, and 150 bytes for each
// object.
constexpr int64_t kCommitBytes = 2 << 20;
constexpr int64_t kCommitBytesPerObject = 256;
// Address space that a thread's first allocation takes for a heap of its own: glibc maps twice as much, for a moment.
constexpr int64_t kThreadHeapBytes = 64 << 20;

// Margins of all threads add up until they end.
class MemoryMargin {
public:
    MemoryMargin() = default;
    ~MemoryMargin();
    MemoryMargin(const MemoryMargin&) = delete;

    // OUT_OF_MEMORY if the operating system would not grant `bytes` of memory, and the heaps of `new_threads` threads
    // that have not allocated, beside the other margins. Touches no memory. what: "build a scene". Once.
    ds_status take(const char* what, int64_t bytes, int64_t new_threads = 0);

private:
    int64_t memory_ = 0;
    int64_t address_space_ = 0;
};

// Makes the calling thread's heap. Threads that were counted as new begin with it, so that only one at a time maps
// twice as much.
void make_thread_heap();

// In a forked child, where the threads are gone that held margins.
void forget_memory_margins();

}  // namespace doorstep
