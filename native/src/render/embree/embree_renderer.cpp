// Draws with Embree on the simulator's threads: each has its own scene and draws one world after the other.
#include <stdio.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "render/api/core.h"
#include "render/cameras/renderers.h"
#include "render/embree/object_scene.h"
#include "render/embree/memory_margin.h"

namespace doorstep {
namespace {

// A thread's scene and drawing memory.
struct Worker {
    ObjectScene scene;
    bool has_heap = false;  // it has drawn before
};

class EmbreeRenderer final : public BatchRenderer {
public:
    static ds_status create(const CameraSetup& setup, BatchRenderer** renderer);
    ~EmbreeRenderer() override { delete[] workers_; }
    ds_status draw(const Views& views, const ds_turn& turn) override;
    const char* device_name() const override { return name_; }

private:
    ds_status create_scenes(int64_t num_threads);
    ds_status take_margin(int64_t num_worlds, int64_t num_threads, MemoryMargin& margin) const;

    Worker* workers_ = nullptr;  // one per thread
    char name_[64] = {};
};

// The threads' shared job, and the first error of any of them.
struct Work {
    const Views& views;
    Worker* workers;
    std::atomic<int> error{RTC_ERROR_NONE};
};

void draw_worlds(void* context, int64_t first, int64_t count, int32_t index) {
    auto& work = *static_cast<Work*>(context);
    Worker& worker = work.workers[index];
    if (!worker.has_heap) make_thread_heap();
    worker.has_heap = true;
    for (int64_t world = first; world < first + count; ++world) {
        int expected = RTC_ERROR_NONE;
        work.error.compare_exchange_strong(expected, draw_world(work.views, world, worker.scene));
    }
}

void name_of_version(int32_t version, char (&name)[64]) {
    snprintf(name, sizeof name, "Embree %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

ds_status EmbreeRenderer::create(const CameraSetup& setup, BatchRenderer** renderer) {
    const EmbreeDevice* device;
    if (const ds_status status = get_embree_device(&device); status != DS_STATUS_OK) return status;
    auto* made = new (std::nothrow) EmbreeRenderer;
    const int64_t num_threads = setup.info.num_threads;
    if (made) made->workers_ = new (std::nothrow) Worker[static_cast<size_t>(num_threads)];
    if (!made || !made->workers_) {
        delete made;
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "use fewer threads", "no memory for the scenes of %ld threads",
                    num_threads);
    }
    if (const ds_status status = made->create_scenes(num_threads)) {
        delete made;
        return status;
    }
    name_of_version(device->version, made->name_);
    *renderer = made;
    return DS_STATUS_OK;
}

ds_status EmbreeRenderer::create_scenes(int64_t num_threads) {
    MemoryMargin margin;
    if (const ds_status status = margin.take("make its scenes", num_threads * kSceneBytes)) return status;
    for (int64_t i = 0; i < num_threads; ++i) {
        if (const ds_status status = workers_[i].scene.create(kMaxObjects)) return status;
    }
    return DS_STATUS_OK;
}

// Any thread may draw any world. The calling thread is the first, and has a heap already.
ds_status EmbreeRenderer::take_margin(int64_t num_worlds, int64_t num_threads, MemoryMargin& margin) const {
    const int64_t most_drawing = std::min(num_worlds, num_threads);
    const int64_t new_threads = std::count_if(workers_ + 1, workers_ + num_threads,
                                              [](const Worker& worker) { return !worker.has_heap; });
    return margin.take("draw the worlds", most_drawing * kCommitBytes, std::min(most_drawing - 1, new_threads));
}

ds_status EmbreeRenderer::draw(const Views& views, const ds_turn& turn) {
    MemoryMargin margin;
    if (const ds_status status = take_margin(views.num_worlds, turn.num_workers, margin)) return status;
    Work work{views, workers_};
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
