#include <algorithm>

#include "exec/cuda/block.h"

namespace doorstep {
namespace {

constexpr KernelShape kShapes[] = {
#define DS_KERNEL_SHAPE(number, ...) make_kernel_shape<CompiledWorld<number>::W>(),
    DS_WORLD_KIND_TABLE(DS_KERNEL_SHAPE)
#undef DS_KERNEL_SHAPE
};

}  // namespace

const KernelShape& find_kernel_shape(WorldKind kind) {
    DS_ASSERT(number_of(kind) >= 1);
    return kShapes[number_of(kind) - 1];
}

TileDivision divide_into_tiles(const KernelShape& shape, int64_t num_worlds, int64_t resident_blocks,
                               int64_t scratch_bytes) {
    const int64_t solvers = scratch_bytes / shape.bytes_of_solver;
    DS_ASSERT(num_worlds > 0 && resident_blocks > 0 && solvers > 0);
    int64_t tile = std::min<int64_t>((num_worlds + resident_blocks - 1) / resident_blocks, shape.tile_worlds);
    if (solvers < std::min<int64_t>(tile, kSolvers)) tile = solvers;
    const int32_t tile_worlds = static_cast<int32_t>(tile);
    const int64_t tiles = (num_worlds + tile - 1) / tile, room = scratch_bytes / workspace_bytes(shape, tile_worlds);
    return {std::min({tiles, resident_blocks, room}), tile_worlds};
}

}  // namespace doorstep
