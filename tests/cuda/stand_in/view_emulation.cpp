#include "view_emulation.h"

#include <string.h>

#include <memory>
#include <vector>

namespace doorstep {
namespace {

class EmulatedViewBlock {
public:
    EmulatedViewBlock(uint32_t index, uint32_t count, const std::vector<int>& threads)
        : index_(index), count_(count), threads_(threads) {}
    uint32_t index() const { return index_; }
    uint32_t count() const { return count_; }
    template <class Stage>
    void each(const Stage& stage) const {
        for (int thread : threads_) stage(ViewShare{thread, kViewThreads});
    }

private:
    uint32_t index_, count_;
    const std::vector<int>& threads_;
};

}  // namespace

void emulate_draw_views(const ViewsCall& call, uint32_t grid, ThreadOrder order) {
    const std::vector<int> threads = threads_in(order, kViewThreads);
    const size_t bytes = find_view_kernel(call.views.fields).block_bytes;
    constexpr size_t kAlignment = 64;
    const auto memory = std::make_unique<char[]>(bytes + kAlignment);
    char* shared = memory.get() + (kAlignment - reinterpret_cast<uintptr_t>(memory.get()) % kAlignment);
    for (uint32_t index = 0; index < grid; index++) {
        memset(shared, 0xA5, bytes);  // initial shared memory is undefined
        EmulatedViewBlock block(index, grid, threads);
        with_limits(call.views.fields,
                    [&](auto limits) { draw_views<decltype(limits)>(block, call, shared); });
    }
}

}  // namespace doorstep
