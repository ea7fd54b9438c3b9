// The parts of Embree 4's C API that doorstep uses: structs, numbers and functions as in its manual. The library is
// built with one level of instances and with arrays of instances; render_embree_test.cpp checks the layouts.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

extern "C" {

typedef struct RTCDeviceTy* RTCDevice;
typedef struct RTCSceneTy* RTCScene;
typedef struct RTCGeometryTy* RTCGeometry;

enum RTCError : int {
    RTC_ERROR_NONE = 0,
    RTC_ERROR_UNKNOWN = 1,
    RTC_ERROR_INVALID_ARGUMENT = 2,
    RTC_ERROR_INVALID_OPERATION = 3,
    RTC_ERROR_OUT_OF_MEMORY = 4,
    RTC_ERROR_UNSUPPORTED_CPU = 5,
    RTC_ERROR_CANCELLED = 6,
};

enum RTCDeviceProperty : int {
    RTC_DEVICE_PROPERTY_VERSION = 0,
    RTC_DEVICE_PROPERTY_NATIVE_RAY8_SUPPORTED = 33,
};

enum RTCFormat : int {
    RTC_FORMAT_UINT3 = 0x5003,
    RTC_FORMAT_FLOAT3 = 0x9003,
};

enum RTCBufferType : int {
    RTC_BUFFER_TYPE_INDEX = 0,
    RTC_BUFFER_TYPE_VERTEX = 1,
};

enum RTCBuildQuality : int {
    RTC_BUILD_QUALITY_HIGH = 2,
};

enum RTCSceneFlags : int {
    RTC_SCENE_FLAG_DYNAMIC = 1,
    RTC_SCENE_FLAG_ROBUST = 4,
};

enum RTCGeometryType : int {
    RTC_GEOMETRY_TYPE_TRIANGLE = 0,
    RTC_GEOMETRY_TYPE_USER = 120,
};

enum RTCRayQueryFlags : int {
    RTC_RAY_QUERY_FLAG_INCOHERENT = 0,
    RTC_RAY_QUERY_FLAG_COHERENT = 1 << 16,
};

constexpr unsigned int RTC_INVALID_GEOMETRY_ID = 0xFFFFFFFFu;

struct alignas(16) RTCRay {
    float org_x, org_y, org_z, tnear;
    float dir_x, dir_y, dir_z, time;
    float tfar;
    unsigned int mask, id, flags;
};

struct RTCHit {
    float Ng_x, Ng_y, Ng_z;
    float u, v;
    unsigned int primID, geomID, instID[1], instPrimID[1];
};

struct RTCRayHit {
    RTCRay ray;
    RTCHit hit;
};

struct alignas(32) RTCRay8 {
    float org_x[8], org_y[8], org_z[8], tnear[8];
    float dir_x[8], dir_y[8], dir_z[8], time[8];
    float tfar[8];
    unsigned int mask[8], id[8], flags[8];
};

struct alignas(32) RTCHit8 {
    float Ng_x[8], Ng_y[8], Ng_z[8];
    float u[8], v[8];
    unsigned int primID[8], geomID[8], instID[1][8], instPrimID[1][8];
};

struct RTCRayHit8 {
    RTCRay8 ray;
    RTCHit8 hit;
};

static_assert(sizeof(RTCRay) == 48 && sizeof(RTCRayHit) == 96, "Embree's rays");
static_assert(sizeof(RTCRay8) == 12 * 32 && sizeof(RTCRayHit8) == 21 * 32, "Embree's packets of rays");

struct RTCRayQueryContext {
    unsigned int instID[1], instPrimID[1];
};

struct RTCIntersectArguments {
    RTCRayQueryFlags flags;
    unsigned int feature_mask;
    RTCRayQueryContext* context;
    void* filter;
    void* intersect;
};

struct RTCOccludedArguments {
    RTCRayQueryFlags flags;
    unsigned int feature_mask;
    RTCRayQueryContext* context;
    void* filter;
    void* occluded;
};

// Callbacks of a geometry of type USER: its primitives' boxes, and where rays hit them.
struct alignas(16) RTCBounds {
    float lower_x, lower_y, lower_z, align0;
    float upper_x, upper_y, upper_z, align1;
};

struct RTCBoundsFunctionArguments {
    void* geometryUserPtr;
    unsigned int primID, timeStep;
    RTCBounds* bounds_o;
};

// A hit to accept or reject; a rejected one has valid set to 0.
struct RTCFilterFunctionNArguments {
    int* valid;
    void* geometryUserPtr;
    RTCRayQueryContext* context;
    void *ray, *hit;
    unsigned int N;
};

struct RTCIntersectFunctionNArguments {
    int* valid;
    void* geometryUserPtr;
    unsigned int primID;
    RTCRayQueryContext* context;
    void* rayhit;
    unsigned int N, geomID;
};

struct RTCOccludedFunctionNArguments {
    int* valid;
    void* geometryUserPtr;
    unsigned int primID;
    RTCRayQueryContext* context;
    void* ray;
    unsigned int N, geomID;
};

RTCDevice rtcNewDevice(const char* config);
void rtcReleaseDevice(RTCDevice device);
ssize_t rtcGetDeviceProperty(RTCDevice device, RTCDeviceProperty property);
RTCError rtcGetDeviceError(RTCDevice device);  // this thread's error, which it clears; null: of creating devices

RTCScene rtcNewScene(RTCDevice device);
void rtcReleaseScene(RTCScene scene);
void rtcSetSceneFlags(RTCScene scene, RTCSceneFlags flags);
void rtcSetSceneBuildQuality(RTCScene scene, RTCBuildQuality quality);
unsigned int rtcAttachGeometry(RTCScene scene, RTCGeometry geometry);
void rtcCommitScene(RTCScene scene);

RTCGeometry rtcNewGeometry(RTCDevice device, RTCGeometryType type);
void rtcReleaseGeometry(RTCGeometry geometry);
void rtcSetGeometryMask(RTCGeometry geometry, unsigned int mask);
void rtcSetSharedGeometryBuffer(RTCGeometry geometry, RTCBufferType type, unsigned int slot, RTCFormat format,
                                const void* data, size_t byte_offset, size_t byte_stride, size_t item_count);
void rtcSetGeometryIntersectFilterFunction(RTCGeometry geometry, void (*filter)(const RTCFilterFunctionNArguments*));
void rtcSetGeometryUserPrimitiveCount(RTCGeometry geometry, unsigned int count);
void rtcSetGeometryUserData(RTCGeometry geometry, void* data);
void rtcSetGeometryBoundsFunction(RTCGeometry geometry, void (*bounds)(const RTCBoundsFunctionArguments*), void* data);
void rtcSetGeometryIntersectFunction(RTCGeometry geometry, void (*intersect)(const RTCIntersectFunctionNArguments*));
void rtcSetGeometryOccludedFunction(RTCGeometry geometry, void (*occluded)(const RTCOccludedFunctionNArguments*));
void rtcCommitGeometry(RTCGeometry geometry);

// valid: -1 per ray of the packet, 0 for rays to ignore.
void rtcIntersect1(RTCScene scene, RTCRayHit* ray, RTCIntersectArguments* arguments);
void rtcIntersect8(const int* valid, RTCScene scene, RTCRayHit8* rays, RTCIntersectArguments* arguments);
void rtcOccluded8(const int* valid, RTCScene scene, RTCRay8* rays, RTCOccludedArguments* arguments);

}  // extern "C"
