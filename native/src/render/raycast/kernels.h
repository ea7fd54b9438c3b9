// The kernel that draws views: what it is called and how it is launched.
#pragma once

#include <stdint.h>

namespace doorstep {

constexpr const char* kDrawViewsName = "doorstep_draw_views";
constexpr int kViewThreads = 128;
constexpr int kViewBlocks = 8;   // that a multiprocessor has registers for
constexpr int kBlockTiles = 32;  // that a block works on at a time

}  // namespace doorstep
