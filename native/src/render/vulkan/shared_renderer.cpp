// For simulators on a GPU: CUDA exports memory that Vulkan imports. On the simulator's stream worlds are copied into it
// and views out of it; a shared timeline semaphore orders stream and queue. The host waits for nothing.
//
// At the end the streams used may no longer exist, or be captured: only the timeline shows that their work is done.
#include <unistd.h>

#include "render/api/core.h"
#include "render/vulkan/vulkan_renderer.h"

namespace doorstep {
namespace {

template <class T>
uint64_t address_of(T* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}

// A handle of the simulators' library.
class Resource {
public:
    Resource() = default;
    Resource(const Resource&) = delete;
    Resource& operator=(const Resource&) = delete;
    ~Resource() { release(); }
    void release() {
        if (handle_) core().resource_release(handle_);
        handle_ = 0;
    }
    void abandon() { handle_ = 0; }
    ds_resource handle() const { return handle_; }
    ds_resource* out() {
        release();
        return &handle_;
    }

private:
    ds_resource handle_ = 0;
};

// CUDA's side of a buffer.
struct SharedMemory {
    Resource memory;
    uint64_t address = 0;

    ds_status create(VulkanDevice* device, ds_resource stream, uint64_t bytes, Buffer* buffer) {
        if (const ds_status status = core().exported_memory_create(stream, bytes, memory.out())) return status;
        ds_resource_info info{};
        info.struct_size = sizeof info;
        if (const ds_status status = core().resource_get_info(memory.handle(), &info)) return status;
        address = info.raw;
        int32_t fd = -1;
        if (const ds_status status = core().exported_memory_export(memory.handle(), &fd)) return status;
        return buffer->import(device, bytes, fd, info.bytes);
    }
    // Leaks the memory if Vulkan may still use it.
    void end(bool is_unused) {
        if (!is_unused) memory.abandon();
        memory.release();
    }
};

class SharedRenderer final : public BatchRenderer {
public:
    ~SharedRenderer() override;
    ds_status create(const CameraSetup& setup);
    ds_status draw(const Views& views, const ds_turn& turn) override;
    const char* device_name() const override { return parts_->device->name; }

private:
    ds_status share_timeline();
    ds_status share_buffers(const Views& views);
    ds_status follow_stream(uint64_t stream);
    ds_status begin_drawing(const Views& views);
    ds_status copy_outputs(const ViewTensors& tensors);

    VulkanParts* parts_ = nullptr;
    Resource context_, own_stream_, stream_, semaphore_;
    SharedMemory worlds_, outputs_[DS_CAMERA_TENSOR_COUNT];
    uint64_t stream_value_ = 0;  // the CUstream
    uint64_t value_ = 0;     // the timeline's latest value that work was begun to signal
    uint64_t finished_ = 0;  // the timeline's value when all begun work is done
};

// CUDA's side ends before Vulkan's. The semaphore itself waits for the work that uses it.
SharedRenderer::~SharedRenderer() {
    if (!parts_) return;
    semaphore_.release();
    const bool ended = wait_for_parts(*parts_, finished_);
    worlds_.end(ended);
    for (SharedMemory& output : outputs_) output.end(ended);
    if (ended) delete parts_;
}

ds_status SharedRenderer::create(const CameraSetup& setup) {
    parts_ = new_parts();
    if (!parts_) return DS_STATUS_OUT_OF_MEMORY;
    ds_cuda_device_info device{};
    device.struct_size = sizeof device;
    if (const ds_status status = core().cuda_get_device(setup.info.device_index, &device)) return status;
    if (const ds_status status = prepare_parts(setup, device.uuid, true, parts_)) return status;
    if (!parts_->device->shares_with_cuda) {
        return fail(DS_STATUS_RENDERER, "renderer", "update the NVIDIA driver, or use renderer=\"raycast\"",
                    "%s lacks VK_KHR_external_memory_fd or VK_KHR_external_semaphore_fd and shares no memory with CUDA",
                    parts_->device->name);
    }
    if (const ds_status status = core().context_create(setup.info.device_index, context_.out())) return status;
    if (const ds_status status = core().stream_create(context_.handle(), own_stream_.out())) return status;
    if (const ds_status status = share_timeline()) return status;
    if (const ds_status status = share_buffers(setup.views)) return status;
    return parts_->drawing.create(parts_->device.get(), setup.views, parts_->plan, parts_->shaders, parts_->buffers,
                                  true);
}

ds_status SharedRenderer::share_timeline() {
    int fd = -1;
    if (const ds_status status = parts_->timeline.export_fd(&fd)) return status;
    const ds_status status = core().semaphore_import(context_.handle(), fd, 1, semaphore_.out());
    if (status) close(fd);
    return status;
}

ds_status SharedRenderer::share_buffers(const Views& views) {
    ViewBuffers& buffers = parts_->buffers;
    const auto share = [&](SharedMemory& shared, uint64_t bytes, Buffer& buffer) {
        return shared.create(parts_->device.get(), own_stream_.handle(), bytes, &buffer);
    };
    if (const ds_status status = share(worlds_, parts_->world_bytes, buffers.worlds)) return status;
    for (int tensor = 0; tensor < DS_CAMERA_TENSOR_COUNT; ++tensor) {
        if (!views.tensors.address(tensor)) continue;
        const uint64_t bytes = parts_->num_pixels * kPixelBytes[tensor];
        if (const ds_status status = share(outputs_[tensor], bytes, buffers.outputs[tensor])) return status;
    }
    return DS_STATUS_OK;
}

// The simulator orders its streams when it changes them.
ds_status SharedRenderer::follow_stream(uint64_t stream) {
    if (stream_.handle() && stream == stream_value_) return DS_STATUS_OK;
    stream_value_ = stream;
    return core().stream_borrow(context_.handle(), stream, nullptr, nullptr, stream_.out());
}

ds_status SharedRenderer::draw(const Views& views, const ds_turn& turn) {
    if (const ds_status status = check_not_forked()) return status;
    if (const ds_status status = follow_stream(turn.stream)) return status;
    int32_t recorded = 0;
    if (const ds_status status = core().stream_is_capturing(stream_.handle(), &recorded)) return status;
    if (recorded) {
        return fail(DS_STATUS_RENDERER, "renderer", "use renderer=\"raycast\"",
                    "Vulkan's drawing cannot be captured into a CUDA graph");
    }
    const ds_status status = begin_drawing(views);
    if (status) {
        core().stream_synchronize(stream_.handle());  // no timeline value marks the end of that work
    } else {
        finished_ = value_;
    }
    return status;
}

// Signals the timeline when the worlds are copied, when Vulkan has drawn, and when the views are copied.
ds_status SharedRenderer::begin_drawing(const Views& views) {
    const uint64_t worlds = address_of(layout_of(views.fields).first);
    if (const ds_status status = core().copy(stream_.handle(), worlds_.address, worlds, parts_->world_bytes)) {
        return status;
    }
    const uint64_t ready = ++value_, drawn = ready + 1;
    if (const ds_status status = core().semaphore_signal(semaphore_.handle(), stream_.handle(), ready)) return status;
    if (const ds_status status = parts_->drawing.submit(parts_->timeline.handle(), ready, drawn)) return status;
    finished_ = value_ = drawn;
    if (const ds_status status = core().semaphore_wait(semaphore_.handle(), stream_.handle(), drawn)) return status;
    if (const ds_status status = copy_outputs(views.tensors)) return status;
    return core().semaphore_signal(semaphore_.handle(), stream_.handle(), ++value_);
}

ds_status SharedRenderer::copy_outputs(const ViewTensors& tensors) {
    for (int tensor = 0; tensor < DS_CAMERA_TENSOR_COUNT; ++tensor) {
        const uint64_t to = address_of(tensors.address(tensor)), bytes = parts_->num_pixels * kPixelBytes[tensor];
        if (!to) continue;
        if (const ds_status status = core().copy(stream_.handle(), to, outputs_[tensor].address, bytes)) return status;
    }
    return DS_STATUS_OK;
}

}  // namespace

ds_status create_shared_renderer(const CameraSetup& setup, BatchRenderer** renderer) {
    return make_renderer<SharedRenderer>(setup, renderer);
}

}  // namespace doorstep
