// The end of a step on a CUDA device.
#pragma once

#include "exec/step_event.h"
#include "runtime/cuda/event.h"

namespace doorstep {

class CudaStepEvent final : public StepEvent {
public:
    explicit CudaStepEvent(const Ref<Event>& event) : event_(event) {}

    ds_status record(const Stream& stream) { return event_->record(stream); }
    ds_status wait(int64_t timeout_ns) override { return event_->wait(timeout_ns); }

private:
    Ref<Event> event_;
};

}  // namespace doorstep
