// The loop over rows to prepare: random actions of as many rows as a vector has lanes are drawn together.
#pragma once

#include "policy/lane_functions.h"
#include "policy/played_rows.h"

namespace doorstep {

// word * kFactor, modulo 2**32.
template <int kFactor, class Bits>
DS_METHOD Bits times(Bits word) {
    if constexpr (kFactor == 1) return word;
    else if constexpr (kFactor % 2 == 1) return times<kFactor - 1>(word) + word;
    else return shift_left<1>(times<kFactor / 2>(word));
}

// As take_digit(), for all lanes: half words times the size leave room for what is carried.
template <int kSize, class Float, class Bits = typename Float::Bits>
DS_METHOD Bits take_digits(Bits& high, Bits& low) {
    static_assert(kSize >= 1 && kSize < 1 << 16);
    const Bits half = all_lanes(Float(0.f), 0xFFFF);
    const Bits first = times<kSize>(low & half);
    const Bits second = times<kSize>(shift_right<16>(low)) + shift_right<16>(first);
    const Bits third = times<kSize>(high & half) + shift_right<16>(second);
    const Bits fourth = times<kSize>(shift_right<16>(high)) + shift_right<16>(third);
    low = shift_left<16>(second) | (first & half);
    high = shift_left<16>(fourth) | (third & half);
    return shift_right<16>(fourth);
}

// As prepare_row() of Float::kLanes rows whose actions are random.
template <class Float>
DS_METHOD void choose_randomly_together(const PlayedRows& call, const int32_t* rows) {
    static_assert(kActionComponents == 4);
    constexpr int kLanes = Float::kLanes;
    using Bits = typename Float::Bits;
    uint32_t key_a[kLanes], key_b[kLanes], step[kLanes], agent[kLanes];
    bool all_as_they_are = true;  // what policies see and remember
    for (int lane = 0; lane < kLanes; lane++) {
        const ds_sampling_key& key = call.keys[rows[lane]];
        key_a[lane] = key.key[0], key_b[lane] = key.key[1], agent[lane] = key.agent;
        step[lane] = key.step + *call.step_counter;
        all_as_they_are &= (step[lane] != 0) & (call.rows[rows[lane]].shown_steps == 0);
    }
    if (!all_as_they_are)
        for (int lane = 0; lane < kLanes; lane++) prepare_inputs(call, rows[lane]);
    auto words = threefry<Float>(load_words<Float>(key_a), load_words<Float>(key_b), load_words<Float>(step),
                                 load_words<Float>(agent));
    const Bits digits[] = {take_digits<kActionSizes[0], Float>(words.a, words.b),
                           take_digits<kActionSizes[1], Float>(words.a, words.b),
                           take_digits<kActionSizes[2], Float>(words.a, words.b),
                           take_digits<kActionSizes[3], Float>(words.a, words.b)};
    int32_t actions[kActionComponents][kLanes];
    memcpy(actions, digits, sizeof actions);
    for (int lane = 0; lane < kLanes; lane++)
        for (int k = 0; k < kActionComponents; k++)
            call.actions[int64_t{rows[lane]} * kActionComponents + k] = actions[k][lane];
}

template <class Float>
DS_METHOD void prepare_listed_rows(const PlayedRows& call, const int32_t* rows, int64_t count) {
    constexpr int kLanes = Float::kLanes;
    for (; count >= kLanes; rows += kLanes, count -= kLanes) {
        bool all_random = true;
        for (int lane = 0; lane < kLanes; lane++) all_random &= call.rows[rows[lane]].chooser == RowChooser::kRandom;
        if (all_random) choose_randomly_together<Float>(call, rows);
        else for (int lane = 0; lane < kLanes; lane++) prepare_row(call, rows[lane]);
    }
    for (int64_t i = 0; i < count; i++) prepare_row(call, rows[i]);
}

}  // namespace doorstep
