// Interprets a PTX kernel on the host, a block at a time, with its threads in any order between two barriers. Device
// addresses are host addresses.
#pragma once

#include <stdint.h>

#include <vector>

#include "program.h"

namespace ptx {

constexpr int kWarp = 32;
constexpr int kMaxArguments = 8;

struct Frame {
    const Function* function;
    uint32_t next;            // instruction
    size_t registers;         // offset of its first register
    size_t local;             // offset of the function's local memory
    uint64_t parameters[kMaxArguments];
    const char* kernel_parameter;  // of the first frame
};

struct Thread {
    const Program* program;
    uint32_t index, block, block_count;
    char* shared;
    std::vector<uint64_t> registers;
    std::vector<uint64_t> local;
    std::vector<Frame> frames;
    uint64_t arguments[kMaxArguments];  // of the call being prepared
    uint64_t returned;                  // by the latest call
    bool at_barrier = false;
    std::vector<uint32_t>* counts = nullptr;  // how often each instruction of the program ran, or null
    std::vector<uint32_t> first_count;        // per function: where its instructions begin in counts

    uint64_t* register_at(uint32_t slot) { return &registers[frames.back().registers + slot]; }
};

// The cost of a barrier interval of a block: instructions of the threads, and of the warps if lanes that execute the
// same instruction equally often execute it together.
struct IntervalCost {
    uint64_t thread_instructions, warp_instructions;
    uint64_t longest_thread;  // of the thread with most instructions
};

struct Launch {
    uint32_t grid, threads, shared_bytes;
    const void* parameter;
    const std::vector<uint32_t>* order;   // of the threads
    std::vector<IntervalCost>* costs;     // filled with the intervals of all blocks, one after the other; or null
};

void launch(const Program& program, const Function& kernel, const Launch& how);

}  // namespace ptx
