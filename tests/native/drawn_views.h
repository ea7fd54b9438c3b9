// Views that a renderer drew, compared with a ray tracer in double precision.
#pragma once

#include <math.h>

#include <vector>

#include "check.h"
#include "render/cameras/renderers.h"
#include "render_reference.h"
#include "view_calls.h"

namespace doorstep {

// Runs a simulator's tasks on the calling thread.
inline void run_alone(void*, int64_t count, ds_task task, void* context) {
    task(context, 0, count / 2, 0);
    task(context, count / 2, count - count / 2, 1);
}

using CreateRenderer = ds_status (*)(const CameraSetup& setup, BatchRenderer** renderer);
constexpr float kTangentOf50Degrees = 1.1917536f;

struct DrawnViews : PixelTensors {
    Views views;
    BatchRenderer* renderer = nullptr;

    DrawnViews(CreateRenderer create, const WorldFields& fields, int num_worlds, int width, int height,
               float tangent = kTangentOf50Degrees) {
        const CameraRig rig = rig_of(width, height, tangent);
        reset(num_worlds * fields.num_agents, rig);
        views = {fields, num_worlds, rig, tensors()};
        CameraSetup setup{};
        setup.info.device_kind = DS_DEVICE_CPU, setup.info.num_threads = 2, setup.views = views;
        CHECK_EQUAL(create(setup, &renderer), DS_STATUS_OK);
        draw();
    }
    DrawnViews(const DrawnViews&) = delete;
    DrawnViews& operator=(const DrawnViews&) = delete;
    ~DrawnViews() { delete renderer; }

    void draw() {
        auto turn = sized<ds_turn>();
        turn.device_kind = DS_DEVICE_CPU, turn.num_workers = 2, turn.run = run_alone;
        CHECK_EQUAL(renderer->draw(views, turn), DS_STATUS_OK);
    }
};

// One agent's view, drawn by the reference.
struct ReferenceView {
    const CameraRig& rig;
    Camera camera;
    std::vector<Object> objects;
    std::vector<reference::Triangle> triangles;
    int hidden;

    ReferenceView(const Views& views, int world, int agent)
        : rig(views.rig),
          camera(camera_of_agent(rig, views.fields.body_positions.vector(world, agent),
                                 views.fields.body_rotations.quaternion(world, agent))),
          hidden(agent) {
        for (int i = 0; i < object_count(views.fields); ++i) {
            objects.push_back(object_of(views.fields, world, i));
            if (objects.back().kind != DS_ENTITY_NONE) reference::add_triangles(objects.back(), i, triangles);
        }
    }

    // x, y: pixels from the upper left corner.
    reference::Ray ray(double x, double y) const {
        const double right = rig.tangent_x * (2 * x / rig.width - 1), up = rig.tangent_y * (1 - 2 * y / rig.height);
        return {reference::from(camera.origin), reference::from(camera.forward) +
                                                    reference::from(camera.right) * right +
                                                    reference::from(camera.up) * up};
    }
    reference::Hit trace(double x, double y) const { return reference::trace(ray(x, y), triangles, hidden, true); }

    bool is_silhouette(double x, double y, const reference::Hit& hit) const {
        for (const double dx : {-0.02, 0.02})
            for (const double dy : {-0.02, 0.02}) {
                const reference::Hit other = trace(x + dx, y + dy);
                const double turned = hit.object == reference::kSky ? 1 : reference::dot(other.normal, hit.normal);
                if (!(other == hit) || turned < 0.99) return true;
            }
        return false;
    }

    // The fraction of a floor pixel that is line: lines along x and y, each averaged over the distance that the floor
    // point moves for a step of one pixel to the right and one down.
    double lines(double x, double y) const {
        const auto point = [&](double px, double py) {
            const reference::Ray r = ray(px, py);
            return r.origin + r.direction * (-r.origin.z / r.direction.z);
        };
        const double e = 1e-4;
        const reference::Vector at = point(x, y);
        const reference::Vector right = (point(x + e, y) - point(x - e, y)) * (0.5 / e);
        const reference::Vector down = (point(x, y + e) - point(x, y - e)) * (0.5 / e);
        const double across_x = covered(at.x, fabs(right.x) + fabs(down.x));
        const double across_y = covered(at.y, fabs(right.y) + fabs(down.y));
        return 1 - (1 - across_x) * (1 - across_y);
    }
    static double covered(double coordinate, double width) {
        width = fmin(width, kGridCell);
        int on_line = 0;
        for (int i = 0; i < 500; ++i) {
            const double at = coordinate + width * ((i + 0.5) / 500 - 0.5);
            on_line += fabs(at - kGridCell * round(at / kGridCell)) < 0.5 * kGridLineWidth;
        }
        return on_line / 500.0;
    }

    reference::Vector colour(double x, double y, const reference::Hit& hit) const {
        const auto vector = [](Colour c) { return reference::Vector{c.red, c.green, c.blue}; };
        if (hit.object == reference::kSky) return vector(kSkyColour);
        reference::Vector base;
        if (hit.object == reference::kFloor) {
            const double share = lines(x, y);
            base = vector(kFloorColour) * (1 - share) + vector(kFloorLineColour) * share;
        } else if (hit.material == kEyeMaterial) base = vector(kEyeColour);
        else base = vector(colour_of_kind(objects[static_cast<size_t>(hit.object)].kind));
        const double toward_light = reference::dot(hit.normal, reference::unit({-1, -1, 2}));
        return base * (0.45 + 0.1 * hit.normal.z + 0.45 * fmax(toward_light, 0));
    }
};

inline void check_pixel(const DrawnViews& drawn, size_t pixel, const ReferenceView& view, double x, double y,
                        const reference::Hit& hit) {
    const reference::Vector colour = view.colour(x, y, hit);
    const double wanted[3] = {colour.x, colour.y, colour.z};
    for (size_t k = 0; k < 3; ++k) CHECK_NEAR(drawn.rgb[4 * pixel + k], fmin(wanted[k], 1) * 255, 1.01);
    CHECK_EQUAL(drawn.rgb[4 * pixel + 3], 255);
    int kind = 0, slot = 0;
    if (hit.object == reference::kFloor) kind = kFloorKind;
    if (hit.object >= 0) {
        kind = view.objects[static_cast<size_t>(hit.object)].kind;
        slot = view.objects[static_cast<size_t>(hit.object)].slot;
    }
    CHECK_EQUAL(drawn.segmentation[2 * pixel], kind);
    CHECK_EQUAL(drawn.segmentation[2 * pixel + 1], slot);
    const double depth = hit.object == reference::kSky ? 0 : hit.distance;
    CHECK_NEAR(drawn.depth[pixel], depth, 1e-4 * fmax(1, depth));
    CHECK_NEAR(drawn.normals[3 * pixel], hit.normal.x, 1e-3);
    CHECK_NEAR(drawn.normals[3 * pixel + 1], hit.normal.y, 1e-3);
    CHECK_NEAR(drawn.normals[3 * pixel + 2], hit.normal.z, 1e-3);
}

// How many pixels showed each kind; pixels on silhouettes, where rounding decides, are not compared.
struct ComparedPixels {
    size_t all = 0, silhouettes = 0;
    int kinds[8] = {};  // DS_ENTITY_NONE: sky
};

inline ComparedPixels check_views(const DrawnViews& drawn) {
    ComparedPixels compared;
    const Views& views = drawn.views;
    for (int of = 0; of < static_cast<int>(views.num_worlds) * views.fields.num_agents; ++of) {
        const ReferenceView view(views, of / views.fields.num_agents, of % views.fields.num_agents);
        for (int i = 0; i < views.rig.height * views.rig.width; ++i) {
            const size_t pixel = compared.all++;
            const double x = i % views.rig.width + 0.5, y = i / views.rig.width + 0.5;
            const reference::Hit hit = view.trace(x, y);
            const bool is_silhouette = view.is_silhouette(x, y, hit);
            compared.silhouettes += is_silhouette;
            if (is_silhouette) continue;
            check_pixel(drawn, pixel, view, x, y, hit);
            ++compared.kinds[drawn.segmentation[2 * pixel]];
        }
    }
    CHECK(compared.silhouettes * 2 <= compared.all);
    return compared;
}

}  // namespace doorstep
