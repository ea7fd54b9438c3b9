#include <new>

#include "render/api/core.h"
#include "render/raycast/constants.h"
#include "render/raycast/cpu_views.h"
#include "render/raycast/raycasters.h"

namespace doorstep {
namespace {

class CpuRaycaster final : public BatchRenderer {
public:
    static ds_status create(const CameraSetup& setup, BatchRenderer** renderer);
    ~CpuRaycaster() override {
        delete[] memory_;
        ::operator delete(constants_memory_, kAlignment);
    }

    ds_status draw(const Views& views, const ds_turn& turn) override;
    const char* device_name() const override { return "CPU"; }

private:
    static constexpr std::align_val_t kAlignment{64};

    explicit CpuRaycaster(const CameraRig& rig) : constants_(rig) {}
    bool take_memory(int64_t num_threads);

    RaycastConstants constants_;
    void* constants_memory_ = nullptr;
    DrawingMemory* memory_ = nullptr;  // one per thread
};

bool CpuRaycaster::take_memory(int64_t num_threads) {
    constants_memory_ = ::operator new(static_cast<size_t>(constants_.bytes()), kAlignment, std::nothrow);
    if (constants_memory_) constants_.write(constants_memory_);
    memory_ = new (std::nothrow) DrawingMemory[static_cast<size_t>(num_threads)];
    return constants_memory_ && memory_;
}

ds_status CpuRaycaster::create(const CameraSetup& setup, BatchRenderer** renderer) {
    CpuRaycaster* made = new (std::nothrow) CpuRaycaster(setup.views.rig);
    if (made && made->take_memory(setup.info.num_threads)) {
        *renderer = made;
        return DS_STATUS_OK;
    }
    delete made;
    return fail(DS_STATUS_OUT_OF_MEMORY, "cameras", "close other simulators, or raise the memory limit",
                "no memory is left for %lld threads to draw with", static_cast<long long>(setup.info.num_threads));
}

ds_status CpuRaycaster::draw(const Views& views, const ds_turn& turn) {
    struct Drawing {
        ViewsCall call;
        DrawingMemory* memory;
    } drawing = {constants_.call(views, constants_memory_), memory_};
    const ds_task task = [](void* context, int64_t first, int64_t count, int32_t worker) {
        const Drawing& given = *static_cast<const Drawing*>(context);
        draw_views_on_cpu(given.call, first, count, given.memory[worker]);
    };
    turn.run(turn.pool, views.num_worlds, task, &drawing);
    return DS_STATUS_OK;
}

}  // namespace

ds_status create_cpu_raycaster(const CameraSetup& setup, BatchRenderer** renderer) {
    return CpuRaycaster::create(setup, renderer);
}

}  // namespace doorstep
