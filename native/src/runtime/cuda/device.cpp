#include "runtime/cuda/device.h"

#include <string.h>

#include "runtime/cuda/driver.h"
#include "runtime/status.h"

namespace doorstep {

ds_status count_devices(int* count) {
    const Driver* driver = find_driver();
    if (!driver) return last_status();
    const CUresult result = driver->cuDeviceGetCount(count);
    return result ? fail_driver(result, "cuDeviceGetCount") : DS_STATUS_OK;
}

ds_status find_device(int64_t index, CUdevice* device) {
    int count;
    if (const ds_status status = count_devices(&count)) return status;
    if (index < 0 || index >= count) {
        return fail(DS_STATUS_NO_DEVICE, "device_index",
                    "see nvidia-smi for the devices, and CUDA_VISIBLE_DEVICES for hidden ones",
                    "there is no CUDA device %lld; the driver has %d, counted from 0", static_cast<long long>(index),
                    count);
    }
    const CUresult result = driver().cuDeviceGet(device, static_cast<int>(index));
    return result ? fail_driver(result, "cuDeviceGet", "device_index") : DS_STATUS_OK;
}

ds_status device_attribute(CUdevice device, CUdevice_attribute attribute, int* value) {
    const CUresult result = driver().cuDeviceGetAttribute(value, attribute, device);
    return result ? fail_driver(result, "cuDeviceGetAttribute") : DS_STATUS_OK;
}

ds_status device_uuid(CUdevice device, uint8_t* uuid) {
    CUuuid asked;
    if (const CUresult result = driver().cuDeviceGetUuid(&asked, device)) return fail_driver(result, "cuDeviceGetUuid");
    memcpy(uuid, asked.bytes, sizeof asked.bytes);
    return DS_STATUS_OK;
}

ds_status compute_capability(CUdevice device, int* capability) {
    int major, minor;
    if (const ds_status status = device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major)) {
        return status;
    }
    if (const ds_status status = device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor)) {
        return status;
    }
    *capability = major * 10 + minor;
    return DS_STATUS_OK;
}

}  // namespace doorstep
