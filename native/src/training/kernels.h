// The training kernels: their names and parameters. Each is one function template that processes some of the items
// (columns or rows) of a call; the CPU and CUDA both run it.
#pragma once

#include "doorstep.h"

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

}  // namespace doorstep
