// The kernels that draw views, as the host launches them.
#pragma once

#include "render/raycast/block_views.h"

namespace doorstep {

struct ViewKernel {
    const char* name;
    uint32_t block_bytes;  // of shared memory
};

constexpr const char* kDrawViewsName = "doorstep_draw_views";
constexpr const char* kDrawLevelViewsName = "doorstep_draw_level_views";

// The kernel for worlds of these capacities.
inline ViewKernel find_view_kernel(const WorldFields& fields) {
    return with_limits(fields, [&](auto limits) {
        using Limits = decltype(limits);
        constexpr bool kFewObjects = Limits::kObjects == ReferenceScene::kObjects;
        const int bytes = view_block_bytes<Limits>(fields.num_agents, block_tiles<Limits>(fields.num_agents));
        return ViewKernel{kFewObjects ? kDrawViewsName : kDrawLevelViewsName, static_cast<uint32_t>(bytes)};
    });
}

}  // namespace doorstep
