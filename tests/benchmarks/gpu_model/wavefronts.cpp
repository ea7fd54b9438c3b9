#include "wavefronts.h"

#include <algorithm>

namespace gpu_model {
namespace {

// The words of an access that one bank serves.
struct Bank {
    uint32_t count = 0;
    uint64_t words[kBanks];

    void add(uint64_t word) {
        for (uint32_t i = 0; i < count; ++i)
            if (words[i] == word) return;
        words[count++] = word;
    }
};

}  // namespace

uint32_t shared_wavefronts(const WarpAccess& access) {
    const uint32_t words = std::max(access.bytes / 4, 1u), lanes = kBanks / words;
    uint32_t wavefronts = 0;
    for (uint32_t first = 0; first < 32; first += lanes) {
        Bank banks[kBanks];
        uint32_t most = 0;
        for (uint32_t lane = first; lane < first + lanes; ++lane) {
            if (!(access.mask >> lane & 1)) continue;
            for (uint32_t k = 0; k < words; ++k) {
                const uint64_t word = access.address[lane] / 4 + k;
                Bank& bank = banks[word % kBanks];
                bank.add(word);
                most = std::max(most, bank.count);
            }
        }
        wavefronts += most;
    }
    return wavefronts;
}

std::vector<uint64_t> units_of(const WarpAccess& access, uint32_t unit_bytes) {
    std::vector<uint64_t> units;
    for (uint32_t left = access.mask; left; left &= left - 1) {
        const uint64_t address = access.address[__builtin_ctz(left)];
        for (uint64_t unit = address / unit_bytes; unit <= (address + access.bytes - 1) / unit_bytes; ++unit)
            if (std::find(units.begin(), units.end(), unit) == units.end()) units.push_back(unit);
    }
    return units;
}

bool LineCache::touch(uint64_t line) {
    const auto found = std::find(lines_.rbegin(), lines_.rend(), line);
    const bool hit = found != lines_.rend();
    if (hit) lines_.erase(std::next(found).base());
    else if (lines_.size() == most_ && most_ > 0) lines_.erase(lines_.begin());
    lines_.push_back(line);
    return hit;
}

}  // namespace gpu_model
