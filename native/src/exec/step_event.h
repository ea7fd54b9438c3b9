// The end of one asynchronous step: the object of a ds_event.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "runtime/reference.h"

namespace doorstep {

class StepEvent : public RefCounted {
public:
    virtual ~StepEvent() = default;

    // DS_STATUS_PENDING if the step has not ended after timeout_ns (negative: without limit).
    virtual ds_status wait(int64_t timeout_ns) = 0;
};

}  // namespace doorstep
