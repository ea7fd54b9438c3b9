#include "emulation.h"

#include <string.h>

#include <array>
#include <memory>
#include <vector>

#include "exec/cuda/block.h"
#include "render/raycast/block_views.h"
#include "training/advantages.h"
#include "training/kernels.h"
#include "training/multi_discrete.h"

namespace doorstep {

// ---- The executor

namespace {

template <class W, int Kernel>
void run(const KernelArguments& arguments, uint32_t grid, uint32_t threads, ThreadOrder order) {
    const std::vector<int> ordered = threads_in(order, static_cast<int>(threads));
    const auto memory = std::make_unique<BlockMemory<W>>();
    for (uint32_t index = 0; index < grid; index++) {
        memset(static_cast<void*>(memory.get()), 0xA5, sizeof *memory);  // initial shared memory is undefined
        EmulatedBlock<ThreadShare> block(index, grid, ordered);
#define DS_RUN(name, sentence) \
    if constexpr (Kernel == kKernel_##name) Kernels<W>::name(block, arguments, *memory);
        DS_KERNEL_TABLE(DS_RUN)
    }
}

template <class W>
constexpr std::array<EmulatedKernel, kKernelCount> kernels_of() {
#define DS_ENTRY(name, sentence) run<W, kKernel_##name>,
    return {DS_KERNEL_TABLE(DS_ENTRY)};
}
constexpr std::array kEmulated = {
#define DS_EMULATED(number, ...) kernels_of<CompiledWorld<number>::W>(),
    DS_WORLD_KIND_TABLE(DS_EMULATED)
};

}  // namespace

EmulatedKernel find_emulated_kernel(int kind_of_worlds, const char* name) {
    const size_t index = static_cast<size_t>(kind_of_worlds) - 1;
    for (size_t kernel = 0; kernel < kKernelCount && index < kEmulated.size(); kernel++)
        if (strcmp(name, kKernelNames[kernel]) == 0) return kEmulated[index][kernel];
    return nullptr;
}

// ---- Training

namespace {

#define DS_EMULATE(name, Call, items)                                                                \
    template <class Float>                                                                           \
    void emulate_##name(const void* call, uint32_t, uint32_t, ThreadOrder order) {                   \
        const Call& arguments = *static_cast<const Call*>(call);                                     \
        for (int64_t turn = 0; turn < arguments.items; turn++) {                                     \
            const int64_t last = arguments.items - 1;                                                \
            name<Float, 1>(arguments, order == ThreadOrder::kForwards ? turn : last - turn, 1);      \
        }                                                                                            \
    }
DS_TRAINING_KERNEL_TABLE(DS_EMULATE)

}  // namespace

EmulatedTrainingKernel find_emulated_training_kernel(const char* name) {
#define DS_FIND(kernel, Call, items)                                                 \
    if (strcmp(name, "doorstep_" #kernel "_float32") == 0) return emulate_##kernel<float>;  \
    if (strcmp(name, "doorstep_" #kernel "_float64") == 0) return emulate_##kernel<double>;
    DS_TRAINING_KERNEL_TABLE(DS_FIND)
    return nullptr;
}

// ---- Views

void emulate_draw_views(const ViewsCall& call, uint32_t grid, ThreadOrder order) {
    const std::vector<int> threads = threads_in(order, kViewThreads);
    const size_t bytes = find_view_kernel(call.views.fields).block_bytes;
    constexpr size_t kAlignment = 64;
    const auto memory = std::make_unique<char[]>(bytes + kAlignment);
    char* shared = memory.get() + (kAlignment - reinterpret_cast<uintptr_t>(memory.get()) % kAlignment);
    for (uint32_t index = 0; index < grid; index++) {
        memset(shared, 0xA5, bytes);  // initial shared memory is undefined
        const EmulatedBlock<ViewShare, uint32_t> block(index, grid, threads);
        with_limits(call.views.fields, [&](auto limits) { draw_views<decltype(limits)>(block, call, shared); });
    }
}

}  // namespace doorstep
