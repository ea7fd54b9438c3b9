// The training kernels: their names and parameters, and how each device runs them. Each is one function template that
// processes some of the items (columns or rows) of a call; the CPU and CUDA both run it.
#pragma once

#include "doorstep/policies_and_rollouts.h"

namespace doorstep {

// X(name, type of the call, field with the number of items). The functions in the CUDA module are
// doorstep_<name>_float32 and doorstep_<name>_float64; the call is their one parameter, by value.
#define DS_TRAINING_KERNEL_TABLE(X)                             \
    X(generalized_advantages, ds_advantages, num_columns)       \
    X(v_trace, ds_advantages, num_columns)                      \
    X(multi_discrete_sample, ds_multi_discrete, num_rows)       \
    X(multi_discrete_evaluate, ds_multi_discrete, num_rows)     \
    X(multi_discrete_backward, ds_multi_discrete, num_rows)

enum TrainingKernelId {
#define DS_TRAINING_ENUM(name, Call, items) kTraining_##name,
    DS_TRAINING_KERNEL_TABLE(DS_TRAINING_ENUM)
#undef DS_TRAINING_ENUM
    kTrainingKernelCount
};

// Threads of a block. Threads take items in strides of the grid's size, so that any grid gives the same result.
constexpr int kTrainingThreads = 64;

// Each function executes a call, whose arguments have been checked. On the CPU the calling thread does; the CPU must
// have the instruction sets that worlds are compiled for. On CUDA a call is one launch on the caller's stream, which
// may be captured; the kernels are loaded beforehand, because loading is impossible during a capture.
#define DS_TRAINING_FUNCTIONS(name, Call, items) \
    void name##_on_cpu(const Call& call);        \
    ds_status name##_on_cuda(const Call& call);
DS_TRAINING_KERNEL_TABLE(DS_TRAINING_FUNCTIONS)
#undef DS_TRAINING_FUNCTIONS

// Loaded per device from the first prepare() until as many releases.
ds_status prepare_training_on_cuda(int64_t device_index);
ds_status release_training_on_cuda(int64_t device_index);

}  // namespace doorstep
