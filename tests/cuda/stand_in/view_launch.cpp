#include "view_launch.h"

#include <utility>

#include "driver.h"
#include "exec/cpu/float_environment.h"
#include "view_emulation.h"

namespace stand_in {
namespace {

using doorstep::FieldView;
using doorstep::ViewsCall;

// Collects the memory that the kernel accesses; reports the first problem.
class ViewAccesses {
public:
    ViewAccesses(const std::string& kernel, int device, Task* task) : kernel_(kernel), device_(device), task_(task) {}

    void add(const char* name, const void* address, int64_t bytes, bool writes) {
        if (!address || !bytes) return;
        Access access = access_to(kernel_ + ": " + name, reinterpret_cast<uint64_t>(address),
                                  static_cast<uint64_t>(bytes), writes, device_);
        code = access.allocation ? code : int{kIllegalAddress};
        if (access.allocation) task_->accesses.push_back(std::move(access));
    }
    void add(const char* name, const FieldView& field, int64_t worlds, int items, int components) {
        const int64_t last = (worlds - 1) * field.world_stride + (items - 1) * field.item_stride +
                             (components - 1) * field.component_stride;
        add(name, field.data, last + 4, false);
    }

    int code = kSuccess;

private:
    const std::string& kernel_;
    int device_;
    Task* task_;
};

void add_fields(const doorstep::WorldFields& fields, int64_t worlds, ViewAccesses& accesses) {
    accesses.add("body_positions", fields.body_positions, worlds, fields.num_bodies, 3);
    accesses.add("body_rotations", fields.body_rotations, worlds, fields.num_bodies, 4);
    accesses.add("body_sizes", fields.body_sizes, worlds, fields.num_bodies, 3);
    accesses.add("body_kinds", fields.body_kinds, worlds, fields.num_bodies, 1);
    accesses.add("static_positions", fields.static_positions, worlds, fields.num_statics, 3);
    accesses.add("static_sizes", fields.static_sizes, worlds, fields.num_statics, 3);
    accesses.add("static_kinds", fields.static_kinds, worlds, fields.num_statics, 1);
    accesses.add("button_positions", fields.button_positions, worlds, fields.num_buttons, 3);
    accesses.add("button_pressed", fields.button_pressed, worlds, fields.num_buttons, 1);
}

void add_tensors(const ViewsCall& call, ViewAccesses& accesses) {
    const int64_t pixels = call.views.num_worlds * call.views.fields.num_agents * call.grid.width * call.grid.height;
    accesses.add("rgb", call.views.tensors.rgb, 4 * pixels, true);
    accesses.add("depth", call.views.tensors.depth, 4 * pixels, true);
    accesses.add("segmentation", call.views.tensors.segmentation, 2 * pixels, true);
    accesses.add("normals", call.views.tensors.normals, 12 * pixels, true);
}

}  // namespace

int make_view_launch(const std::string& kernel, int device, uint32_t grid, uint32_t threads, uint32_t shared_bytes,
                     const void* parameter, Task* task) {
    const ViewsCall call = *static_cast<const ViewsCall*>(parameter);
    const uint32_t needed = doorstep::view_block_bytes(call.views.fields.num_agents);
    if (threads != doorstep::kViewThreads || shared_bytes < needed)
        return refuse(kInvalidValue, text("%s: %u threads and %u bytes of shared memory, it needs %d and %u",
                                          kernel.c_str(), threads, shared_bytes, doorstep::kViewThreads, needed));
    ViewAccesses accesses(kernel, device, task);
    add_fields(call.views.fields, call.views.num_worlds, accesses);
    add_tensors(call, accesses);
    accesses.add("mesh", call.mesh, sizeof *call.mesh, false);
    accesses.add("grid.right", call.grid.right, 4 * call.grid.width, false);
    accesses.add("grid.up", call.grid.up, 4 * call.grid.height, false);
    static int launches = 0;  // the result must not depend on the order of the threads
    const auto order = static_cast<doorstep::ThreadOrder>(launches++ % 3);
    task->what = kernel;
    task->run = [=] {
        const doorstep::DefaultFloatEnvironment environment;  // independent of the host's
        doorstep::emulate_draw_views(call, grid, order);
    };
    return accesses.code;
}

}  // namespace stand_in
