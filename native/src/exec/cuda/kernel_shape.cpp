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

}  // namespace doorstep
