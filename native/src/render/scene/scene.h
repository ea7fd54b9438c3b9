// What a picture shows, and from where: the pose of a camera and the rays of its pixels, and the visible objects of a
// world, boxes with any pose, agents among them, above an endless floor at z = 0. The objects are read from the fields
// of the state, on the host or CUDA.
//
// Rays go through pixel centres; row 0 is the top, column 0 the left. Surfaces are visible from outside only (back
// faces are culled): a camera inside a box sees through it, and one below the floor sees no floor.
#pragma once

#include <stdint.h>

#include "doorstep/rooms.h"
#include "math/vector.h"
#include "physics/constants.h"

namespace doorstep {

// ---- The camera

// A pinhole. Directions are not normalised: their component along `forward` is 1, so that a ray's parameter is the
// depth, the distance along the forward axis.
struct Camera {
    Vec3 origin;
    Vec3 right, forward, up;  // unit vectors
    float tangent_x, tangent_y;  // half the view's width and height at depth 1
};

// The camera that every agent carries.
struct CameraRig {
    int32_t width, height;  // pixels
    float tangent_x, tangent_y;
    Vec3 position;  // in the agent's frame
    Quat rotation;  // relative to the agent
};

// Nearer surfaces are not visible, metres.
constexpr float kNearPlane = 0.001f;
// The floor ends at this distance: at the horizon, rounding must not decide what is visible.
constexpr float kFarPlane = 1e5f;

DS_INLINE Camera camera_of_agent(const CameraRig& rig, Vec3 agent_position, Quat agent_rotation) {
    const Quat rotation = agent_rotation * rig.rotation;
    return {agent_position + rotate(agent_rotation, rig.position),
            rotate(rotation, {1.f, 0.f, 0.f}),
            rotate(rotation, {0.f, 1.f, 0.f}),
            rotate(rotation, {0.f, 0.f, 1.f}),
            rig.tangent_x,
            rig.tangent_y};
}

// Position of a pixel's centre on the plane at depth 1: right and up.
DS_INLINE float pixel_right(float tangent_x, int32_t width, int32_t column) {
    DS_ASSERT(column >= 0 && column < width);
    return tangent_x * ((2.f * static_cast<float>(column) + 1.f) / static_cast<float>(width) - 1.f);
}
DS_INLINE float pixel_up(float tangent_y, int32_t height, int32_t row) {
    DS_ASSERT(row >= 0 && row < height);
    return tangent_y * (1.f - (2.f * static_cast<float>(row) + 1.f) / static_cast<float>(height));
}

// ---- The objects

// In pictures only; observations have no floor.
constexpr int kFloorKind = 6;

// A pressure plate's box, metres; pressed, it is lower.
constexpr float kPlateSide = 1.3f;
constexpr float kPlateHeight = 0.12f;
constexpr float kPressedPlateHeight = 0.03f;

// A field of the state in all worlds. Strides in bytes.
struct FieldView {
    const char* data;
    int64_t world_stride, item_stride, component_stride;

    DS_METHOD float real(int64_t world, int item, int component) const {
        return *reinterpret_cast<const float*>(at(world, item, component));
    }
    DS_METHOD int32_t integer(int64_t world, int item) const {
        return *reinterpret_cast<const int32_t*>(at(world, item, 0));
    }
    DS_METHOD Vec3 vector(int64_t world, int item) const {
        return {real(world, item, 0), real(world, item, 1), real(world, item, 2)};
    }
    DS_METHOD Quat quaternion(int64_t world, int item) const {
        return {real(world, item, 0), real(world, item, 1), real(world, item, 2), real(world, item, 3)};
    }

private:
    DS_METHOD const char* at(int64_t world, int item, int component) const {
        return data + world * world_stride + item * item_stride + component * component_stride;
    }
};

// The fields that pictures are drawn from.
struct WorldFields {
    int32_t num_agents, num_bodies, num_statics, num_buttons;
    FieldView body_positions, body_rotations, body_sizes, body_kinds;
    FieldView static_positions, static_sizes, static_kinds;
    FieldView button_positions, button_pressed;
};

// Objects per world at most, including unused ones: those of worlds that play levels.
constexpr int kMaxObjects = int{DS_MAX_AGENTS} + DS_LEVEL_MAX_CUBES + DS_LEVEL_MAX_STATICS + DS_LEVEL_MAX_BUTTONS;

// Objects farther out, larger, or with NaN are not drawn. A camera there sees the sky. Metres.
constexpr float kOutside = 1e6f;

// A box, or the box of an agent's mesh, whose frame is the box's (see meshes.h).
struct Object {
    Vec3 centre;
    Vec3 axis_x, axis_y, axis_z;  // unit vectors of the box's own axes, in world axes
    Vec3 half;                    // half extents along them
    int32_t kind;                 // ds_entity_kind; DS_ENTITY_NONE: not drawn
    int32_t slot;                 // among bodies, statics or buttons
    bool is_mesh;
};

DS_INLINE int object_count(const WorldFields& fields) {
    return fields.num_bodies + fields.num_statics + fields.num_buttons;
}

// The agents' bodies, unless their kind was edited. Other objects of that kind are boxes.
DS_INLINE bool has_mesh(const WorldFields& fields, int index, int32_t kind) {
    return kind == DS_ENTITY_AGENT && index < fields.num_agents;
}

// The encoding of a pixel's segmentation.
DS_INLINE uint32_t segmentation_of(int32_t kind, int32_t slot) {
    return (static_cast<uint32_t>(kind) & 0xFF) | (static_cast<uint32_t>(slot) & 0xFF) << 8;
}

DS_INLINE bool is_within(Vec3 a, float limit) {
    return absolute(a.x) < limit && absolute(a.y) < limit && absolute(a.z) < limit;
}
DS_INLINE bool has_place(Vec3 centre, Vec3 x, Vec3 y, Vec3 z) {
    return is_within(centre, kOutside) && is_within(x, 2.f) && is_within(y, 2.f) && is_within(z, 2.f);
}
DS_INLINE bool can_be_seen(const Object& object) {
    return object.kind != DS_ENTITY_NONE && is_within(object.half, kOutside) &&
           has_place(object.centre, object.axis_x, object.axis_y, object.axis_z);
}
DS_INLINE bool can_look(const Camera& camera) {
    return has_place(camera.origin, camera.right, camera.up, camera.forward);
}

// Objects are numbered: bodies (agents first), statics, buttons. Any index below object_count().
DS_INLINE Object object_of(const WorldFields& fields, int64_t world, int index) {
    const Vec3 x{1.f, 0.f, 0.f}, y{0.f, 1.f, 0.f}, z{0.f, 0.f, 1.f};
    if (index < fields.num_bodies) {
        const Quat q = fields.body_rotations.quaternion(world, index);
        const Vec3 half = fields.body_sizes.vector(world, index) * 0.5f;
        Vec3 centre = fields.body_positions.vector(world, index);
        const int32_t kind = fields.body_kinds.integer(world, index);
        if (kind == DS_ENTITY_AGENT) centre.z += half.z;
        return {centre, rotate(q, x), rotate(q, y), rotate(q, z), half, kind, index,
                has_mesh(fields, index, kind)};
    }
    index -= fields.num_bodies;
    if (index < fields.num_statics) {
        const Vec3 half = fields.static_sizes.vector(world, index) * 0.5f;
        const Vec3 centre = fields.static_positions.vector(world, index) + Vec3{0.f, 0.f, half.z};
        return {centre, x, y, z, half, fields.static_kinds.integer(world, index), index, false};
    }
    index -= fields.num_statics;
    DS_ASSERT(index >= 0 && index < fields.num_buttons);
    const bool pressed = fields.button_pressed.integer(world, index) != 0;
    const Vec3 half{0.5f * kPlateSide, 0.5f * kPlateSide, 0.5f * (pressed ? kPressedPlateHeight : kPlateHeight)};
    const Vec3 centre = fields.button_positions.vector(world, index) + Vec3{0.f, 0.f, half.z};
    return {centre, x, y, z, half, DS_ENTITY_BUTTON, index, false};
}

}  // namespace doorstep
