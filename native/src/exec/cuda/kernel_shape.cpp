#include "exec/cuda/block.h"

namespace doorstep {
namespace {

constexpr KernelShape kShapes[DS_MAX_AGENTS] = {
    make_kernel_shape<World<1>>(), make_kernel_shape<World<2>>(), make_kernel_shape<World<3>>(),
    make_kernel_shape<World<4>>(), make_kernel_shape<World<5>>(), make_kernel_shape<World<6>>(),
    make_kernel_shape<World<7>>(), make_kernel_shape<World<8>>(),
};

}  // namespace

const KernelShape& find_kernel_shape(int num_agents) { return kShapes[num_agents - 1]; }

}  // namespace doorstep
