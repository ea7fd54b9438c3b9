#include "device.h"

#include <algorithm>

namespace gpu_model {
namespace {

constexpr uint32_t kMostThreads = 2048, kMostBlocks = 32, kRegisters = 65536;
constexpr uint32_t kMemoryBytes = 256 << 10;           // L1 and shared memory together
constexpr uint32_t kReservedBytes = 1024;              // shared memory that each block needs besides its own
constexpr uint32_t kCarveOuts[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};  // KiB

uint32_t rounded_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

uint32_t shared_of_block(const BlockNeeds& needs) { return rounded_up(needs.shared_bytes, 128) + kReservedBytes; }

Cost mean_of(const std::vector<Cost>& sample) {
    Cost mean;
    for (const Cost& cost : sample) mean.add(cost);
    const double count = static_cast<double>(sample.size());
    mean.slots /= count, mean.lane_slots /= count, mean.wavefronts /= count, mean.device_bytes /= count;
    for (double& cycles : mean.cycles) cycles /= count;
    return mean;
}

}  // namespace

int resident_blocks(const BlockNeeds& needs) {
    const uint32_t most_shared = kCarveOuts[std::size(kCarveOuts) - 1] << 10;
    const uint32_t registers = rounded_up(needs.registers * ptx::kWarp, 256) * (needs.threads / ptx::kWarp);
    return static_cast<int>(std::min({kMostBlocks, kMostThreads / needs.threads, most_shared / shared_of_block(needs),
                                      kRegisters / registers}));
}

size_t cache_lines(const BlockNeeds& needs) {
    const uint32_t blocks = static_cast<uint32_t>(resident_blocks(needs)), used = blocks * shared_of_block(needs);
    const auto enough = [&](uint32_t kib) { return kib << 10 >= used; };
    const uint32_t carved = *std::find_if(std::begin(kCarveOuts), std::end(kCarveOuts), enough) << 10;
    return (kMemoryBytes - carved) / kLineBytes / blocks;
}

// Exact mean value analysis of a closed network: the warps visit four schedulers and a load/store unit, where they
// queue, and spend the rest of the tile's time elsewhere.
double contended_cycles(const Cost& mean, double cycles, int blocks, int warps_of_block) {
    constexpr int kStations = kSchedulers + 1;
    const double slots = mean.slots / warps_of_block, wavefronts = mean.wavefronts / warps_of_block;
    const double elsewhere = std::max(0., cycles - slots - wavefronts);
    double demand[kStations], queue[kStations] = {};
    std::fill(demand, demand + kSchedulers, slots / kSchedulers);
    demand[kSchedulers] = wavefronts;
    double time = 0;
    for (int warps = 1; warps <= blocks * warps_of_block; ++warps) {
        double residence[kStations];
        time = elsewhere;
        for (int k = 0; k < kStations; ++k) time += residence[k] = demand[k] * (1 + queue[k]);
        for (int k = 0; k < kStations; ++k) queue[k] = warps * residence[k] / time;
    }
    return time;
}

double seconds_for(int64_t tiles, const std::vector<Cost>& sample, const BlockNeeds& needs, Order order, double clock,
                   const Device& device) {
    const Cost mean = mean_of(sample);
    const int64_t grid = std::min<int64_t>(tiles, kMultiprocessors * resident_blocks(needs));
    std::vector<double> blocks(static_cast<size_t>(grid));
    uint64_t drawn = 1;
    for (int64_t first = 0; first < tiles; first += grid) {
        const int64_t count = std::min(grid, tiles - first);
        const int resident = static_cast<int>((count + kMultiprocessors - 1) / kMultiprocessors);
        const double slowdown = contended_cycles(mean, mean.cycles[order], resident,
                                                 static_cast<int>(needs.threads / ptx::kWarp)) / mean.cycles[order];
        for (int64_t block = 0; block < count; ++block) {
            drawn = drawn * 6364136223846793005u + 1442695040888963407u;
            blocks[static_cast<size_t>(block)] += sample[(drawn >> 33) % sample.size()].cycles[order] * slowdown;
        }
    }
    const double computed = *std::max_element(blocks.begin(), blocks.end()) / clock;
    return std::max(computed, mean.device_bytes * static_cast<double>(tiles) / device.bytes_per_second);
}

}  // namespace gpu_model
