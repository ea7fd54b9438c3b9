// Actions drawn uniformly, without a network.
#pragma once

#include "doorstep.h"
#include "math/threefry.h"

namespace doorstep {

// The digits of a random fraction, each to the base of its component. step: added to the key's.
DS_INLINE void choose_randomly(const ds_sampling_key& key, uint32_t step, int32_t* action) {
    constexpr uint32_t kSizes[] = {
#define DS_ACTION_SIZE(name, size, neutral, sentence) size,
        DS_ACTION_TABLE(DS_ACTION_SIZE)
#undef DS_ACTION_SIZE
    };
    const RandomKey random = split({key.key[0], key.key[1]}, key.step + step, key.agent);
    uint32_t high = random.a, low = random.b;  // of the fraction
    for (int k = 0; k < DS_ACTION_COMPONENT_COUNT; k++) {
        const uint64_t from_low = uint64_t{low} * kSizes[k];
        const uint64_t scaled = uint64_t{high} * kSizes[k] + (from_low >> 32);
        action[k] = static_cast<int32_t>(scaled >> 32);
        high = static_cast<uint32_t>(scaled), low = static_cast<uint32_t>(from_low);
    }
}

DS_INLINE void choose_neutrally(int32_t* action) {
    constexpr int32_t kNeutral[] = {
#define DS_NEUTRAL(name, size, neutral, sentence) neutral,
        DS_ACTION_TABLE(DS_NEUTRAL)
#undef DS_NEUTRAL
    };
    for (int k = 0; k < DS_ACTION_COMPONENT_COUNT; k++) action[k] = kNeutral[k];
}

}  // namespace doorstep
