// The kernels on the host: the same code, one float per lane, with the threads of a block executed one after the other
// between two barriers. Whether a thread sees another's write before a barrier depends on their order, so a missing
// barrier shows as a result that depends on the order.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace doorstep {

struct ActArguments;
struct KernelArguments;
struct PlayedRows;
struct ViewsCall;

// The order in which the threads of a block execute a stage.
enum class ThreadOrder { kForwards, kBackwards, kShuffled };

inline std::vector<int> threads_in(ThreadOrder order, int count) {
    std::vector<int> threads(static_cast<size_t>(count));
    std::iota(threads.begin(), threads.end(), 0);
    if (order == ThreadOrder::kBackwards) std::reverse(threads.begin(), threads.end());
    if (order == ThreadOrder::kShuffled) {
        uint32_t state = 12345;
        for (size_t i = threads.size() - 1; i > 0; i--) {
            state = state * 1664525u + 1013904223u;
            std::swap(threads[i], threads[(state >> 8) % (i + 1)]);
        }
    }
    return threads;
}

// The threads of a block: each() runs a stage for the share of each of them.
template <class Share, class Index = int>
class EmulatedBlock {
public:
    EmulatedBlock(uint32_t index, uint32_t count, const std::vector<int>& threads)
        : index_(static_cast<Index>(index)), count_(static_cast<Index>(count)), threads_(threads) {}
    Index index() const { return index_; }
    Index count() const { return count_; }
    void each(const auto& stage) const {
        for (int thread : threads_) stage(Share{thread, static_cast<int>(threads_.size())});
    }

private:
    Index index_, count_;
    const std::vector<int>& threads_;
};

// The kernels of the executor, by their names in kKernelNames. Null for other names and kinds.
using EmulatedKernel = void (*)(const KernelArguments& arguments, uint32_t grid, uint32_t threads, ThreadOrder order);
EmulatedKernel find_emulated_kernel(int kind_of_worlds, const char* name);

// The training kernels, one item per thread, by their names in the module. Null for other names.
using EmulatedTrainingKernel = void (*)(const void* call, uint32_t grid, uint32_t threads, ThreadOrder order);
EmulatedTrainingKernel find_emulated_training_kernel(const char* name);

// The kernels of policies, and those that draw views.
void emulate_act(const ActArguments& arguments, uint32_t grid, uint32_t shared_bytes, ThreadOrder order);
void emulate_prepare_rows(const PlayedRows& call);
void emulate_draw_views(const ViewsCall& call, uint32_t grid, ThreadOrder order);

}  // namespace doorstep
