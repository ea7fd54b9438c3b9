// Returns the instance for a number of agents. Baseline code: it runs before the processor has been checked.
#include "sim/world_models.h"

#include "math/float_environment.h"

namespace doorstep {
namespace {

template <int Agents>
const WorldModel& prepare() {
    const DefaultFloatEnvironment environment;
    prepare_world_model<Agents>();
    return world_model<Agents>();
}

template <int Agents>
const WorldModel& prepared() {
    static const WorldModel& once = prepare<Agents>();
    return once;
}

using Picker = const WorldModel& (*)();
constexpr Picker kPickers[DS_MAX_AGENTS] = {prepared<1>, prepared<2>, prepared<3>, prepared<4>,
                                            prepared<5>, prepared<6>, prepared<7>, prepared<8>};

}  // namespace

const WorldModel& find_world_model(int num_agents) { return kPickers[num_agents - 1](); }

const char* const kStageNames[kNumStages] = {
#define DS_STAGE_NAME(name, items, parameters, sentence) #name,
    DS_STAGE_TABLE(DS_STAGE_NAME)
#undef DS_STAGE_NAME
};

}  // namespace doorstep
