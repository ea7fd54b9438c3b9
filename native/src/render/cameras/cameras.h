// The cameras of one simulator: their tensors, and the renderer that draws into them. They are attached to the
// simulator and end with it; their handle may outlive it.
#pragma once

#include <atomic>

#include "doorstep/rooms.h"
#include "doorstep_render.h"
#include "render/cameras/renderers.h"
#include "runtime/handles.h"

namespace doorstep {

class Cameras : public RefCounted {
public:
    // Allocates memory and creates the renderer. The configuration is valid but not checked against the simulator.
    static ds_status create(ds_simulator simulator, const ds_cameras_config& config, Ref<Cameras>* cameras);
    ~Cameras();

    // Draws once, and then whenever the worlds have changed, until the simulator ends.
    ds_status attach(ds_simulator simulator);

    bool has_tensor(int32_t tensor) const { return tensors_[tensor].data != nullptr; }
    const ds_tensor_info& tensor(int32_t tensor) const { return tensors_[tensor]; }
    ds_memory memory() const { return memory_.load(); }  // 0 or stale once the simulator has ended
    const ds_cameras_info& info() const { return info_; }

private:
    Cameras();
    ds_status take_memory(ds_simulator simulator, const ds_simulator_info& info, const ds_cameras_config& config);
    void end();

    Views views_{};
    std::atomic<ds_memory> memory_{0};
    ds_tensor_info tensors_[DS_CAMERA_TENSOR_COUNT]{};
    ds_cameras_info info_{};
    BatchRenderer* renderer_ = nullptr;
};

// Their handles. Never destroyed: threads may still use it while the process exits.
inline constinit HandleRegistry<Cameras> cameras_registry{HandleKind::CAMERAS};

// Sets of cameras alive in this process.
extern std::atomic<int64_t> live_cameras;

}  // namespace doorstep
