// How much better than expected each step was: generalised advantage estimation, and V-trace.
//
// Both run backwards over the steps of a column (one agent of one world) and restart where an episode ended. Columns
// are independent: the CPU processes many together, so that loops over them become vector instructions; on a GPU each
// thread processes one.
#pragma once

#include "doorstep/policies_and_rollouts.h"
#include "math/exponential.h"

namespace doorstep {

// One step of `count` columns. Pointers are to the first column.
template <class Float>
struct AdvantageRow {
    const Float *rewards, *values, *next_values;
    const uint8_t *terminations, *truncations;
    Float *advantages, *targets;
};

template <class Float>
DS_INLINE AdvantageRow<Float> row_of(const ds_advantages& call, int64_t index) {
    return {static_cast<const Float*>(call.rewards) + index,
            static_cast<const Float*>(call.values) + index,
            static_cast<const Float*>(call.next_values) + index,
            call.terminations + index,
            call.truncations + index,
            static_cast<Float*>(call.advantages) + index,
            static_cast<Float*>(call.targets) + index};
}

// Schulman, Moritz, Levine, Jordan, Abbeel: "High-dimensional continuous control using generalized advantage
// estimation" (ICLR 2016), equations 11 to 16. later: the next step's advantages, replaced by this step's.
template <class Float>
DS_INLINE void step_generalized_advantages(const Float* __restrict rewards, const Float* __restrict values,
                                           const Float* __restrict next_values,
                                           const uint8_t* __restrict terminations,
                                           const uint8_t* __restrict truncations, Float* __restrict advantages,
                                           Float* __restrict targets, Float* __restrict later, Float gamma,
                                           Float decay, int count) {
    for (int i = 0; i < count; i++) {
        const bool terminated = terminations[i] != 0, ended = terminated | (truncations[i] != 0);
        const Float next_value = terminated ? Float(0) : next_values[i];
        const Float error = rewards[i] + gamma * next_value - values[i];
        later[i] = error + (ended ? Float(0) : decay * later[i]);
        advantages[i] = later[i];
        targets[i] = later[i] + values[i];
    }
}

template <class Float, int kColumns>
DS_INLINE void generalized_advantages(const ds_advantages& call, int64_t first, int count) {
    const Float gamma = static_cast<Float>(call.gamma);
    const Float decay = static_cast<Float>(call.gamma * call.gae_lambda);
    Float later[kColumns] = {};
    for (int64_t step = call.num_steps - 1; step >= 0; step--) {
        const auto row = row_of<Float>(call, step * call.num_columns + first);
        step_generalized_advantages(row.rewards, row.values, row.next_values, row.terminations, row.truncations,
                                    row.advantages, row.targets, later, gamma, decay, count);
    }
}

// Espeholt et al.: "IMPALA: scalable distributed deep-RL with importance weighted actor-learner architectures" (ICML
// 2018), equation 1 and remark 1 (c times lambda), and section 4.2 for the advantages of the policy gradient.
// later: the next step's v - V, replaced by this step's.
template <class Float>
DS_INLINE void step_v_trace(const Float* __restrict rewards, const Float* __restrict values,
                            const Float* __restrict next_values, const Float* __restrict log_ratios,
                            const uint8_t* __restrict terminations, const uint8_t* __restrict truncations,
                            Float* __restrict advantages, Float* __restrict targets, Float* __restrict later,
                            Float gamma, Float gae_lambda, Float rho_clip, Float c_clip, int count) {
    for (int i = 0; i < count; i++) {
        const bool terminated = terminations[i] != 0, ended = terminated | (truncations[i] != 0);
        const Float ratio = exponential(log_ratios[i]);
        const Float rho = ratio > rho_clip ? rho_clip : ratio;
        const Float c = gae_lambda * (ratio > c_clip ? c_clip : ratio);
        const Float next_value = terminated ? Float(0) : next_values[i];
        const Float correction = ended ? Float(0) : later[i];
        advantages[i] = rho * (rewards[i] + gamma * (next_value + correction) - values[i]);
        later[i] = rho * (rewards[i] + gamma * next_value - values[i]) + gamma * c * correction;
        targets[i] = later[i] + values[i];
    }
}

template <class Float, int kColumns>
DS_INLINE void v_trace(const ds_advantages& call, int64_t first, int count) {
    Float later[kColumns] = {};
    for (int64_t step = call.num_steps - 1; step >= 0; step--) {
        const int64_t index = step * call.num_columns + first;
        const auto row = row_of<Float>(call, index);
        const Float* log_ratios = static_cast<const Float*>(call.log_ratios) + index;
        step_v_trace(row.rewards, row.values, row.next_values, log_ratios, row.terminations, row.truncations,
                     row.advantages, row.targets, later, static_cast<Float>(call.gamma),
                     static_cast<Float>(call.gae_lambda), static_cast<Float>(call.rho_clip),
                     static_cast<Float>(call.c_clip), count);
    }
}

}  // namespace doorstep
