// Actions drawn uniformly, without a network.
#pragma once

#include "doorstep.h"
#include "math/threefry.h"
#include "sim/action_table.h"

namespace doorstep {

// The logarithm of the probability of each action that is drawn: 1 / 320.
constexpr float kRandomLogProb = -5.76832100f;
static_assert(kActionSizes[0] * kActionSizes[1] * kActionSizes[2] * kActionSizes[3] == 320);

// The next digit of a fraction of 64 bits, to the base `size`, which is taken off.
DS_INLINE int32_t take_digit(uint32_t& high, uint32_t& low, int size) {
    const uint64_t from_low = uint64_t{low} * static_cast<uint32_t>(size);
    const uint64_t scaled = uint64_t{high} * static_cast<uint32_t>(size) + (from_low >> 32);
    high = static_cast<uint32_t>(scaled), low = static_cast<uint32_t>(from_low);
    return static_cast<int32_t>(scaled >> 32);
}

// The digits of a random fraction, each to the base of its component. step: added to the key's.
DS_INLINE void choose_randomly(const ds_sampling_key& key, uint32_t step, int32_t* action) {
    RandomKey random = split({key.key[0], key.key[1]}, key.step + step, key.agent);
    for (int k = 0; k < kActionComponents; k++) action[k] = take_digit(random.a, random.b, kActionSizes[k]);
}

DS_INLINE void choose_neutrally(int32_t* action) {
    for (int k = 0; k < kActionComponents; k++) action[k] = kNeutralAction[k];
}

}  // namespace doorstep
