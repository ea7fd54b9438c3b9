// The training kernels on CUDA devices.
#include <algorithm>
#include <new>

#include "exec/cuda/images.h"
#include "exec/cuda/kernel_module.h"
#include "runtime/status.h"
#include "training/kernels.h"

namespace doorstep {
namespace {

// Maximum blocks of a launch; threads loop over further items.
constexpr int64_t kMostBlocks = 65536;

constexpr const char* kNames[kTrainingKernelCount][2] = {
#define DS_TRAINING_NAMES(name, Call, items) {"doorstep_" #name "_float32", "doorstep_" #name "_float64"},
    DS_TRAINING_KERNEL_TABLE(DS_TRAINING_NAMES)
#undef DS_TRAINING_NAMES
};

struct TrainingKernels final : Prepared<TrainingKernels> {
    Ref<Kernel> kernels[kTrainingKernelCount][2];
};

constinit PreparedList<TrainingKernels> prepared_kernels;

ds_status fail_unprepared(int64_t device_index) {
    return fail(DS_STATUS_INVALID_ARGUMENT, "device_index", "call ds_training_prepare() before a capture",
                "the training kernels are not prepared on device %ld", device_index);
}

Ref<TrainingKernels> load(int64_t device_index) {
    const Ref<TrainingKernels> made = check_allocated(new (std::nothrow) TrainingKernels);
    if (!made) return {};
    made->module = kTrainingModule;
    made->context = Context::of_device(device_index);
    const Ref<Module> module = made->context ? load_module(made->context, kTrainingModule) : Ref<Module>();
    if (!module) return {};
    for (int id = 0; id < kTrainingKernelCount; ++id)
        for (int precision = 0; precision < 2; ++precision) {
            made->kernels[id][precision] = Kernel::get(module, kNames[id][precision]);
            if (!made->kernels[id][precision]) return {};
        }
    return made;
}

template <class Call>
ds_status launch(TrainingKernelId id, const Call& call, int64_t items) {
    Ref<TrainingKernels> prepared;
    const auto fail_missing = [&] { return fail_unprepared(call.device_index); };
    if (const ds_status status = prepared_kernels.find(call.device_index, kTrainingModule, fail_missing, &prepared)) {
        return status;
    }
    if (items == 0) return DS_STATUS_OK;
    const int64_t blocks = std::min((items + kTrainingThreads - 1) / kTrainingThreads, kMostBlocks);
    const LaunchShape shape = {{static_cast<uint32_t>(blocks), 1, 1}, {kTrainingThreads, 1, 1}};
    void* parameters[] = {const_cast<Call*>(&call)};
    Kernel& kernel = *prepared->kernels[id][call.dtype == DS_DTYPE_FLOAT64];
    return kernel.launch_on(reinterpret_cast<CUstream>(call.stream), shape, parameters);
}

}  // namespace

ds_status prepare_training_on_cuda(int64_t device_index) {
    return prepared_kernels.prepare(device_index, kTrainingModule, [&] { return load(device_index); });
}

ds_status release_training_on_cuda(int64_t device_index) {
    return prepared_kernels.release(device_index, kTrainingModule, [&] { return fail_unprepared(device_index); });
}

#define DS_TRAINING_FUNCTION(name, Call, items) \
    ds_status name##_on_cuda(const Call& call) { return launch(kTraining_##name, call, call.items); }
DS_TRAINING_KERNEL_TABLE(DS_TRAINING_FUNCTION)
#undef DS_TRAINING_FUNCTION

}  // namespace doorstep
