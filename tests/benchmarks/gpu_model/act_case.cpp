#include "act_case.h"

#include "embedded.h"
#include "policy_calls.h"

namespace gpu_model {
namespace {

using namespace doorstep;

TestNetwork perceptron() {
    constexpr int64_t kWidth = 256;
    Random random;
    TestNetwork network;
    for (const int64_t inputs : {kInputs, kWidth, kWidth}) {
        network.layers.push_back(make_layer(random, DS_LAYER_LINEAR, inputs, kWidth));
        network.layers.push_back(make_layer(random, DS_LAYER_TANH));
    }
    for (const int size : kActionSizes) network.layers.push_back(make_layer(random, DS_LAYER_LINEAR, kWidth, size));
    network.num_heads = kActionComponents;
    return network;
}

Cost sum_of(const TileCost& intervals) {
    Cost sum;
    for (const Cost& interval : intervals) sum.add(interval);
    return sum;
}

}  // namespace

Measured measure_act(int64_t num_rows) {
    const TestNetwork network = perceptron();  // owns the weights
    const Ref<Policy> policy = network.policy();
    const int64_t floats = act_scratch_floats(policy->network());
    const BlockNeeds needs{kActThreads, static_cast<uint32_t>((kStagedFloats + floats) * 4),
                           registers_of(kPoliciesModule, kActKernel)};
    const ptx::Program program = ptx::read_embedded(kPoliciesModule);
    Rows expected(*policy, num_rows), interpreted = expected;
    interpreted.point_to_own();
    CHECK_EQUAL(policy->act_on_all(expected.call), DS_STATUS_OK);
    unsigned long long nonfinite = 0;
    const ActArguments arguments = {policy->network(), interpreted.call, nullptr, floats, nullptr, &nonfinite};
    TileCosts costs(cache_lines(needs));
    ptx::launch_in_warps(program, program.kernel(kActKernel),
                         {static_cast<uint32_t>((num_rows + kActRows - 1) / kActRows), kActThreads, needs.shared_bytes,
                          &arguments},
                         costs);
    CHECK(interpreted.same_results(expected));
    std::vector<TileCost> tiles;
    for (const TileCost& intervals : costs.tiles) tiles.push_back({sum_of(intervals)});
    return {"", "row", kActRows, {"act"}, tiles, needs, {4096, 65536}};
}

}  // namespace gpu_model
