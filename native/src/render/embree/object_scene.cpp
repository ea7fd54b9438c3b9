#include "render/embree/object_scene.h"

#include <atomic>
#include <new>

#include "render/api/core.h"
#include "render/embree/memory_margin.h"
#include "render/scene/meshes.h"

namespace doorstep {
namespace {

// ---- The device

// The thread that commits a scene builds it. No tessellation: its cache would take 128 MiB.
constexpr char kConfiguration[] = "threads=1,ignore_config_files=1,tessellation_cache_size=0";

// Kept until the process ends. It has no lock that a fork could copy in the held state.
std::atomic<EmbreeDevice*> the_device{nullptr};

const char* text_of(RTCError error) {
    switch (error) {
        case RTC_ERROR_INVALID_ARGUMENT: return "invalid argument";
        case RTC_ERROR_INVALID_OPERATION: return "invalid operation";
        case RTC_ERROR_OUT_OF_MEMORY: return "out of memory";
        case RTC_ERROR_UNSUPPORTED_CPU: return "this processor is not supported";
        case RTC_ERROR_CANCELLED: return "cancelled";
        default: return "unknown error";
    }
}

TracedMesh build_mesh(RTCDevice device, const Mesh& mesh) {
    const RTCGeometry geometry = rtcNewGeometry(device, RTC_GEOMETRY_TYPE_TRIANGLE);
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, mesh.vertices, 0,
                               sizeof(MeshVertex), static_cast<size_t>(mesh.vertex_count));
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, mesh.indices, 0,
                               3 * sizeof(uint32_t), static_cast<size_t>(mesh.triangle_count));
    rtcSetGeometryMask(geometry, ~0u);
    rtcSetGeometryIntersectFilterFunction(geometry, leave_back_faces);
    rtcCommitGeometry(geometry);
    const RTCScene scene = rtcNewScene(device);
    rtcSetSceneFlags(scene, RTC_SCENE_FLAG_ROBUST);  // no ray passes between two triangles
    rtcSetSceneBuildQuality(scene, RTC_BUILD_QUALITY_HIGH);
    rtcAttachGeometry(scene, geometry);
    rtcReleaseGeometry(geometry);
    rtcCommitScene(scene);
    return {scene, &mesh};
}

void release_device(const EmbreeDevice& opened) {
    rtcReleaseScene(opened.agent.scene);
    rtcReleaseScene(opened.figure.scene);
    rtcReleaseDevice(opened.device);
}

ds_status open_device(EmbreeDevice& opened) {
    MemoryMargin margin;
    if (const ds_status status = margin.take("start", kDeviceBytes)) return status;
    const RTCDevice device = rtcNewDevice(kConfiguration);
    if (!device) return fail_embree(rtcGetDeviceError(nullptr), "start");
    if (!rtcGetDeviceProperty(device, RTC_DEVICE_PROPERTY_NATIVE_RAY8_SUPPORTED)) {
        rtcReleaseDevice(device);
        return fail(DS_STATUS_RENDERER, "renderer", "choose renderer \"raycast\"",
                    "Embree cannot trace packets of eight rays on this processor");
    }
    opened = {device, build_mesh(device, agent_mesh()), build_mesh(device, figure_mesh()),
              static_cast<int32_t>(rtcGetDeviceProperty(device, RTC_DEVICE_PROPERTY_VERSION))};
    const ds_status status = check_embree(device, "build the agents' meshes");
    if (status != DS_STATUS_OK) release_device(opened);
    return status;
}

void close_device(EmbreeDevice* device) {
    release_device(*device);
    delete device;
}

// ---- A scene

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

// If several threads come here at once, all use the device of the first that succeeds.
ds_status get_embree_device(const EmbreeDevice** device) {
    EmbreeDevice* found = the_device.load();
    if (!found) {
        auto* opened = new (std::nothrow) EmbreeDevice{};
        if (!opened) return fail_embree(RTC_ERROR_OUT_OF_MEMORY, "start");
        if (const ds_status status = open_device(*opened); status != DS_STATUS_OK) {
            delete opened;
            return status;
        }
        if (the_device.compare_exchange_strong(found, opened)) {
            found = opened;
        } else {
            close_device(opened);
        }
    }
    *device = found;
    return DS_STATUS_OK;
}

ds_status check_embree(RTCDevice device, const char* what) { return fail_embree(rtcGetDeviceError(device), what); }

ds_status fail_embree(RTCError error, const char* what) {
    if (error == RTC_ERROR_NONE) return DS_STATUS_OK;
    if (error == RTC_ERROR_OUT_OF_MEMORY) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "use fewer worlds or threads", "Embree had no memory to %s", what);
    }
    return fail(DS_STATUS_RENDERER, "renderer", "choose renderer \"raycast\"", "Embree failed to %s: %s", what,
                text_of(error));
}

ds_status ObjectScene::create(int capacity, TracedMesh EmbreeDevice::*agent) {
    const EmbreeDevice* shared;
    if (const ds_status status = get_embree_device(&shared); status != DS_STATUS_OK) return status;
    device_ = shared->device;
    traced_ = {new (std::nothrow) Object[static_cast<size_t>(capacity)], shared->*agent};
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
