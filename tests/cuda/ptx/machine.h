// Runs a PTX kernel on the host, a block at a time: its threads in any order between two barriers. Device addresses are
// addresses of the host.
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
    size_t registers;         // where they begin
    size_t local;             // where the function's local memory begins
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

// What a barrier interval of a block cost: instructions by the threads, and by the warps if lanes that run the same
// instruction equally often run it together.
struct IntervalCost {
    uint64_t thread_instructions, warp_instructions;
    uint64_t longest_thread;  // of the thread that ran most
};

struct Launch {
    uint32_t grid, threads, shared_bytes;
    const void* parameter;
    const std::vector<uint32_t>* order;   // of the threads
    std::vector<IntervalCost>* costs;     // filled with the intervals of all blocks, one after the other; or null
};

void launch(const Program& program, const Function& kernel, const Launch& how);

}  // namespace ptx
