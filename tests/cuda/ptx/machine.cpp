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

// The lanes that run next.
struct Group {
    uint32_t mask = 0;           // a bit each; 0: all wait at a barrier or have ended
    uint32_t next = 0;           // their instruction
    uint32_t other = UINT32_MAX;  // the first instruction at which other lanes of the same call are
};

Group next_group(const Thread* lane) {
    Group group;
    size_t depth = 0;
    for (uint32_t k = 0; k < kWarp; ++k) {
        if (lane[k].at_barrier || lane[k].frames.empty()) continue;
        const size_t calls = lane[k].frames.size();
        const uint32_t next = lane[k].frames.back().next, bit = 1u << k;
        if (calls > depth) {
            depth = calls;
            group = {bit, next, UINT32_MAX};
        } else if (calls < depth) continue;
        else if (next == group.next) group.mask |= bit;
        else if (next < group.next) group = {bit, next, group.next};
        else group.other = std::min(group.other, next);
    }
    return group;
}

// Executes until the group's paths may part or meet others.
void run(uint32_t warp, Thread* lane, Group group, WarpWatcher& watcher) {
    const Function& function = *lane[__builtin_ctz(group.mask)].frames.back().function;
    for (uint32_t at = group.next;; ++at) {
        const Instruction& instruction = function.instructions[at];
        watcher.execute(warp, lane, group.mask, instruction);
        if (instruction.kind == Instruction::kOfWarp) execute_together(lane);
        else
            for (uint32_t left = group.mask; left; left &= left - 1) execute_next(lane[__builtin_ctz(left)]);
        if (instruction.changes_path() || at + 1 >= group.other) return;
    }
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

void launch(const Program& program, const std::string& kernel, const Launch& how, bool backwards) {
    std::vector<uint32_t> order(how.threads);
    for (uint32_t i = 0; i < how.threads; ++i) order[i] = backwards ? how.threads - 1 - i : i;
    launch(program, program.kernel(kernel), how, order);
}

void launch_in_warps(const Program& program, const Function& kernel, const Launch& how, WarpWatcher& watcher) {
    Block memory(how);
    for (uint32_t block = 0; block < how.grid; ++block) {
        std::vector<Thread>& threads = memory.begin(program, kernel, block);
        watcher.begin_block(memory.shared(), how.shared_bytes, how.threads);
        while (!threads[0].frames.empty()) {
            for (Thread& thread : threads) thread.at_barrier = false;
            for (uint32_t warp = 0; warp < how.threads / kWarp; ++warp) {
                Thread* const lane = &threads[warp * kWarp];
                for (Group group = next_group(lane); group.mask; group = next_group(lane))
                    run(warp, lane, group, watcher);
            }
            watcher.end_interval();
        }
    }
}

}  // namespace ptx
