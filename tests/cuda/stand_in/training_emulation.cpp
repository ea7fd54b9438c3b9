#include "training_emulation.h"

#include <string.h>

#include "training/advantages.h"
#include "training/multi_discrete.h"

namespace doorstep {
namespace {

// The thread that runs next; 7919 is prime, so the sequence visits all threads of any smaller grid.
int64_t thread_at(ThreadOrder order, int64_t turn, int64_t count) {
    if (order == ThreadOrder::kForwards) return turn;
    return order == ThreadOrder::kBackwards ? count - 1 - turn : turn * 7919 % count;
}

// Calls work(item) for each item of a grid's threads.
template <class Work>
void for_each_item(int64_t items, int64_t threads, ThreadOrder order, const Work& work) {
    if (threads % 7919 == 0) order = ThreadOrder::kBackwards;
    for (int64_t turn = 0; turn < threads; turn++)
        for (int64_t item = thread_at(order, turn, threads); item < items; item += threads) work(item);
}

#define DS_EMULATE(name, Call, items)                                                                \
    template <class Float>                                                                           \
    void emulate_##name(const void* call, uint32_t grid, uint32_t threads, ThreadOrder order) {      \
        const Call& arguments = *static_cast<const Call*>(call);                                     \
        for_each_item(arguments.items, int64_t{grid} * threads, order,                               \
                      [&](int64_t item) { name<Float, 1>(arguments, item, 1); });                    \
    }
DS_TRAINING_KERNEL_TABLE(DS_EMULATE)
#undef DS_EMULATE

}  // namespace

EmulatedTrainingKernel find_emulated_training_kernel(const char* name) {
#define DS_FIND(kernel, Call, items)                                                 \
    if (strcmp(name, "doorstep_" #kernel "_float32") == 0) return emulate_##kernel<float>;  \
    if (strcmp(name, "doorstep_" #kernel "_float64") == 0) return emulate_##kernel<double>;
    DS_TRAINING_KERNEL_TABLE(DS_FIND)
#undef DS_FIND
    return nullptr;
}

}  // namespace doorstep
