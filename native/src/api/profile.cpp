// Time per stage of a step.
#include "api/call.h"

using namespace doorstep;

const char* ds_stage_name(int32_t stage) {
    return stage >= 0 && stage < kNumStages ? kStageNames[stage] : nullptr;
}

ds_status ds_simulator_profile(ds_simulator simulator, int32_t enabled) {
    if (const ds_status status = check_range("enabled", "pass 0 or 1", enabled, 0, 1)) return status;
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    return call->set_profiling(enabled);
}

ds_status ds_simulator_get_profile(ds_simulator simulator, uint64_t* ticks, uint64_t count) {
    if (!ticks) return fail_null("ticks");
    if (const ds_status status = check_range("count", "pass one counter per stage", static_cast<int64_t>(count),
                                             kNumStages, kNumStages)) {
        return status;
    }
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    return call->read_profile(ticks);
}
