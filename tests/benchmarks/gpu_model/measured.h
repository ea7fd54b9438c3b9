// What a case of the model measured: the costs of its tiles, by stage.
#pragma once

#include <string>
#include <vector>

#include "device.h"
#include "exec/cuda/images.h"

namespace gpu_model {

struct Measured {
    std::string name;
    const char* unit;                 // that a tile has so many of: "world", "view", "row"
    double units_per_tile;
    std::vector<const char*> stages;  // names of a tile's barrier intervals
    std::vector<TileCost> tiles;
    BlockNeeds needs;
    std::vector<int64_t> batches;     // units of the launches to predict
};

// Registers of a thread of the kernel, from its machine code for compute capability 9.0.
uint32_t registers_of(int module, const char* kernel);

}  // namespace gpu_model
