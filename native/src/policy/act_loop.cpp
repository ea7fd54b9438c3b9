// The loop, compiled once per instruction set: DS_LANES is its number type, DS_ACT the function's name.
#include "policy/act_loop.h"

#include "math/float_environment.h"

namespace doorstep {

int64_t DS_ACT(const Network& network, const ActCall& call, int64_t first, int64_t count, float* scratch) {
    const DefaultFloatEnvironment environment;
    return act_on_rows<DS_LANES>(network, call, first, count, scratch);
}

}  // namespace doorstep
