#include "view_launch.h"

#include <utility>

#include "math/float_environment.h"
#include "view_emulation.h"

namespace stand_in {
namespace {

using doorstep::FieldView;
using doorstep::ViewsCall;

void add_field(Accesses& accesses, const char* name, const FieldView& field, int64_t worlds, int items,
               int components) {
    const int64_t last = (worlds - 1) * field.world_stride + (items - 1) * field.item_stride +
                         (components - 1) * field.component_stride;
    accesses.add_given(name, field.data, last + 4, false);
}

void add_fields(const doorstep::WorldFields& fields, int64_t worlds, Accesses& accesses) {
    add_field(accesses, "body_positions", fields.body_positions, worlds, fields.num_bodies, 3);
    add_field(accesses, "body_rotations", fields.body_rotations, worlds, fields.num_bodies, 4);
    add_field(accesses, "body_sizes", fields.body_sizes, worlds, fields.num_bodies, 3);
    add_field(accesses, "body_kinds", fields.body_kinds, worlds, fields.num_bodies, 1);
    add_field(accesses, "static_positions", fields.static_positions, worlds, fields.num_statics, 3);
    add_field(accesses, "static_sizes", fields.static_sizes, worlds, fields.num_statics, 3);
    add_field(accesses, "static_kinds", fields.static_kinds, worlds, fields.num_statics, 1);
    add_field(accesses, "button_positions", fields.button_positions, worlds, fields.num_buttons, 3);
    add_field(accesses, "button_pressed", fields.button_pressed, worlds, fields.num_buttons, 1);
}

void add_tensors(const ViewsCall& call, Accesses& accesses) {
    const int64_t pixels = call.views.num_worlds * call.views.fields.num_agents * call.grid.width * call.grid.height;
    accesses.add_given("rgb", call.views.tensors.rgb, 4 * pixels, true);
    accesses.add_given("depth", call.views.tensors.depth, 4 * pixels, true);
    accesses.add_given("segmentation", call.views.tensors.segmentation, 2 * pixels, true);
    accesses.add_given("normals", call.views.tensors.normals, 12 * pixels, true);
}

}  // namespace

int make_view_launch(const Launch& launch, const void* parameter, Task* task) {
    const ViewsCall call = *static_cast<const ViewsCall*>(parameter);
    const doorstep::ViewKernel kernel = doorstep::find_view_kernel(call.views.fields);
    if (launch.kernel != kernel.name) return refuse(kInvalidValue, launch.kernel + ": the worlds need " + kernel.name);
    if (const int code = check_shape(launch, doorstep::kViewThreads, kernel.block_bytes, sizeof call)) return code;
    Accesses accesses(launch, task);
    add_fields(call.views.fields, call.views.num_worlds, accesses);
    add_tensors(call, accesses);
    accesses.add_given("mesh", call.mesh, sizeof *call.mesh, false);
    accesses.add_given("grid.right", call.grid.right, 4 * call.grid.width, false);
    accesses.add_given("grid.up", call.grid.up, 4 * call.grid.height, false);
    task->what = launch.kernel;
    task->run = [=, order = next_thread_order()] {
        const doorstep::DefaultFloatEnvironment environment;  // independent of the host's
        doorstep::emulate_draw_views(call, launch.grid, order);
    };
    return accesses.code;
}

}  // namespace stand_in
