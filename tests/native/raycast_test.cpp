// The ray caster: its views against a ray tracer in double precision, and equal bytes from all its executors.
#include <string.h>

#include "drawn_views.h"
#include "level_worlds.h"
#include "render/api/core.h"
#include "render/raycast/block_views.h"
#include "render/raycast/world_views.h"
#include "render_worlds.h"
#include "view_calls.h"
#include "view_emulation.h"

namespace {

using namespace doorstep;

// ---- Views

ComparedPixels check(const WorldFields& fields, int num_worlds, int width, int height,
                     float tangent = kTangentOf50Degrees) {
    return check_views(DrawnViews(create_raycast_renderer, fields, num_worlds, width, height, tangent));
}

void views_are_what_the_reference_sees() {
    const RenderWorlds worlds(3);
    const ComparedPixels compared = check(worlds.fields(), 3, 48, 36);
    CHECK(compared.silhouettes * 25 < compared.all);
    for (int kind = DS_ENTITY_NONE; kind <= kFloorKind; ++kind) CHECK(compared.kinds[kind] > 5);
}

void views_from_hard_places_are_what_the_reference_sees() {
    const LevelWorlds worlds(2, 24, 11);
    const ComparedPixels compared = check(worlds.fields(), worlds.num_worlds(), 26, 17);
    CHECK(compared.silhouettes * 10 < compared.all);
}

void one_agent_and_eight_see_what_the_reference_sees() {
    const LevelWorlds alone(1, 6, 12), crowd(8, 3, 13);
    CHECK_EQUAL(check(alone.fields(), alone.num_worlds(), 20, 16).kinds[DS_ENTITY_AGENT], 0);
    CHECK(check(crowd.fields(), crowd.num_worlds(), 20, 16).kinds[DS_ENTITY_AGENT] > 100);
}

void views_of_as_many_objects_as_there_are_are_what_the_reference_sees() {
    const LevelWorlds few(2, 8, 15, kMostSlots), crowd(8, 2, 16, kMostSlots);
    CHECK_EQUAL(object_count(crowd.fields()), kMaxObjects);
    const ComparedPixels compared = check(few.fields(), few.num_worlds(), 26, 17);
    CHECK(compared.silhouettes * 5 < compared.all);
    CHECK(check(crowd.fields(), crowd.num_worlds(), 20, 16).kinds[DS_ENTITY_AGENT] > 50);
}

void views_of_any_size_and_angle_are_what_the_reference_sees() {
    const LevelWorlds worlds(2, 3, 14);
    check(worlds.fields(), 3, 1, 1);
    check(worlds.fields(), 3, 7, 5);
    check(worlds.fields(), 1, 9, 31);
    check(worlds.fields(), 3, 16, 16, tanf(0.5f * 1.f * kPi / 180.f));
    check(worlds.fields(), 1, 16, 16, tanf(0.5f * 170.f * kPi / 180.f));
}

// ---- The same bytes

struct Size {
    int width, height;
};
constexpr Size kSizes[] = {{1, 1}, {7, 5}, {64, 64}, {33, 200}};

ViewPixels drawn_on_cpu(const LevelWorlds& worlds, const CameraRig& rig, unsigned outputs = kEverything) {
    ViewPixels pixels(worlds, rig, outputs);
    with_limits(worlds.fields(), [&](auto limits) {
        std::vector<DrawingMemory<decltype(limits)>> memory(1);
        draw_views_on_cpu(pixels.call, 0, worlds.num_worlds(), memory[0]);
    });
    return pixels;
}

void one_lane_gives_the_bytes_of_eight() {
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

void the_kernel_gives_the_bytes_of_the_cpu_in_any_order_of_blocks_and_threads() {
    for (const LevelSlots slots : {kReferenceSlots, kMostSlots})
        for (int num_agents : {1, 2, 8})
            for (const Size size : kSizes)
                check_emulation(LevelWorlds(num_agents, 2, 30 + static_cast<uint64_t>(num_agents), slots), size);
}

// ---- Two sizes of tables

void worlds_without_levels_have_the_small_tables() {
    for (int num_agents = 1; num_agents <= DS_MAX_AGENTS; ++num_agents) {
        ds_simulator_config config{};
        config.struct_size = sizeof config;
        CHECK_EQUAL(ds_simulator_config_default(&config), DS_STATUS_OK);
        config.num_worlds = 1;
        config.num_agents = num_agents;
        for (int64_t max_levels : {0, 1}) {
            config.max_levels = max_levels;
            ds_simulator simulator;
            CHECK_EQUAL(ds_simulator_create(&config, &simulator), DS_STATUS_OK);
            ds_simulator_info info{};
            info.struct_size = sizeof info;
            CHECK_EQUAL(ds_simulator_get_info(simulator, &info), DS_STATUS_OK);
            const int64_t objects = info.num_bodies + info.num_statics + info.num_buttons;
            if (max_levels) {
                CHECK_EQUAL(objects, kMaxObjects - DS_MAX_AGENTS + num_agents);
            } else {
                CHECK(objects <= ReferenceScene::kObjects);
            }
            CHECK_EQUAL(ds_simulator_close(simulator), DS_STATUS_OK);
        }
    }
}

void large_tables_give_the_bytes_of_small_ones() {
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
void a_multiprocessor_has_room_for_several_views_of_levels() {
    constexpr int kMultiprocessor = 227 * 1024, kReserved = 1024;
    const LevelWorlds two(2, 1, 48, kMostSlots), eight(8, 1, 49, kMostSlots);
    CHECK(kMultiprocessor / (static_cast<int>(find_view_kernel(two.fields()).block_bytes) + kReserved) >= 4);
    CHECK(find_view_kernel(eight.fields()).block_bytes <= kLeastSharedBytes);
    CHECK_EQUAL(block_tiles<LevelScene>(2), kMostBlockTiles);
    CHECK_EQUAL(block_tiles<ReferenceScene>(DS_MAX_AGENTS), kMostBlockTiles);
}

void a_tensor_has_the_same_bytes_whatever_else_is_asked_for() {
    const LevelWorlds worlds(2, 12, 40);
    const CameraRig rig = rig_of(20, 12, kTangentOf50Degrees);
    const ViewPixels all = drawn_on_cpu(worlds, rig);
    for (unsigned outputs = 1; outputs < kEverything; ++outputs) {
        const ViewPixels some = drawn_on_cpu(worlds, rig, outputs);
        CHECK(!(outputs & kRgb) || some.rgb == all.rgb);
        CHECK(!(outputs & kDepth) || some.depth == all.depth);
        CHECK(!(outputs & kSegmentation) || some.segmentation == all.segmentation);
        CHECK(!(outputs & kNormals) || some.normals == all.normals);
    }
}

void what_has_no_place_is_not_drawn() {
    LevelWorlds broken(2, 2, 50), without(2, 2, 50);
    broken.body_positions[2 * 3 + 1] = NAN;
    broken.body_rotations[3 * 4] = INFINITY;
    broken.body_sizes[4 * 3] = -INFINITY;
    broken.static_sizes[0] = NAN;
    broken.static_positions[3 + 2] = 1e30f;
    for (size_t body : {2, 3, 4}) without.body_kinds[body] = DS_ENTITY_NONE;
    for (size_t wall : {0, 1}) without.static_kinds[wall] = DS_ENTITY_NONE;
    const CameraRig rig = rig_of(32, 24, kTangentOf50Degrees);
    CHECK(drawn_on_cpu(broken, rig) == drawn_on_cpu(without, rig));
}

void an_agent_without_a_place_sees_the_sky() {
    LevelWorlds worlds(2, 1, 51);
    worlds.body_positions[0] = NAN;
    const CameraRig rig = rig_of(16, 16, kTangentOf50Degrees);
    const ViewPixels pixels = drawn_on_cpu(worlds, rig);
    for (size_t i = 0; i < 16 * 16; ++i) {
        CHECK_EQUAL(pixels.segmentation[2 * i], 0);
        CHECK(pixels.depth[i] == 0.f);
        CHECK_EQUAL(pixels.rgb[4 * i + 2], 230);  // of the sky, 0.9
    }
}

}  // namespace

int main() {
    const ds_api* api;
    CHECK_EQUAL(ds_get_api(DS_ABI_VERSION, &api), DS_STATUS_OK);
    set_core(api);
    RUN(views_are_what_the_reference_sees);
    RUN(views_from_hard_places_are_what_the_reference_sees);
    RUN(one_agent_and_eight_see_what_the_reference_sees);
    RUN(views_of_as_many_objects_as_there_are_are_what_the_reference_sees);
    RUN(views_of_any_size_and_angle_are_what_the_reference_sees);
    RUN(one_lane_gives_the_bytes_of_eight);
    RUN(the_kernel_gives_the_bytes_of_the_cpu_in_any_order_of_blocks_and_threads);
    RUN(worlds_without_levels_have_the_small_tables);
    RUN(large_tables_give_the_bytes_of_small_ones);
    RUN(a_multiprocessor_has_room_for_several_views_of_levels);
    RUN(a_tensor_has_the_same_bytes_whatever_else_is_asked_for);
    RUN(what_has_no_place_is_not_drawn);
    RUN(an_agent_without_a_place_sees_the_sky);
    return 0;
}
