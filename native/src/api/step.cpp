// Stepping, resetting, refreshing, and waiting for asynchronous steps.
#include "api/call.h"

namespace doorstep {
namespace {

ds_status check_actions(Simulator& simulator) {
    if (simulator.config().action_check != DS_ACTION_CHECK_RAISE) return DS_STATUS_OK;
    bool found;
    BadAction bad;
    if (const ds_status status = simulator.find_bad_action(&found, &bad)) return status;
    if (!found) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "actions", "correct the action, or create the simulator with "
                "an action_check that clamps", "actions[%ld, %d, %d] is %d; it must be 0 to %d (indices: world, agent, component)",
                bad.world, bad.agent, bad.component, bad.value, bad.maximum);
}

// The last steps of an operation that changes worlds.
ds_status end_operation(SimulatorCall& call, ds_status status) { return status ? status : call->update(); }

// The first steps of any kind of step.
ds_status begin_step(SimulatorCall& call) {
    if (const ds_status status = call.begin_work()) return status;
    return check_actions(*call);
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_simulator_step(ds_simulator simulator) {
    SimulatorCall call(simulator);
    if (const ds_status status = begin_step(call)) return status;
    return end_operation(call, call->step());
}

ds_status ds_simulator_step_async(ds_simulator simulator, ds_event* event) {
    if (!event) return fail_null("event");
    SimulatorCall call(simulator);
    if (const ds_status status = begin_step(call)) return status;
    Ref<StepEvent> made;
    if (const ds_status status = call->make_event(&made)) return status;
    ds_event handle;
    if (const ds_status status = give(events, made, "an event", &handle)) return status;
    if (const ds_status status = call->step_async(*made)) {
        events.remove(handle, "event");
        return status;
    }
    call.give_turn_away();
    *event = handle;
    return DS_STATUS_OK;
}

ds_status ds_simulator_get_end(ds_simulator simulator, ds_event* event) {
    if (!event) return fail_null("event");
    const Ref<Simulator> found = simulators.find(simulator, "simulator");
    if (!found) return last_status();
    Ref<StepEvent> end;
    if (const ds_status status = found->find_end(&end)) return status;
    return give(events, end, "an event", event);
}

ds_status ds_event_wait(ds_event event, int64_t timeout_ns) {
    const Ref<StepEvent> found = events.find(event, "event");
    return found ? found->wait(timeout_ns) : last_status();
}

ds_status ds_event_close(ds_event event) { return events.release(event, "event"); }

ds_status ds_simulator_reset(ds_simulator simulator, const int64_t* worlds, uint64_t count) {
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_work()) return status;
    const WorldSelection selection(*call, worlds, count, call->config().num_worlds);
    if (selection.status()) return selection.status();
    return end_operation(call, call->reset(selection.list().mask));
}

ds_status ds_simulator_reset_mask(ds_simulator simulator, const uint8_t* mask, uint64_t count) {
    if (!mask) return fail_null("mask");
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_work()) return status;
    if (count != static_cast<uint64_t>(call->config().num_worlds)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "count", "pass one mask byte per world",
                    "the mask has %lu entries; this simulator has %ld worlds", count, call->config().num_worlds);
    }
    return end_operation(call, call->reset(mask));
}

ds_status ds_simulator_refresh(ds_simulator simulator) {
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_work()) return status;
    return end_operation(call, call->refresh(nullptr));
}
