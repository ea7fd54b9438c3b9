#include "render/embree/picture.h"

#include "render/api/core.h"

namespace doorstep {

ds_status draw_picture(const ds_picture_object*, uint64_t, const ds_picture_config&, uint8_t*) {
    return fail(DS_STATUS_RENDERER, "", "choose another renderer", "this build draws no pictures");
}

}  // namespace doorstep
