// The kernel of DS_PRECISION_BFLOAT16: its products are those of rounded numbers, and its networks near the exact ones.
#pragma once

#include "policy_calls.h"

namespace doorstep {

inline Network with_bf16(const Policy& policy) {
    Network network = policy.network();
    network.precision = DS_PRECISION_BFLOAT16;
    return network;
}

// To the nearest bfloat16, which has 8 bits of precision; of two that are as near, to the one with an even last bit.
inline double rounded_to_bf16(float value) {
    int exponent;
    const double significand = frexp(value, &exponent);
    return isfinite(value) ? ldexp(nearbyint(ldexp(significand, 8)), exponent - 8) : value;
}

// ---- One product

// Of the first values of an observation, from whose outputs the logits are taken.
struct OneProduct {
    int64_t inputs, outputs;
    int32_t first;
    TestNetwork network;

    OneProduct(int64_t inputs_, int64_t outputs_, int32_t first_, int32_t type)
        : inputs(inputs_), outputs(outputs_), first(first_) {
        Random random;
        network.layers.push_back(make_layer(random, DS_LAYER_TAKE, kInputs, inputs, DS_WEIGHT_FLOAT32, taken_from(0)));
        network.layers.push_back(make_layer(random, DS_LAYER_LINEAR, inputs, outputs, type));
        network.layers.push_back(
            make_layer(random, DS_LAYER_TAKE, outputs, DS_NUM_LOGITS, DS_WEIGHT_FLOAT32, taken_from(first)));
        network.num_heads = 0;
    }

    // Compares a logit with the sum of the rounded products in double precision, and with the exact network's. Whether
    // it has other bits than the latter.
    bool check_logit(const Rows& found, const Rows& exact, size_t row, size_t k) const {
        const TestLayer& linear = network.layers[1];
        const size_t output = static_cast<size_t>(first) + k, width = static_cast<size_t>(inputs);
        const float logit = found.logits[row * DS_NUM_LOGITS + k], without = exact.logits[row * DS_NUM_LOGITS + k];
        double sum = linear.config.weight_type == DS_WEIGHT_BFLOAT16 ? as_float(linear.halves[1][output])
                                                                     : linear.floats[1][output];
        double size = fabs(sum);
        for (size_t i = 0; i < width; i++) {
            const double product = rounded_to_bf16(linear.weight(output * width + i)) *
                                   rounded_to_bf16(found.observations[row * kInputs + i]);
            sum += product;
            size += fabs(product);
        }
        if (!isfinite(sum)) {
            CHECK(isnan(sum) ? isnan(logit) : logit == static_cast<float>(sum));
            return false;
        }
        CHECK_NEAR(logit, sum, static_cast<double>(inputs + 1) * ldexp(size, -22));  // a few units of the last place
        CHECK_NEAR(logit, without, ldexp(1.01 * size, -7));  // two factors, each within 2**-8
        return logit != without;
    }
};

inline void check_one_product(RunAct run, const OneProduct& product) {
    const Ref<Policy> policy = product.network.policy();
    Rows found(*policy, 45);
    found.observations[3 * kInputs] = not_a_number<float>();  // reaches no other row
    found.observations[7 * kInputs] = infinity<float>();
    Rows exact = found;
    exact.point_to_own();
    CHECK_EQUAL(policy->act_on_all(exact.call), DS_STATUS_OK);
    run_rows(run, with_bf16(*policy), found, 1, "forwards", true);
    int others = 0;
    for (size_t row = 0; row < 45; row++)
        for (size_t k = 0; k < DS_NUM_LOGITS; k++) others += product.check_logit(found, exact, row, k);
    CHECK(others > 45 * DS_NUM_LOGITS / 2);
}

// Sizes around those of the matrices and of the pieces of weights. every: of the sizes.
inline void check_products_are_rounded(RunAct run, int every) {
    int at = 0;
    for (const int64_t inputs : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 64, 94})
        for (const int32_t outputs : {19, 64, 67, 130}) {
            if (at++ % every != 0) continue;
            const int32_t type = at % 2 ? DS_WEIGHT_FLOAT32 : DS_WEIGHT_BFLOAT16;
            check_one_product(run, OneProduct(inputs, outputs, outputs - DS_NUM_LOGITS, type));
            check_one_product(run, OneProduct(inputs, outputs, 0, type));
        }
}

// ---- Networks

// The distance of two lists of numbers, as a part of the length of the second one.
inline double relative_distance(const std::vector<float>& found, const std::vector<float>& expected) {
    double distance = 0, length = 0;
    for (size_t i = 0; i < found.size(); i++) {
        distance += pow(found[i] - expected[i], 2);
        length += pow(expected[i], 2);
    }
    return length > 0 ? sqrt(distance / length) : 0;
}

// Networks with every kind of layer are near the exact ones. Any grid, order of threads and place of scratch memory gives
// the same bits.
inline void check_rounded_networks(RunAct run, uint32_t grid, const char* way, int64_t count) {
    for (int i = 0; i < kNetworks; i++) {
        const Ref<Policy> policy = test_networks()[i].policy();
        Rows exact(*policy, count), found = exact, again = exact;
        found.point_to_own();
        again.point_to_own();
        CHECK_EQUAL(policy->act_on_all(exact.call), DS_STATUS_OK);
        CHECK_EQUAL(run_rows(run, with_bf16(*policy), found, 1, "forwards", true), 0);
        CHECK_EQUAL(run_rows(run, with_bf16(*policy), again, grid, way, false), 0);
        CHECK(again.same_results(found));
        CHECK(!found.same_results(exact));
        CHECK(relative_distance(found.logits, exact.logits) < 0.01);
        CHECK(relative_distance(found.states, exact.states) < 0.01);
    }
}

}  // namespace doorstep
