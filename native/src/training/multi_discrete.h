// Actions of several independent components, each with a small number of choices: sampling, log-probabilities and
// entropies, and their gradients.
//
// A row of logits is the concatenation of the components' logits. Rows are independent: the CPU processes kRows of them
// together, so that loops over them become vector instructions; on a GPU each thread processes one. Missing rows of the
// last group repeat the last row.
//
// A logit of minus infinity has probability 0, and gradient 0 unless it is the chosen one. Where a row has a NaN, or a
// component with no possible choice, the row's results are NaN, and the sampled choice is some index of the component.
#pragma once

#include "doorstep/policies_and_rollouts.h"
#include "math/exponential.h"

namespace doorstep {

// One component of kRows rows: the values that both its choice and its entropy need.
template <class Float, int kRows>
struct Component {
    const Float* logits;         // of the component, in the first of all rows
    const int64_t* places;       // offsets of the rows from there
    int size;
    Float largest[kRows];        // logit
    Float sum[kRows];            // of weights
    Float logarithm[kRows];      // of the sum
    Float entropy[kRows];
};

template <class Float, int kRows>
DS_INLINE void load_logits(const Component<Float, kRows>& component, int choice, Float* logits) {
    for (int row = 0; row < kRows; row++) logits[row] = component.logits[component.places[row] + choice];
}

// Logarithms of a choice's weight in each row, relative to the most likely choice, whose weight is 1.
template <class Float, int kRows>
DS_INLINE void load_exponents(const Component<Float, kRows>& component, int choice, Float* exponents) {
    load_logits(component, choice, exponents);
    for (int row = 0; row < kRows; row++) exponents[row] = clamp_exponent(exponents[row] - component.largest[row]);
}

template <class Float, int kRows>
DS_INLINE void prepare(Component<Float, kRows>& component) {
    Float loaded[kRows], weighted[kRows];  // weighted: sum of weight times exponent
    for (int row = 0; row < kRows; row++) {
        component.largest[row] = -infinity<Float>();
        component.sum[row] = weighted[row] = 0;
    }
    for (int choice = 0; choice < component.size; choice++) {
        load_logits(component, choice, loaded);
        for (int row = 0; row < kRows; row++)
            component.largest[row] = loaded[row] > component.largest[row] ? loaded[row] : component.largest[row];
    }
    for (int choice = 0; choice < component.size; choice++) {
        load_exponents(component, choice, loaded);
        for (int row = 0; row < kRows; row++) {
            const Float weight = exponential(loaded[row]);
            component.sum[row] += weight;
            weighted[row] += weight * loaded[row];
        }
    }
    for (int row = 0; row < kRows; row++) {
        component.logarithm[row] = natural_logarithm(component.sum[row]);
        component.entropy[row] = component.logarithm[row] - weighted[row] / component.sum[row];
    }
}

// The choice whose interval in [0, 1), as long as its probability, contains the uniform number.
template <class Float, int kRows>
DS_INLINE void draw(const Component<Float, kRows>& component, const Float* uniforms, int32_t* choices) {
    Float exponents[kRows], passed[kRows] = {};  // passed: weights of the choices so far
    int32_t possible[kRows] = {};  // the last choice with any weight: the limit in case of rounding
    for (int row = 0; row < kRows; row++) choices[row] = 0;
    for (int choice = 0; choice < component.size; choice++) {
        load_exponents(component, choice, exponents);
        for (int row = 0; row < kRows; row++) {
            const Float weight = exponential(exponents[row]);
            passed[row] += weight;
            choices[row] += passed[row] <= uniforms[row] * component.sum[row] ? 1 : 0;
            possible[row] = weight > 0 ? choice : possible[row];
        }
    }
    for (int row = 0; row < kRows; row++) choices[row] = choices[row] < possible[row] ? choices[row] : possible[row];
}

// NaN for a choice out of range.
template <class Float, int kRows>
DS_INLINE Float log_probability(const Component<Float, kRows>& component, int32_t choice, int row) {
    const bool exists = choice >= 0 && choice < component.size;
    const Float logit = component.logits[component.places[row] + (exists ? choice : 0)];
    return exists ? (logit - component.largest[row]) - component.logarithm[row] : not_a_number<Float>();
}

template <int kRows>
DS_INLINE void load_choices(const ds_multi_discrete& call, int k, const int64_t* rows, int32_t* choices) {
    for (int row = 0; row < kRows; row++) choices[row] = call.actions[rows[row] * call.num_components + k];
}

// Calls operation(component, k, rows) for each component of the rows from `first` on; rows[i] is the index of row i.
template <class Float, int kRows, class Operation>
DS_INLINE void for_each_component(const ds_multi_discrete& call, int64_t first, int count, const Operation& operation) {
    int64_t width = 0;
    for (int k = 0; k < call.num_components; k++) width += call.sizes[k];
    int64_t rows[kRows], places[kRows];
    for (int row = 0; row < kRows; row++) {
        rows[row] = first + (row < count ? row : count - 1);
        places[row] = rows[row] * width;
    }
    int64_t offset = 0;
    for (int k = 0; k < call.num_components; k++) {
        Component<Float, kRows> component;
        component.logits = static_cast<const Float*>(call.logits) + offset;
        component.places = places;
        component.size = call.sizes[k];
        prepare(component);
        operation(component, k, rows);
        offset += component.size;
    }
}

// ---- The kernels

template <class Float, int kRows, bool kDraw>
DS_INLINE void choose(const ds_multi_discrete& call, int64_t first, int count) {
    Float log_probabilities[kRows] = {}, entropies[kRows] = {};
    for_each_component<Float, kRows>(call, first, count, [&](const auto& component, int k, const int64_t* rows) {
        int32_t choices[kRows];
        if constexpr (kDraw) {
            Float uniforms[kRows];
            for (int row = 0; row < kRows; row++)
                uniforms[row] = static_cast<const Float*>(call.uniforms)[rows[row] * call.num_components + k];
            draw(component, uniforms, choices);
            for (int row = 0; row < kRows; row++) call.actions[rows[row] * call.num_components + k] = choices[row];
        } else {
            load_choices<kRows>(call, k, rows, choices);
        }
        for (int row = 0; row < kRows; row++) {
            log_probabilities[row] += log_probability(component, choices[row], row);
            entropies[row] += component.entropy[row];
        }
    });
    for (int row = 0; row < count; row++) {
        static_cast<Float*>(call.log_probabilities)[first + row] = log_probabilities[row];
        static_cast<Float*>(call.entropies)[first + row] = entropies[row];
    }
}

template <class Float, int kRows>
DS_INLINE void multi_discrete_sample(const ds_multi_discrete& call, int64_t first, int count) {
    choose<Float, kRows, true>(call, first, count);
}

template <class Float, int kRows>
DS_INLINE void multi_discrete_evaluate(const ds_multi_discrete& call, int64_t first, int count) {
    choose<Float, kRows, false>(call, first, count);
}

// With probabilities p: the log-probability of choice a changes with logit j by [j = a] - p_j, the entropy H by
// -p_j (log p_j + H).
template <class Float, int kRows>
DS_INLINE void multi_discrete_backward(const ds_multi_discrete& call, int64_t first, int count) {
    for_each_component<Float, kRows>(call, first, count, [&](const auto& component, int k, const int64_t* rows) {
        Float* const gradients = static_cast<Float*>(call.logit_gradients) +
                                 (component.logits - static_cast<const Float*>(call.logits));
        Float by_log_probability[kRows], by_entropy[kRows], exponents[kRows], results[kRows];
        int32_t choices[kRows];
        load_choices<kRows>(call, k, rows, choices);
        for (int row = 0; row < kRows; row++) {
            by_log_probability[row] = static_cast<const Float*>(call.log_probability_gradients)[rows[row]];
            by_entropy[row] = static_cast<const Float*>(call.entropy_gradients)[rows[row]];
        }
        for (int choice = 0; choice < component.size; choice++) {
            load_exponents(component, choice, exponents);
            for (int row = 0; row < kRows; row++) {
                const Float probability = exponential(exponents[row]) / component.sum[row];
                const Float chosen = choices[row] == choice ? Float(1) : Float(0);
                const Float slope = exponents[row] - component.logarithm[row] + component.entropy[row];
                results[row] = by_log_probability[row] * (chosen - probability) -
                               by_entropy[row] * (probability * slope);
            }
            for (int row = 0; row < kRows; row++) gradients[component.places[row] + choice] = results[row];
        }
    });
}

}  // namespace doorstep
