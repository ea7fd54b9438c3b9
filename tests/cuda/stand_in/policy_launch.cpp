#include "policy_launch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "math/float_environment.h"
#include "policy_emulation.h"

namespace stand_in {
namespace {

using doorstep::ActArguments;
using doorstep::ActCall;

// The memory whose addresses or sizes are on the device: they are known when the kernel runs.
class FoundAccesses {
public:
    explicit FoundAccesses(const Launch& launch) : launch_(launch) {}

    void add(const char* name, const void* address, int64_t bytes, bool writes) {
        if (!address || !bytes) return;
        Access access = access_to(launch_.kernel + ": " + name, reinterpret_cast<uint64_t>(address),
                                  static_cast<uint64_t>(bytes), writes, launch_.device);
        is_complete = is_complete && access.allocation;
        if (access.allocation) found.push_back(std::move(access));
    }

    std::vector<Access> found;
    bool is_complete = true;

private:
    const Launch& launch_;
};

void add_weights(const doorstep::Network& network, FoundAccesses& accesses) {
    for (int64_t i = 0; i < network.num_layers; ++i) {
        const ds_layer_config& layer = network.layers[i];
        const int64_t element = layer.weight_type == DS_WEIGHT_BFLOAT16 ? 2 : 4;
        const doorstep::ArrayCounts counts = doorstep::array_counts(layer);
        accesses.add("weights", layer.weights, element * counts.weights, false);
        accesses.add("biases", layer.biases, element * counts.biases, false);
        accesses.add("hidden_weights", layer.hidden_weights, element * counts.hidden_weights, false);
        accesses.add("hidden_biases", layer.hidden_biases, element * counts.hidden_biases, false);
    }
}

void add_rows(const ActArguments& arguments, FoundAccesses& accesses) {
    const ActCall& call = arguments.call;
    const doorstep::RowRange all = {0, call.num_rows}, range = arguments.range ? *arguments.range : all;
    if (range.count == 0) return;
    const int32_t* const first = call.rows + range.first;
    const int64_t last = call.rows ? *std::max_element(first, first + range.count) : call.num_rows - 1;
    const doorstep::Network& network = arguments.network;
    accesses.add("observations", call.observations, 4 * (last * call.observation_stride + network.num_inputs), false);
    accesses.add("states", call.states, 4 * (last * call.state_stride + network.state_size), true);
    const int64_t rows = last + 1;
    accesses.add("sampling", call.sampling, rows * static_cast<int64_t>(sizeof(ds_sampling)), false);
    accesses.add("keys", call.keys, rows * static_cast<int64_t>(sizeof(ds_sampling_key)), false);
    accesses.add("actions", call.actions, rows * DS_ACTION_COMPONENT_COUNT * 4, true);
    accesses.add("nonfinite", call.nonfinite, rows, true);
    accesses.add("log_probs", call.log_probs, rows * 4, true);
    accesses.add("values", call.values, rows * 4, true);
}

int make_act_launch(const Launch& launch, const void* parameter, Task* task) {
    const ActArguments arguments = *static_cast<const ActArguments*>(parameter);
    const ActCall& call = arguments.call;
    const bool rounds = launch.kernel == doorstep::kActBf16Kernel;
    if (rounds != (arguments.network.precision == DS_PRECISION_BFLOAT16))
        return refuse(kInvalidValue, text("%s: precision %d", launch.kernel.c_str(), arguments.network.precision));
    const int64_t scratch = arguments.scratch_floats * 4;
    const int64_t shared = doorstep::kStagedFloats * 4 + (arguments.scratch ? 0 : scratch);
    if (const int code = check_shape(launch, doorstep::kActThreads, static_cast<uint32_t>(shared), sizeof arguments)) {
        return code;
    }
    Accesses accesses(launch, task);
    accesses.add("layers", arguments.network.layers,
                 arguments.network.num_layers * static_cast<int64_t>(sizeof(ds_layer_config)), false);
    accesses.add_given("scratch", arguments.scratch, launch.grid * scratch, true);
    // Added to atomically: launches do not race
    accesses.add("nonfinite_rows", arguments.nonfinite_rows, sizeof *arguments.nonfinite_rows, false);
    accesses.add_given("rows", call.rows, call.num_rows * 4, false);
    accesses.add_given("logits", call.logits, call.num_rows * DS_NUM_LOGITS * 4, true);
    accesses.add_given("step_counter", call.step_counter, 4, false);
    accesses.add_given("range", arguments.range, sizeof *arguments.range, false);
    task->what = text("%s of %ld rows", launch.kernel.c_str(), call.num_rows);
    task->run = [=, order = doorstep::ThreadOrder{next_thread_order()}] {
        const doorstep::DefaultFloatEnvironment device;  // independent of the host's
        FoundAccesses found(launch);
        add_weights(arguments.network, found);
        add_rows(arguments, found);
        const OpenMemory opened(found.found);
        if (found.is_complete) doorstep::emulate_act(arguments, launch.grid, launch.shared_bytes, order);
    };
    return accesses.code;
}

int make_prepare_launch(const Launch& launch, const doorstep::PlayedRows& call, Task* task) {
    if (const int code = check_shape(launch, doorstep::kPrepareThreads, 0, sizeof call)) return code;
    if (int64_t{launch.grid} * launch.threads < call.num_rows)
        return refuse(kInvalidValue, launch.kernel + ": too few threads");
    Accesses accesses(launch, task);
    const int64_t rows = call.num_rows;
    accesses.add("rows", call.rows, rows * static_cast<int64_t>(sizeof *call.rows), false);
    accesses.add("keys", call.keys, rows * static_cast<int64_t>(sizeof *call.keys), false);
    accesses.add("step_counter", call.step_counter, 4, false);
    accesses.add("policies", call.policies, sizeof *call.policies, false);
    accesses.add("observations", call.observations, rows * call.num_inputs * 4, true);
    accesses.add("actions", call.actions, rows * DS_ACTION_COMPONENT_COUNT * 4, true);
    task->what = launch.kernel;
    task->run = [=] {
        FoundAccesses found(launch);
        for (int64_t row = 0; row < rows; ++row) {
            if (call.rows[row].chooser != doorstep::RowChooser::kNetwork) continue;
            const doorstep::PolicyStates& of = call.policies[call.rows[row].policy];
            found.add("states", of.states, rows * of.size * 4, true);
        }
        const OpenMemory opened(found.found);
        if (found.is_complete) doorstep::emulate_prepare_rows(call);
    };
    return accesses.code;
}

int make_count_launch(const Launch& launch, uint32_t* counter, Task* task) {
    if (const int code = check_shape(launch, 1, 0, sizeof counter)) return code;
    Accesses accesses(launch, task);
    accesses.add("counter", counter, sizeof *counter, true);
    task->what = launch.kernel;
    task->run = [=] { ++*counter; };
    return accesses.code;
}

}  // namespace

int make_policy_launch(const Launch& launch, const void* parameter, Task* task) {
    if (launch.kernel == doorstep::kPrepareRowsKernel)
        return make_prepare_launch(launch, *static_cast<const doorstep::PlayedRows*>(parameter), task);
    if (launch.kernel == doorstep::kCountStepKernel)
        return make_count_launch(launch, *static_cast<uint32_t* const*>(parameter), task);
    return make_act_launch(launch, parameter, task);
}

}  // namespace stand_in
