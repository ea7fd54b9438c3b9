#include "warps.h"

#include <algorithm>

namespace ptx {
namespace {

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
        } else if (calls < depth) {
            continue;
        } else if (next == group.next) {
            group.mask |= bit;
        } else if (next < group.next) {
            group = {bit, next, group.next};
        } else {
            group.other = std::min(group.other, next);
        }
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
