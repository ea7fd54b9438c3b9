#include "render/api/core.h"
#include "render/cameras/renderers.h"

namespace doorstep {
namespace {

ds_status fail_absent() {
    return fail(DS_STATUS_RENDERER, "renderer", "choose another renderer", "this build has no ray caster");
}

}  // namespace

ds_status create_raycast_renderer(const CameraSetup&, BatchRenderer**) { return fail_absent(); }

ds_status describe_raycast_renderer(ds_renderer_info*) { return fail_absent(); }

}  // namespace doorstep
