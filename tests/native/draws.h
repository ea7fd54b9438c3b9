// Random numbers for tests: splitmix64.
#pragma once

#include <stdint.h>

struct Draws {
    uint64_t state;
    uint32_t below(uint32_t limit) {
        uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return static_cast<uint32_t>((z ^ (z >> 31)) >> 32) % limit;
    }
    // low <= n < end
    int integer(int low, int end) { return low + static_cast<int>(below(static_cast<uint32_t>(end - low))); }
    float between(float low, float high) {
        return low + (high - low) * static_cast<float>(below(1u << 20)) / static_cast<float>(1u << 20);
    }
};
