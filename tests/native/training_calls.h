// Calls of the training kernels on the CPU and by kernels that run on the host: both must give the same bytes.
#pragma once

#include <string.h>

#include <string>
#include <vector>

#include "check.h"
#include "draws.h"
#include "math/exponential.h"
#include "training/kernels.h"

namespace doorstep {

// Runs the kernel of this name. grid: blocks; way: the name of the runner's variant.
using TrainingRunner = void (*)(const char* kernel, const void* call, uint32_t grid, int way);

struct TrainingLaunch {
    TrainingRunner run;
    uint32_t grid;
    int way;
};

template <class Float>
std::vector<Float> drawn(Draws& draws, size_t count, double scale) {
    std::vector<Float> values(count);
    for (Float& value : values) value = static_cast<Float>((draws.below(2000001) / 1e6 - 1) * scale);
    return values;
}

inline std::vector<uint8_t> drawn_flags(Draws& draws, size_t count) {
    std::vector<uint8_t> flags(count);
    for (uint8_t& flag : flags) flag = draws.below(20) == 0;
    return flags;
}

template <class Float>
constexpr int kDtype = sizeof(Float) == 4 ? DS_DTYPE_FLOAT32 : DS_DTYPE_FLOAT64;

template <class Float>
std::string kernel_name(const char* name) {
    return std::string("doorstep_") + name + (sizeof(Float) == 4 ? "_float32" : "_float64");
}

template <class Float>
using Arrays = std::vector<std::vector<Float>>;

template <class Float>
bool same_bytes(const Arrays<Float>& a, const Arrays<Float>& b) {
    for (size_t i = 0; i < a.size(); i++)
        if (memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(Float)) != 0) return false;
    return true;
}

template <class Float>
void check_advantages(const TrainingLaunch& launch, const char* name, void (*on_cpu)(const ds_advantages&),
                      int64_t steps, int64_t columns) {
    Draws draws{static_cast<uint64_t>(steps * 1000 + columns)};
    const size_t count = static_cast<size_t>(steps * columns);
    const auto rewards = drawn<Float>(draws, count, 1), values = drawn<Float>(draws, count, 5),
               next_values = drawn<Float>(draws, count, 5), log_ratios = drawn<Float>(draws, count, 2);
    const auto terminations = drawn_flags(draws, count), truncations = drawn_flags(draws, count);
    const auto run = [&](const auto& runner) {
        Arrays<Float> results(2, std::vector<Float>(count));
        const ds_advantages call = {sizeof call, DS_DEVICE_CPU, 0, 0, steps, columns, kDtype<Float>, 0, rewards.data(),
                                    values.data(), next_values.data(), terminations.data(), truncations.data(),
                                    log_ratios.data(), results[0].data(), results[1].data(), 0.99, 0.95, 1.1, 0.9};
        runner(call);
        return results;
    };
    const Arrays<Float> expected = run(on_cpu);
    CHECK(same_bytes(expected, run([&](const ds_advantages& call) {
        launch.run(kernel_name<Float>(name).c_str(), &call, launch.grid, launch.way);
    })));
}

template <class Float>
struct MultiDiscrete {
    explicit MultiDiscrete(int64_t rows) : num_rows(rows) {
        Draws draws{static_cast<uint64_t>(rows)};
        const size_t count = static_cast<size_t>(rows);
        logits = drawn<Float>(draws, count * 20, 8);
        for (size_t i = 0; i < logits.size(); i += 11)
            if (i % 20 != 19) logits[i] = -infinity<Float>();  // never the only choice
        uniforms = drawn<Float>(draws, count * 5, 0.4999);
        for (Float& uniform : uniforms) uniform += Float(0.5);
        uniforms[0] = 0;  // of a component whose first choice is excluded
        gradients = drawn<Float>(draws, count * 2, 3);
    }

    // Calls sample, evaluate and backward through runner(name, call); returns everything written.
    template <class Runner>
    Arrays<Float> run(const Runner& runner) const {
        const size_t count = static_cast<size_t>(num_rows);
        Arrays<Float> results(6, std::vector<Float>(count));
        results[4].resize(logits.size());
        results[5].resize(count * 5);
        std::vector<int32_t> actions(count * 5);
        ds_multi_discrete call = {};
        call.num_rows = num_rows;
        call.dtype = kDtype<Float>;
        call.num_components = 5;
        constexpr int32_t kSizes[5] = {4, 8, 5, 2, 1};
        memcpy(call.sizes, kSizes, sizeof kSizes);
        call.logits = logits.data();
        call.uniforms = uniforms.data();
        call.actions = actions.data();
        call.log_probability_gradients = gradients.data();
        call.entropy_gradients = gradients.data() + count;
        call.logit_gradients = results[4].data();
        for (size_t i = 0; i < 2; i++) {
            call.log_probabilities = results[2 * i].data();
            call.entropies = results[2 * i + 1].data();
            runner(i ? "multi_discrete_evaluate" : "multi_discrete_sample", call);
        }
        runner("multi_discrete_backward", call);
        for (size_t i = 0; i < actions.size(); i++) results[5][i] = static_cast<Float>(actions[i]);
        return results;
    }

    int64_t num_rows;
    std::vector<Float> logits, uniforms, gradients;
};

inline void run_on_cpu(const char* name, const ds_multi_discrete& call) {
    if (strstr(name, "sample")) multi_discrete_sample_on_cpu(call);
    else if (strstr(name, "evaluate")) multi_discrete_evaluate_on_cpu(call);
    else multi_discrete_backward_on_cpu(call);
}

template <class Float>
void check_multi_discrete(const TrainingLaunch& launch, int64_t rows) {
    const MultiDiscrete<Float> batch(rows);
    const Arrays<Float> expected = batch.run(run_on_cpu);
    CHECK(expected[0] == expected[2] && expected[1] == expected[3]);  // sample and evaluate agree
    for (const Float log_probability : expected[0]) CHECK(log_probability > -1000);  // no excluded choice is drawn
    CHECK(same_bytes(expected, batch.run([&](const char* name, const ds_multi_discrete& call) {
        launch.run(kernel_name<Float>(name).c_str(), &call, launch.grid, launch.way);
    })));
}

template <class Float>
void check_training(const TrainingLaunch& launch, int64_t items) {
    check_advantages<Float>(launch, "generalized_advantages", generalized_advantages_on_cpu, 17, items);
    check_advantages<Float>(launch, "v_trace", v_trace_on_cpu, 17, items);
    check_multi_discrete<Float>(launch, items);
}

}  // namespace doorstep
