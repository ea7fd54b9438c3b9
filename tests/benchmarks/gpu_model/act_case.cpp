#include "act_case.h"

#include "device_memory.h"
#include "embedded.h"
#include "policy_calls.h"
#include "rounded_products.h"

namespace gpu_model {
namespace {

using namespace doorstep;

// Three layers of 256 values, and the logits; with their weights.
class Perceptron {
public:
    Perceptron() {
        constexpr int64_t kWidth = 256;
        for (const int64_t inputs : {kInputs, kWidth, kWidth}) {
            add_linear(inputs, kWidth);
            add(DS_LAYER_TANH, {});
        }
        for (const int size : kActionSizes) add_linear(kWidth, size);
    }

    Ref<Policy> policy() const {
        return Policy::create(layers_.data(), static_cast<int64_t>(layers_.size()), kActionComponents,
                              DS_PRECISION_FLOAT32);
    }

private:
    void add(int32_t kind, ds_layer_config config) {
        config.struct_size = sizeof config;
        config.kind = kind;
        layers_.push_back(Layer::create(config));
    }
    void add_linear(int64_t inputs, int64_t outputs) {
        ds_layer_config config{};
        config.num_inputs = inputs;
        config.num_outputs = outputs;
        config.weight_type = DS_WEIGHT_FLOAT32;
        config.weights = draw(inputs * outputs, inputs);
        config.biases = draw(outputs, inputs);
        add(DS_LAYER_LINEAR, config);
    }
    const float* draw(int64_t count, int64_t inputs) {
        const float range = 2.f / sqrtf(static_cast<float>(inputs + 1));
        arrays_.emplace_back(static_cast<size_t>(count));
        for (float& value : arrays_.back()) value = random_(range);
        return arrays_.back().data();
    }

    Random random_;
    std::vector<DeviceArray<float>> arrays_;
    std::vector<Ref<Layer>> layers_;
};

Cost sum_of(const TileCost& intervals) {
    Cost sum;
    for (const Cost& interval : intervals) sum.add(interval);
    return sum;
}

}  // namespace

Measured measure_act(int64_t num_rows, ds_precision precision) {
    const bool rounds = precision == DS_PRECISION_BFLOAT16;
    const int module = rounds ? kBf16PoliciesModule : kPoliciesModule;
    const char* const kernel = rounds ? kActBf16Kernel : kActKernel;
    const Perceptron perceptron;
    const Ref<Policy> policy = perceptron.policy();
    const Network network = rounds ? with_bf16(*policy) : policy->network();
    const int64_t floats = act_scratch_floats(network);
    const BlockNeeds needs{kActThreads, static_cast<uint32_t>((kStagedFloats + floats) * 4),
                           registers_of(module, kernel)};
    const ptx::Program program = ptx::read_embedded(module);
    Rows expected(*policy, num_rows), interpreted = expected;
    interpreted.point_to_own();
    CHECK_EQUAL(policy->act_on_all(expected.call), DS_STATUS_OK);
    unsigned long long nonfinite = 0;
    alignas(kDeviceAlignment) const ActArguments arguments = {network, interpreted.call, nullptr, floats, nullptr, &nonfinite};
    TileCosts costs(cache_lines(needs));
    ptx::launch_in_warps(program, program.kernel(kernel),
                         {static_cast<uint32_t>((num_rows + kActRows - 1) / kActRows), kActThreads, needs.shared_bytes,
                          &arguments},
                         costs);
    CHECK(rounds ? relative_distance(interpreted.logits, expected.logits) < 0.05 : interpreted.same_results(expected));
    std::vector<TileCost> tiles;
    for (const TileCost& intervals : costs.tiles) tiles.push_back({sum_of(intervals)});
    return {"", "row", kActRows, {"act"}, tiles, needs, {4096, 65536}};
}

}  // namespace gpu_model
