#include "machine.h"

#include <string.h>

#include <algorithm>

namespace ptx {
namespace {

constexpr size_t kLocalWords = 512;  // per thread, for all its functions together

void run_to_barrier(Thread& thread) {
    thread.at_barrier = false;
    while (!thread.at_barrier && !thread.frames.empty()) {
        Frame& frame = thread.frames.back();
        const uint32_t at = frame.next++;
        const Instruction& instruction = frame.function->instructions[at];
        if (thread.counts) {
            const size_t function = static_cast<size_t>(frame.function - thread.program->functions.data());
            (*thread.counts)[thread.first_count[function] + at]++;
        }
        if (instruction.predicate >= 0) {
            const bool set = *thread.register_at(static_cast<uint32_t>(instruction.predicate)) & 1;
            if (set == instruction.negated) continue;
        }
        instruction.operation(thread, instruction);
    }
}

std::vector<uint32_t> first_counts(const Program& program, uint32_t& total) {
    std::vector<uint32_t> first;
    total = 0;
    for (const Function& function : program.functions) {
        first.push_back(total);
        total += static_cast<uint32_t>(function.instructions.size());
    }
    return first;
}

// counts: per thread and instruction; cleared.
IntervalCost cost_of(const Program& program, std::vector<std::vector<uint32_t>>& counts) {
    IntervalCost cost{};
    size_t at = 0;
    std::vector<uint64_t> threads(counts.size());
    for (const Function& function : program.functions)
        for (const Instruction& instruction : function.instructions) {
            for (size_t warp = 0; warp < counts.size(); warp += kWarp) {
                uint64_t most = 0;
                for (size_t lane = warp; lane < std::min(warp + kWarp, counts.size()); ++lane) {
                    const uint64_t count = uint64_t{counts[lane][at]} * instruction.weight;
                    most = std::max(most, count);
                    threads[lane] += count;
                }
                cost.warp_instructions += most;
            }
            ++at;
        }
    for (auto& row : counts) std::fill(row.begin(), row.end(), 0u);
    for (uint64_t count : threads) {
        cost.thread_instructions += count;
        cost.longest_thread = std::max(cost.longest_thread, count);
    }
    return cost;
}

void begin(Thread& thread, const Program& program, const Function& kernel, const Launch& how, uint32_t block,
           uint32_t index, char* shared) {
    thread.program = &program;
    thread.index = index;
    thread.block = block;
    thread.block_count = how.grid;
    thread.shared = shared;
    thread.registers.assign(kernel.register_count, 0xDEADBEEFDEADBEEFull);
    thread.local.assign(kLocalWords, 0xDEADBEEFDEADBEEFull);
    thread.frames = {{&kernel, 0, 0, 0, {}, static_cast<const char*>(how.parameter)}};
}

}  // namespace

void launch(const Program& program, const Function& kernel, const Launch& how) {
    uint32_t total;
    const std::vector<uint32_t> first = first_counts(program, total);
    std::vector<std::vector<uint32_t>> counts(how.costs ? how.threads : 0, std::vector<uint32_t>(total));
    std::vector<uint64_t> shared((how.shared_bytes + 15) / 8);
    for (uint32_t block = 0; block < how.grid; ++block) {
        std::fill(shared.begin(), shared.end(), 0xA5A5A5A5A5A5A5A5ull);
        std::vector<Thread> threads(how.threads);
        for (uint32_t index = 0; index < how.threads; ++index) {
            begin(threads[index], program, kernel, how, block, index, reinterpret_cast<char*>(shared.data()));
            if (how.costs) {
                threads[index].counts = &counts[index];
                threads[index].first_count = first;
            }
        }
        while (!threads[0].frames.empty()) {
            for (uint32_t index : *how.order) run_to_barrier(threads[index]);
            if (how.costs) how.costs->push_back(cost_of(program, counts));
        }
    }
}

}  // namespace ptx
