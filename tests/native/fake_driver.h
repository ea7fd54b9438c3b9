// A CUDA driver for the tests of resource handles: it tracks live objects, records every call, and fails where a test
// tells it to. It reuses handles as soon as they are free, as real drivers do.
#pragma once

#include <stdint.h>

#include <string>
#include <vector>

#include "runtime/cuda/driver.h"

namespace fake {

using namespace doorstep;

struct Behaviour {
    int version = 12040;
    int device_count = 2;
    int capability = 90;
    bool has_memory_pools = true;
    bool can_share = true;  // memory and timeline semaphores, with other APIs
    bool has_get_proc_address_v2 = true;
    bool has_get_proc_address = true;
    const char* missing_function = "";
    const char* failing_function = "";  // fails once, the first time it is called
    int64_t failing_call = -1;          // fails: the number of a call, from 0
    CUresult failure = CUDA_ERROR_UNKNOWN;
};

// Makes doorstep load a new driver with this behaviour.
void install(const Behaviour& behaviour = {});

// Changes the behaviour of later calls.
Behaviour& behaviour();

enum Kind {
    kStream, kEvent, kPool, kMemory, kPinnedMemory, kModule, kGraph, kGraphExec,
    kAllocation, kReservation, kMapping, kExternalMemory, kExternalBuffer, kExternalSemaphore, kKindCount
};

int64_t alive(Kind kind);
int64_t alive();                // number of live objects of all kinds
int64_t retained(int device);   // reference count of its primary context
int64_t misuses();              // calls with a handle that does not exist, without the required context, or that
                                // invalidate a capture
int64_t calls();
const char* failed_function();  // the function that failed, or ""

// Names of the calls so far, and the index of the first call of a function (-1: not called).
std::vector<std::string> history();
int64_t first_call(const char* name);
int64_t count_calls(const char* name);
void clear_history();

// The contexts that are current in this thread, the last one on top.
std::vector<uint64_t>& context_stack();
uint64_t context_of(int device);

// A stream created by other code.
uint64_t make_foreign_stream(int device);
void set_capturing(uint64_t stream, bool capturing);

constexpr size_t kGranularity = 65536;  // of memory that can be exported
constexpr const char* kKernelName = "double_everything";

}  // namespace fake
