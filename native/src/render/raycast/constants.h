// What the ray caster looks up and never changes: where pixels are, and the agents' mesh. One block of memory, made on
// the host and copied to where the views are drawn.
#pragma once

#include <stdint.h>

#include "render/raycast/world_views.h"

namespace doorstep {

class RaycastConstants {
public:
    explicit RaycastConstants(const CameraRig& rig) : rig_(rig) {}

    int64_t bytes() const { return static_cast<int64_t>(sizeof(MeshTable)) + 4 * (columns() + rows()); }
    // memory: of bytes(), aligned to 32.
    void write(void* memory) const;
    // The call that draws views with the constants at an address of the device.
    ViewsCall call(const Views& views, const void* memory) const;

private:
    // Whole tiles, so that lanes beyond the last pixel read something.
    static int64_t padded(int32_t pixels) { return (pixels + kTileSide - 1) / kTileSide * kTileSide; }
    int64_t columns() const { return padded(rig_.width); }
    int64_t rows() const { return padded(rig_.height); }

    CameraRig rig_;
};

}  // namespace doorstep
