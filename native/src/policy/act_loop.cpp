// The loops, compiled once per instruction set: DS_LANES is their number type, DS_ACT and DS_PREPARE are their names.
#include "policy/few_rows.h"
#include "policy/prepare_loop.h"

#include "math/float_environment.h"

namespace doorstep {

int64_t DS_ACT(const Network& network, const ActCall& call, int64_t first, int64_t count, float* scratch) {
    const DefaultFloatEnvironment environment;
    return act_on_many_or_few_rows<DS_LANES>(network, call, first, count, scratch);
}

void DS_PREPARE(const PlayedRows& call, const int32_t* rows, int64_t count) {
    prepare_listed_rows<DS_LANES>(call, rows, count);
}

}  // namespace doorstep
