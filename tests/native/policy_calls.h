// Networks with every kind of layer, rows for them, and launches of the kernel that are compared with the CPU.
#pragma once

#include <math.h>
#include <string.h>

#include <vector>

#include "check.h"
#include "math/threefry.h"
#include "policy/act_loop.h"
#include "policy/kernels.h"
#include "policy/policy.h"

namespace doorstep {

// ---- Networks

struct Random {
    RandomStream stream = {{7, 9}, 0};
    float operator()(float range) { return stream.centered(range); }
};

// A layer and its weights, which it owns.
struct TestLayer {
    ds_layer_config config{};
    std::vector<std::vector<float>> floats;
    std::vector<std::vector<uint16_t>> halves;

    float weight(size_t index) const {
        return config.weight_type == DS_WEIGHT_BFLOAT16 ? as_float(halves[0][index]) : floats[0][index];
    }

    const void* weights(int64_t count, Random& random) {
        floats.emplace_back();
        halves.emplace_back();
        const float range = 2.f / sqrtf(static_cast<float>(config.num_inputs + 1));
        for (int64_t i = 0; i < count; i++) {
            floats.back().push_back(random(range));
            uint32_t bits;
            memcpy(&bits, &floats.back().back(), 4);
            halves.back().push_back(static_cast<uint16_t>(bits >> 16));
        }
        return config.weight_type == DS_WEIGHT_BFLOAT16 ? static_cast<const void*>(halves.back().data())
                                                        : floats.back().data();
    }
};

inline TestLayer make_layer(Random& random, int32_t kind, int64_t inputs = 0, int64_t outputs = 0,
                     int32_t type = DS_WEIGHT_FLOAT32, const ds_layer_shape& shape = {}) {
    TestLayer layer;
    layer.floats.reserve(4);
    layer.halves.reserve(4);
    ds_layer_config& config = layer.config;
    config.struct_size = sizeof config;
    config.kind = kind;
    config.num_inputs = inputs;
    config.num_outputs = outputs;
    config.weight_type = type;
    config.shape = shape;
    if (is_norm(kind)) config.parameter = 1e-5f;
    for (const int32_t with : {DS_LAYER_ELU, DS_LAYER_LEAKY_RELU, DS_LAYER_CELU, DS_LAYER_SOFTPLUS})
        if (kind == with) config.parameter = 0.5f;
    const ArrayCounts counts = array_counts(config);
    if (counts.weights) config.weights = layer.weights(counts.weights, random);
    if (counts.biases) config.biases = layer.weights(counts.biases, random);
    if (counts.hidden_weights) config.hidden_weights = layer.weights(counts.hidden_weights, random);
    if (counts.hidden_biases) config.hidden_biases = layer.weights(counts.hidden_biases, random);
    return layer;
}

struct TestNetwork {
    std::vector<TestLayer> layers;
    int64_t num_heads;

    Ref<Policy> policy() const {
        std::vector<Ref<Layer>> made;
        for (const TestLayer& layer : layers) made.push_back(Layer::create(layer.config));
        return Policy::create(made.data(), static_cast<int64_t>(made.size()), num_heads, DS_PRECISION_FLOAT32);
    }
};

constexpr int64_t kInputs = 94;

// Every kind of layer of flat rows; sizes that no block and no vector divides. Recurrent ones have a value head.
inline TestNetwork make_network(int32_t recurrent, int32_t type) {
    Random random;
    TestNetwork network;
    auto& layers = network.layers;
    layers.push_back(make_layer(random, DS_LAYER_LINEAR, kInputs, 67, type));
    layers.push_back(make_layer(random, DS_LAYER_LAYER_NORM, 67, 0, type));
    layers.push_back(make_layer(random, DS_LAYER_RMS_NORM, 67, 0, type));
    for (int32_t kind = DS_LAYER_RELU; kind <= DS_LAYER_GELU_TANH; kind++) {
        layers.push_back(make_layer(random, kind));
        layers.push_back(make_layer(random, DS_LAYER_LINEAR, 67, 67, type));
    }
    if (recurrent >= 0) {
        layers.push_back(make_layer(random, recurrent, 67, 21, type));
        layers.push_back(make_layer(random, recurrent, 21, 33, type));
    } else {
        layers.push_back(make_layer(random, DS_LAYER_LINEAR, 67, 33, type));
    }
    for (const int size : kActionSizes) layers.push_back(make_layer(random, DS_LAYER_LINEAR, 33, size, type));
    if (recurrent >= 0) layers.push_back(make_layer(random, DS_LAYER_LINEAR, 33, 1, type));
    network.num_heads = kActionComponents + (recurrent >= 0);
    return network;
}

// Shapes of images and of tokens.
inline ds_layer_shape image(int32_t channels, int32_t height, int32_t width, int32_t kernel_height, int32_t kernel_width,
                            int32_t stride_height, int32_t stride_width, int32_t pad_height, int32_t pad_width) {
    return {0,           0, channels, height, width, kernel_height, kernel_width, stride_height, stride_width, pad_height,
            pad_width, 0};
}
inline ds_layer_shape tokens(int32_t count, int32_t heads = 0) {
    return {count, heads, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
}
inline ds_layer_shape taken_from(int32_t first) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, first}; }

// Every kind of layer whose values are arranged, or kept for a later one.
inline TestNetwork make_arranged_network(int32_t type) {
    Random random;
    TestNetwork network;
    const auto add = [&](int32_t kind, int64_t inputs, int64_t outputs, const ds_layer_shape& shape = {}) {
        network.layers.push_back(make_layer(random, kind, inputs, outputs, type, shape));
    };
    add(DS_LAYER_KEEP, kInputs, 0);
    add(DS_LAYER_TAKE, kInputs, 60, taken_from(30));
    add(DS_LAYER_CONV, 60, 147, image(2, 5, 6, 3, 2, 2, 1, 1, 1));      // 7 channels of 3 by 7
    add(DS_LAYER_MAX_POOL, 147, 112, image(7, 3, 7, 2, 3, 1, 2, 1, 1));  // of 4 by 4
    add(DS_LAYER_AVG_POOL, 112, 42, image(7, 4, 4, 2, 2, 2, 2, 1, 0));   // of 3 by 2
    add(DS_LAYER_KEEP, 42, 0);
    add(DS_LAYER_SILU, 0, 0);
    add(DS_LAYER_ADD, 42, 0);
    add(DS_LAYER_APPEND, 42, 42 + kInputs);
    add(DS_LAYER_LINEAR, 42 + kInputs, 60);
    add(DS_LAYER_KEEP, 60, 0);
    add(DS_LAYER_ATTENTION, 60, 60, tokens(5, 3));
    add(DS_LAYER_ADD, 60, 0);
    add(DS_LAYER_LAYER_NORM, 60, 0, tokens(5));
    add(DS_LAYER_RMS_NORM, 60, 0, tokens(5));
    add(DS_LAYER_LINEAR, 60, 35, tokens(5));
    for (const int size : kActionSizes) add(DS_LAYER_LINEAR, 35, size);
    network.num_heads = kActionComponents;
    return network;
}

inline const TestNetwork* test_networks() {
    static const TestNetwork networks[] = {make_network(-1, DS_WEIGHT_FLOAT32), make_network(-1, DS_WEIGHT_BFLOAT16),
                                           make_network(DS_LAYER_LSTM, DS_WEIGHT_FLOAT32),
                                           make_network(DS_LAYER_GRU, DS_WEIGHT_BFLOAT16),
                                           make_arranged_network(DS_WEIGHT_FLOAT32),
                                           make_arranged_network(DS_WEIGHT_BFLOAT16)};
    return networks;
}
constexpr int kNetworks = 6;

// ---- Rows

// The arrays of a call of `count` rows.
struct Rows {
    std::vector<float> observations, states, logits, log_probs, values;
    std::vector<ds_sampling> sampling;
    std::vector<ds_sampling_key> keys;
    std::vector<int32_t> actions, order;
    std::vector<uint8_t> nonfinite;
    uint32_t step_counter = 0xFFFFFFF0u;  // sums of steps wrap around
    ActCall call{};

    Rows(const Policy& policy, int64_t count) {
        Random random;
        const size_t rows = static_cast<size_t>(count), width = static_cast<size_t>(policy.state_size());
        observations.resize(rows * kInputs);
        states.resize(rows * width);
        logits.resize(rows * DS_NUM_LOGITS);
        actions.assign(rows * kActionComponents, -1);
        nonfinite.assign(rows, 2);
        log_probs.assign(rows, 2);
        values.assign(rows, -1000);
        for (float& value : observations) value = random(4);
        for (float& value : states) value = random(1);
        for (uint32_t row = 0; row < rows; row++) {
            const bool drawn = row % 5 != 4 && row % 4 != 3;
            sampling.push_back({drawn ? 0.25f * static_cast<float>(row % 7 + 1) : 0, row % 3 ? 1 : 0.7f});
            keys.push_back({{row, row / 2}, row % 9, row % 2});
        }
        call.struct_size = sizeof call;
        call.num_rows = count;
        call.observation_stride = kInputs;
        call.state_stride = policy.state_size();
        call.step = 5;
        point_to_own();
    }

    // After a copy.
    void point_to_own() {
        call.observations = observations.data();
        call.states = states.empty() ? nullptr : states.data();
        call.rows = order.empty() ? nullptr : order.data();
        call.sampling = sampling.data();
        call.keys = keys.data();
        call.actions = actions.data();
        call.logits = logits.data();
        call.nonfinite = nonfinite.data();
        call.log_probs = log_probs.data();
        call.values = values.data();
        call.step_counter = &step_counter;
    }

    bool same_results(const Rows& other) const {
        return same(logits, other.logits) && same(states, other.states) && same(actions, other.actions) &&
               same(nonfinite, other.nonfinite) && same(log_probs, other.log_probs) && same(values, other.values);
    }
    template <class T>
    static bool same(const std::vector<T>& a, const std::vector<T>& b) {
        return a.size() == b.size() && (a.empty() || memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
    }
};

// ---- The kernel

// Runs the kernel; `way` is the caller's.
using RunAct = void (*)(const ActArguments& arguments, uint32_t grid, uint32_t shared_bytes, const char* way);

// Evaluates rows, with scratch memory in shared memory or elsewhere; returns how many had no choice.
inline int64_t run_rows(RunAct run, const Network& network, Rows& rows, uint32_t grid, const char* way, bool in_shared) {
    unsigned long long nonfinite = 0;
    const int64_t floats = act_scratch_floats(network);
    std::vector<float> scratch(static_cast<size_t>(in_shared ? 0 : floats * grid) + 4, not_a_number<float>());
    float* const aligned = scratch.data() + (16 - reinterpret_cast<uintptr_t>(scratch.data()) % 16) % 16 / 4;
    const RowRange range = {0, rows.call.num_rows};
    const ActArguments arguments = {network, rows.call, in_shared ? nullptr : aligned, floats,
                                    in_shared ? nullptr : &range, &nonfinite};
    const int64_t shared = (kStagedFloats + (in_shared ? floats : 0)) * 4;
    run(arguments, grid, static_cast<uint32_t>(shared), way);
    return static_cast<int64_t>(nonfinite);
}

// The kernel gives the bytes of the CPU, with its scratch memory in shared memory and elsewhere. shuffled: rows in
// another order, of which some are left out.
inline void check_acting(RunAct run, uint32_t grid, const char* way, int64_t count, bool shuffled) {
    for (int i = 0; i < kNetworks; i++) {
        const Ref<Policy> policy = test_networks()[i].policy();
        Rows expected(*policy, count);
        if (count > 3) expected.observations[3 * kInputs] = not_a_number<float>();
        for (int32_t row = 0; shuffled && row < count; row += 3)
            expected.order.push_back(row * 7 % static_cast<int32_t>(count));
        if (shuffled) {
            expected.call.rows = expected.order.data();
            expected.call.num_rows = static_cast<int64_t>(expected.order.size());
        }
        const Rows given = expected;
        CHECK_EQUAL(policy->act_on_all(expected.call), DS_STATUS_OK);
        const int64_t nonfinite = policy->nonfinite_rows();
        for (const bool in_shared : {true, false}) {
            Rows found = given;
            found.point_to_own();
            CHECK_EQUAL(run_rows(run, policy->network(), found, grid, way, in_shared), nonfinite);
            CHECK(found.same_results(expected));
        }
    }
}

}  // namespace doorstep
