// Interprets a PTX kernel on the host, a block at a time, with its threads in any order between two barriers, or as a
// GPU executes it: the lanes of a warp run together where their paths are the same.
// Device addresses are host addresses.
#pragma once

#include <stdint.h>

#include <vector>

#include "program.h"

namespace ptx {

constexpr int kWarp = 32;
constexpr int kMaxArguments = 8;  // of a call

// One is a number or a structure.
struct Argument { uint64_t words[16]; };

struct Frame {
    const Function* function;
    uint32_t next;            // instruction
    size_t registers;         // offset of its first register
    size_t local;             // offset of the function's local memory
    Argument parameters[kMaxArguments];
    const char* kernel_parameter;  // of the first frame
};

struct Thread {
    const Program* program;
    uint32_t index, block, block_count;
    char* shared;
    std::vector<uint64_t> registers;
    std::vector<uint64_t> local;
    std::vector<Frame> frames;
    Argument arguments[kMaxArguments];  // of the call being prepared
    uint64_t returned;                  // by the latest call
    bool at_barrier = false;

    uint64_t* register_at(uint32_t slot) { return &registers[frames.back().registers + slot]; }

    const Instruction& next_instruction() const { return frames.back().function->instructions[frames.back().next]; }

    // Whether its next instruction is executed by all lanes of its warp together.
    bool awaits_warp() const {
        return !at_barrier && !frames.empty() && next_instruction().kind == Instruction::kOfWarp;
    }

    // Whether its predicate lets the instruction have an effect.
    bool takes(const Instruction& instruction) {
        if (instruction.predicate < 0) return true;
        return (*register_at(static_cast<uint32_t>(instruction.predicate)) & 1) != (instruction.negated ? 1 : 0);
    }
};

// Executes the thread's next instruction.
inline void execute_next(Thread& thread) {
    const Instruction& instruction = thread.next_instruction();
    ++thread.frames.back().next;
    if (thread.takes(instruction)) instruction.operation(thread, instruction);
}

// Executes the next instruction of a warp, which awaits_warp(). Aborts if its lanes are not all at it.
void execute_together(Thread* lane);

struct Launch {
    uint32_t grid, threads, shared_bytes;
    const void* parameter;
};

// The memory of one block after another.
class Block {
public:
    explicit Block(const Launch& how) : how_(how), shared_((how.shared_bytes + 15) / 8), threads_(how.threads) {}

    // The block's threads, before their first instruction.
    std::vector<Thread>& begin(const Program& program, const Function& kernel, uint32_t block);
    char* shared() { return reinterpret_cast<char*>(shared_.data()); }

private:
    const Launch& how_;
    std::vector<uint64_t> shared_;
    std::vector<Thread> threads_;
};

// order: of the threads; else that of their numbers, or backwards.
void launch(const Program& program, const Function& kernel, const Launch& how, const std::vector<uint32_t>& order);
void launch(const Program& program, const std::string& kernel, const Launch& how, bool backwards = false);

// Is told what the warps of a block execute.
class WarpWatcher {
public:
    virtual ~WarpWatcher() = default;
    virtual void begin_block(const char* shared, uint32_t shared_bytes, uint32_t threads) = 0;
    // Before lanes of a warp, a bit of the mask each, execute an instruction. lane: the warp's 32 threads.
    virtual void execute(uint32_t warp, Thread* lane, uint32_t mask, const Instruction& instruction) = 0;
    // Every thread waits at a barrier or has ended.
    virtual void end_interval() = 0;
};

// Of a warp's lanes, those in the deepest call run first, and of these those at the lowest instruction: paths that
// part meet again where the shorter ends. threads: a multiple of kWarp.
void launch_in_warps(const Program& program, const Function& kernel, const Launch& how, WarpWatcher& watcher);

// In operations.cpp: the address that an operand in brackets names.
uint64_t address_of(Thread& thread, const Operand& operand);

}  // namespace ptx
