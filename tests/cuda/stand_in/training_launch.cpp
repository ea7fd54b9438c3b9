#include "training_launch.h"

#include <utility>
#include <vector>

#include "driver.h"
#include "exec/cpu/float_environment.h"
#include "training_emulation.h"

namespace stand_in {
namespace {

using doorstep::EmulatedTrainingKernel;

// An array of a call and whether it is written; absent arrays are null.
struct Array {
    const char* name;
    const void* address;
    int64_t bytes;
    bool writes;
};

int add_arrays(const std::string& kernel, int device, const std::vector<Array>& arrays, Task* task) {
    int code = kSuccess;
    for (const Array& array : arrays) {
        if (!array.address || !array.bytes) continue;
        Access access = access_to(kernel + ": " + array.name, reinterpret_cast<uint64_t>(array.address),
                                  static_cast<uint64_t>(array.bytes), array.writes, device);
        code = access.allocation ? code : int{kIllegalAddress};
        if (access.allocation) task->accesses.push_back(std::move(access));
    }
    return code;
}

std::vector<Array> arrays_of(const ds_advantages& call, const std::string&) {
    const int64_t count = call.num_steps * call.num_columns, bytes = count * (call.dtype == DS_DTYPE_FLOAT64 ? 8 : 4);
    return {{"rewards", call.rewards, bytes, false},          {"values", call.values, bytes, false},
            {"next_values", call.next_values, bytes, false},  {"terminations", call.terminations, count, false},
            {"truncations", call.truncations, count, false},  {"log_ratios", call.log_ratios, bytes, false},
            {"advantages", call.advantages, bytes, true},     {"targets", call.targets, bytes, true}};
}

std::vector<Array> arrays_of(const ds_multi_discrete& call, const std::string& kernel) {
    const int64_t element = call.dtype == DS_DTYPE_FLOAT64 ? 8 : 4;
    int64_t width = 0;
    for (int k = 0; k < call.num_components; ++k) width += call.sizes[k];
    const int64_t logits = call.num_rows * width * element, choices = call.num_rows * call.num_components;
    const bool draws = kernel.find("sample") != std::string::npos;
    return {{"logits", call.logits, logits, false},
            {"uniforms", call.uniforms, choices * element, false},
            {"actions", call.actions, choices * 4, draws},
            {"log_probabilities", call.log_probabilities, call.num_rows * element, true},
            {"entropies", call.entropies, call.num_rows * element, true},
            {"log_probability_gradients", call.log_probability_gradients, call.num_rows * element, false},
            {"entropy_gradients", call.entropy_gradients, call.num_rows * element, false},
            {"logit_gradients", call.logit_gradients, logits, true}};
}

template <class Call>
int prepare(const std::string& kernel, int device, EmulatedTrainingKernel run, uint32_t grid, uint32_t threads,
            const Call& call, Task* task) {
    static int launches = 0;  // the result must not depend on the order of the threads
    const auto order = static_cast<doorstep::ThreadOrder>(launches++ % 3);
    task->what = kernel;
    task->run = [=] {
        const doorstep::DefaultFloatEnvironment device;  // independent of the host's
        run(&call, grid, threads, order);
    };
    return add_arrays(kernel, device, arrays_of(call, kernel), task);
}

}  // namespace

int make_training_launch(const std::string& kernel, int device, uint32_t grid, uint32_t threads, const void* call,
                         Task* task) {
    const EmulatedTrainingKernel run = doorstep::find_emulated_training_kernel(kernel.c_str());
    if (!run) return refuse(kNotFound, "there is no emulation of " + kernel);
    if (threads != static_cast<uint32_t>(doorstep::kTrainingThreads))
        return refuse(kInvalidValue, text("%s: %u threads, it needs %d", kernel.c_str(), threads,
                                          doorstep::kTrainingThreads));
#define STAND_IN_TRAINING(name, Call, items)                              \
    if (kernel.find("doorstep_" #name "_float") == 0)                     \
        return prepare(kernel, device, run, grid, threads, *static_cast<const Call*>(call), task);
    DS_TRAINING_KERNEL_TABLE(STAND_IN_TRAINING)
#undef STAND_IN_TRAINING
    return kNotFound;
}

}  // namespace stand_in
