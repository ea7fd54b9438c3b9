// Views of the CPU's renderers: they see the same from places where their optimisations could fail, and leave out what
// has no place. That it is the right thing, and what Vulkan sees, is tested from Python
// (tests/render/test_renderers.py).
#include <string.h>

#include "level_worlds.h"
#include "render/api/core.h"
#include "view_calls.h"

namespace {

using namespace doorstep;

using CreateRenderer = ds_status (*)(const CameraSetup& setup, BatchRenderer** renderer);
constexpr CreateRenderer kRenderers[] = {create_embree_renderer, create_raycast_renderer};

// Runs a simulator's tasks on the calling thread.
void run_alone(void*, int64_t count, ds_task task, void* context) {
    task(context, 0, count / 2, 0);
    task(context, count / 2, count - count / 2, 1);
}

struct DrawnViews : PixelTensors {
    DrawnViews(CreateRenderer create, const LevelWorlds& worlds, int width = 32, int height = 24,
               float tangent = kTangentOf50Degrees) {
        const CameraRig rig = rig_of(width, height, tangent);
        reset(worlds.num_worlds() * worlds.fields().num_agents, rig);
        CameraSetup setup{};
        setup.info.device_kind = DS_DEVICE_CPU, setup.info.num_threads = 2;
        setup.views = {worlds.fields(), worlds.num_worlds(), rig, tensors()};
        BatchRenderer* renderer;
        CHECK_EQUAL(create(setup, &renderer), DS_STATUS_OK);
        auto turn = sized<ds_turn>();
        turn.device_kind = DS_DEVICE_CPU, turn.num_workers = 2, turn.run = run_alone;
        CHECK_EQUAL(renderer->draw(setup.views, turn), DS_STATUS_OK);
        delete renderer;
    }
    size_t num_pixels() const { return depth.size(); }

    bool is_near(const DrawnViews& other, size_t pixel) const {
        for (size_t k = 0; k < 4; ++k)
            if (abs(rgb[4 * pixel + k] - other.rgb[4 * pixel + k]) > 1) return false;
        for (size_t k = 0; k < 3; ++k)
            if (!(fabsf(normals[3 * pixel + k] - other.normals[3 * pixel + k]) <= 1e-3f)) return false;
        return memcmp(&segmentation[2 * pixel], &other.segmentation[2 * pixel], 2) == 0 &&
               fabsf(depth[pixel] - other.depth[pixel]) <= 1e-4f * fmaxf(1.f, depth[pixel]);
    }
};

// On all pixels but `most` of them, which lie on silhouettes.
DrawnViews check_same(double most, const LevelWorlds& worlds, int width, int height,
                      float tangent = kTangentOf50Degrees) {
    DrawnViews drawn(create_embree_renderer, worlds, width, height, tangent);
    const DrawnViews others(create_raycast_renderer, worlds, width, height, tangent);
    size_t differing = 0;
    for (size_t i = 0; i < drawn.num_pixels(); ++i) differing += !drawn.is_near(others, i);
    printf("    %zu of %zu pixels differ\n", differing, drawn.num_pixels());
    CHECK(static_cast<double>(differing) <= most * static_cast<double>(drawn.num_pixels()));
    return drawn;
}

LAW(renderers_see_the_same_from_hard_places_at_any_size_and_angle) {
    const DrawnViews drawn = check_same(0.002, LevelWorlds(4, 12, 17), 32, 24);
    for (int kind = DS_ENTITY_NONE; kind <= kFloorKind; ++kind) {
        int seen = 0;
        for (size_t i = 0; i < drawn.num_pixels(); ++i) seen += drawn.segmentation[2 * i] == kind;
        CHECK(seen > 50);
    }
    check_same(0.002, LevelWorlds(2, 12, 11), 26, 17);
    check_same(0.002, LevelWorlds(1, 12, 12), 20, 16);
    check_same(0.002, LevelWorlds(8, 4, 13), 14, 11);
    const LevelWorlds few(2, 1, 14);
    for (const auto& [width, height] : {std::pair(1, 1), {7, 5}, {9, 21}}) check_same(0.002, few, width, height);
    for (const float degrees : {1.f, 170.f}) check_same(0.002, few, 16, 16, tanf(0.5f * degrees * kPi / 180.f));
    const LevelWorlds full(8, 2, 16, kMostSlots);
    CHECK_EQUAL(object_count(full.fields()), kMaxObjects);
    check_same(0.002, full, 26, 17);
}

LAW(what_has_no_place_is_not_drawn) {
    LevelWorlds worlds(2, 2, 50), without(2, 2, 50), whole(2, 2, 50);
    worlds.body_positions[2 * 3 + 1] = NAN;
    worlds.body_positions[3 * 3] = -INFINITY;
    worlds.body_rotations[4 * 4] = INFINITY;
    worlds.static_sizes[0] = NAN;
    worlds.static_positions[1 * 3 + 2] = 1e30f;
    for (size_t i = 2; i < 5; ++i) without.body_kinds[i] = DS_ENTITY_NONE;
    without.static_kinds[0] = without.static_kinds[1] = DS_ENTITY_NONE;
    for (const CreateRenderer create : kRenderers) {
        const DrawnViews all(create, whole), broken(create, worlds), less(create, without);
        CHECK(broken.rgb == less.rgb && broken.segmentation == less.segmentation && broken.depth == less.depth);
        const size_t one_world = all.rgb.size() / 2;
        CHECK(memcmp(all.rgb.data() + one_world, broken.rgb.data() + one_world, one_world) == 0);
        CHECK(memcmp(all.rgb.data(), broken.rgb.data(), one_world) != 0);
    }
}

LAW(an_agent_without_a_place_sees_the_sky) {
    for (const CreateRenderer create : kRenderers) {
        for (const float nowhere : {NAN, INFINITY, 1e30f}) {
            LevelWorlds worlds(2, 1, 51);
            worlds.body_positions[0] = nowhere;
            const DrawnViews drawn(create, worlds, 16, 16);
            for (size_t i = 0; i < 16 * 16; ++i) {
                CHECK(drawn.segmentation[2 * i] == 0 && drawn.depth[i] == 0.f && drawn.normals[3 * i + 2] == 0.f);
                CHECK_EQUAL(drawn.rgb[4 * i + 2], 230);  // of the sky, 0.9
            }
        }
    }
}

LAW(agents_do_not_see_themselves_when_others_are_gone_and_whatever_else_is_of_their_kind_is_a_box) {
    LevelWorlds worlds(2, 1, 52), without(2, 1, 52), walls(2, 1, 52), agents(2, 1, 52);
    worlds.body_kinds[0] = DS_ENTITY_NONE;
    without.body_positions[0] = without.body_positions[1] = 9e5f;
    agents.static_kinds[0] = DS_ENTITY_AGENT;
    for (const CreateRenderer create : kRenderers) {
        const DrawnViews drawn(create, worlds), expected(create, without);
        const size_t view = 4 * 32 * 24;
        CHECK(memcmp(drawn.rgb.data() + view, expected.rgb.data() + view, view) == 0);
        const DrawnViews of_walls(create, walls), of_agents(create, agents);
        CHECK(of_agents.depth == of_walls.depth && of_agents.normals == of_walls.normals);
    }
}

}  // namespace
