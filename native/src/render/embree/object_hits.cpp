// Intersects packets of eight rays with objects. Compiled for AVX2.
#include <immintrin.h>

#include "render/embree/lane_vector.h"
#include "render/embree/object_scene.h"

namespace doorstep {
namespace {

using Mask = WideMask;

// Rays in an object's own axes: the origin relative to its centre, both unscaled.
struct LocalRays {
    LaneVector origin, direction;
};

LocalRays to_object(const Object& object, const RTCRay8& rays) {
    const LaneVector origin{Lanes::load(rays.org_x) - Lanes(object.centre.x),
                            Lanes::load(rays.org_y) - Lanes(object.centre.y),
                            Lanes::load(rays.org_z) - Lanes(object.centre.z)};
    const LaneVector direction{Lanes::load(rays.dir_x), Lanes::load(rays.dir_y), Lanes::load(rays.dir_z)};
    return {{dot(origin, object.axis_x), dot(origin, object.axis_y), dot(origin, object.axis_z)},
            {dot(direction, object.axis_x), dot(direction, object.axis_y), dot(direction, object.axis_z)}};
}

// The interval of a ray between a box's two sides across one axis. A ray parallel to them gives infinities or, exactly
// on one, NaN, which minimum() and maximum() drop here.
struct Slab {
    Lanes entry, exit;
};

Slab slab(Lanes origin, Lanes direction, float half) {
    const Lanes inverse = Lanes(1.f) / direction;
    const Lanes low = (Lanes(-half) - origin) * inverse, high = (Lanes(half) - origin) * inverse;
    return {minimum(low, high), maximum(low, high)};
}

struct BoxHits {
    Mask hit;
    Lanes distance;
    Slab x, y, z;  // the side with the same entry is the one that was hit
};

// Rays from inside hit nothing.
BoxHits hit_box(const Object& box, const LocalRays& rays, Lanes nearest, Lanes farthest) {
    const Slab x = slab(rays.origin.x, rays.direction.x, box.half.x);
    const Slab y = slab(rays.origin.y, rays.direction.y, box.half.y);
    const Slab z = slab(rays.origin.z, rays.direction.z, box.half.z);
    const Lanes entry = maximum(x.entry, maximum(y.entry, z.entry)), exit = minimum(x.exit, minimum(y.exit, z.exit));
    return {(entry <= exit) & (nearest < entry) & (entry < farthest), entry, x, y, z};
}

Mask active(const int* valid) { return is_nonzero(Lanes(0.f), valid); }

void store_where(Mask mask, Lanes values, float* to) { _mm256_maskstore_ps(to, _mm256_castps_si256(mask.v), values.v); }
void store_where(Mask mask, uint32_t value, unsigned* to) {
    _mm256_maskstore_epi32(reinterpret_cast<int*>(to), _mm256_castps_si256(mask.v),
                           _mm256_set1_epi32(static_cast<int>(value)));
}

void intersect_box(const Object& box, const int* valid, uint32_t index, RTCRayHit8& packet) {
    const LocalRays rays = to_object(box, packet.ray);
    const BoxHits hits = hit_box(box, rays, Lanes::load(packet.ray.tnear), Lanes::load(packet.ray.tfar));
    const Mask hit = hits.hit & active(valid);
    if (!any(hit)) return;

    const Mask on_x = equal(hits.distance, hits.x.entry), on_y = equal(hits.distance, hits.y.entry);
    const Lanes along = select(on_x, rays.direction.x, select(on_y, rays.direction.y, rays.direction.z));
    const Lanes sign = select(along < Lanes(0.f), Lanes(1.f), Lanes(-1.f));
    const auto component = [&](float x, float y, float z) {
        return sign * select(on_x, Lanes(x), select(on_y, Lanes(y), Lanes(z)));
    };
    store_where(hit, hits.distance, packet.ray.tfar);
    store_where(hit, component(box.axis_x.x, box.axis_y.x, box.axis_z.x), packet.hit.Ng_x);
    store_where(hit, component(box.axis_x.y, box.axis_y.y, box.axis_z.y), packet.hit.Ng_y);
    store_where(hit, component(box.axis_x.z, box.axis_y.z, box.axis_z.z), packet.hit.Ng_z);
    store_where(hit, Lanes(static_cast<float>(kBodyMaterial)), packet.hit.u);
    store_where(hit, index, packet.hit.primID);
    store_where(hit, 0u, packet.hit.geomID);
}

// In the mesh's frame, whose box has half extents 1; distances do not change.
void to_mesh(const Object& agent, const RTCRay8& from, RTCRay8& to) {
    const LocalRays rays = to_object(agent, from);
    const Vec3 scale{1.f / agent.half.x, 1.f / agent.half.y, 1.f / agent.half.z};
    (rays.origin.x * Lanes(scale.x)).store(to.org_x);
    (rays.origin.y * Lanes(scale.y)).store(to.org_y);
    (rays.origin.z * Lanes(scale.z)).store(to.org_z);
    (rays.direction.x * Lanes(scale.x)).store(to.dir_x);
    (rays.direction.y * Lanes(scale.y)).store(to.dir_y);
    (rays.direction.z * Lanes(scale.z)).store(to.dir_z);
    Lanes::load(from.tnear).store(to.tnear);
    Lanes::load(from.tfar).store(to.tfar);
    Lanes(0.f).store(to.time);
    store_where(equal(Lanes(0.f), Lanes(0.f)), ~0u, to.mask);
}

// Interpolates the normals of the triangle's corners. In world axes.
Vec3 normal_at(const Object& agent, const MeshVertex* vertices, const uint32_t* corners, float u, float v) {
    const Vec3 normal = vertices[corners[0]].normal * (1.f - u - v) + vertices[corners[1]].normal * u +
                        vertices[corners[2]].normal * v;
    const Vec3 world = agent.axis_x * (normal.x / agent.half.x) + agent.axis_y * (normal.y / agent.half.y) +
                       agent.axis_z * (normal.z / agent.half.z);
    return world * (1.f / length(world));
}

void intersect_agent(const Object& agent, const TracedMesh& traced, const int* valid, uint32_t index, RTCRayHit8& packet) {
    RTCRayHit8 inner;
    to_mesh(agent, packet.ray, inner.ray);
    store_where(equal(Lanes(0.f), Lanes(0.f)), RTC_INVALID_GEOMETRY_ID, inner.hit.geomID);
    rtcIntersect8(valid, traced.scene, &inner, nullptr);
    for (int lane = 0; lane < 8; ++lane) {
        if (!valid[lane] || inner.hit.geomID[lane] == RTC_INVALID_GEOMETRY_ID) continue;
        const uint32_t* corners = traced.mesh->indices + 3 * inner.hit.primID[lane];
        const Vec3 normal = normal_at(agent, traced.mesh->vertices, corners, inner.hit.u[lane], inner.hit.v[lane]);
        packet.ray.tfar[lane] = inner.ray.tfar[lane];
        packet.hit.Ng_x[lane] = normal.x;
        packet.hit.Ng_y[lane] = normal.y;
        packet.hit.Ng_z[lane] = normal.z;
        packet.hit.u[lane] = static_cast<float>(traced.mesh->vertices[corners[0]].material);
        packet.hit.primID[lane] = index;
        packet.hit.geomID[lane] = 0;
    }
}

void occlude_by_agent(const Object& agent, RTCScene mesh, const int* valid, RTCRay8& rays) {
    RTCRay8 inner;
    to_mesh(agent, rays, inner);
    rtcOccluded8(valid, mesh, &inner, nullptr);
    const Lanes distance = Lanes::load(inner.tfar);
    store_where(active(valid) & (distance < Lanes(0.f)), distance, rays.tfar);
}

void occlude_by_box(const Object& box, const int* valid, RTCRay8& rays) {
    const BoxHits hits = hit_box(box, to_object(box, rays), Lanes::load(rays.tnear), Lanes::load(rays.tfar));
    store_where(hits.hit & active(valid), Lanes(-__builtin_inff()), rays.tfar);
}

bool is_hidden(const RTCRayQueryContext* context, uint32_t index) {
    return reinterpret_cast<const ObjectQuery*>(context)->hidden == static_cast<int32_t>(index);
}

}  // namespace

void leave_back_faces(const RTCFilterFunctionNArguments* arguments) {
    const auto& rays = *static_cast<const RTCRay8*>(arguments->ray);
    const auto& hits = *static_cast<const RTCHit8*>(arguments->hit);
    for (int lane = 0; lane < 8; ++lane) {
        const Vec3 direction{rays.dir_x[lane], rays.dir_y[lane], rays.dir_z[lane]};
        const Vec3 normal{hits.Ng_x[lane], hits.Ng_y[lane], hits.Ng_z[lane]};
        if (!(dot(direction, normal) < 0.f)) arguments->valid[lane] = 0;
    }
}

void intersect_object(const RTCIntersectFunctionNArguments* arguments) {
    const uint32_t index = arguments->primID;
    if (is_hidden(arguments->context, index)) return;
    const auto& objects = *static_cast<const TracedObjects*>(arguments->geometryUserPtr);
    const Object& object = objects.objects[index];
    auto& packet = *static_cast<RTCRayHit8*>(arguments->rayhit);
    if (object.is_mesh) {
        intersect_agent(object, objects.agent, arguments->valid, index, packet);
    } else {
        intersect_box(object, arguments->valid, index, packet);
    }
}

void occlude_by_object(const RTCOccludedFunctionNArguments* arguments) {
    if (is_hidden(arguments->context, arguments->primID)) return;
    const auto& objects = *static_cast<const TracedObjects*>(arguments->geometryUserPtr);
    const Object& object = objects.objects[arguments->primID];
    auto& rays = *static_cast<RTCRay8*>(arguments->ray);
    if (object.is_mesh) {
        occlude_by_agent(object, objects.agent.scene, arguments->valid, rays);
    } else {
        occlude_by_box(object, arguments->valid, rays);
    }
}

}  // namespace doorstep
