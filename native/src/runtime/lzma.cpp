#include "runtime/lzma.h"

#include <stdint.h>

#include <algorithm>

namespace doorstep {
namespace {

// The probability that a bit is zero, in 1/2048; it adapts with every bit.
struct Bit {
    uint16_t zero = 1024;
};

// Bits of an arithmetic coder: `range` and `code` are the encoder's interval and the position in it.
class RangeDecoder {
public:
    RangeDecoder(const unsigned char* input, size_t bytes) : next_(input), end_(input + bytes) {
        damaged_ = take_byte() != 0;
        for (int i = 0; i < 4; i++) code_ = code_ << 8 | take_byte();
    }

    // Whether the input was read beyond its end, or cannot have been written by an encoder.
    bool damaged() const { return damaged_; }

    uint32_t decode(Bit& bit) {
        const uint32_t bound = (range_ >> 11) * bit.zero;
        const bool is_zero = code_ < bound;
        if (is_zero) {
            range_ = bound;
            bit.zero = static_cast<uint16_t>(bit.zero + ((2048 - bit.zero) >> 5));
        } else {
            range_ -= bound;
            code_ -= bound;
            bit.zero = static_cast<uint16_t>(bit.zero - (bit.zero >> 5));
        }
        normalize();
        return is_zero ? 0 : 1;
    }

    // A number of equally likely bits, the highest first.
    uint32_t decode_direct(int count) {
        uint32_t value = 0;
        for (; count > 0; count--) {
            range_ >>= 1;
            const bool is_one = code_ >= range_;
            if (is_one) code_ -= range_;
            value = value << 1 | (is_one ? 1 : 0);
            normalize();
        }
        return value;
    }

    // A number of `count` bits, the highest first. Each has a probability for every value of those before it.
    uint32_t decode_tree(Bit* bits, int count) {
        uint32_t node = 1;
        for (int i = 0; i < count; i++) node = node << 1 | decode(bits[node]);
        return node - (1u << count);
    }

    // The same, the lowest bit first.
    uint32_t decode_reverse_tree(Bit* bits, int count) {
        uint32_t node = 1, value = 0;
        for (int i = 0; i < count; i++) {
            const uint32_t bit = decode(bits[node]);
            node = node << 1 | bit;
            value |= bit << i;
        }
        return value;
    }

private:
    uint32_t take_byte() {
        if (next_ != end_) return *next_++;
        damaged_ = true;
        return 0;
    }

    void normalize() {
        if (range_ >= 1u << 24) return;
        range_ <<= 8;
        code_ = code_ << 8 | take_byte();
    }

    const unsigned char* next_;
    const unsigned char* end_;
    uint32_t range_ = 0xffffffff;
    uint32_t code_ = 0;
    bool damaged_ = false;
};

constexpr uint32_t kPositions = 16;  // 1 << pb, and 1 << lp: probabilities depend on the position modulo this
constexpr uint32_t kShortestMatch = 2;

struct LengthBits {
    Bit beyond_low, beyond_middle;
    Bit low[kPositions][8], middle[kPositions][8], high[256];

    uint32_t decode(RangeDecoder& input, uint32_t position) {
        if (!input.decode(beyond_low)) return kShortestMatch + input.decode_tree(low[position], 3);
        if (!input.decode(beyond_middle)) return kShortestMatch + 8 + input.decode_tree(middle[position], 3);
        return kShortestMatch + 16 + input.decode_tree(high, 8);
    }
};

struct DistanceBits {
    Bit slots[4][64];      // by the length of the match
    Bit low[128];          // of distances in slots below kFirstDirectSlot
    Bit alignment[16];     // the lowest four bits of the others
    static constexpr uint32_t kFirstDirectSlot = 14;

    // Distances count from 0, which means the last byte.
    uint32_t decode(RangeDecoder& input, uint32_t length) {
        const uint32_t slot = input.decode_tree(slots[std::min(length - kShortestMatch, 3u)], 6);
        if (slot < 4) return slot;
        const int low_bits = static_cast<int>(slot / 2 - 1);
        const uint32_t base = (2 | (slot & 1)) << low_bits;
        if (slot < kFirstDirectSlot) return base + input.decode_reverse_tree(low + base - slot, low_bits);
        const uint32_t middle = input.decode_direct(low_bits - 4) << 4;
        return base + middle + input.decode_reverse_tree(alignment, 4);
    }
};

class Decoder {
public:
    Decoder(const unsigned char* input, size_t input_bytes, unsigned char* output, size_t output_bytes)
        : input_(input, input_bytes), output_(output), bytes_(output_bytes) {}

    bool run() {
        while (written_ < bytes_ && !input_.damaged()) {
            const uint32_t position = written_ % kPositions;
            if (!input_.decode(is_match_[state_][position])) {
                decode_literal(literals_[position]);
            } else if (!copy(decode_match(position))) {
                return false;
            }
        }
        return !input_.damaged();
    }

private:
    // `state_` says what the last steps were. Below kAfterMatch the last one was a literal.
    static constexpr uint32_t kAfterMatch = 7;
    void set_state(uint32_t after_literal, uint32_t after_match) {
        state_ = state_ < kAfterMatch ? after_literal : after_match;
    }

    unsigned char last_copied() const { return output_[written_ - distances_[0] - 1]; }

    void decode_literal(Bit (&bits)[3][256]) {
        uint32_t symbol = 1;
        if (state_ >= kAfterMatch) {  // the byte is probably not the one that would have continued the match
            for (uint32_t expected = last_copied() | 0x100u; symbol < 0x100;) {
                expected <<= 1;
                const uint32_t expected_bit = expected >> 8 & 1;
                const uint32_t bit = input_.decode(bits[1 + expected_bit][symbol]);
                symbol = symbol << 1 | bit;
                if (bit != expected_bit) break;
            }
        }
        while (symbol < 0x100) symbol = symbol << 1 | input_.decode(bits[0][symbol]);
        output_[written_++] = static_cast<unsigned char>(symbol);
        state_ = state_ < 4 ? 0 : state_ - (state_ < 10 ? 3 : 6);
    }

    // Sets the distance and returns the length.
    uint32_t decode_match(uint32_t position) {
        if (!input_.decode(is_repeated_[state_])) {
            std::copy_backward(distances_, distances_ + 3, distances_ + 4);
            const uint32_t length = lengths_.decode(input_, position);
            distances_[0] = distance_.decode(input_, length);
            set_state(7, 10);
            return length;
        }
        if (!input_.decode(is_older_than_[0][state_])) {
            if (!input_.decode(is_long_[state_][position])) {
                set_state(9, 11);
                return 1;
            }
        } else {
            const int chosen = !input_.decode(is_older_than_[1][state_]) ? 1
                               : !input_.decode(is_older_than_[2][state_]) ? 2 : 3;
            std::rotate(distances_, distances_ + chosen, distances_ + chosen + 1);
        }
        const uint32_t length = repeated_lengths_.decode(input_, position);
        set_state(8, 11);
        return length;
    }

    // False if the distance points before the output.
    bool copy(uint32_t length) {
        if (distances_[0] >= written_) return false;
        for (size_t end = std::min(bytes_, written_ + length); written_ < end; written_++) {
            output_[written_] = last_copied();
        }
        return true;
    }

    RangeDecoder input_;
    unsigned char* output_;
    size_t bytes_, written_ = 0;
    uint32_t state_ = 0;
    uint32_t distances_[4] = {};  // of the last matches, the latest first
    Bit is_match_[12][kPositions], is_repeated_[12], is_older_than_[3][12], is_long_[12][kPositions];
    Bit literals_[kPositions][3][256];  // after a literal; after a match, whose next byte has the bit 0; or 1
    LengthBits lengths_, repeated_lengths_;
    DistanceBits distance_;
};

}  // namespace

bool decode_lzma(const unsigned char* input, size_t input_bytes, unsigned char* output, size_t output_bytes) {
    return Decoder(input, input_bytes, output, output_bytes).run();
}

}  // namespace doorstep
