#include "machine.h"

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>

namespace ptx {
namespace {

constexpr size_t kLocalWords = 512;  // per thread, for all its functions together

// To a barrier, to an instruction of the whole warp, or to the end.
void run_alone(Thread& thread) {
    while (!thread.at_barrier && !thread.frames.empty() && !thread.awaits_warp()) execute_next(thread);
}

// Executes the instructions of whole warps that threads are at. Whether there were any.
bool run_together(std::vector<Thread>& threads) {
    bool any = false;
    for (Thread& thread : threads) {
        if (!thread.awaits_warp()) continue;
        execute_together(&thread - thread.index % kWarp);
        any = true;
    }
    return any;
}

}  // namespace

void execute_together(Thread* lane) {
    const Instruction& instruction = lane->next_instruction();
    for (int k = 0; k < kWarp; ++k) {
        if (!lane[k].awaits_warp() || &lane[k].next_instruction() != &instruction) {
            fprintf(stderr, "thread %u is not at the instruction that its warp executes together\n", lane[k].index);
            abort();
        }
    }
    for (int k = 0; k < kWarp; ++k) ++lane[k].frames.back().next;
    instruction.operation(*lane, instruction);
}

std::vector<Thread>& Block::begin(const Program& program, const Function& kernel, uint32_t block) {
    std::fill(shared_.begin(), shared_.end(), 0xA5A5A5A5A5A5A5A5ull);
    for (uint32_t index = 0; index < how_.threads; ++index) {
        Thread& thread = threads_[index];
        thread.program = &program;
        thread.index = index;
        thread.block = block;
        thread.block_count = how_.grid;
        thread.shared = shared();
        thread.registers.assign(kernel.register_count, 0xDEADBEEFDEADBEEFull);
        thread.local.assign(kLocalWords, 0xDEADBEEFDEADBEEFull);
        thread.frames = {{&kernel, 0, 0, 0, {}, static_cast<const char*>(how_.parameter)}};
        thread.at_barrier = false;
    }
    return threads_;
}

void launch(const Program& program, const Function& kernel, const Launch& how, const std::vector<uint32_t>& order) {
    Block memory(how);
    for (uint32_t block = 0; block < how.grid; ++block) {
        std::vector<Thread>& threads = memory.begin(program, kernel, block);
        while (!threads[0].frames.empty()) {
            for (Thread& thread : threads) thread.at_barrier = false;
            do
                for (uint32_t index : order) run_alone(threads[index]);
            while (run_together(threads));
        }
    }
}

}  // namespace ptx
