// Threefry-2x32-20: the counter-based random number generator of level generation.
//
// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), section 3.3. A key is split
// into new keys by encrypting a counter, so a draw depends on (seed, world, episode, index) only.
#pragma once

#include "math/base.h"

namespace doorstep {

struct RandomKey {
    uint32_t a, b;
};

DS_INLINE uint32_t rotate_left(uint32_t value, int bits) { return (value << bits) | (value >> (32 - bits)); }

// The cipher block of counter (low, high) under key; also the key split from `key` with that counter.
// Not inline: a level draws dozens of numbers, and the compiler would take seconds over as many copies.
DS_NOINLINE RandomKey split(RandomKey key, uint32_t low, uint32_t high) {
    constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    const uint32_t schedule[3] = {key.a, key.b, 0x1BD11BDAu ^ key.a ^ key.b};
    uint32_t x = low + key.a, y = high + key.b;
    for (uint32_t group = 0; group < 5; group++) {
        for (int round = 0; round < 4; round++) {
            x += y;
            y = rotate_left(y, kRotations[(group & 1) * 4 + round]) ^ x;
        }
        x += schedule[(group + 1) % 3];
        y += schedule[(group + 2) % 3] + group + 1;
    }
    return {x, y};
}

DS_INLINE RandomKey base_key(uint32_t seed) { return split({seed, 0}, 0, 0); }
DS_INLINE RandomKey episode_key(uint32_t seed, uint32_t episode, uint32_t world) {
    return split(base_key(seed), episode, world);
}

// The draws of one episode, in order: uniform on [0, 1), 24 bits.
struct RandomStream {
    RandomKey key;
    uint32_t count;

    DS_METHOD float uniform() {
        const RandomKey block = split(key, count++, 0);
        return static_cast<float>((block.a ^ block.b) >> 8) * (1.f / 16777216.f);
    }
    DS_METHOD float centered(float range) { return uniform() * range - range / 2.f; }
    DS_METHOD float between(float low, float high) { return uniform() * (high - low) + low; }
};

}  // namespace doorstep
