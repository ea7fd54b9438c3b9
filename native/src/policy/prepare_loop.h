// The loop over rows to prepare: random actions of as many rows as a vector has lanes are drawn together.
#pragma once

#include "policy/lane_functions.h"
#include "policy/played_rows.h"

namespace doorstep {

// As choose_randomly(), for Float::kLanes rows.
template <class Float>
DS_METHOD void choose_randomly_together(const PlayedRows& call, const int32_t* rows) {
    constexpr int kLanes = Float::kLanes;
    uint32_t key_a[kLanes], key_b[kLanes], step[kLanes], agent[kLanes];
    for (int lane = 0; lane < kLanes; lane++) {
        const ds_sampling_key& key = call.keys[rows[lane]];
        key_a[lane] = key.key[0], key_b[lane] = key.key[1], agent[lane] = key.agent;
        step[lane] = key.step + *call.step_counter;
    }
    const auto words = threefry<Float>(load_words<Float>(key_a), load_words<Float>(key_b), load_words<Float>(step),
                                       load_words<Float>(agent));
    uint32_t high[kLanes], low[kLanes];
    int32_t digits[kActionComponents][kLanes];
    memcpy(high, &words.a, sizeof high);
    memcpy(low, &words.b, sizeof low);
    for (int k = 0; k < kActionComponents; k++)
        for (int lane = 0; lane < kLanes; lane++) digits[k][lane] = take_digit(high[lane], low[lane], kActionSizes[k]);
    for (int lane = 0; lane < kLanes; lane++)
        for (int k = 0; k < kActionComponents; k++)
            call.actions[int64_t{rows[lane]} * kActionComponents + k] = digits[k][lane];
}

template <class Float>
DS_METHOD void prepare_listed_rows(const PlayedRows& call, const int32_t* rows, int64_t count) {
    constexpr int kLanes = Float::kLanes;
    for (; count >= kLanes; rows += kLanes, count -= kLanes) {
        bool all_random = true;
        for (int lane = 0; lane < kLanes; lane++) all_random &= call.rows[rows[lane]].chooser == RowChooser::kRandom;
        if (all_random) choose_randomly_together<Float>(call, rows);
        for (int lane = 0; lane < kLanes; lane++)
            all_random ? prepare_inputs(call, rows[lane]) : prepare_row(call, rows[lane]);
    }
    for (int64_t i = 0; i < count; i++) prepare_row(call, rows[i]);
}

}  // namespace doorstep
