#include "launches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "math/float_environment.h"
#include "policy/kernels.h"

namespace stand_in {
namespace {

using doorstep::ActArguments;
using doorstep::ActCall;

// Memory whose addresses or sizes are on the device: they are known when the kernel runs.
void add_weights(const doorstep::Network& network, Accesses& accesses) {
    for (int64_t i = 0; i < network.num_layers; ++i) {
        const ds_layer_config& layer = network.layers[i];
        const int64_t element = layer.weight_type == DS_WEIGHT_BFLOAT16 ? 2 : 4;
        const doorstep::ArrayCounts counts = doorstep::array_counts(layer);
        accesses.add_given("weights", layer.weights, element * counts.weights, false);
        accesses.add_given("biases", layer.biases, element * counts.biases, false);
        accesses.add_given("hidden_weights", layer.hidden_weights, element * counts.hidden_weights, false);
        accesses.add_given("hidden_biases", layer.hidden_biases, element * counts.hidden_biases, false);
    }
}

void add_rows(const ActArguments& arguments, Accesses& accesses) {
    const ActCall& call = arguments.call;
    const doorstep::RowRange all = {0, call.num_rows}, range = arguments.range ? *arguments.range : all;
    if (range.count == 0) return;
    const int32_t* const first = call.rows + range.first;
    const int64_t last = call.rows ? *std::max_element(first, first + range.count) : call.num_rows - 1;
    const doorstep::Network& network = arguments.network;
    const int64_t observations = last * call.observation_stride + network.num_inputs;
    accesses.add_given("observations", call.observations, 4 * observations, false);
    accesses.add_given("states", call.states, 4 * (last * call.state_stride + network.state_size), true);
    const int64_t rows = last + 1;
    accesses.add_given("sampling", call.sampling, rows * static_cast<int64_t>(sizeof(ds_sampling)), false);
    accesses.add_given("keys", call.keys, rows * static_cast<int64_t>(sizeof(ds_sampling_key)), false);
    accesses.add_given("actions", call.actions, rows * DS_ACTION_COMPONENT_COUNT * 4, true);
    accesses.add_given("nonfinite", call.nonfinite, rows, true);
    accesses.add_given("log_probs", call.log_probs, rows * 4, true);
    accesses.add_given("values", call.values, rows * 4, true);
}

int make_act_launch(const Launch& launch, const void* parameter, Task* task) {
    const ActArguments arguments = *static_cast<const ActArguments*>(parameter);
    const ActCall& call = arguments.call;
    const bool rounds = launch.kernel == doorstep::kActBf16Kernel;
    if (rounds != (arguments.network.precision == DS_PRECISION_BFLOAT16))
        return refuse(kInvalidValue, text("%s: precision %d", launch.kernel.c_str(), arguments.network.precision));
    const int64_t scratch = arguments.scratch_floats * 4;
    const int64_t shared = doorstep::kStagedFloats * 4 + (arguments.scratch ? 0 : scratch);
    TRY(check_shape(launch, doorstep::kActThreads, static_cast<uint32_t>(shared), sizeof arguments));
    Accesses accesses(launch, &task->accesses);
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
        std::vector<Access> found;
        Accesses accesses(launch, &found);
        add_weights(arguments.network, accesses);
        add_rows(arguments, accesses);
        const OpenMemory opened(found);
        if (!accesses.code) doorstep::emulate_act(arguments, launch.grid, launch.shared_bytes, order);
    };
    return accesses.code;
}

int make_prepare_launch(const Launch& launch, const doorstep::PlayedRows& call, Task* task) {
    TRY(check_shape(launch, doorstep::kPrepareThreads, 0, sizeof call));
    if (int64_t{launch.grid} * launch.threads < call.num_rows)
        return refuse(kInvalidValue, launch.kernel + ": too few threads");
    Accesses accesses(launch, &task->accesses);
    const int64_t rows = call.num_rows;
    accesses.add("rows", call.rows, rows * static_cast<int64_t>(sizeof *call.rows), false);
    accesses.add("keys", call.keys, rows * static_cast<int64_t>(sizeof *call.keys), false);
    accesses.add("step_counter", call.step_counter, 4, false);
    accesses.add("policies", call.policies, sizeof *call.policies, false);
    accesses.add("observations", call.observations, rows * call.num_inputs * 4, true);
    accesses.add("actions", call.actions, rows * DS_ACTION_COMPONENT_COUNT * 4, true);
    task->what = launch.kernel;
    task->run = [=] {
        std::vector<Access> found;
        Accesses accesses(launch, &found);
        for (int64_t row = 0; row < rows; ++row) {
            if (call.rows[row].chooser != doorstep::RowChooser::kNetwork) continue;
            const doorstep::PolicyStates& of = call.policies[call.rows[row].policy];
            accesses.add_given("states", of.states, rows * of.size * 4, true);
        }
        const OpenMemory opened(found);
        if (!accesses.code) doorstep::emulate_prepare_rows(call);
    };
    return accesses.code;
}

int make_count_launch(const Launch& launch, uint32_t* counter, Task* task) {
    TRY(check_shape(launch, 1, 0, sizeof counter));
    Accesses accesses(launch, &task->accesses);
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
