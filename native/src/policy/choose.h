// Choosing actions by logits: greedily, or drawn with a temperature and from the most likely values only.
#pragma once

#include "policy/lane_functions.h"
#include "policy/network.h"
#include "sim/action_table.h"

namespace doorstep {

constexpr int logits_before(int component) {
    int sum = 0;
    for (int k = 0; k < component; k++) sum += kActionSizes[k];
    return sum;
}
static_assert(logits_before(kActionComponents) == DS_NUM_LOGITS);

// How the rows of a vector choose, and their random keys.
template <class Float>
struct VectorSampling {
    using Bits = typename Float::Bits;
    Float temperature, top_p;
    typename Float::Mask greedy;
    Bits key_a, key_b, step, agent;
    bool any_drawn, any_top_p;
};

// Missing rows are greedy.
template <class Float, class RowOf>
DS_METHOD VectorSampling<Float> load_sampling(const ActCall& call, int count, const RowOf& row_of) {
    constexpr int kLanes = Float::kLanes;
    float temperature[kLanes], top_p[kLanes], drawn[kLanes];
    uint32_t key_a[kLanes], key_b[kLanes], step[kLanes], agent[kLanes];
    const uint32_t more_steps = call.step + (call.step_counter ? *call.step_counter : 0);
    bool any_drawn = false, any_top_p = false;
    for (int lane = 0; lane < kLanes; lane++) {
        const bool exists = lane < count;
        const int64_t row = exists ? row_of(lane) : 0;
        const Sampling sampling = exists ? call.sampling[row] : Sampling{};
        const SamplingKey key = exists ? call.keys[row] : SamplingKey{};
        DS_ASSERT(sampling.temperature >= 0 && row >= 0);
        DS_ASSERT(sampling.temperature == 0 || (sampling.top_p > 0 && sampling.top_p <= 1));
        drawn[lane] = sampling.temperature > 0 ? 1 : 0;
        temperature[lane] = drawn[lane] != 0 ? sampling.temperature : 1;
        top_p[lane] = sampling.top_p;
        key_a[lane] = key.key[0], key_b[lane] = key.key[1], step[lane] = key.step + more_steps, agent[lane] = key.agent;
        any_drawn |= drawn[lane] != 0, any_top_p |= drawn[lane] != 0 && sampling.top_p < 1;
    }
    return {Float::load(temperature),    Float::load(top_p),        equal(Float::load(drawn), Float(0.f)),
            load_words<Float>(key_a),    load_words<Float>(key_b),  load_words<Float>(step),
            load_words<Float>(agent),    any_drawn,                 any_top_p};
}

template <class Float, int kSize>
DS_METHOD Float sum_of(const Float (&weights)[kSize]) {
    Float sum = weights[0];
    for (int i = 1; i < kSize; i++) sum = sum + weights[i];
    return sum;
}

// Excludes all but the fewest most likely values whose weights reach top_p of all; of equal ones the first are kept. A
// value is kept if those before it, in the order of their weights, do not reach top_p.
template <class Float, int kSize>
DS_METHOD void keep_most_likely(Float (&weights)[kSize], Float top_p) {
    const Float enough = top_p * sum_of(weights);
    Float kept[kSize];
    for (int i = 0; i < kSize; i++) {
        Float before = 0.f;
        for (int j = 0; j < kSize; j++) {
            if (j == i) continue;
            const auto likelier = j < i ? weights[i] <= weights[j] : weights[i] < weights[j];
            before = before + select(likelier, weights[j], Float(0.f));
        }
        kept[i] = select((before < enough) | (Float(1.f) <= top_p), weights[i], Float(0.f));
    }
    for (int i = 0; i < kSize; i++) weights[i] = kept[i];
}

// The value whose interval in [0, sum of weights), as long as its weight, contains the uniform number times the sum.
template <class Float, int kSize>
DS_METHOD Float draw(const Float (&weights)[kSize], Float uniform) {
    const Float target = uniform * sum_of(weights);
    Float passed = 0.f, choice = 0.f, possible = 0.f;  // possible: the last one with any weight, in case of rounding
    for (int i = 0; i < kSize; i++) {
        passed = passed + weights[i];
        choice = choice + select(passed <= target, Float(1.f), Float(0.f));
        possible = select(Float(0.f) < weights[i], Float(static_cast<float>(i)), possible);
    }
    return minimum(choice, possible);
}

template <class Float>
DS_METHOD Float logarithm(Float x) {
    float values[Float::kLanes];
    x.store(values);
    for (float& value : values) value = natural_logarithm(value);
    return Float::load(values);
}

// The choice of component kComponent as a float. valid: cleared where the logits allow none. log_prob: null, or gets the
// logarithm of the probability with which it was drawn added; that of a greedy choice is 0.
template <int kComponent, class Float>
DS_METHOD Float choose_component(const Float* logits, const VectorSampling<Float>& sampling,
                                 typename Float::Mask& valid, Float* log_prob) {
    constexpr int kSize = kActionSizes[kComponent];
    Float largest = logits[0], choice = 0.f;
    for (int i = 0; i < kSize; i++) {
        const auto better = largest < logits[i];
        largest = select(better, logits[i], largest);
        choice = select(better, Float(static_cast<float>(i)), choice);
        valid = valid & (logits[i] < Float(infinity<float>()));
    }
    valid = valid & (Float(-infinity<float>()) < largest);
    if (!sampling.any_drawn) return choice;

    Float weights[kSize];
    const auto exponent = [&](int i) { return (logits[i] - largest) / sampling.temperature; };
    for (int i = 0; i < kSize; i++) weights[i] = decay(exponent(i));
    if (sampling.any_top_p) keep_most_likely(weights, sampling.top_p);
    const auto counter = shift_left<2>(sampling.agent) + all_lanes(Float(0.f), kComponent);
    const auto words = threefry<Float>(sampling.key_a, sampling.key_b, sampling.step, counter);
    const Float drawn = draw(weights, uniform_of<Float>(words.a ^ words.b));
    if (log_prob) {
        Float of_drawn = 0.f;
        for (int i = 0; i < kSize; i++)
            of_drawn = select(equal(drawn, Float(static_cast<float>(i))), exponent(i), of_drawn);
        *log_prob = *log_prob + select(sampling.greedy, Float(0.f), of_drawn - logarithm(sum_of(weights)));
    }
    return select(sampling.greedy, choice, drawn);
}

// Chooses the actions of the rows of a vector. logits: DS_NUM_LOGITS vectors. Returns the lanes without a choice, as
// bits; they get the neutral action, and NaN as its logarithm. log_probs: null, or gets those of the probabilities with
// which the actions were drawn.
template <class Float>
DS_METHOD uint32_t choose_actions(const Float* logits, const VectorSampling<Float>& sampling,
                                  float (&choices)[kActionComponents][Float::kLanes], float* log_probs) {
    static_assert(kActionComponents == 4);
    auto valid = equal(Float(0.f), Float(0.f));
    Float sum = 0.f, *const log_prob = log_probs ? &sum : nullptr;
    const Float chosen[kActionComponents] = {choose_component<0>(logits + logits_before(0), sampling, valid, log_prob),
                                       choose_component<1>(logits + logits_before(1), sampling, valid, log_prob),
                                       choose_component<2>(logits + logits_before(2), sampling, valid, log_prob),
                                       choose_component<3>(logits + logits_before(3), sampling, valid, log_prob)};
    if (log_probs) select(valid, sum, Float(not_a_number<float>())).store(log_probs);
    for (int k = 0; k < kActionComponents; k++)
        select(valid, chosen[k], Float(static_cast<float>(kNeutralAction[k]))).store(choices[k]);
    return ~lane_bits(valid) & low_bits(Float::kLanes);
}

}  // namespace doorstep
