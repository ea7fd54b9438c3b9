// The training kernels on the CPU.
#include "math/float_environment.h"
#include "training/advantages.h"
#include "training/kernels.h"
#include "training/multi_discrete.h"

namespace doorstep {
namespace {

// Items processed together. Their intermediate values fit the first-level cache.
template <class Call>
constexpr int kTogether = 0;
template <>
constexpr int kTogether<ds_advantages> = 512;
template <>
constexpr int kTogether<ds_multi_discrete> = 32;

}  // namespace

#define DS_TRAINING_FUNCTION(name, Call, items)                                                        \
    template <class Float>                                                                             \
    static void name##_in_runs(const Call& call) {                                                     \
        constexpr int kMost = kTogether<Call>;                                                         \
        for (int64_t first = 0; first < call.items; first += kMost) {                                  \
            const int64_t left = call.items - first;                                                   \
            name<Float, kMost>(call, first, left < kMost ? static_cast<int>(left) : kMost);            \
        }                                                                                              \
    }                                                                                                  \
    void name##_on_cpu(const Call& call) {                                                             \
        const DefaultFloatEnvironment environment;                                                     \
        return call.dtype == DS_DTYPE_FLOAT32 ? name##_in_runs<float>(call) : name##_in_runs<double>(call); \
    }
DS_TRAINING_KERNEL_TABLE(DS_TRAINING_FUNCTION)
#undef DS_TRAINING_FUNCTION

}  // namespace doorstep
