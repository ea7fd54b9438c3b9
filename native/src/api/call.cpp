#include "api/call.h"

namespace doorstep {

ds_status fail_memory(const char* what) {
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "close what is no longer needed, or raise the memory limit",
                "no memory is left for %s", what);
}

// ---- SimulatorCall ----

SimulatorCall::SimulatorCall(ds_simulator handle) : simulator_(simulators.find(handle, "simulator")) {
    if (!simulator_) {
        status_ = last_status();
        return;
    }
    simulator_->turn.lock();
    has_turn_ = true;
    if (simulator_->closed) status_ = fail_closed("simulator");
}

SimulatorCall::~SimulatorCall() {
    if (works_) simulator_->end_work();
    if (has_turn_) simulator_->turn.unlock();
}

ds_status SimulatorCall::begin_operation() {
    if (const ds_status status = begin_binding()) return status;
    return simulator_->check_bound();
}

ds_status SimulatorCall::begin_binding() {
    if (status_) return status_;
    if (const ds_status status = simulator_->prepare()) return status;
    if (const ds_status status = simulator_->attachment.report_failure()) return status;
    return simulator_->config().strict ? check_trouble() : DS_STATUS_OK;
}

ds_status SimulatorCall::begin_work() {
    if (const ds_status status = begin_operation()) return status;
    simulator_->begin_work();
    works_ = true;
    return DS_STATUS_OK;
}

ds_status SimulatorCall::check_trouble() {
    uint32_t trouble;
    if (const ds_status status = simulator_->take_trouble(&trouble)) return status;
    if (trouble == kTroubleNone) return DS_STATUS_OK;
    const char* what = trouble & kTroubleNonfinite         ? "a value that is not finite"
                       : trouble & kTroubleDroppedContacts ? "more contacts than a world can hold"
                                                           : "a state index edited to an impossible value";
    const char* hint = "check the simulator's health and the edits of its state; reset or restore the world";
    ds_health health;
    if (const ds_status status = simulator_->read_health(&health)) return status;
    if (health.culprit_world < 0) return fail(DS_STATUS_SIMULATION, "", hint, "an earlier step met %s", what);
    if (health.culprit_body < 0) {
        return fail(DS_STATUS_SIMULATION, "", hint, "an earlier step met %s: world %ld, step %ld of that world", what,
                    health.culprit_world, health.culprit_step);
    }
    return fail(DS_STATUS_SIMULATION, "", hint, "an earlier step met %s: world %ld, body %d, step %ld of that world",
                what, health.culprit_world, health.culprit_body, health.culprit_step);
}

// ---- WorldSelection ----

WorldSelection::WorldSelection(const Simulator& simulator, const int64_t* worlds, uint64_t count, int64_t all_count)
    : list_{worlds, 0, simulator.mask()}, mask_(simulator.mask()) {
    DS_ASSERT(all_count >= 0);
    const int64_t num_worlds = simulator.config().num_worlds;
    const uint64_t wanted = worlds ? count : static_cast<uint64_t>(all_count);
    if (wanted > static_cast<uint64_t>(num_worlds)) {
        status_ = fail(DS_STATUS_INVALID_ARGUMENT, worlds ? "count" : "worlds", "pass each world at most once",
                       "%lu worlds are passed; this simulator has %ld", wanted, num_worlds);
        return;
    }
    list_.size = static_cast<int64_t>(wanted);
    if (list_.size == num_worlds) list_.mask = nullptr;
    for (; marked_ < list_.size; ++marked_) {
        const int64_t world = list_[marked_];
        if (world < 0 || world >= num_worlds) {
            status_ = fail(DS_STATUS_INVALID_ARGUMENT, "worlds", "pass slots of this simulator",
                           "worlds[%ld] is %ld; it must be 0 to %ld", marked_, world, num_worlds - 1);
            return;
        }
        if (mask_[world]) {
            status_ = fail(DS_STATUS_INVALID_ARGUMENT, "worlds", "pass each world at most once",
                           "worlds[%ld] is %ld, which occurs twice", marked_, world);
            return;
        }
        mask_[world] = 1;
    }
}

WorldSelection::~WorldSelection() {
    for (int64_t i = 0; i < marked_; ++i) {
        DS_ASSERT(mask_[list_[i]] == 1);
        mask_[list_[i]] = 0;
    }
}

}  // namespace doorstep
