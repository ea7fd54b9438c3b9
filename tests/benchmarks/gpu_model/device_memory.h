// Memory of the host in the place of device memory, whose allocations begin at a multiple of 256 bytes: which lines an
// access touches then depends on the offsets alone.
#pragma once

#include <stddef.h>

#include <new>
#include <vector>

namespace gpu_model {

constexpr size_t kDeviceAlignment = 256;

template <class Value>
struct DeviceAllocator {
    static constexpr std::align_val_t kAlignment{kDeviceAlignment};
    using value_type = Value;

    DeviceAllocator() = default;
    template <class Other>
    DeviceAllocator(const DeviceAllocator<Other>&) {}

    Value* allocate(size_t count) { return static_cast<Value*>(::operator new(count * sizeof(Value), kAlignment)); }
    void deallocate(Value* values, size_t) { ::operator delete(values, kAlignment); }
    bool operator==(const DeviceAllocator&) const { return true; }
    bool operator!=(const DeviceAllocator&) const { return false; }
};

template <class Value>
using DeviceArray = std::vector<Value, DeviceAllocator<Value>>;

}  // namespace gpu_model
