// The training kernels: exponential and logarithm are accurate; kernels run as CUDA would give the bytes of the CPU.
#include <math.h>
#include <string.h>

#include <vector>

#include "check.h"
#include "draws.h"
#include "math/exponential.h"
#include "training/cpu_training.h"
#include "training_emulation.h"

namespace {

using namespace doorstep;

// ---- Exponential and logarithm, against the C library in long double

template <class Float>
double error_in_last_place(Float found, long double expected) {
    const Float nearest = fabs(static_cast<Float>(expected));
    const Float unit = nextafter(nearest, infinity<Float>()) - nearest;
    return static_cast<double>(fabsl(static_cast<long double>(found) - expected) / static_cast<long double>(unit));
}

template <class Float>
double worst_exponential(double low, double high) {
    double worst = 0;
    for (int i = 0; i <= 200000; i++) {
        const Float x = static_cast<Float>(low + (high - low) * i / 200000);
        worst = fmax(worst, error_in_last_place(exponential(x), expl(static_cast<long double>(x))));
    }
    return worst;
}

template <class Float>
double worst_logarithm(double low, double high) {
    double worst = 0;
    for (int i = 0; i <= 200000; i++) {
        const Float x = static_cast<Float>(exp(low + (high - low) * i / 200000));
        if (x != Float(1)) worst = fmax(worst, error_in_last_place(natural_logarithm(x), logl(static_cast<long double>(x))));
    }
    return worst;
}

void exponentials_are_within_two_units_in_the_last_place() {
    CHECK(worst_exponential<float>(-1, 1) < 2);
    CHECK(worst_exponential<float>(-103, 88.7) < 2);
    CHECK(worst_exponential<double>(-1, 1) < 2);
    CHECK(worst_exponential<double>(-745, 709.7) < 2);
}

void logarithms_are_within_two_units_in_the_last_place() {
    CHECK(worst_logarithm<float>(-0.5, 0.5) < 2);
    CHECK(worst_logarithm<float>(-87, 88) < 2);
    CHECK(worst_logarithm<double>(-0.5, 0.5) < 2);
    CHECK(worst_logarithm<double>(-708, 709) < 2);
}

template <class Float>
void check_ends() {
    CHECK(exponential(Float(0)) == 1);
    CHECK(exponential(-infinity<Float>()) == 0);
    CHECK(exponential(infinity<Float>()) == infinity<Float>());
    CHECK(isnan(exponential(not_a_number<Float>())));
    CHECK(natural_logarithm(Float(1)) == 0);
    CHECK(isnan(natural_logarithm(not_a_number<Float>())));
    CHECK(isinf(infinity<Float>()) && infinity<Float>() > 0);
}

void ends_of_the_range_are_exact() {
    check_ends<float>();
    check_ends<double>();
}

// ---- The same bytes, whoever runs a kernel

struct Way {
    ThreadOrder order;
    uint32_t grid;
};
constexpr Way kWays[] = {{ThreadOrder::kForwards, 3}, {ThreadOrder::kBackwards, 1}, {ThreadOrder::kShuffled, 40}};

template <class Float>
std::vector<Float> drawn(Draws& draws, size_t count, double scale) {
    std::vector<Float> values(count);
    for (Float& value : values) value = static_cast<Float>((draws.below(2000001) / 1e6 - 1) * scale);
    return values;
}

std::vector<uint8_t> drawn_flags(Draws& draws, size_t count) {
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
void check_advantages(const char* name, void (*on_cpu)(const ds_advantages&), int64_t steps, int64_t columns) {
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
    for (const Way& way : kWays)
        CHECK(same_bytes(expected, run([&](const ds_advantages& call) {
            find_emulated_training_kernel(kernel_name<Float>(name).c_str())(&call, way.grid, kTrainingThreads,
                                                                            way.order);
        })));
}

void advantages_on_cuda_have_the_bytes_of_the_cpu() {
    for (int64_t columns : {1, 63, 513, 1100}) {
        check_advantages<float>("generalized_advantages", generalized_advantages_on_cpu, 17, columns);
        check_advantages<double>("generalized_advantages", generalized_advantages_on_cpu, 17, columns);
        check_advantages<float>("v_trace", v_trace_on_cpu, 17, columns);
        check_advantages<double>("v_trace", v_trace_on_cpu, 17, columns);
    }
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
        gradients = drawn<Float>(draws, count * 2, 3);
    }

    // sample, evaluate and backward through runner(name, call); everything written.
    template <class Runner>
    Arrays<Float> run(const Runner& runner) const {
        const size_t count = static_cast<size_t>(num_rows);
        Arrays<Float> results{std::vector<Float>(count), std::vector<Float>(count), std::vector<Float>(count),
                              std::vector<Float>(count), std::vector<Float>(logits.size()), std::vector<Float>(count * 5)};
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

void run_on_cpu(const char* name, const ds_multi_discrete& call) {
    if (strstr(name, "sample")) multi_discrete_sample_on_cpu(call);
    else if (strstr(name, "evaluate")) multi_discrete_evaluate_on_cpu(call);
    else multi_discrete_backward_on_cpu(call);
}

template <class Float>
void check_multi_discrete(int64_t rows) {
    const MultiDiscrete<Float> batch(rows);
    const Arrays<Float> expected = batch.run(run_on_cpu);
    CHECK(expected[0] == expected[2] && expected[1] == expected[3]);  // drawing and evaluating agree
    for (const Way& way : kWays)
        CHECK(same_bytes(expected, batch.run([&](const char* name, const ds_multi_discrete& call) {
            find_emulated_training_kernel(kernel_name<Float>(name).c_str())(&call, way.grid, kTrainingThreads,
                                                                            way.order);
        })));
}

void multi_discrete_actions_on_cuda_have_the_bytes_of_the_cpu() {
    for (int64_t rows : {1, 31, 64, 333}) {
        check_multi_discrete<float>(rows);
        check_multi_discrete<double>(rows);
    }
}

}  // namespace

int main() {
    RUN(exponentials_are_within_two_units_in_the_last_place);
    RUN(logarithms_are_within_two_units_in_the_last_place);
    RUN(ends_of_the_range_are_exact);
    RUN(advantages_on_cuda_have_the_bytes_of_the_cpu);
    RUN(multi_discrete_actions_on_cuda_have_the_bytes_of_the_cpu);
}
