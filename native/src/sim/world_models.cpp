// Returns the instance for a kind of worlds. Baseline code: it runs before the processor has been
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

}  // namespace

FlightTable flight_table;

const WorldModel& find_world_model(WorldKind kind, bool avx512) {
    DS_ASSERT(kind.num_agents >= 1 && kind.num_agents <= DS_MAX_AGENTS);
    fill_flight_table();
    switch (number_of(kind)) {
#define DS_FIND_WORLD_MODEL(number, ...) \
    case number: return world_model<number>(kind.num_agents, avx512);
        DS_WORLD_KIND_TABLE(DS_FIND_WORLD_MODEL)
#undef DS_FIND_WORLD_MODEL
    }
    __builtin_unreachable();
}

const char* const kStageNames[kNumStages] = {
#define DS_STAGE_NAME(name, items, parameters, sentence) #name,
    DS_STAGE_TABLE(DS_STAGE_NAME)
#undef DS_STAGE_NAME
};

}  // namespace doorstep
