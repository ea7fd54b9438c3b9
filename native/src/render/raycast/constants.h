// The ray caster's constant tables: pixel positions and the agents' mesh. One block of memory, filled on the host and
// copied to the device that draws.
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
    // The call that draws views with the constants at a device address.
    ViewsCall call(const Views& views, const void* memory) const;

private:
    // Whole tiles, so that lanes beyond the last pixel read valid memory.
    static int64_t padded(int32_t pixels) { return (pixels + kTileSide - 1) / kTileSide * kTileSide; }
    int64_t columns() const { return padded(rig_.width); }
    int64_t rows() const { return padded(rig_.height); }

    CameraRig rig_;
};

}  // namespace doorstep
