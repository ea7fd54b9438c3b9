#include "render/embree/object_scene.h"

#include <new>

#include "render/api/core.h"

namespace doorstep {
namespace {

// Bounds are slightly larger than the objects, so that rounding in Embree's tree loses no ray along a side, metres.
constexpr float kMargin = 1e-4f;

Vec3 extent(const Object& object) {
    const Vec3 &x = object.axis_x, &y = object.axis_y, &z = object.axis_z;
    const Vec3 &half = object.half;
    return {absolute(x.x) * half.x + absolute(y.x) * half.y + absolute(z.x) * half.z + kMargin,
            absolute(x.y) * half.x + absolute(y.y) * half.y + absolute(z.y) * half.z + kMargin,
            absolute(x.z) * half.x + absolute(y.z) * half.y + absolute(z.z) * half.z + kMargin};
}

void bound_object(const RTCBoundsFunctionArguments* arguments) {
    const Object& object = static_cast<const TracedObjects*>(arguments->geometryUserPtr)->objects[arguments->primID];
    const Vec3 low = object.centre - extent(object), high = object.centre + extent(object);
    *arguments->bounds_o = {low.x, low.y, low.z, 0.f, high.x, high.y, high.z, 0.f};
}

}  // namespace

ds_status ObjectScene::create(int capacity) {
    const EmbreeDevice* shared;
    if (const ds_status status = get_embree_device(&shared); status != DS_STATUS_OK) return status;
    device_ = shared->device;
    traced_ = {new (std::nothrow) Object[static_cast<size_t>(capacity)], shared->agent_mesh};
    if (!traced_.objects) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "draw fewer objects", "no memory for %d objects", capacity);
    }
    geometry_ = rtcNewGeometry(device_, RTC_GEOMETRY_TYPE_USER);
    rtcSetGeometryMask(geometry_, ~0u);
    rtcSetGeometryUserData(geometry_, &traced_);
    rtcSetGeometryBoundsFunction(geometry_, bound_object, nullptr);
    rtcSetGeometryIntersectFunction(geometry_, intersect_object);
    rtcSetGeometryOccludedFunction(geometry_, occlude_by_object);
    scene_ = rtcNewScene(device_);
    rtcSetSceneFlags(scene_, RTC_SCENE_FLAG_DYNAMIC);
    rtcAttachGeometry(scene_, geometry_);
    return check_embree(device_, "create a scene");
}

ObjectScene::~ObjectScene() {
    if (scene_) rtcReleaseScene(scene_);
    if (geometry_) rtcReleaseGeometry(geometry_);
    delete[] traced_.objects;
}

RTCError ObjectScene::commit(int count) {
    rtcSetGeometryUserPrimitiveCount(geometry_, static_cast<unsigned>(count));
    rtcCommitGeometry(geometry_);
    rtcCommitScene(scene_);
    return rtcGetDeviceError(device_);
}

void ObjectScene::intersect(const int* valid, RTCRayHit8& rays, ObjectQuery& query, bool coherent) const {
    RTCIntersectArguments arguments{coherent ? RTC_RAY_QUERY_FLAG_COHERENT : RTC_RAY_QUERY_FLAG_INCOHERENT, ~0u,
                                    &query.context, nullptr, nullptr};
    rtcIntersect8(valid, scene_, &rays, &arguments);
}

void ObjectScene::occluded(const int* valid, RTCRay8& rays, ObjectQuery& query) const {
    RTCOccludedArguments arguments{RTC_RAY_QUERY_FLAG_INCOHERENT, ~0u, &query.context, nullptr, nullptr};
    rtcOccluded8(valid, scene_, &rays, &arguments);
}

}  // namespace doorstep
