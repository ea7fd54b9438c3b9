#include <algorithm>

#include "exec/cuda/block.h"

namespace doorstep {
namespace {

template <class Capacity>
constexpr KernelShape kShapes[DS_MAX_AGENTS] = {
    make_kernel_shape<World<1, Capacity>>(), make_kernel_shape<World<2, Capacity>>(),
    make_kernel_shape<World<3, Capacity>>(), make_kernel_shape<World<4, Capacity>>(),
    make_kernel_shape<World<5, Capacity>>(), make_kernel_shape<World<6, Capacity>>(),
    make_kernel_shape<World<7, Capacity>>(), make_kernel_shape<World<8, Capacity>>(),
};

}  // namespace

const KernelShape& find_kernel_shape(WorldKind kind) {
    DS_ASSERT(kind.num_agents >= 1 && kind.num_agents <= DS_MAX_AGENTS);
    return (kind.plays_levels ? kShapes<LevelCapacity> : kShapes<ReferenceCapacity>)[kind.num_agents - 1];
}

TileDivision divide_into_tiles(const KernelShape& shape, int64_t num_worlds, int64_t resident_blocks,
                               int64_t scratch_bytes) {
    const int64_t solvers = scratch_bytes / shape.bytes_of_solver;
    DS_ASSERT(num_worlds > 0 && resident_blocks > 0 && solvers > 0);
    int64_t tile = std::min<int64_t>((num_worlds + resident_blocks - 1) / resident_blocks, shape.tile_worlds);
    if (solvers < std::min<int64_t>(tile, shape.solvers)) tile = solvers;
    const int32_t tile_worlds = static_cast<int32_t>(tile);
    const int64_t tiles = (num_worlds + tile - 1) / tile, room = scratch_bytes / workspace_bytes(shape, tile_worlds);
    return {std::min({tiles, resident_blocks, room}), tile_worlds};
}

}  // namespace doorstep
