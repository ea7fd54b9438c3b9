#include "policy/layer.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "policy/network.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

constexpr int kArrays = 4;

struct Array {
    const void** address;
    int64_t count;
};

// The arrays of a layer and their sizes; those that a kind does not have are null.
void list_arrays(ds_layer_config& config, Array (&arrays)[kArrays]) {
    const ArrayCounts counts = array_counts(config);
    arrays[0] = {&config.weights, counts.weights};
    arrays[1] = {&config.biases, counts.biases};
    arrays[2] = {&config.hidden_weights, counts.hidden_weights};
    arrays[3] = {&config.hidden_biases, counts.hidden_biases};
}

// Memory for copies of arrays on a layer's device.
struct Copier {
    char* memory = nullptr;
    Ref<Stream> stream;  // null on the CPU
    Ref<DeviceMemory> device;

    ~Copier() {
        if (!stream) free(memory);
    }

    ds_status begin(const ds_layer_config& config, int64_t bytes, uint64_t writers) {
        DS_ASSERT(bytes > 0 && !memory);
        if (config.device_kind == DS_DEVICE_CPU) {
            memory = static_cast<char*>(malloc(static_cast<size_t>(bytes)));
            return memory ? DS_STATUS_OK : fail_no_memory();
        }
        const Ref<Context> context = Context::of_device(config.device_index);
        if (!context) return last_status();
        const Ref<Stream> earlier = Stream::borrow(context, writers, {}, "stream");
        if (!earlier) return last_status();
        stream = Stream::create(context);
        if (!stream) return last_status();
        if (const ds_status status = stream->follow(*earlier)) return status;
        device = DeviceMemory::create_on(stream, static_cast<uint64_t>(bytes));
        if (!device) return last_status();
        memory = reinterpret_cast<char*>(device->address());
        return DS_STATUS_OK;
    }

    ds_status copy(void* to, const void* from, int64_t bytes) const {
        if (stream) {
            return stream->copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from),
                                static_cast<uint64_t>(bytes));
        }
        memcpy(to, from, static_cast<size_t>(bytes));
        return DS_STATUS_OK;
    }

    ds_status end() const { return stream ? stream->synchronize() : DS_STATUS_OK; }

    ForeignOwner give_owner() {
        void* const given = std::exchange(memory, nullptr);
        DS_ASSERT(given);
        if (stream) {
            return {device.leak(), [](void* owner) { Ref<DeviceMemory>::adopt(static_cast<DeviceMemory*>(owner)); }};
        }
        return {given, free};
    }
};

}  // namespace

Layer::Layer(const ds_layer_config& config) : config_(config) {
    config_.owner = nullptr;
    config_.release_owner = nullptr;
}

Layer::~Layer() {
    if (owner_.release) owner_.release(owner_.owner);
}

Ref<Layer> Layer::create(const ds_layer_config& config) {
    Layer* const made = new (std::nothrow) Layer(config);
    if (!made) fail_no_memory();
    return Ref<Layer>::adopt(made);
}

Ref<Layer> Layer::copy(uint64_t stream) {
    if (config_.kind == DS_LAYER_FUNCTION) return Ref<Layer>::share(this);
    const int64_t element_bytes = config_.weight_type == DS_WEIGHT_BFLOAT16 ? 2 : 4;
    ds_layer_config config = config_;
    Array arrays[kArrays];
    list_arrays(config, arrays);
    int64_t bytes = 0;
    for (const Array& array : arrays)
        if (*array.address) bytes += array.count * element_bytes;
    Copier copier;
    if (copier.begin(config, std::max<int64_t>(bytes, 1), stream)) return {};
    char* memory = copier.memory;
    for (const Array& array : arrays) {
        if (!*array.address) continue;
        if (copier.copy(memory, *array.address, array.count * element_bytes)) return {};
        *array.address = memory;
        memory += array.count * element_bytes;
    }
    DS_ASSERT(memory == copier.memory + bytes);
    const Ref<Layer> made = copier.end() ? Ref<Layer>() : create(config);
    if (made) made->take_over(copier.give_owner());
    return made;
}

}  // namespace doorstep
