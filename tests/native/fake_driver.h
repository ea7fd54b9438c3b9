// A CUDA driver for the tests of resource handles: it keeps account of what is alive, notes every call, and fails
// where it is told to. Handles are used again as soon as they are free, as real drivers do.
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

// Makes doorstep use a fresh driver that behaves like that.
void install(const Behaviour& behaviour = {});

// The behaviour from now on.
Behaviour& behaviour();

enum Kind {
    kStream, kEvent, kPool, kMemory, kPinnedMemory, kModule, kGraph, kGraphExec,
    kAllocation, kReservation, kMapping, kExternalMemory, kExternalBuffer, kExternalSemaphore, kKindCount
};

int64_t alive(Kind kind);
int64_t alive();                // of all kinds
int64_t retained(int device);   // how often its primary context is
int64_t misuses();              // calls with a handle that does not exist, without the context they need, or that
                                // disturb a recording
int64_t calls();
const char* failed_function();  // where the failure took place, or ""

// Names of the calls so far, and where one is first found (-1: nowhere).
std::vector<std::string> history();
int64_t first_call(const char* name);
int64_t count_calls(const char* name);
void clear_history();

// The contexts that are current in this thread, the last one on top.
std::vector<uint64_t>& context_stack();
uint64_t context_of(int device);

// A stream, made by somebody else.
uint64_t make_foreign_stream(int device);
void set_capturing(uint64_t stream, bool capturing);

constexpr size_t kGranularity = 65536;  // of memory that can be exported
constexpr const char* kKernelName = "double_everything";

}  // namespace fake
