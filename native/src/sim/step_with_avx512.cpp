// The step of world_model.cpp, compiled for AVX-512: agents that slide, lidar lines and statics take sixteen lanes, the
// rest eight.
#include "sim/step_worlds.h"

namespace doorstep {

template <>
uint32_t step_with_avx512<DS_AGENTS, DS_CAPACITY>(const Simulation& simulation, int64_t first, int64_t count,
                                                  uint64_t* ticks) {
    return step_worlds<World<DS_AGENTS, DS_CAPACITY>, WidestFloat>(simulation, first, count, ticks);
}

}  // namespace doorstep
