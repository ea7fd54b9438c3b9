#include "machine.h"

#include <algorithm>

namespace ptx {
namespace {

constexpr size_t kLocalWords = 512;  // per thread, for all its functions together

void run_to_barrier(Thread& thread) {
    thread.at_barrier = false;
    while (!thread.at_barrier && !thread.frames.empty()) execute_next(thread);
}

}  // namespace

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
        while (!threads[0].frames.empty())
            for (uint32_t index : order) run_to_barrier(threads[index]);
    }
}

}  // namespace ptx
