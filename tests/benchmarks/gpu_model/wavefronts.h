// How the load/store unit splits an access of a warp: into wavefronts, each of which takes it a cycle.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace gpu_model {

constexpr uint32_t kLineBytes = 128, kSectorBytes = 32, kBanks = 32;

// An access of the lanes of a warp: an address for each bit of the mask.
struct WarpAccess {
    uint32_t mask;
    uint32_t bytes;  // per lane
    uint64_t address[32];
};

// Of shared memory: 32 banks of 4 bytes. A wavefront serves as many lanes as 128 bytes are, in the order of the lanes,
// or fewer where they access different words of a bank.
uint32_t shared_wavefronts(const WarpAccess& access);

// The units of so many bytes that an access touches, in any order. Of lines there is a wavefront each.
std::vector<uint64_t> units_of(const WarpAccess& access, uint32_t unit_bytes);

// A cache of lines that replaces the least recently used.
class LineCache {
public:
    explicit LineCache(size_t lines) : most_(lines) {}

    void clear() { lines_.clear(); }
    // Whether the line was there; it is afterwards.
    bool touch(uint64_t line);

private:
    size_t most_;
    std::vector<uint64_t> lines_;  // the most recently used comes last
};

}  // namespace gpu_model
