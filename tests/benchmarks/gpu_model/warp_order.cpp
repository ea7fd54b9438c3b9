#include "warp_order.h"

#include <algorithm>

namespace gpu_model {

uint64_t& WarpOrder::ready(size_t place) {
    if (place >= ready_.size()) ready_.resize(place + 1, 0);
    return ready_[place];
}

void WarpOrder::issue(const Issue& issue) {
    uint64_t start = now_;
    for (int i = 0; i < issue.source_count; ++i) start = std::max(start, ready(issue.sources[i]));
    for (int i = 0; i < issue.result_count; ++i) ready(issue.results[i]) = start + issue.latency;
    if (order_ == kStrict) {
        now_ = start + issue.slots;
        return;
    }
    slots_ += issue.slots;
    if (issue.result_count == 0) latest_ = std::max(latest_, start + issue.slots);
    if (issue.ends_block) end_block();
}

void WarpOrder::end_block() {
    if (order_ == kFree) now_ = std::max(now_ + slots_, latest_);
    slots_ = latest_ = 0;
}

}  // namespace gpu_model
