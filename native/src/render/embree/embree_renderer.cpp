// Embree, on the simulator's threads: each has a scene of its own and draws world after world.
#include <stdio.h>

#include <atomic>
#include <new>

#include "render/api/core.h"
#include "render/cameras/renderers.h"
#include "render/embree/embree_views.h"

namespace doorstep {
namespace {

class EmbreeRenderer final : public BatchRenderer {
public:
    static ds_status create(const CameraSetup& setup, BatchRenderer** renderer);
    ~EmbreeRenderer() override { delete[] scenes_; }
    ds_status draw(const Views& views, const ds_turn& turn) override;
    const char* device_name() const override { return name_; }

private:
    ObjectScene* scenes_ = nullptr;  // one per thread
    char name_[64] = {};
};

// What the threads are told, and the first trouble that one of them met.
struct Work {
    const Views& views;
    ObjectScene* scenes;
    std::atomic<int> error{RTC_ERROR_NONE};
};

void draw_worlds(void* context, int64_t first, int64_t count, int32_t worker) {
    auto& work = *static_cast<Work*>(context);
    for (int64_t world = first; world < first + count; ++world) {
        int expected = RTC_ERROR_NONE;
        work.error.compare_exchange_strong(expected, draw_world(work.views, world, work.scenes[worker]));
    }
}

void name_of_version(int32_t version, char (&name)[64]) {
    snprintf(name, sizeof name, "Embree %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

ds_status EmbreeRenderer::create(const CameraSetup& setup, BatchRenderer** renderer) {
    const EmbreeDevice* device;
    if (const ds_status status = get_embree_device(&device); status != DS_STATUS_OK) return status;
    auto* made = new (std::nothrow) EmbreeRenderer;
    const auto num_threads = static_cast<size_t>(setup.info.num_threads);
    if (made) made->scenes_ = new (std::nothrow) ObjectScene[num_threads];
    if (!made || !made->scenes_) {
        delete made;
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "use fewer threads", "no memory for the scenes of %zu threads",
                    num_threads);
    }
    for (size_t i = 0; i < num_threads; ++i) {
        if (const ds_status status = made->scenes_[i].create(kMaxObjects); status != DS_STATUS_OK) {
            delete made;
            return status;
        }
    }
    name_of_version(device->version, made->name_);
    *renderer = made;
    return DS_STATUS_OK;
}

ds_status EmbreeRenderer::draw(const Views& views, const ds_turn& turn) {
    Work work{views, scenes_};
    turn.run(turn.pool, views.num_worlds, draw_worlds, &work);
    return fail_embree(static_cast<RTCError>(work.error.load()), "draw the worlds");
}

}  // namespace

ds_status create_embree_renderer(const CameraSetup& setup, BatchRenderer** renderer) {
    return EmbreeRenderer::create(setup, renderer);
}

ds_status describe_embree_renderer(ds_renderer_info* info) {
    const EmbreeDevice* device;
    if (const ds_status status = get_embree_device(&device); status != DS_STATUS_OK) return status;
    char name[64];
    name_of_version(device->version, name);
    snprintf(info->description, sizeof info->description, "%s", name);
    return DS_STATUS_OK;
}

}  // namespace doorstep
