#include "render/embree/device.h"

#include <atomic>
#include <new>

#include "render/api/core.h"
#include "render/embree/memory_margin.h"
#include "render/scene/meshes.h"

namespace doorstep {
namespace {

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

RTCScene build_mesh(RTCDevice device, const Mesh& mesh) {
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
    return scene;
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
    const RTCScene agent = build_mesh(device, agent_mesh());
    const ds_status status = check_embree(device, "build the agent's mesh");
    if (status != DS_STATUS_OK) {
        rtcReleaseScene(agent);
        rtcReleaseDevice(device);
        return status;
    }
    opened = {device, agent, static_cast<int32_t>(rtcGetDeviceProperty(device, RTC_DEVICE_PROPERTY_VERSION))};
    return DS_STATUS_OK;
}

void close_device(EmbreeDevice* device) {
    rtcReleaseScene(device->agent_mesh);
    rtcReleaseDevice(device->device);
    delete device;
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

}  // namespace doorstep
