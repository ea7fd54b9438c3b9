// Policies: the same bits for every number type; accurate functions; the C API's ownership and refusals. What Python
// observes is tested in tests/pkg/policy.
#include <math.h>
#include <string.h>

#include <vector>

#include "check.h"
#include "math/float_environment.h"
#include "policy/played_rows.h"
#include "policy_calls.h"
#include "runtime/machine.h"

namespace {

using namespace doorstep;

struct Scratch {
    void* memory;
    explicit Scratch(const Policy& policy)
        : memory(aligned_alloc(Policy::kScratchAlignment, static_cast<size_t>(policy.scratch_bytes()))) {
        memset(memory, 0xFF, static_cast<size_t>(policy.scratch_bytes()));  // NaN: what is not written is not read
    }
    ~Scratch() { free(memory); }
};

void act(const Policy& policy, Rows& rows, int64_t step = 1 << 20) {
    const Scratch scratch(policy);
    const int64_t count = rows.call.num_rows;
    for (int64_t first = 0; first < count; first += step)
        policy.act(rows.call, first, step < count - first ? step : count - first, scratch.memory);
}

// ---- The same bits

int64_t act_narrowly(const Network& network, const ActCall& call, int64_t first, int64_t count, float* scratch) {
    const DefaultFloatEnvironment environment;
    return act_on_rows<NarrowFloat>(network, call, first, count, scratch);
}

LAW(every_number_type_gives_the_same_bits) {
    for (int i = 0; i < kNetworks; i++) {
        const Ref<Policy> policy = test_networks()[i].policy();
        const Network& network = policy->network();
        const Scratch scratch(*policy);
        float* const memory = static_cast<float*>(scratch.memory);
        for (const int64_t count : {1, 2, 3, 4, 7, 16, 33, 64, 150}) {
            Rows narrow(*policy, count), wide(*policy, count), widest(*policy, count);
            act_narrowly(network, narrow.call, 0, count, memory);
            act_with_avx2(network, wide.call, 0, count, memory);
            CHECK(narrow.same_results(wide));
            if (!cpu_features().avx512) continue;
            act_with_avx512(network, widest.call, 0, count, memory);
            CHECK(narrow.same_results(widest));
        }
    }
}

// The sum that a row's output is, in the order that is promised.
LAW(an_output_is_one_chain_of_fused_multiply_adds) {
    Random random;
    TestNetwork network;
    network.layers.push_back(make_layer(random, DS_LAYER_LINEAR, kInputs, DS_NUM_LOGITS));
    network.num_heads = 1;
    const Ref<Policy> policy = network.policy();
    Rows rows(*policy, 40);
    act(*policy, rows);
    const auto& weights = network.layers[0].floats[0];
    const auto& biases = network.layers[0].floats[1];
    for (size_t row = 0; row < 40; row++)
        for (size_t o = 0; o < DS_NUM_LOGITS; o++) {
            float sum = biases[o];
            for (size_t i = 0; i < kInputs; i++)
                sum = fmaf(weights[o * kInputs + i], rows.observations[row * kInputs + i], sum);
            CHECK(sum == rows.logits[row * DS_NUM_LOGITS + o]);
        }
}

// ---- Functions

template <class Function, class Exact>
double worst_error(double low, double high, bool relative, Function function, Exact exact) {
    double worst = 0;
    for (int i = 0; i <= 100000; i++) {
        const float x = static_cast<float>(low + (high - low) * i / 100000);
        const double expected = exact(static_cast<double>(x));
        const double error = fabs(static_cast<double>(function(NarrowFloat(x)).v) - expected);
        worst = fmax(worst, relative ? error / fmax(fabs(expected), 1e-30) : error);
    }
    return worst;
}

LAW(functions_are_accurate) {
    const auto tangent = [](NarrowFloat x) { return hyperbolic_tangent(x); };
    CHECK(worst_error(-12, 12, true, tangent, [](double x) { return tanh(x); }) < 3e-7);
    CHECK(worst_error(-1e-3, 1e-3, true, tangent, [](double x) { return tanh(x); }) < 3e-7);
    CHECK(worst_error(-6, 6, false, [](NarrowFloat x) { return error_function(x); }, [](double x) { return erf(x); }) <
          4e-7);
    const auto logistic = [](double x) { return 1 / (1 + exp(-x)); };
    CHECK(worst_error(-80, 80, true, [](NarrowFloat x) { return sigmoid(x); }, logistic) < 3e-7);
    CHECK(worst_error(-86, 0, true, [](NarrowFloat x) { return decay(x); }, [](double x) { return exp(x); }) < 2.4e-7);
    const auto logarithm = [](NarrowFloat y) { return logarithm_of_one_plus(y); };
    CHECK(worst_error(0, 1, true, logarithm, [](double y) { return log1p(y); }) < 3e-7);
    const auto exact_mish = [](double x) { return x * tanh(log1p(exp(x))); };
    CHECK(worst_error(-30, 30, true, [](NarrowFloat x) { return mish(x); }, exact_mish) < 1e-6);
    const auto exact_softplus = [](double x) { return log1p(exp(2 * x)) / 2; };
    CHECK(worst_error(-30, 30, true, [](NarrowFloat x) { return softplus(x, 2.f); }, exact_softplus) < 1e-6);
}

LAW(functions_have_their_limits) {
    using Function = NarrowFloat (*)(NarrowFloat);
    const Function bounded[] = {[](NarrowFloat x) { return gelu(x); }, [](NarrowFloat x) { return gelu_tanh(x); },
                                [](NarrowFloat x) { return silu(x); }, [](NarrowFloat x) { return mish(x); },
                                [](NarrowFloat x) { return softplus(x, 1.f); }};  // by 0 from below
    const Function others[] = {
        [](NarrowFloat x) { return decay(x); },        [](NarrowFloat x) { return hyperbolic_tangent(x); },
        [](NarrowFloat x) { return sigmoid(x); },      [](NarrowFloat x) { return relu(x); },
        [](NarrowFloat x) { return elu(x, 1.f); },     [](NarrowFloat x) { return leaky_relu(x, 0.1f); },
        [](NarrowFloat x) { return relu6(x); },        [](NarrowFloat x) { return error_function(x); },
        [](NarrowFloat x) { return celu(x, 2.f); },    [](NarrowFloat x) { return selu(x); },
        [](NarrowFloat x) { return hard_sigmoid(x); }, [](NarrowFloat x) { return hard_swish(x); },
        [](NarrowFloat x) { return softsign(x); }};
    const float nan = not_a_number<float>(), infinite = infinity<float>();
    for (const float other : {nan, -nan, nanf("7")}) {
        for (const Function function : bounded) CHECK(isnan(function(other).v));
        for (const Function function : others) CHECK(isnan(function(other).v));
    }
    for (const float x : {-20.f, -1e4f, -1e30f})
        for (const Function function : bounded) CHECK_NEAR(function(x).v, 0, 1e-6);
    CHECK(decay(NarrowFloat(0.f)).v == 1 && decay(NarrowFloat(-infinite)).v == 0);
    CHECK(sigmoid(NarrowFloat(-infinite)).v == 0 && sigmoid(NarrowFloat(infinite)).v == 1);
    CHECK_NEAR(hyperbolic_tangent(NarrowFloat(infinite)).v, 1, 6e-8);
    for (float x = 5; x < 12; x = nextafterf(x, 20)) CHECK(hyperbolic_tangent(NarrowFloat(x)).v <= 1);
}

LAW(random_words_are_those_of_the_levels) {
    for (uint32_t i = 0; i < 1000; i++) {
        const RandomKey key = {i * 2654435761u, ~i}, expected = split(key, i, i * 3);
        const auto words =
            threefry<NarrowFloat>(NarrowBits{key.a}, NarrowBits{key.b}, NarrowBits{i}, NarrowBits{i * 3});
        CHECK(words.a.v == expected.a && words.b.v == expected.b);
        const NarrowBits word = words.a ^ words.b;
        const float uniform = uniform_of<NarrowFloat>(word).v;
        CHECK(uniform >= 0 && uniform < 1);
        CHECK_NEAR(uniform, static_cast<double>(word.v) / 4294967296.0, 1.2e-7);
    }
}

// ---- Rows of episodes

// Rows of all kinds with lengths 0 to 6, what they see, remember and do.
struct Played {
    static constexpr int64_t kRows = 100, kInputs = 5, kStates = 3;

    std::vector<PlayedRow> rows;
    std::vector<ds_sampling_key> keys;
    std::vector<float> observations = std::vector<float>(kRows * kInputs, 1);
    std::vector<float> states = std::vector<float>(kRows * kStates, 2);
    std::vector<int32_t> actions = std::vector<int32_t>(kRows * kActionComponents, -1);
    uint32_t steps_before = 3;  // of the keys, modulo 2**32
    PolicyStates policies[2] = {{nullptr, 0}, {states.data(), kStates}};

    explicit Played(bool all_random) {
        constexpr RowChooser kChoosers[] = {RowChooser::kRandom, RowChooser::kNone, RowChooser::kIdle,
                                            RowChooser::kNetwork};
        for (int64_t i = 0; i < kRows; i++) {
            const RowChooser chooser = kChoosers[all_random || i % 40 < 20 ? 0 : i % 4];
            const uint32_t word = static_cast<uint32_t>(i) * 2654435761u;
            rows.push_back({chooser, static_cast<int16_t>(i % 2), static_cast<int32_t>(i % 3 * 10)});
            keys.push_back({{word, ~word}, static_cast<uint32_t>(i % 7) - steps_before, static_cast<uint32_t>(i % 4)});
        }
    }
    PlayedRows call() {
        return {kRows,   rows.data(),         keys.data(), &steps_before, policies,
                observations.data(), kInputs, 1,           0.5f,          actions.data()};
    }
    bool same(const Played& other) const {
        return observations == other.observations && states == other.states && actions == other.actions;
    }
};

LAW(rows_are_prepared_alike_one_by_one_and_together) {
    std::vector<int32_t> list;
    for (int32_t i = 0; i < Played::kRows; i++) list.push_back(i * 37 % Played::kRows);
    for (const bool all_random : {true, false}) {
        for (const int64_t count : {0, 1, 7, 8, 9, 16, 33, 100}) {
            Played alone(all_random), wide(all_random), widest(all_random);
            for (int64_t i = 0; i < count; i++) prepare_row(alone.call(), list[static_cast<size_t>(i)]);
            prepare_with_avx2(wide.call(), list.data(), count);
            CHECK(wide.same(alone));
            if (cpu_features().avx512) prepare_with_avx512(widest.call(), list.data(), count);
            CHECK(!cpu_features().avx512 || widest.same(alone));
        }
    }
}

// ---- The C API

int released = 0;
void count_release(void*) { released++; }

// Of each of the first logits: its input times a factor, plus the input from the other end.
void mirror(void* context, int64_t num_rows, const float* inputs, float* outputs) {
    CHECK(num_rows >= 1 && num_rows <= Policy::kTileRows);
    for (int64_t row = 0; row < num_rows; row++)
        for (int64_t k = 0; k < DS_NUM_LOGITS; k++)
            outputs[row * DS_NUM_LOGITS + k] = *static_cast<const float*>(context) * inputs[row * kInputs + k] +
                                               inputs[row * kInputs + kInputs - 1 - k];
}

TestNetwork mirroring_network(float& factor) {
    Random random;
    TestNetwork network;
    network.layers.push_back(make_layer(random, DS_LAYER_FUNCTION, kInputs, DS_NUM_LOGITS));
    network.layers[0].config.function = mirror;
    network.layers[0].config.function_context = &factor;
    network.num_heads = 0;
    return network;
}

LAW(a_function_of_the_callers_is_a_layer) {
    float factor = 0.5f;
    const Ref<Policy> policy = mirroring_network(factor).policy(), frozen = policy->freeze(0);
    for (const int64_t step : {1, 3, 16, 64, 200}) {
        Rows rows(*policy, 200), same(*policy, 200);
        act(*policy, rows, step);
        act(*frozen, same, step);
        CHECK(rows.same_results(same));
        for (size_t row = 0; row < 200; row++)
            for (size_t k = 0; k < DS_NUM_LOGITS; k++) {
                const float* const inputs = &rows.observations[row * kInputs];
                CHECK(rows.logits[row * DS_NUM_LOGITS + k] == factor * inputs[k] + inputs[kInputs - 1 - k]);
            }
    }
}

ds_status create_policy(const ds_layer* layers, uint64_t count, uint64_t num_heads, ds_policy* policy) {
    return ds_policy_create(layers, count, num_heads, DS_PRECISION_FLOAT32, policy);
}

ds_layer create_layer(const ds_layer_config& config, ds_release_owner release = nullptr) {
    ds_layer_config owned = config;
    owned.owner = &released;
    owned.release_owner = release;
    ds_layer layer = 0;
    CHECK_EQUAL(ds_layer_create(&owned, &layer), DS_STATUS_OK);
    return layer;
}

TestNetwork small_network() {
    Random random;
    TestNetwork network;
    network.layers.push_back(make_layer(random, DS_LAYER_LINEAR, kInputs, 8));
    network.layers.push_back(make_layer(random, DS_LAYER_GRU, 8, 6));
    network.layers.push_back(make_layer(random, DS_LAYER_LINEAR, 6, DS_NUM_LOGITS));
    network.num_heads = 1;
    return network;
}

LAW(a_frozen_policy_shares_functions_and_what_they_need) {
    float factor = 2;
    released = 0;
    ds_layer layer = create_layer(mirroring_network(factor).layers[0].config, count_release);
    ds_policy policy, frozen;
    CHECK_EQUAL(create_policy(&layer, 1, 0, &policy), DS_STATUS_OK);
    CHECK_EQUAL(ds_policy_freeze(policy, 0, &frozen), DS_STATUS_OK);
    CHECK_EQUAL(ds_layer_release(layer), DS_STATUS_OK);
    CHECK_EQUAL(ds_policy_release(policy), DS_STATUS_OK);
    CHECK_EQUAL(released, 0);
    CHECK_EQUAL(ds_policy_release(frozen), DS_STATUS_OK);
    CHECK_EQUAL(released, 1);
}

// Whether the latest error names the argument and contains the words.
bool refused(ds_status status, ds_status expected, const char* argument, const char* words = "") {
    ds_error error = {};
    error.struct_size = sizeof error;
    CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
    if (status == expected && strcmp(error.argument, argument) == 0 && strstr(error.message, words)) return true;
    fprintf(stderr, "%d, %s: %s\n", status, error.argument, error.message);
    return false;
}

// A function that changes a field of a structure.
#define EDIT(change) [](auto& one) { one.change; }

struct LayerCase {
    const TestLayer& layer;
    const char* argument;
    void (*edit)(ds_layer_config&);
};

void check_refused(const LayerCase& one) {
    ds_layer_config config = one.layer.config;
    config.owner = &released;
    config.release_owner = count_release;
    one.edit(config);
    released = 0;
    ds_layer made = 0;
    CHECK(refused(ds_layer_create(&config, &made), DS_STATUS_INVALID_ARGUMENT, one.argument));
    CHECK(released == 0 && made == 0);
}

LAW(bad_layers_are_refused) {
    const TestNetwork network = small_network();
    Random random;
    float factor = 1;
    const TestLayer &linear = network.layers[0], &gru = network.layers[1], tanh = make_layer(random, DS_LAYER_TANH);
    const TestLayer norm = make_layer(random, DS_LAYER_LAYER_NORM, 4), function = mirroring_network(factor).layers[0];
    static const float other_weights[4096] = {};
    const LayerCase cases[] = {
        {linear, "config", EDIT(struct_size = 4)}, {linear, "kind", EDIT(kind = DS_LAYER_GELU_TANH + 1)},
        {linear, "weight_type", EDIT(weight_type = 2)}, {linear, "num_inputs", EDIT(num_inputs = 0)},
        {linear, "weights", EDIT(weights = nullptr)}, {linear, "hidden_weights", EDIT(hidden_weights = one.weights)},
        {linear, "parameter", EDIT(parameter = 1)},
        {linear, "biases", EDIT(biases = static_cast<const char*>(one.biases) + 2)},
        {gru, "hidden_weights", EDIT(hidden_weights = nullptr)}, {tanh, "num_inputs", EDIT(num_inputs = 3)},
        {tanh, "weights", EDIT(weights = other_weights)}, {tanh, "function", EDIT(function = mirror)},
        {norm, "parameter", EDIT(parameter = -1)}, {norm, "parameter", EDIT(parameter = not_a_number<float>())},
        {norm, "num_outputs", EDIT(num_outputs = 4)}, {function, "function", EDIT(function = nullptr)},
    };
    for (const LayerCase& one : cases) check_refused(one);
    ds_layer made;
    CHECK(refused(ds_layer_create(nullptr, &made), DS_STATUS_INVALID_ARGUMENT, "config"));
    CHECK(refused(ds_layer_create(&linear.config, nullptr), DS_STATUS_INVALID_ARGUMENT, "layer"));
    CHECK(refused(ds_layer_release(0), DS_STATUS_CLOSED, "layer"));
}

// One number of a shape after the other is changed to what does not fit the rest.
LAW(bad_shapes_are_refused) {
    Random random;
    const TestLayer conv = make_layer(random, DS_LAYER_CONV, 60, 147, 0, image(2, 5, 6, 3, 2, 2, 1, 1, 1));
    const TestLayer pool = make_layer(random, DS_LAYER_MAX_POOL, 147, 112, 0, image(7, 3, 7, 2, 3, 1, 2, 1, 1));
    const TestLayer attention = make_layer(random, DS_LAYER_ATTENTION, 60, 60, 0, tokens(5, 3));
    const TestLayer linear = make_layer(random, DS_LAYER_LINEAR, 60, 35, 0, tokens(5));
    const TestLayer take = make_layer(random, DS_LAYER_TAKE, 94, 60, 0, taken_from(34));
    const TestLayer append = make_layer(random, DS_LAYER_APPEND, 42, 136), relu = make_layer(random, DS_LAYER_RELU);
    const LayerCase cases[] = {
        {conv, "num_inputs", EDIT(shape.channels = 3)}, {conv, "shape.height", EDIT(shape.height = -5)},
        {conv, "num_inputs", EDIT(shape.width = 65536)}, {conv, "shape.kernel_height", EDIT(shape.kernel_height = 8)},
        {conv, "shape.stride_height", EDIT(shape.stride_height = 0)},
        {conv, "num_outputs", EDIT(shape.stride_width = 2)}, {conv, "shape.pad_height", EDIT(shape.pad_height = -1)},
        {conv, "shape.num_tokens", EDIT(shape.num_tokens = 2)}, {conv, "shape.first", EDIT(shape.first = 1)},
        {pool, "shape.pad_height", EDIT(shape.pad_height = 2)}, {pool, "num_outputs", EDIT(num_outputs = 224)},
        {attention, "shape.num_tokens", EDIT(shape.num_tokens = 7)},
        {attention, "shape.num_attention_heads", EDIT(shape.num_attention_heads = 5)},
        {attention, "shape.channels", EDIT(shape.channels = 1)}, {attention, "num_outputs", EDIT(num_outputs = 120)},
        {attention, "hidden_weights", EDIT(hidden_weights = nullptr)},
        {linear, "shape.num_tokens", EDIT(shape.num_tokens = 4)}, {take, "shape.first", EDIT(shape.first = 35)},
        {take, "num_outputs", EDIT(num_outputs = 95)}, {append, "num_outputs", EDIT(num_outputs = 42)},
        {relu, "shape.num_tokens", EDIT(shape.num_tokens = 5)},
    };
    for (const LayerCase& one : cases) check_refused(one);
}

LAW(what_is_kept_is_used_once) {
    Random random;
    const auto layer = [&](int32_t kind, int64_t inputs, int64_t outputs) {
        return make_layer(random, kind, inputs, outputs);
    };
    const struct {
        std::vector<TestLayer> layers;
        const char* message;
    } cases[] = {
        {{layer(DS_LAYER_ADD, 19, 0)}, "layers[0] gets 19 values that were kept; there are 0"},
        {{layer(DS_LAYER_KEEP, 19, 0)}, "layers[1] gets 0 values that were kept; there are 19"},
        {{layer(DS_LAYER_KEEP, 94, 0), layer(DS_LAYER_LINEAR, 94, 19), layer(DS_LAYER_ADD, 19, 0)},
         "layers[2] gets 19 values that were kept; there are 94"},
        {{layer(DS_LAYER_KEEP, 9, 0), layer(DS_LAYER_APPEND, 9, 19)},
         "layers[1] gets 10 values that were kept; there are 9"},
    };
    for (const auto& one : cases) {
        std::vector<ds_layer> layers;
        for (const TestLayer& made : one.layers) layers.push_back(create_layer(made.config));
        ds_policy policy = 0;
        const ds_status status = create_policy(layers.data(), layers.size(), 0, &policy);
        CHECK(refused(status, DS_STATUS_INVALID_ARGUMENT, "layers", one.message));
        for (const ds_layer made : layers) CHECK_EQUAL(ds_layer_release(made), DS_STATUS_OK);
    }
}

LAW(bad_policies_and_calls_are_refused) {
    const TestNetwork network = small_network();
    Random random;
    const TestLayer logits = make_layer(random, DS_LAYER_LINEAR, 8, 18);
    const TestLayer two = make_layer(random, DS_LAYER_LINEAR, 8, 2);
    ds_layer layers[5];
    for (size_t i = 0; i < 3; i++) layers[i] = create_layer(network.layers[i].config);
    layers[3] = create_layer(logits.config);
    layers[4] = create_layer(two.config);
    const ds_layer disordered[] = {layers[0], layers[2]}, stale[] = {layers[0], 0, layers[2]};
    const ds_layer of_20[] = {layers[0], layers[3], layers[4]};  // no head of one output
    ds_policy policy = 0;
    const struct {
        const ds_layer* layers;
        uint64_t count, num_heads;
        const char* argument;
        ds_status status = DS_STATUS_INVALID_ARGUMENT;
    } policies[] = {{nullptr, 3, 1, "layers"}, {layers, 0, 0, "count"},
                    {layers, 257, 0, "count"}, {layers, 3, 4, "num_heads"},
                    {layers, 3, 2, "layers"},  // a head is a GRU
                    {layers, 2, 0, "layers"},  // 6 logits
                    {disordered, 2, 1, "layers"}, {disordered, 2, 0, "layers"}, {of_20, 3, 2, "layers"},
                    {stale, 3, 1, "layers", DS_STATUS_CLOSED}};
    for (const auto& one : policies)
        CHECK(refused(create_policy(one.layers, one.count, one.num_heads, &policy), one.status, one.argument));
    CHECK(refused(create_policy(layers, 3, 1, nullptr), DS_STATUS_INVALID_ARGUMENT, "policy"));
    for (const int32_t precision : {-1, int32_t{DS_PRECISION_BFLOAT16}, 2})  // the second one is not of the CPU
        CHECK(refused(ds_policy_create(layers, 3, 1, precision, &policy), DS_STATUS_INVALID_ARGUMENT, "precision"));
    CHECK_EQUAL(policy, 0);
    CHECK_EQUAL(create_policy(layers, 3, 1, &policy), DS_STATUS_OK);
    ds_layer layer;
    CHECK(refused(ds_policy_get_layer(policy, 3, &layer), DS_STATUS_INVALID_ARGUMENT, "index"));
    ds_policy_info info = {};
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_policy_get_info(policy, &info), DS_STATUS_OK);
    CHECK(info.num_layers == 3 && info.num_heads == 1 && info.num_inputs == kInputs && info.state_size == 6);
    CHECK_EQUAL(info.precision, DS_PRECISION_FLOAT32);

    Rows rows(*network.policy(), 4);
    CHECK_EQUAL(ds_policy_act(policy, &rows.call), DS_STATUS_OK);
    const std::vector<int32_t> before = rows.actions;
    static const int32_t negative[] = {0, 1, -1, 2};
    const struct {
        const char* argument;
        void (*edit)(ds_policy_call&);
    } calls[] = {
        {"call", EDIT(struct_size = 8)}, {"num_rows", EDIT(num_rows = -1)},
        {"observations", EDIT(observations = nullptr)}, {"observation_stride", EDIT(observation_stride = 93)},
        {"states", EDIT(states = nullptr)}, {"state_stride", EDIT(state_stride = 5)},
        {"sampling", EDIT(sampling = nullptr)}, {"keys", EDIT(keys = nullptr)}, {"actions", EDIT(actions = nullptr)},
        {"rows", EDIT(rows = negative)},
    };
    for (const auto& one : calls) {
        ds_policy_call call = rows.call;
        one.edit(call);
        CHECK(refused(ds_policy_act(policy, &call), DS_STATUS_INVALID_ARGUMENT, one.argument));
        CHECK(before == rows.actions);
    }
    const float nan = not_a_number<float>();
    for (const ds_sampling& bad : {ds_sampling{-1, 1}, {infinity<float>(), 1}, {nan, 1}, {1, 0}, {1, 1.1f}, {1, nan}}) {
        const ds_sampling sampling[4] = {{1, 1}, {1, 1}, {1, 1}, bad};
        ds_policy_call call = rows.call;
        call.sampling = sampling;
        CHECK(refused(ds_policy_act(policy, &call), DS_STATUS_INVALID_ARGUMENT, "sampling") && before == rows.actions);
    }
    ds_policy_call forward = rows.call;
    forward.logits = nullptr;
    CHECK(refused(ds_policy_forward(policy, &forward), DS_STATUS_INVALID_ARGUMENT, "logits"));
    forward.num_rows = 0;
    CHECK_EQUAL(ds_policy_forward(policy, &forward), DS_STATUS_OK);
    CHECK_EQUAL(ds_policy_release(policy), DS_STATUS_OK);
    CHECK(refused(ds_policy_release(policy), DS_STATUS_CLOSED, "policy"));
    CHECK(refused(ds_policy_get_layer(policy, 0, &layer), DS_STATUS_CLOSED, "policy"));
    CHECK(refused(ds_policy_act(policy, &rows.call), DS_STATUS_CLOSED, "policy"));
    for (const ds_layer one : layers) CHECK_EQUAL(ds_layer_release(one), DS_STATUS_OK);
}

}  // namespace
