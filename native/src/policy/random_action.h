// Actions drawn uniformly, without a network.
#pragma once

#include "doorstep.h"
#include "math/threefry.h"
#include "sim/action_table.h"

namespace doorstep {

// The logarithm of the probability of each action that is drawn: 1 / 320.
constexpr float kRandomLogProb = -5.76832100f;
static_assert(kActionSizes[0] * kActionSizes[1] * kActionSizes[2] * kActionSizes[3] == 320);

// The digits of a random fraction, each to the base of its component. step: added to the key's.
DS_INLINE void choose_randomly(const ds_sampling_key& key, uint32_t step, int32_t* action) {
    const RandomKey random = split({key.key[0], key.key[1]}, key.step + step, key.agent);
    uint32_t high = random.a, low = random.b;  // of the fraction
    for (int k = 0; k < kActionComponents; k++) {
        const uint32_t size = static_cast<uint32_t>(kActionSizes[k]);
        const uint64_t from_low = uint64_t{low} * size;
        const uint64_t scaled = uint64_t{high} * size + (from_low >> 32);
        action[k] = static_cast<int32_t>(scaled >> 32);
        high = static_cast<uint32_t>(scaled), low = static_cast<uint32_t>(from_low);
    }
}

DS_INLINE void choose_neutrally(int32_t* action) {
    for (int k = 0; k < kActionComponents; k++) action[k] = kNeutralAction[k];
}

}  // namespace doorstep
