// The devices of this machine, as the driver counts them.
#pragma once

#include "doorstep.h"
#include "runtime/cuda/driver_types.h"

namespace doorstep {

// Opens the driver if need be. NO_DEVICE if there are none.
ds_status count_devices(int* count);

// NO_DEVICE if there is no such device.
ds_status find_device(int64_t index, CUdevice* device);

ds_status device_attribute(CUdevice device, CUdevice_attribute attribute, int* value);

// 16 bytes that no other device has, the same in every API.
ds_status device_uuid(CUdevice device, uint8_t* uuid);

// 90 is 9.0.
ds_status compute_capability(CUdevice device, int* capability);

}  // namespace doorstep
