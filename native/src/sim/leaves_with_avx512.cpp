// The leaves of all kinds of worlds, compiled for AVX-512: sixteen lanes.
#include "sim/leaves.h"

namespace doorstep {

#define DS_DEFINE_LEAVES(number, ...)                                          \
    template <>                                                                \
    const Leaves<CompiledWorld<number>::W>& leaves_with_avx512<number>() {     \
        return LeavesWith<CompiledWorld<number>::W, WidestFloat>::kTable;      \
    }
DS_WORLD_KIND_TABLE(DS_DEFINE_LEAVES)
#undef DS_DEFINE_LEAVES

}  // namespace doorstep
