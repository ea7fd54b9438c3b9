// The devices of this machine, with the driver's numbers.
#pragma once

#include "doorstep.h"
#include "runtime/cuda/driver_types.h"

namespace doorstep {

// Loads the driver if necessary. NO_DEVICE if it reports no devices.
ds_status count_devices(int* count);

// NO_DEVICE if no device has this index.
ds_status find_device(int64_t index, CUdevice* device);

ds_status device_attribute(CUdevice device, CUdevice_attribute attribute, int* value);

// The device's UUID, the same in every API.
ds_status device_uuid(CUdevice device, uint8_t* uuid);

// 90 is 9.0.
ds_status compute_capability(CUdevice device, int* capability);

}  // namespace doorstep
