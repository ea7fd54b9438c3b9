// Policies: the same bits for every number type, batch and thread; accurate functions; sampling and its limits; the C
// API's ownership and refusals.
#include <math.h>
#include <string.h>

#include <initializer_list>
#include <memory>
#include <thread>
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

void every_number_type_gives_the_same_bits() {
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

void every_split_of_a_batch_gives_the_same_bits() {
    for (int i = 0; i < kNetworks; i++) {
        const Ref<Policy> policy = test_networks()[i].policy();
        Rows whole(*policy, 200);
        act(*policy, whole);
        for (const int64_t step : {1, 3, 16, 17, 64, 100}) {
            Rows parts(*policy, 200);
            act(*policy, parts, step);
            CHECK(parts.same_results(whole));
        }
    }
}

void the_order_of_rows_changes_nothing() {
    const Ref<Policy> policy = test_networks()[2].policy();
    Rows straight(*policy, 90), shuffled(*policy, 90);
    for (int32_t i = 0; i < 90; i++) shuffled.order.push_back(i * 7 % 90);
    shuffled.call.rows = shuffled.order.data();
    act(*policy, straight);
    act(*policy, shuffled);
    CHECK(Rows::same(straight.actions, shuffled.actions) && Rows::same(straight.states, shuffled.states));
    for (size_t i = 0; i < 90; i++) {  // logits are by place in the call
        const size_t row = static_cast<size_t>(shuffled.order[i]);
        const float *found = &shuffled.logits[i * DS_NUM_LOGITS], *expected = &straight.logits[row * DS_NUM_LOGITS];
        CHECK(memcmp(found, expected, 4 * DS_NUM_LOGITS) == 0);
    }
}

void threads_act_at_the_same_time() {
    const Ref<Policy> policy = test_networks()[3].policy();
    Rows expected(*policy, 130);
    act(*policy, expected);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            for (int round = 0; round < 10; round++) {
                Rows rows(*policy, 130);
                CHECK_EQUAL(policy->act_on_all(rows.call), DS_STATUS_OK);
                CHECK(rows.same_results(expected));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

// The sum that a row's output is, in the order that is promised.
void an_output_is_one_chain_of_fused_multiply_adds() {
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

void a_value_is_the_output_of_the_last_head() {
    Random random;
    TestNetwork network;
    network.layers.push_back(make_layer(random, DS_LAYER_LINEAR, kInputs, DS_NUM_LOGITS));
    network.layers.push_back(make_layer(random, DS_LAYER_LINEAR, kInputs, 1));
    network.num_heads = 2;
    const Ref<Policy> policy = network.policy();
    CHECK(policy->has_value());
    Rows rows(*policy, 40);
    act(*policy, rows);
    const auto& weights = network.layers[1].floats[0];
    for (size_t row = 0; row < 40; row++) {
        float sum = network.layers[1].floats[1][0];
        for (size_t i = 0; i < kInputs; i++) sum = fmaf(weights[i], rows.observations[row * kInputs + i], sum);
        CHECK(sum == rows.values[row]);
    }
    Rows without(*policy, 40);
    without.call.values = nullptr;
    act(*policy, without);
    CHECK(Rows::same(without.logits, rows.logits) && Rows::same(without.actions, rows.actions));
    const Ref<Policy> other = test_networks()[0].policy();
    Rows none(*other, 3);
    act(*other, none);
    CHECK(!other->has_value());
    for (const float value : none.values) CHECK(isnan(value));
}

// ---- Functions

template <class Function, class Exact>
double worst_error(double low, double high, bool relative, Function function, Exact exact) {
    double worst = 0;
    for (int i = 0; i <= 400000; i++) {
        const float x = static_cast<float>(low + (high - low) * i / 400000);
        const double expected = exact(static_cast<double>(x));
        const double error = fabs(static_cast<double>(function(NarrowFloat(x)).v) - expected);
        worst = fmax(worst, relative ? error / fmax(fabs(expected), 1e-30) : error);
    }
    return worst;
}

void functions_are_accurate() {
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

void functions_have_their_limits() {
    const float nan = not_a_number<float>(), infinite = infinity<float>();
    for (const float other : {nan, -nan, nanf("7")}) {
        const NarrowFloat x = other;
        CHECK(isnan(decay(x).v) && isnan(hyperbolic_tangent(x).v) && isnan(sigmoid(x).v) && isnan(relu(x).v));
        CHECK(isnan(elu(x, 1.f).v) && isnan(gelu(x).v) && isnan(gelu_tanh(x).v) && isnan(silu(x).v));
        CHECK(isnan(leaky_relu(x, 0.1f).v) && isnan(error_function(x).v));
        CHECK(isnan(relu6(x).v) && isnan(celu(x, 2.f).v) && isnan(selu(x).v) && isnan(mish(x).v));
        CHECK(isnan(hard_sigmoid(x).v) && isnan(hard_swish(x).v) && isnan(softsign(x).v) && isnan(softplus(x, 1.f).v));
    }
    CHECK(decay(NarrowFloat(0.f)).v == 1 && decay(NarrowFloat(-infinite)).v == 0);
    CHECK(sigmoid(NarrowFloat(-infinite)).v == 0 && sigmoid(NarrowFloat(infinite)).v == 1);
    CHECK_NEAR(hyperbolic_tangent(NarrowFloat(infinite)).v, 1, 6e-8);
    for (const float x : {-20.f, -1e4f, -1e30f}) {
        CHECK_NEAR(gelu(NarrowFloat(x)).v, 0, 1e-6);
        CHECK_NEAR(gelu_tanh(NarrowFloat(x)).v, 0, 1e-6);
        CHECK_NEAR(silu(NarrowFloat(x)).v, 0, 1e-6);
        CHECK_NEAR(mish(NarrowFloat(x)).v, 0, 1e-6);
        CHECK_NEAR(softplus(NarrowFloat(x), 1.f).v, 0, 1e-6);
    }
}

void no_value_of_tanh_exceeds_one() {
    for (float x = 5; x < 12; x = nextafterf(x, 20)) CHECK(hyperbolic_tangent(NarrowFloat(x)).v <= 1);
}

void random_words_are_those_of_the_levels() {
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
    std::vector<float> observations = std::vector<float>(kRows * kInputs, 1), states = std::vector<float>(kRows * kStates, 2);
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

void rows_are_prepared_alike_one_by_one_and_together() {
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

// ---- Choosing

// Actions drawn by given logits: component `component` of `count` rows with distinct keys.
struct Draws {
    std::vector<int64_t> counts;
    int64_t nonfinite = 0;
};

Draws draw_actions(const float* logits, int component, ds_sampling sampling, int count, uint32_t key = 1) {
    Draws draws;
    draws.counts.assign(static_cast<size_t>(kActionSizes[component]), 0);
    Network network{};  // without layers: the logits are the observation
    network.num_inputs = network.width = DS_NUM_LOGITS;
    std::vector<float> scratch(static_cast<size_t>(network.scratch_floats()));
    for (int i = 0; i < count; i++) {
        const ds_sampling_key keys[1] = {{{key, 5}, static_cast<uint32_t>(i), 1}};
        int32_t action[kActionComponents] = {-1, -1, -1, -1};
        ActCall call{};
        call.observations = logits;
        call.observation_stride = DS_NUM_LOGITS;
        call.sampling = &sampling;
        call.keys = keys;
        call.actions = action;
        draws.nonfinite += act_narrowly(network, call, 0, 1, scratch.data());
        for (int k = 0; k < kActionComponents; k++) CHECK(action[k] >= 0 && action[k] < kActionSizes[k]);
        draws.counts[static_cast<size_t>(action[component])]++;
    }
    return draws;
}

constexpr int kMoveAngle = 1, kTurn = 2, kFirstAngle = 4, kFirstTurn = 12;

struct Logits {
    float values[DS_NUM_LOGITS] = {};
    Logits(int first, std::initializer_list<float> given) {
        for (const float value : given) values[first++] = value;
    }
};

void values_are_drawn_with_their_probabilities() {
    const Logits logits(kFirstAngle, {0.3f, -1, 0.9f, 0, -0.2f, 1.4f, -3, 0.1f});
    for (const float temperature : {0.5f, 1.f, 3.f}) {
        constexpr int kDraws = 40000;
        const Draws draws = draw_actions(logits.values, kMoveAngle, {temperature, 1}, kDraws);
        double sum = 0, chi_squared = 0;
        for (int i = 0; i < 8; i++) sum += exp(static_cast<double>(logits.values[kFirstAngle + i] / temperature));
        for (int i = 0; i < 8; i++) {
            const double weight = exp(static_cast<double>(logits.values[kFirstAngle + i] / temperature));
            const double expected = kDraws * weight / sum;
            const double difference = static_cast<double>(draws.counts[static_cast<size_t>(i)]) - expected;
            chi_squared += difference * difference / expected;
        }
        CHECK(chi_squared < 24.3);  // 7 degrees of freedom: 0.1%
    }
}

void components_are_independent() {
    const Logits logits(0, {});
    const Draws one = draw_actions(logits.values, 0, {1, 1}, 4000);
    for (const int64_t count : one.counts) CHECK(count > 850 && count < 1150);
    int64_t both = 0;
    for (uint32_t key = 0; key < 2000; key++) {
        const bool a = draw_actions(logits.values, 0, {1, 1}, 1, key).counts[0] > 0;
        const bool b = draw_actions(logits.values, 3, {1, 1}, 1, key).counts[0] > 0;
        both += a && b;
    }
    CHECK(both > 190 && both < 310);  // 1 / 8
}

void greedy_takes_the_first_of_the_largest() {
    const Logits logits(kFirstTurn, {1, 2, 0, 2, 2});
    for (const ds_sampling& sampling : {ds_sampling{0, 1}, ds_sampling{0, 0.5f}, ds_sampling{}})
        CHECK_EQUAL(draw_actions(logits.values, kTurn, sampling, 50).counts[1], 50);
}

void little_temperature_is_greedy() {
    const Logits logits(kFirstTurn, {1, 2, 0, 1.9f, -5});
    for (const float temperature : {1e-3f, 1e-30f, 1e-45f})
        CHECK_EQUAL(draw_actions(logits.values, kTurn, {temperature, 1}, 200).counts[1], 200);
}

void top_p_keeps_the_fewest_values_that_reach_it() {
    // Probabilities 0.4, 0.3, 0.2, 0.1, 0
    const float excluded = -infinity<float>();
    const Logits logits(kFirstTurn, {logf(0.2f), logf(0.4f), logf(0.1f), logf(0.3f), excluded});
    const struct {
        float top_p;
        std::vector<size_t> kept;
    } cases[] = {{1e-6f, {1}}, {0.35f, {1}}, {0.5f, {1, 3}}, {0.69f, {1, 3}}, {0.75f, {1, 3, 0}}, {0.95f, {1, 3, 0, 2}},
                 {1, {1, 3, 0, 2}}};
    for (const auto& one : cases) {
        const Draws draws = draw_actions(logits.values, kTurn, {1, one.top_p}, 2000);
        int64_t sum = 0;
        for (const size_t value : one.kept) {
            CHECK(draws.counts[value] > 100);
            sum += draws.counts[value];
        }
        CHECK_EQUAL(sum, 2000);
    }
}

void top_p_prefers_the_first_of_equal_values() {
    const Logits logits(kFirstTurn, {0, 0, 0, 0, 0});
    const Draws draws = draw_actions(logits.values, kTurn, {1, 0.39f}, 1000);
    CHECK(draws.counts[0] > 400 && draws.counts[1] > 400);
    CHECK_EQUAL(draws.counts[0] + draws.counts[1], 1000);
}

void an_excluded_value_is_never_drawn() {
    const float excluded = -infinity<float>();
    const Logits logits(kFirstTurn, {excluded, 0, excluded, 0, excluded});
    const Draws draws = draw_actions(logits.values, kTurn, {1, 1}, 2000);
    CHECK_EQUAL(draws.counts[1] + draws.counts[3], 2000);
    CHECK_EQUAL(draws.nonfinite, 0);
}

void logits_without_a_choice_give_the_neutral_action() {
    const float excluded = -infinity<float>();
    const Logits cases[] = {{kFirstTurn, {0, 0, 0, not_a_number<float>(), 9}},
                            {kFirstTurn, {0, infinity<float>(), 0, 0, 0}},
                            {kFirstTurn, {excluded, excluded, excluded, excluded, excluded}},
                            {0, {not_a_number<float>()}}};
    for (const Logits& logits : cases)
        for (const ds_sampling& sampling : {ds_sampling{1, 1}, ds_sampling{1, 0.5f}, ds_sampling{}})
            for (int k = 0; k < kActionComponents; k++) {
                const Draws draws = draw_actions(logits.values, k, sampling, 20);
                CHECK_EQUAL(draws.counts[static_cast<size_t>(kNeutralAction[k])], 20);
                CHECK_EQUAL(draws.nonfinite, 20);
            }
}

double log_softmax(const float* logits, int size, double temperature, int chosen) {
    double sum = 0;
    for (int i = 0; i < size; i++) sum += exp(static_cast<double>(logits[i] - logits[chosen]) / temperature);
    return -log(sum);
}

void a_logarithm_is_that_of_the_probability_of_the_choice() {
    const Ref<Policy> policy = test_networks()[0].policy();
    Rows rows(*policy, 130);
    act(*policy, rows);
    for (size_t row = 0; row < 130; row++) {
        const ds_sampling& sampling = rows.sampling[row];
        double expected = 0;
        for (int k = 0; k < kActionComponents && sampling.temperature > 0; k++) {
            const float* logits = &rows.logits[row * DS_NUM_LOGITS + static_cast<size_t>(logits_before(k))];
            const int32_t chosen = rows.actions[row * kActionComponents + static_cast<size_t>(k)];
            expected += log_softmax(logits, kActionSizes[k], static_cast<double>(sampling.temperature), chosen);
        }
        const double found = static_cast<double>(rows.log_probs[row]);
        if (sampling.top_p < 1) CHECK(expected - 1e-5 <= found && found <= 1e-6);  // fewer values share what there is
        else CHECK_NEAR(found, expected, 1e-5);
    }
}

void trouble_is_counted_by_row() {
    const Ref<Policy> policy = test_networks()[0].policy();
    Rows rows(*policy, 70);
    rows.observations[3 * kInputs + 5] = rows.observations[66 * kInputs] = not_a_number<float>();
    const Scratch scratch(*policy);
    CHECK_EQUAL(policy->act(rows.call, 0, 70, scratch.memory), kPolicyTroubleNonfinite);
    CHECK_EQUAL(policy->nonfinite_rows(), 2);
    for (size_t row = 0; row < 70; row++) CHECK_EQUAL(rows.nonfinite[row], row == 3 || row == 66);
    for (size_t k = 0; k < kActionComponents; k++) CHECK_EQUAL(rows.actions[66 * kActionComponents + k], kNeutralAction[k]);
    CHECK(isnan(rows.log_probs[3]) && isnan(rows.log_probs[66]) && !isnan(rows.log_probs[4]));
}

void a_logit_that_is_not_a_number_has_one_bit_pattern() {
    const Ref<Policy> policy = test_networks()[0].policy();
    Rows rows(*policy, 1);
    rows.observations[0] = -nanf("12");
    act(*policy, rows);
    const float expected = not_a_number<float>();
    CHECK(memcmp(rows.logits.data(), &expected, 4) == 0);
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

void a_function_of_the_callers_is_a_layer() {
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

int64_t live(ds_live_kind kind) {
    int64_t count;
    CHECK_EQUAL(ds_live_count(kind, &count), DS_STATUS_OK);
    return count;
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

void layers_live_as_long_as_something_needs_them() {
    released = 0;
    const int64_t layers_before = live(DS_LIVE_LAYER), policies_before = live(DS_LIVE_POLICY);
    const TestNetwork network = small_network();
    ds_layer layers[3];
    for (size_t i = 0; i < 3; i++) layers[i] = create_layer(network.layers[i].config, count_release);
    ds_policy policy;
    CHECK_EQUAL(create_policy(layers, 3, 1, &policy), DS_STATUS_OK);
    for (const ds_layer layer : layers) CHECK_EQUAL(ds_layer_release(layer), DS_STATUS_OK);
    CHECK_EQUAL(released, 0);
    CHECK_EQUAL(live(DS_LIVE_LAYER), layers_before + 3);
    CHECK_EQUAL(ds_layer_release(layers[0]), DS_STATUS_CLOSED);

    ds_layer kept;
    CHECK_EQUAL(ds_policy_get_layer(policy, 1, &kept), DS_STATUS_OK);
    ds_policy frozen;
    CHECK_EQUAL(ds_policy_freeze(policy, 0, &frozen), DS_STATUS_OK);
    CHECK_EQUAL(ds_policy_release(policy), DS_STATUS_OK);
    CHECK_EQUAL(released, 2);
    ds_layer_config config = {};
    config.struct_size = sizeof config;
    CHECK_EQUAL(ds_layer_get_config(kept, &config), DS_STATUS_OK);
    CHECK(config.kind == DS_LAYER_GRU && config.weights == network.layers[1].config.weights && !config.owner);
    CHECK_EQUAL(ds_layer_release(kept), DS_STATUS_OK);
    CHECK_EQUAL(released, 3);
    CHECK_EQUAL(live(DS_LIVE_POLICY), policies_before + 1);
    CHECK_EQUAL(ds_policy_release(frozen), DS_STATUS_OK);
    CHECK_EQUAL(live(DS_LIVE_LAYER), layers_before);
    CHECK_EQUAL(live(DS_LIVE_POLICY), policies_before);
}

void a_frozen_policy_shares_functions_and_what_they_need() {
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

void weights_are_read_in_place_unless_frozen() {
    TestNetwork network = small_network();
    const Ref<Policy> policy = network.policy(), frozen = policy->freeze(0);
    Rows before(*policy, 5), same(*policy, 5), after(*policy, 5), kept(*policy, 5);
    act(*policy, before);
    act(*frozen, same);
    CHECK(same.same_results(before));
    network.layers[0].floats[0][3] += 1;
    act(*policy, after);
    act(*frozen, kept);
    CHECK(!after.same_results(before));
    CHECK(kept.same_results(before));
}

// The argument that the latest error names.
bool refused(ds_status status, ds_status expected, const char* argument) {
    ds_error error = {};
    error.struct_size = sizeof error;
    CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
    if (status == expected && strcmp(error.argument, argument) == 0) return true;
    fprintf(stderr, "%d, %s: %s\n", status, error.argument, error.message);
    return false;
}

template <class Edit>
bool layer_is_refused(const TestLayer& layer, const char* argument, Edit edit) {
    ds_layer_config config = layer.config;
    config.owner = &released;
    config.release_owner = count_release;
    edit(config);
    released = 0;
    ds_layer made = 0;
    return refused(ds_layer_create(&config, &made), DS_STATUS_INVALID_ARGUMENT, argument) && released == 0 && made == 0;
}

void bad_layers_are_refused() {
    const TestNetwork network = small_network();
    Random random;
    const TestLayer &linear = network.layers[0], &gru = network.layers[1], tanh = make_layer(random, DS_LAYER_TANH);
    const TestLayer norm = make_layer(random, DS_LAYER_LAYER_NORM, 4);
    CHECK(layer_is_refused(linear, "config", [](ds_layer_config& config) { config.struct_size = 4; }));
    CHECK(layer_is_refused(linear, "kind", [](ds_layer_config& config) { config.kind = DS_LAYER_GELU_TANH + 1; }));
    CHECK(layer_is_refused(linear, "kind", [](ds_layer_config& config) { config.kind = -1; }));
    CHECK(layer_is_refused(linear, "weight_type", [](ds_layer_config& config) { config.weight_type = 2; }));
    CHECK(layer_is_refused(linear, "num_inputs", [](ds_layer_config& config) { config.num_inputs = 0; }));
    CHECK(layer_is_refused(linear, "num_outputs", [](ds_layer_config& config) { config.num_outputs = 65537; }));
    CHECK(layer_is_refused(linear, "weights", [](ds_layer_config& config) { config.weights = nullptr; }));
    CHECK(layer_is_refused(linear, "hidden_weights", [](ds_layer_config& c) { c.hidden_weights = c.weights; }));
    CHECK(layer_is_refused(linear, "parameter", [](ds_layer_config& config) { config.parameter = 1; }));
    CHECK(layer_is_refused(linear, "biases", [](ds_layer_config& config) {
        config.biases = static_cast<const char*>(config.biases) + 2;
    }));
    CHECK(layer_is_refused(gru, "hidden_weights", [](ds_layer_config& config) { config.hidden_weights = nullptr; }));
    CHECK(layer_is_refused(tanh, "num_inputs", [](ds_layer_config& config) { config.num_inputs = 3; }));
    CHECK(layer_is_refused(tanh, "weights", [&](ds_layer_config& c) { c.weights = gru.config.weights; }));
    CHECK(layer_is_refused(norm, "parameter", [](ds_layer_config& config) { config.parameter = -1; }));
    CHECK(layer_is_refused(norm, "parameter", [](ds_layer_config& c) { c.parameter = not_a_number<float>(); }));
    CHECK(layer_is_refused(norm, "num_outputs", [](ds_layer_config& config) { config.num_outputs = 4; }));
    float factor = 1;
    const TestLayer function = mirroring_network(factor).layers[0];
    CHECK(layer_is_refused(function, "function", [](ds_layer_config& config) { config.function = nullptr; }));
    CHECK(layer_is_refused(function, "weights", [&](ds_layer_config& c) { c.weights = gru.config.weights; }));
    CHECK(layer_is_refused(function, "num_outputs", [](ds_layer_config& config) { config.num_outputs = 0; }));
    CHECK(layer_is_refused(tanh, "function", [](ds_layer_config& config) { config.function = mirror; }));
    CHECK(layer_is_refused(tanh, "function_context", [](ds_layer_config& c) { c.function_context = &released; }));
    ds_layer made;
    CHECK(refused(ds_layer_create(nullptr, &made), DS_STATUS_INVALID_ARGUMENT, "config"));
    CHECK(refused(ds_layer_create(&linear.config, nullptr), DS_STATUS_INVALID_ARGUMENT, "layer"));
    CHECK(refused(ds_layer_release(0), DS_STATUS_CLOSED, "layer"));
}

// One number of a shape after the other is changed to what does not fit the rest.
void bad_shapes_are_refused() {
    Random random;
    const TestLayer conv = make_layer(random, DS_LAYER_CONV, 60, 147, 0, image(2, 5, 6, 3, 2, 2, 1, 1, 1));
    const TestLayer pool = make_layer(random, DS_LAYER_MAX_POOL, 147, 112, 0, image(7, 3, 7, 2, 3, 1, 2, 1, 1));
    const TestLayer attention = make_layer(random, DS_LAYER_ATTENTION, 60, 60, 0, tokens(5, 3));
    const TestLayer linear = make_layer(random, DS_LAYER_LINEAR, 60, 35, 0, tokens(5));
    const TestLayer take = make_layer(random, DS_LAYER_TAKE, 94, 60, 0, taken_from(34));
    const TestLayer append = make_layer(random, DS_LAYER_APPEND, 42, 136), relu = make_layer(random, DS_LAYER_RELU);
    using Shape = ds_layer_shape;
    const struct {
        const TestLayer& layer;
        const char* argument;
        int32_t Shape::*number;
        int32_t value;
    } cases[] = {{conv, "num_inputs", &Shape::channels, 3},
                 {conv, "shape.channels", &Shape::channels, 0},
                 {conv, "shape.height", &Shape::height, -5},
                 {conv, "num_inputs", &Shape::width, 65536},
                 {conv, "shape.kernel_height", &Shape::kernel_height, 8},
                 {conv, "shape.kernel_width", &Shape::kernel_width, 0},
                 {conv, "shape.stride_height", &Shape::stride_height, 0},
                 {conv, "num_outputs", &Shape::stride_width, 2},
                 {conv, "shape.pad_height", &Shape::pad_height, -1},
                 {conv, "shape.pad_width", &Shape::pad_width, 65537},
                 {conv, "shape.num_tokens", &Shape::num_tokens, 2},
                 {conv, "shape.first", &Shape::first, 1},
                 {pool, "shape.pad_height", &Shape::pad_height, 2},
                 {pool, "num_outputs", &Shape::stride_height, 2},
                 {attention, "shape.num_tokens", &Shape::num_tokens, 7},
                 {attention, "shape.num_tokens", &Shape::num_tokens, -5},
                 {attention, "shape.num_attention_heads", &Shape::num_attention_heads, 5},
                 {attention, "shape.num_attention_heads", &Shape::num_attention_heads, 0},
                 {attention, "shape.channels", &Shape::channels, 1},
                 {linear, "shape.num_tokens", &Shape::num_tokens, 4},
                 {linear, "shape.num_attention_heads", &Shape::num_attention_heads, 1},
                 {take, "shape.first", &Shape::first, 35},
                 {relu, "shape.num_tokens", &Shape::num_tokens, 5}};
    for (const auto& one : cases)
        CHECK(layer_is_refused(one.layer, one.argument,
                               [&](ds_layer_config& config) { config.shape.*one.number = one.value; }));
    CHECK(layer_is_refused(conv, "num_outputs", [](ds_layer_config& config) { config.num_outputs = 146; }));
    CHECK(layer_is_refused(pool, "num_outputs", [](ds_layer_config& config) { config.num_outputs = 224; }));
    CHECK(layer_is_refused(attention, "num_outputs", [](ds_layer_config& config) { config.num_outputs = 120; }));
    CHECK(layer_is_refused(attention, "hidden_weights", [](ds_layer_config& c) { c.hidden_weights = nullptr; }));
    CHECK(layer_is_refused(take, "num_outputs", [](ds_layer_config& config) { config.num_outputs = 95; }));
    CHECK(layer_is_refused(append, "num_outputs", [](ds_layer_config& config) { config.num_outputs = 42; }));
}

void what_is_kept_is_used_once() {
    Random random;
    const struct {
        std::vector<TestLayer> layers;
        const char* message;
    } cases[] = {
        {{make_layer(random, DS_LAYER_ADD, 19)}, "layers[0] gets 19 values that were kept; there are 0"},
        {{make_layer(random, DS_LAYER_KEEP, 19)}, "layers[1] gets 0 values that were kept; there are 19"},
        {{make_layer(random, DS_LAYER_KEEP, 94), make_layer(random, DS_LAYER_LINEAR, 94, 19),
          make_layer(random, DS_LAYER_ADD, 19)},
         "layers[2] gets 19 values that were kept; there are 94"},
        {{make_layer(random, DS_LAYER_KEEP, 9), make_layer(random, DS_LAYER_APPEND, 9, 19)},
         "layers[1] gets 10 values that were kept; there are 9"},
    };
    for (const auto& one : cases) {
        std::vector<ds_layer> layers;
        for (const TestLayer& layer : one.layers) layers.push_back(create_layer(layer.config));
        ds_policy policy = 0;
        CHECK(refused(create_policy(layers.data(), layers.size(), 0, &policy), DS_STATUS_INVALID_ARGUMENT, "layers"));
        ds_error error = {};
        error.struct_size = sizeof error;
        CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
        CHECK(strstr(error.message, one.message));
        for (const ds_layer layer : layers) CHECK_EQUAL(ds_layer_release(layer), DS_STATUS_OK);
    }
}

void bad_policies_are_refused() {
    const TestNetwork network = small_network();
    ds_layer layers[3];
    for (size_t i = 0; i < 3; i++) layers[i] = create_layer(network.layers[i].config);
    ds_policy policy = 0;
    CHECK(refused(create_policy(nullptr, 3, 1, &policy), DS_STATUS_INVALID_ARGUMENT, "layers"));
    CHECK(refused(create_policy(layers, 0, 0, &policy), DS_STATUS_INVALID_ARGUMENT, "count"));
    CHECK(refused(create_policy(layers, 257, 0, &policy), DS_STATUS_INVALID_ARGUMENT, "count"));
    CHECK(refused(create_policy(layers, 3, 4, &policy), DS_STATUS_INVALID_ARGUMENT, "num_heads"));
    CHECK(refused(create_policy(layers, 3, 2, &policy), DS_STATUS_INVALID_ARGUMENT, "layers"));  // a head is a GRU
    CHECK(refused(create_policy(layers, 2, 0, &policy), DS_STATUS_INVALID_ARGUMENT, "layers"));  // 6 logits
    const ds_layer disordered[] = {layers[0], layers[2]}, stale[] = {layers[0], 0, layers[2]};
    CHECK(refused(create_policy(disordered, 2, 1, &policy), DS_STATUS_INVALID_ARGUMENT, "layers"));
    CHECK(refused(create_policy(disordered, 2, 0, &policy), DS_STATUS_INVALID_ARGUMENT, "layers"));
    CHECK(refused(create_policy(stale, 3, 1, &policy), DS_STATUS_CLOSED, "layers"));
    CHECK(refused(create_policy(layers, 3, 1, nullptr), DS_STATUS_INVALID_ARGUMENT, "policy"));
    for (const int32_t precision : {-1, int32_t{DS_PRECISION_BFLOAT16}, 2})  // the second one is not of the CPU
        CHECK(refused(ds_policy_create(layers, 3, 1, precision, &policy), DS_STATUS_INVALID_ARGUMENT, "precision"));
    Random random;
    const TestLayer logits = make_layer(random, DS_LAYER_LINEAR, 8, 18), two = make_layer(random, DS_LAYER_LINEAR, 8, 2);
    const ds_layer of_20[] = {layers[0], create_layer(logits.config), create_layer(two.config)};  // no head of one output
    CHECK(refused(create_policy(of_20, 3, 2, &policy), DS_STATUS_INVALID_ARGUMENT, "layers"));
    for (const ds_layer one : {of_20[1], of_20[2]}) CHECK_EQUAL(ds_layer_release(one), DS_STATUS_OK);
    CHECK_EQUAL(policy, 0);
    CHECK_EQUAL(create_policy(layers, 3, 1, &policy), DS_STATUS_OK);
    ds_layer layer;
    CHECK(refused(ds_policy_get_layer(policy, 3, &layer), DS_STATUS_INVALID_ARGUMENT, "index"));
    CHECK_EQUAL(ds_policy_release(policy), DS_STATUS_OK);
    CHECK(refused(ds_policy_release(policy), DS_STATUS_CLOSED, "policy"));
    CHECK(refused(ds_policy_get_layer(policy, 0, &layer), DS_STATUS_CLOSED, "policy"));
    for (const ds_layer one : layers) CHECK_EQUAL(ds_layer_release(one), DS_STATUS_OK);
}

template <class Edit>
bool call_is_refused(ds_policy policy, Rows& rows, const char* argument, Edit edit) {
    ds_policy_call call = rows.call;
    edit(call);
    const std::vector<int32_t> before = rows.actions;
    return refused(ds_policy_act(policy, &call), DS_STATUS_INVALID_ARGUMENT, argument) && before == rows.actions;
}

void bad_calls_are_refused() {
    const TestNetwork network = small_network();
    ds_layer layers[3];
    for (size_t i = 0; i < 3; i++) layers[i] = create_layer(network.layers[i].config);
    ds_policy policy;
    CHECK_EQUAL(create_policy(layers, 3, 1, &policy), DS_STATUS_OK);
    ds_policy_info info = {};
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_policy_get_info(policy, &info), DS_STATUS_OK);
    CHECK(info.num_layers == 3 && info.num_heads == 1 && info.num_inputs == kInputs && info.state_size == 6);
    CHECK_EQUAL(info.precision, DS_PRECISION_FLOAT32);
    Rows rows(*network.policy(), 4);
    CHECK_EQUAL(ds_policy_act(policy, &rows.call), DS_STATUS_OK);
    CHECK(call_is_refused(policy, rows, "call", [](ds_policy_call& call) { call.struct_size = 8; }));
    CHECK(call_is_refused(policy, rows, "num_rows", [](ds_policy_call& call) { call.num_rows = -1; }));
    CHECK(call_is_refused(policy, rows, "observations", [](ds_policy_call& call) { call.observations = nullptr; }));
    CHECK(call_is_refused(policy, rows, "observation_stride", [](ds_policy_call& c) { c.observation_stride = 93; }));
    CHECK(call_is_refused(policy, rows, "states", [](ds_policy_call& call) { call.states = nullptr; }));
    CHECK(call_is_refused(policy, rows, "state_stride", [](ds_policy_call& call) { call.state_stride = 5; }));
    CHECK(call_is_refused(policy, rows, "sampling", [](ds_policy_call& call) { call.sampling = nullptr; }));
    CHECK(call_is_refused(policy, rows, "keys", [](ds_policy_call& call) { call.keys = nullptr; }));
    CHECK(call_is_refused(policy, rows, "actions", [](ds_policy_call& call) { call.actions = nullptr; }));
    const int32_t negative[] = {0, 1, -1, 2};
    CHECK(call_is_refused(policy, rows, "rows", [&](ds_policy_call& call) { call.rows = negative; }));
    for (const ds_sampling& bad : {ds_sampling{-1, 1}, ds_sampling{infinity<float>(), 1}, ds_sampling{not_a_number<float>(), 1},
                                   ds_sampling{1, 0}, ds_sampling{1, 1.1f}, ds_sampling{1, not_a_number<float>()}}) {
        const ds_sampling sampling[4] = {{1, 1}, {1, 1}, {1, 1}, bad};
        CHECK(call_is_refused(policy, rows, "sampling", [&](ds_policy_call& call) { call.sampling = sampling; }));
    }
    ds_policy_call forward = rows.call;
    forward.logits = nullptr;
    CHECK(refused(ds_policy_forward(policy, &forward), DS_STATUS_INVALID_ARGUMENT, "logits"));
    forward.num_rows = 0;
    CHECK_EQUAL(ds_policy_forward(policy, &forward), DS_STATUS_OK);
    CHECK_EQUAL(ds_policy_release(policy), DS_STATUS_OK);
    CHECK(refused(ds_policy_act(policy, &rows.call), DS_STATUS_CLOSED, "policy"));
    for (const ds_layer layer : layers) CHECK_EQUAL(ds_layer_release(layer), DS_STATUS_OK);
}

}  // namespace

int main() {
    RUN(every_number_type_gives_the_same_bits);
    RUN(every_split_of_a_batch_gives_the_same_bits);
    RUN(the_order_of_rows_changes_nothing);
    RUN(threads_act_at_the_same_time);
    RUN(an_output_is_one_chain_of_fused_multiply_adds);
    RUN(a_value_is_the_output_of_the_last_head);
    RUN(functions_are_accurate);
    RUN(functions_have_their_limits);
    RUN(no_value_of_tanh_exceeds_one);
    RUN(random_words_are_those_of_the_levels);
    RUN(rows_are_prepared_alike_one_by_one_and_together);
    RUN(values_are_drawn_with_their_probabilities);
    RUN(components_are_independent);
    RUN(greedy_takes_the_first_of_the_largest);
    RUN(little_temperature_is_greedy);
    RUN(top_p_keeps_the_fewest_values_that_reach_it);
    RUN(top_p_prefers_the_first_of_equal_values);
    RUN(an_excluded_value_is_never_drawn);
    RUN(logits_without_a_choice_give_the_neutral_action);
    RUN(a_logarithm_is_that_of_the_probability_of_the_choice);
    RUN(trouble_is_counted_by_row);
    RUN(a_logit_that_is_not_a_number_has_one_bit_pattern);
    RUN(a_function_of_the_callers_is_a_layer);
    RUN(layers_live_as_long_as_something_needs_them);
    RUN(a_frozen_policy_shares_functions_and_what_they_need);
    RUN(weights_are_read_in_place_unless_frozen);
    RUN(bad_layers_are_refused);
    RUN(bad_shapes_are_refused);
    RUN(what_is_kept_is_used_once);
    RUN(bad_policies_are_refused);
    RUN(bad_calls_are_refused);
}
