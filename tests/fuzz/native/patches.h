// An input is a list of patches of right bytes: this way the fuzzer gets past what is checked first.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace doorstep {

// 2 bytes: which word of 4 bytes; 4 bytes: its new value.
constexpr size_t kPatchBytes = 6;

inline void apply_patches(const uint8_t* input, size_t input_bytes, void* bytes, size_t size) {
    for (; input_bytes >= kPatchBytes; input += kPatchBytes, input_bytes -= kPatchBytes) {
        uint16_t word;
        memcpy(&word, input, sizeof word);
        const size_t at = word % (size / 4) * 4;
        memcpy(static_cast<char*>(bytes) + at, input + 2, 4);
    }
}

}  // namespace doorstep
