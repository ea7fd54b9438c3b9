// The ray caster: equal bytes from all its executors.
#include <string.h>

#include "level_worlds.h"
#include "render/api/core.h"
#include "render/raycast/block_views.h"
#include "render/raycast/world_views.h"
#include "view_calls.h"
#include "emulation.h"

namespace {

using namespace doorstep;

// ---- The same bytes

struct Size { int width, height; };
constexpr Size kSizes[] = {{1, 1}, {7, 5}, {64, 64}, {33, 200}};

ViewPixels drawn_on_cpu(const LevelWorlds& worlds, const CameraRig& rig) {
    ViewPixels pixels(worlds, rig);
    with_limits(worlds.fields(), [&](auto limits) {
        std::vector<DrawingMemory<decltype(limits)>> memory(1);
        draw_views_on_cpu(pixels.call, 0, worlds.num_worlds(), memory[0]);
    });
    return pixels;
}

LAW(one_lane_gives_the_bytes_of_eight) {
    for (const LevelSlots slots : {kReferenceSlots, kMostSlots})
        for (int num_agents : {1, 2, 8})
            for (const Size size : kSizes) {
                const LevelWorlds worlds(num_agents, 6, 20 + static_cast<uint64_t>(num_agents), slots);
                const CameraRig rig = rig_of(size.width, size.height, kTangentOf50Degrees);
                ViewPixels narrow(worlds, rig);
                draw_narrow(narrow.call);
                CHECK(narrow == drawn_on_cpu(worlds, rig));
            }
}

void check_emulation(const LevelWorlds& worlds, Size size) {
    const CameraRig rig = rig_of(size.width, size.height, kTangentOf50Degrees);
    const ViewPixels expected = drawn_on_cpu(worlds, rig);
    constexpr uint32_t kGrids[] = {1, 3, 40};
    for (int order = 0; order < 3; ++order) {
        ViewPixels emulated(worlds, rig);
        emulate_draw_views(emulated.call, kGrids[order], static_cast<ThreadOrder>(order));
        CHECK(emulated == expected);
    }
}

LAW(the_kernel_gives_the_bytes_of_the_cpu_in_any_order_of_blocks_and_threads) {
    for (const LevelSlots slots : {kReferenceSlots, kMostSlots})
        for (int num_agents : {1, 2, 8})
            for (const Size size : kSizes)
                check_emulation(LevelWorlds(num_agents, 2, 30 + static_cast<uint64_t>(num_agents), slots), size);
}

// ---- Two sizes of tables

LAW(worlds_without_levels_have_the_small_tables) {
    for (int num_agents = 1; num_agents <= DS_MAX_AGENTS; ++num_agents) {
        auto config = sized<ds_simulator_config>();
        CHECK_EQUAL(ds_simulator_config_default(&config), DS_STATUS_OK);
        config.num_worlds = 1;
        config.num_agents = num_agents;
        for (int64_t max_levels : {0, 1}) {
            config.max_levels = max_levels;
            ds_simulator simulator;
            CHECK_EQUAL(ds_simulator_create(&config, &simulator), DS_STATUS_OK);
            auto info = sized<ds_simulator_info>();
            CHECK_EQUAL(ds_simulator_get_info(simulator, &info), DS_STATUS_OK);
            const int64_t objects = info.num_bodies + info.num_statics + info.num_buttons;
            if (max_levels) CHECK_EQUAL(objects, kMaxObjects - DS_MAX_AGENTS + num_agents);
            else CHECK(objects <= ReferenceScene::kObjects);
            CHECK_EQUAL(ds_simulator_close(simulator), DS_STATUS_OK);
        }
    }
}

LAW(large_tables_give_the_bytes_of_small_ones) {
    for (int num_agents : {1, 2, 8}) {
        const LevelWorlds worlds(num_agents, 12, 45 + static_cast<uint64_t>(num_agents));
        const CameraRig rig = rig_of(31, 22, kTangentOf50Degrees);
        ViewPixels pixels(worlds, rig);
        std::vector<DrawingMemory<LevelScene>> memory(1);
        draw_views_on_cpu(pixels.call, 0, worlds.num_worlds(), memory[0]);
        CHECK(pixels == drawn_on_cpu(worlds, rig));
    }
}

// Memory of a multiprocessor of the GPUs with the most, shared by its blocks.
LAW(a_multiprocessor_has_room_for_several_views_of_levels) {
    constexpr int kMultiprocessor = 227 * 1024, kReserved = 1024;
    const LevelWorlds two(2, 1, 48, kMostSlots), eight(8, 1, 49, kMostSlots);
    CHECK(kMultiprocessor / (static_cast<int>(find_view_kernel(two.fields()).block_bytes) + kReserved) >= 4);
    CHECK(find_view_kernel(eight.fields()).block_bytes <= kLeastSharedBytes);
    CHECK_EQUAL(block_tiles<LevelScene>(2), kMostBlockTiles);
    CHECK_EQUAL(block_tiles<ReferenceScene>(DS_MAX_AGENTS), kMostBlockTiles);
}

}  // namespace
