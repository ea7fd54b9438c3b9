// A 64-bit hash of bytes: fast, well mixed, equal on all little-endian machines. Not secure against adversaries.
//
// Four lanes of 8-byte words are each folded by a 64 x 64 -> 128 bit multiplication, so that the multiplications
// overlap; the length and the tail go through the same folding at the end.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace doorstep {

inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(const void* data, size_t bytes) {
    // Odd constants with evenly spread bits: the fractional parts of the square roots of 2, 3, 5 and 7
    constexpr uint64_t kMultipliers[4] = {0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                          0xa54ff53a5f1d36f1};
    const unsigned char* next = static_cast<const unsigned char*>(data);
    uint64_t lanes[4] = {kMultipliers[3], kMultipliers[2], kMultipliers[1], kMultipliers[0]};
    size_t left = bytes;
    for (; left >= 32; left -= 32, next += 32) {
        uint64_t words[4];
        memcpy(words, next, 32);
        for (int i = 0; i < 4; ++i) lanes[i] = fold_multiply(lanes[i] ^ words[i], kMultipliers[i]) + words[i];
    }
    uint64_t tail[4] = {};
    if (left) memcpy(tail, next, left);
    uint64_t hash = bytes * kMultipliers[0];
    for (int i = 0; i < 4; ++i) {
        const uint64_t lane = fold_multiply(lanes[i] ^ tail[i], kMultipliers[i]) + tail[i];
        hash = fold_multiply(hash ^ lane, kMultipliers[(i + 1) % 4]) + lane;
    }
    return fold_multiply(hash ^ kMultipliers[2], kMultipliers[1]);
}

}  // namespace doorstep
