// Levels as tables, any word of which may be anything: played or refused.
#include <stdlib.h>

#include "doorstep.h"
#include "patches.h"

using namespace doorstep;

namespace {

void require(bool holds) {
    if (!holds) abort();
}

ds_simulator make() {
    ds_simulator_config config{};
    config.struct_size = sizeof config;
    require(ds_simulator_config_default(&config) == DS_STATUS_OK);
    config.num_worlds = 1;
    config.num_threads = 1;
    config.episode_length = 4;
    config.max_levels = 1;
    ds_simulator simulator;
    require(ds_simulator_create(&config, &simulator) == DS_STATUS_OK);
    return simulator;
}

ds_level reference() {
    ds_level level{};
    level.struct_size = sizeof level;
    require(ds_level_default(&level) == DS_STATUS_OK);
    return level;
}

// A room with a wall, a door, its button, a cube and two agents.
ds_level fixed() {
    ds_level level = reference();
    level.source = DS_LEVEL_SOURCE_FIXED;
    level.num_walls = level.num_doors = level.num_buttons = level.num_cubes = level.num_rooms = 1;
    level.num_agents = 2;
    level.walls[0] = {0.f, 10.f, 0.f, 20.f, 1.f, 2.f};
    level.doors[0] = {{0.f, 8.f, 0.f, 4.f, 1.f, 2.f}, 1};
    level.buttons[0] = {1.f, 5.f, 0};
    level.cubes[0] = {2.f, 4.f, 0.f};
    level.agents[0] = {{-3.f, -3.f}, {2.f, 3.f}, {0.f, 0.f}};
    level.agents[1] = {{3.f, 3.f}, {2.f, 3.f}, {0.f, 0.f}};
    level.rooms[0] = {0.f, 10.f, 0};
    return level;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t bytes) {
    static const ds_simulator simulator = make();
    static const ds_level levels[] = {reference(), fixed()};
    if (bytes < 1) return 0;
    ds_level level = levels[input[0] & 1];
    apply_patches(input + 1, bytes - 1, &level, sizeof level);
    if (ds_simulator_set_levels(simulator, &level, 1, nullptr) != DS_STATUS_OK) return 0;
    require(ds_simulator_reset(simulator, nullptr, 0) == DS_STATUS_OK);
    for (int i = 0; i < 3; ++i) require(ds_simulator_step(simulator) == DS_STATUS_OK);
    ds_episode_start start{};
    start.level = &level;
    require(ds_simulator_begin(simulator, &start, 1) == DS_STATUS_OK);
    require(ds_simulator_step(simulator) == DS_STATUS_OK);
    return 0;
}
