// The kernel that draws views: its name and launch configuration.
#pragma once

#include <stdint.h>

namespace doorstep {

constexpr const char* kDrawViewsName = "doorstep_draw_views";
constexpr int kViewThreads = 128;
constexpr int kViewBlocks = 8;   // blocks that fit a multiprocessor's registers
constexpr int kBlockTiles = 32;  // tiles that a block draws at a time

}  // namespace doorstep
