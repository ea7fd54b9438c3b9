// How fast devices would process tiles of known costs: a prediction, which nothing here measures.
#pragma once

#include <stdint.h>

#include <vector>

#include "tile_costs.h"

namespace gpu_model {

struct Device {
    const char* name;
    double bytes_per_second;  // of its memory
};
constexpr Device kDevices[] = {{"H100", 3.35e12}, {"H200", 4.8e12}};

// Of both (SXM).
constexpr int kMultiprocessors = 132, kSchedulers = 4;
constexpr double kSlowestClock = 1.755e9, kFastestClock = 1.98e9;  // Hz

// What a block needs of a multiprocessor of compute capability 9.0.
struct BlockNeeds {
    uint32_t threads, shared_bytes, registers;  // registers: of a thread
};
int resident_blocks(const BlockNeeds& needs);

// Lines of L1 for each resident block: what the carve-out for shared memory leaves.
size_t cache_lines(const BlockNeeds& needs);

// Cycles in which a multiprocessor processes a tile in each of its blocks: warps wait for each other at the schedulers
// and at the load/store unit. mean: of a tile; cycles: of a tile alone.
double contended_cycles(const Cost& mean, double cycles, int blocks, int warps_of_block);

// Seconds for so many tiles, whose costs are drawn from those of the sample. At least the time that memory takes.
double seconds_for(int64_t tiles, const std::vector<Cost>& sample, const BlockNeeds& needs, Order order, double clock,
                   const Device& device);

}  // namespace gpu_model
