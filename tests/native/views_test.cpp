// Views of all renderers of the CPU, against a ray tracer in double precision. Vulkan's are compared with them from
// Python.
#include <string.h>

#include "drawn_views.h"
#include "level_worlds.h"
#include "render/api/core.h"

namespace {

using namespace doorstep;

constexpr CreateRenderer kRenderers[] = {create_embree_renderer, create_raycast_renderer};

struct MadeViews : DrawnViews {
    MadeViews(CreateRenderer create, const LevelWorlds& worlds, int width = 32, int height = 24)
        : DrawnViews(create, worlds.fields(), worlds.num_worlds(), width, height) {}
};

ComparedPixels check(CreateRenderer create, const LevelWorlds& worlds, int width, int height,
                     float tangent = kTangentOf50Degrees) {
    return check_views(DrawnViews(create, worlds.fields(), worlds.num_worlds(), width, height, tangent));
}

LAW(views_are_what_the_reference_sees) {
    const LevelWorlds worlds(4, 4, 17);
    for (const CreateRenderer create : kRenderers) {
        const ComparedPixels compared = check_views(MadeViews(create, worlds));
        for (int kind = DS_ENTITY_NONE; kind <= kFloorKind; ++kind) CHECK(compared.kinds[kind] > 5);
    }
}

LAW(views_from_hard_places_of_any_size_and_angle_are_what_the_reference_sees) {
    const LevelWorlds hard(2, 6, 11), alone(1, 4, 12), crowd(8, 2, 13), few(2, 1, 14);
    for (const CreateRenderer create : kRenderers) {
        const ComparedPixels compared = check(create, hard, 26, 17);
        CHECK(compared.silhouettes * 10 < compared.all);
        CHECK_EQUAL(check(create, alone, 20, 16).kinds[DS_ENTITY_AGENT], 0);
        CHECK(check(create, crowd, 14, 11).kinds[DS_ENTITY_AGENT] > 20);
        check(create, few, 1, 1);
        check(create, few, 7, 5);
        check(create, few, 9, 21);
        check(create, few, 16, 16, tanf(0.5f * 1.f * kPi / 180.f));
        check(create, few, 16, 16, tanf(0.5f * 170.f * kPi / 180.f));
    }
}

LAW(views_of_as_many_objects_as_there_are_are_what_the_reference_sees) {
    const LevelWorlds few(2, 2, 15, kMostSlots), crowd(8, 1, 16, kMostSlots);
    CHECK_EQUAL(object_count(crowd.fields()), kMaxObjects);
    for (const CreateRenderer create : kRenderers) {
        const ComparedPixels compared = check(create, few, 26, 17);
        CHECK(compared.silhouettes * 5 < compared.all);
        CHECK(check(create, crowd, 14, 11).kinds[DS_ENTITY_AGENT] > 9);
    }
}

LAW(only_what_is_wanted_is_written) {
    const LevelWorlds worlds(2, 2, 18);
    for (const CreateRenderer create : kRenderers) {
        MadeViews drawn(create, worlds);
        const PixelTensors all = drawn;
        for (unsigned wanted = 0; wanted <= kEverything; ++wanted) {
            drawn.reset(worlds.num_worlds() * 2, drawn.views.rig);
            drawn.views.tensors = drawn.tensors(wanted);
            drawn.draw();
            CHECK((drawn.rgb == all.rgb) == !!(wanted & kRgb));
            CHECK((drawn.depth == all.depth) == !!(wanted & kDepth));
            CHECK((drawn.segmentation == all.segmentation) == !!(wanted & kSegmentation));
            CHECK((drawn.normals == all.normals) == !!(wanted & kNormals));
        }
    }
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
        const MadeViews all(create, whole), broken(create, worlds), less(create, without);
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
            const MadeViews drawn(create, worlds, 16, 16);
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
        const MadeViews drawn(create, worlds), expected(create, without);
        const size_t view = 4 * 32 * 24;
        CHECK(memcmp(drawn.rgb.data() + view, expected.rgb.data() + view, view) == 0);
        const MadeViews of_walls(create, walls), of_agents(create, agents);
        CHECK(of_agents.depth == of_walls.depth && of_agents.normals == of_walls.normals);
    }
}

}  // namespace
