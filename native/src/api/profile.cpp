// Time per stage of a step.
#include "api/call.h"

namespace doorstep {
namespace {

int32_t stage_count() {
    int32_t count = 0;
    while (count < kNumStages && kStageNames[count]) ++count;
    return count;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

const char* ds_stage_name(int32_t stage) {
    return stage >= 0 && stage < stage_count() ? kStageNames[stage] : nullptr;
}

ds_status ds_simulator_profile(ds_simulator simulator, int32_t enabled) {
    if (const ds_status status = check_range("enabled", "pass 0 or 1", enabled, 0, 1)) return status;
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    call->set_profiling(enabled);
    return DS_STATUS_OK;
}

ds_status ds_simulator_get_profile(ds_simulator simulator, uint64_t* ticks, uint64_t count) {
    if (!ticks) return fail_null("ticks");
    if (const ds_status status = check_range("count", "give one counter for each stage", static_cast<int64_t>(count),
                                             stage_count(), stage_count())) {
        return status;
    }
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    uint64_t all[kNumStages];
    call->read_profile(all);
    for (int32_t stage = 0; stage < stage_count(); ++stage) ticks[stage] = all[stage];
    return DS_STATUS_OK;
}
