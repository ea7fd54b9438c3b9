// For simulators on the CPU: the simulator's threads copy worlds to memory that the device can access, and views back.
#include <string.h>

#include "render/api/core.h"
#include "render/vulkan/vulkan_parts.h"

namespace doorstep {
namespace {

constexpr int64_t kCopyBytes = 1 << 18;  // per item of the threads' work

struct Copy {
    char* to;
    const char* from;
    uint64_t bytes;
};

void copy_items(void* context, int64_t first, int64_t count, int32_t) {
    const Copy& copy = *static_cast<const Copy*>(context);
    const uint64_t begin = static_cast<uint64_t>(first) * kCopyBytes;
    const uint64_t end = begin + static_cast<uint64_t>(count) * kCopyBytes;
    memcpy(copy.to + begin, copy.from + begin, (end < copy.bytes ? end : copy.bytes) - begin);
}

void copy_with_threads(const ds_turn& turn, void* to, const void* from, uint64_t bytes) {
    Copy copy{static_cast<char*>(to), static_cast<const char*>(from), bytes};
    turn.run(turn.pool, static_cast<int64_t>((bytes + kCopyBytes - 1) / kCopyBytes), copy_items, &copy);
}

class HostRenderer final : public BatchRenderer {
public:
    ~HostRenderer() override {
        if (parts_ && !given_up_ && wait_for_parts(*parts_, drawn_)) delete parts_;
    }

    ds_status create(const CameraSetup& setup) {
        parts_ = new_parts();
        if (!parts_) return DS_STATUS_OUT_OF_MEMORY;
        if (const ds_status status = prepare_parts(setup, nullptr, false, parts_)) return status;
        if (const ds_status status = create_buffers(setup.views)) return status;
        return parts_->drawing.create(parts_->device.get(), setup.views, parts_->plan, parts_->shaders, parts_->buffers,
                                      false);
    }

    ds_status draw(const Views& views, const ds_turn& turn) override {
        if (const ds_status status = check_not_forked()) return status;
        if (given_up_) {
            return fail(DS_STATUS_RENDERER, "renderer", "create a new simulator, with another material or renderer",
                        "drawing on %s was abandoned before", parts_->device->name);
        }
        ViewBuffers& buffers = parts_->buffers;
        copy_with_threads(turn, buffers.worlds.host(), layout_of(views.fields).first, parts_->world_bytes);
        if (const ds_status status = parts_->drawing.submit(parts_->timeline.handle(), 0, drawn_ + 1)) return status;
        ++drawn_;
        if (const ds_status status = parts_->timeline.wait(drawn_)) {
            given_up_ = true;
            return status;
        }
        copy_output(turn, views.tensors.rgb, buffers.rgb);
        copy_output(turn, views.tensors.depth, buffers.depth);
        copy_output(turn, views.tensors.segmentation, buffers.segmentation);
        copy_output(turn, views.tensors.normals, buffers.normals);
        return DS_STATUS_OK;
    }

    const char* device_name() const override { return parts_->device->name; }

private:
    ds_status create_buffers(const Views& views) {
        VulkanDevice* device = parts_->device.get();
        ViewBuffers& buffers = parts_->buffers;
        const struct {
            Buffer& buffer;
            const void* tensor;
            uint64_t bytes;
        } outputs[] = {{buffers.rgb, views.tensors.rgb, kRgbBytes},
                       {buffers.depth, views.tensors.depth, kDepthBytes},
                       {buffers.segmentation, views.tensors.segmentation, kSegmentationBytes},
                       {buffers.normals, views.tensors.normals, kNormalsBytes}};
        for (const auto& [buffer, tensor, bytes] : outputs) {
            if (!tensor) continue;
            if (const ds_status status = buffer.create(device, parts_->num_pixels * bytes, HostAccess::kReads)) {
                return status;
            }
        }
        return buffers.worlds.create(device, parts_->world_bytes, HostAccess::kWrites);
    }

    static void copy_output(const ds_turn& turn, void* tensor, const Buffer& buffer) {
        if (tensor) copy_with_threads(turn, tensor, buffer.host(), buffer.bytes());
    }

    VulkanParts* parts_ = nullptr;
    uint64_t drawn_ = 0;  // number of drawings begun: the timeline's value when they are done
    bool given_up_ = false;
};

}  // namespace

ds_status create_host_renderer(const CameraSetup& setup, BatchRenderer** renderer) {
    return make_renderer<HostRenderer>(setup, renderer);
}

}  // namespace doorstep
