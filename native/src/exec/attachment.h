// A library attached to a simulator, called whenever its worlds have changed: see ds_simulator_attach().
#pragma once

#include "doorstep.h"
#include "runtime/status.h"

namespace doorstep {

class Attachment {
public:
    explicit operator bool() const { return attached_.update != nullptr; }

    void set(const ds_attachment& attachment) { attached_ = attachment; }
    ds_status update(const ds_turn& turn) {
        const ds_status status = attached_.update(attached_.context, &turn);
        if (status && last_status() != status) {  // it set no error
            fail(status, "", "report this to the library's authors", "the library attached to the simulator failed");
        }
        return status;
    }
    void clear() { attached_ = {}; }
    // Called when the simulator has ended.
    void release() {
        if (attached_.release) attached_.release(attached_.context);
        clear();
    }

    // A failure in a background thread, to be reported by the next call.
    void keep_failure() { failure_ = last_failure(); }
    ds_status report_failure() {
        if (!failure_.status) return DS_STATUS_OK;
        fail_again(failure_);
        failure_.status = DS_STATUS_OK;
        return last_status();
    }

private:
    ds_attachment attached_{};
    Failure failure_{};
};

}  // namespace doorstep
