// Returns the instance for a number of agents and a capacity. Baseline code: it runs before the processor has been checked.
#include "sim/world_models.h"

#include "math/base.h"
#include "math/float_environment.h"

namespace doorstep {
namespace {

template <int Agents, class Capacity>
const WorldModel& prepare() {
    const DefaultFloatEnvironment environment;
    prepare_world_model<Agents, Capacity>();
    return world_model<Agents, Capacity>();
}

template <int Agents, class Capacity>
const WorldModel& prepared() {
    static const WorldModel& once = prepare<Agents, Capacity>();
    return once;
}

using Picker = const WorldModel& (*)();
template <class Capacity>
constexpr Picker kPickers[DS_MAX_AGENTS] = {
    prepared<1, Capacity>, prepared<2, Capacity>, prepared<3, Capacity>, prepared<4, Capacity>,
    prepared<5, Capacity>, prepared<6, Capacity>, prepared<7, Capacity>, prepared<8, Capacity>};

}  // namespace

const WorldModel& find_world_model(WorldKind kind) {
    DS_ASSERT(kind.num_agents >= 1 && kind.num_agents <= DS_MAX_AGENTS);
    return (kind.plays_levels ? kPickers<LevelCapacity> : kPickers<ReferenceCapacity>)[kind.num_agents - 1]();
}

const char* const kStageNames[kNumStages] = {
#define DS_STAGE_NAME(name, items, parameters, sentence) #name,
    DS_STAGE_TABLE(DS_STAGE_NAME)
#undef DS_STAGE_NAME
};

}  // namespace doorstep
