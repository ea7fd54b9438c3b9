// Training kernels on the caller's arrays.
#include "api/call.h"
#include "runtime/cuda/resource.h"
#include "training/kernels.h"

namespace doorstep {
namespace {

constexpr int64_t kMostItems = int64_t{1} << 40;

template <class Call>
ds_status check_place(const Call& call) {
    if (const ds_status status = check_device(call.device_kind, call.device_index)) return status;
    if (call.dtype != DS_DTYPE_FLOAT32 && call.dtype != DS_DTYPE_FLOAT64) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "dtype", "convert the arrays",
                    "dtype is %d; it must be DS_DTYPE_FLOAT32 or DS_DTYPE_FLOAT64", call.dtype);
    }
    return call.device_kind == DS_DEVICE_CPU ? check_cpu() : DS_STATUS_OK;
}

struct Address {
    const char* name;
    const void* address;
};

template <int kCount>
ds_status check_addresses(const Address (&addresses)[kCount]) {
    for (const Address& one : addresses)
        if (!one.address) return fail_null(one.name);
    return DS_STATUS_OK;
}

// Calls without items need no memory.
ds_status check_arrays(const ds_advantages& call, bool with_ratios) {
    if (call.num_steps == 0 || call.num_columns == 0) return DS_STATUS_OK;
    if (with_ratios && !call.log_ratios) return fail_null("log_ratios");
    return check_addresses({{"rewards", call.rewards},
                            {"values", call.values},
                            {"next_values", call.next_values},
                            {"terminations", call.terminations},
                            {"truncations", call.truncations},
                            {"advantages", call.advantages},
                            {"targets", call.targets}});
}

ds_status check_number(const char* argument, double value, double largest) {
    if (value >= 0 && value <= largest) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "", "%s is %g; it must be 0 to %g", argument, value, largest);
}

ds_status check_advantages(const ds_advantages& call, bool with_ratios) {
    if (const ds_status status = check_place(call)) return status;
    if (const ds_status status = check_range("num_steps", "", call.num_steps, 0, kMostItems)) return status;
    if (const ds_status status = check_range("num_columns", "", call.num_columns, 0, kMostItems)) return status;
    if (const ds_status status = check_number("gamma", call.gamma, 1)) return status;
    if (const ds_status status = check_number("gae_lambda", call.gae_lambda, 1)) return status;
    if (with_ratios) {
        if (const ds_status status = check_number("rho_clip", call.rho_clip, __builtin_inf())) return status;
        if (const ds_status status = check_number("c_clip", call.c_clip, __builtin_inf())) return status;
    }
    return check_arrays(call, with_ratios);
}

ds_status check_multi_discrete(const ds_multi_discrete& call) {
    if (const ds_status status = check_place(call)) return status;
    if (const ds_status status = check_range("num_rows", "", call.num_rows, 0, kMostItems)) return status;
    if (const ds_status status = check_range("num_components", "split the action", call.num_components, 1,
                                             DS_MAX_ACTION_COMPONENTS)) {
        return status;
    }
    for (int k = 0; k < call.num_components; ++k) {
        const char* hint = "a component has at least one choice";
        if (const ds_status status = check_range("sizes", hint, call.sizes[k], 1, INT32_MAX)) return status;
    }
    if (call.num_rows == 0) return DS_STATUS_OK;
    return check_addresses({{"logits", call.logits}, {"actions", call.actions}});
}

ds_status check_results(const ds_multi_discrete& call) {
    if (call.num_rows == 0) return DS_STATUS_OK;
    return check_addresses({{"log_probabilities", call.log_probabilities}, {"entropies", call.entropies}});
}

ds_status check_actions(const ds_multi_discrete& call) {
    const int32_t* action = call.actions;
    for (int64_t row = 0; row < call.num_rows; ++row)
        for (int k = 0; k < call.num_components; ++k, ++action) {
            if (*action >= 0 && *action < call.sizes[k]) continue;
            return fail(DS_STATUS_INVALID_ARGUMENT, "actions", "choices start at 0",
                        "actions[%ld, %d] is %d; it must be 0 to %d", row, k, *action, call.sizes[k] - 1);
        }
    return DS_STATUS_OK;
}

#define DS_TRAINING_RUN(name, Call, items)                                             \
    ds_status run_##name(const Call& call) {                                           \
        if (call.device_kind == DS_DEVICE_CUDA) return name##_on_cuda(call);           \
        name##_on_cpu(call);                                                           \
        return DS_STATUS_OK;                                                           \
    }
DS_TRAINING_KERNEL_TABLE(DS_TRAINING_RUN)
#undef DS_TRAINING_RUN

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_training_prepare(int64_t device_index) {
    if (const ds_status status = check_range("device_index", "", device_index, 0, INT32_MAX)) return status;
    if (!has_fork_handlers()) return fail_no_memory();
    return prepare_training_on_cuda(device_index);
}

ds_status ds_training_release(int64_t device_index) { return release_training_on_cuda(device_index); }

ds_status ds_generalized_advantages(const ds_advantages* call) {
    const Given<ds_advantages> given(call, "call");
    if (given.status()) return given.status();
    if (const ds_status status = check_advantages(*given, false)) return status;
    return run_generalized_advantages(*given);
}

ds_status ds_v_trace(const ds_advantages* call) {
    const Given<ds_advantages> given(call, "call");
    if (given.status()) return given.status();
    if (const ds_status status = check_advantages(*given, true)) return status;
    return run_v_trace(*given);
}

ds_status ds_multi_discrete_sample(const ds_multi_discrete* call) {
    const Given<ds_multi_discrete> given(call, "call");
    if (given.status()) return given.status();
    if (const ds_status status = check_multi_discrete(*given)) return status;
    if (const ds_status status = check_results(*given)) return status;
    if (given->num_rows && !given->uniforms) return fail_null("uniforms");
    return run_multi_discrete_sample(*given);
}

ds_status ds_multi_discrete_evaluate(const ds_multi_discrete* call) {
    const Given<ds_multi_discrete> given(call, "call");
    if (given.status()) return given.status();
    if (const ds_status status = check_multi_discrete(*given)) return status;
    if (const ds_status status = check_results(*given)) return status;
    if (given->device_kind == DS_DEVICE_CPU) {
        if (const ds_status status = check_actions(*given)) return status;
    }
    return run_multi_discrete_evaluate(*given);
}

ds_status ds_multi_discrete_backward(const ds_multi_discrete* call) {
    const Given<ds_multi_discrete> given(call, "call");
    if (given.status()) return given.status();
    if (const ds_status status = check_multi_discrete(*given)) return status;
    if (given->num_rows) {
        if (const ds_status status = check_addresses({{"log_probability_gradients", given->log_probability_gradients},
                                                      {"entropy_gradients", given->entropy_gradients},
                                                      {"logit_gradients", given->logit_gradients}})) {
            return status;
        }
    }
    return run_multi_discrete_backward(*given);
}
