// Transfers of worlds between the device and the host: runs of them, copied part by part through pinned memory.
#pragma once

#include "exec/cuda/work_order.h"
#include "exec/saved_world.h"

namespace doorstep {

class WorldStaging {
public:
    static constexpr int64_t kBytes = int64_t{4} << 20;

    // Of the parts [first_part, end_part) of worlds on the device, through `buffer` of kBytes.
    WorldStaging(WorkOrder& order, const SavedParts& device, int first_part, int end_part, char* buffer);

    // Calls function(first, count), which returns a status, for runs that cover the mask's worlds (null: all).
    // INVALID_ARGUMENT if the stream is being captured; operation: see WorkOrder::check_not_recorded().
    template <class Function>
    ds_status for_each_run(int64_t num_worlds, const uint8_t* mask, const char* operation, const Function& function) {
        if (const ds_status status = order_.check_not_recorded(operation)) return status;
        for (int64_t first = 0; first < num_worlds; first += capacity_) {
            const int64_t count = num_worlds - first < capacity_ ? num_worlds - first : capacity_;
            if (!has_any(mask, first, count)) continue;
            if (const ds_status status = function(first, count)) return status;
        }
        return DS_STATUS_OK;
    }

    // Copy a run after the work begun so far, and wait for it.
    ds_status read(int64_t first, int64_t count) { return copy(first, count, true); }
    ds_status write(int64_t first, int64_t count) { return copy(first, count, false); }

    // The run on the host: world 0 is the run's first.
    const SavedParts& host() const { return host_; }

private:
    static bool has_any(const uint8_t* mask, int64_t first, int64_t count);
    ds_status copy(int64_t first, int64_t count, bool to_host);

    WorkOrder& order_;
    SavedParts device_;
    SavedParts host_;
    int first_part_, end_part_;
    int64_t capacity_;  // worlds per run
};

}  // namespace doorstep
