// Returns the instance for a number of agents and a capacity. Baseline code: it runs before the processor has been
// checked.
#include "sim/world_models.h"

#include "math/float_environment.h"

namespace doorstep {
namespace {

void fill_flight_table() {
    static const bool filled = [] {
        const DefaultFloatEnvironment environment;
        make_flight_table(flight_table);
        return true;
    }();
    DS_ASSERT(filled);
}

using Picker = const WorldModel& (*)(bool avx512);
template <class Capacity>
constexpr Picker kPickers[DS_MAX_AGENTS] = {
    world_model<1, Capacity>, world_model<2, Capacity>, world_model<3, Capacity>, world_model<4, Capacity>,
    world_model<5, Capacity>, world_model<6, Capacity>, world_model<7, Capacity>, world_model<8, Capacity>};

}  // namespace

FlightTable flight_table;

const WorldModel& find_world_model(WorldKind kind, bool avx512) {
    DS_ASSERT(kind.num_agents >= 1 && kind.num_agents <= DS_MAX_AGENTS);
    fill_flight_table();
    return (kind.plays_levels ? kPickers<LevelCapacity> : kPickers<ReferenceCapacity>)[kind.num_agents - 1](avx512);
}

const char* const kStageNames[kNumStages] = {
#define DS_STAGE_NAME(name, items, parameters, sentence) #name,
    DS_STAGE_TABLE(DS_STAGE_NAME)
#undef DS_STAGE_NAME
};

}  // namespace doorstep
