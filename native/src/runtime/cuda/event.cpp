#include "runtime/cuda/event.h"

#include <new>

#include "runtime/cuda/polling.h"
#include "runtime/status.h"

namespace doorstep {
Event::Event(Ref<Context> context, bool timing) : Resource(kKind, std::move(context)), timing_(timing) {}

Event::Event(Ref<Context> context, uint64_t raw, ForeignOwner owner)
    : Resource(kKind, std::move(context), raw, owner), timing_(true) {}

Ref<Event> Event::create(Ref<Context> context, bool timing) {
    const Ref<Event> event = check_allocated(new (std::nothrow) Event(context, timing));
    if (!event) return {};
    CurrentContext current(*context);
    if (current.status()) return {};
    CUevent handle;
    if (const CUresult result = driver().cuEventCreate(&handle, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING)) {
        fail_driver(result, "cuEventCreate");
        return {};
    }
    event->own(handle);
    return current.restore() ? Ref<Event>() : event;
}

Ref<Event> Event::borrow(Ref<Context> context, uint64_t raw, ForeignOwner owner) {
    if (!owner.release) {
        if (Ref<Event> known = find_resource<Event>(context->device_index(), raw)) return known;
    }
    return check_allocated(new (std::nothrow) Event(std::move(context), raw, owner));
}

Event::~Event() {
    if (!disown()) return;
    const DestructionScope scope(*context());
    if (scope.entered()) driver().cuEventDestroy(handle());
}

ds_status Event::record(const Stream& stream) const {
    if (stream.context().get() != context().get()) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "stream", "pass a stream of the event's device",
                    "the stream is of device %d, the event of device %d", stream.device_index(), device_index());
    }
    return context()->call("cuEventRecord", "event", [&](const Driver& driver) {
        return driver.cuEventRecord(handle(), stream.handle());
    });
}

ds_status Event::query() const {
    return context()->call("cuEventQuery", "event",
                           [&](const Driver& driver) { return driver.cuEventQuery(handle()); });
}

ds_status Event::synchronize() const {
    return context()->call("cuEventSynchronize", "event",
                           [&](const Driver& driver) { return driver.cuEventSynchronize(handle()); });
}

ds_status Event::wait(int64_t timeout_ns) const {
    if (timeout_ns < 0) return synchronize();
    return poll(DS_STATUS_PENDING, timeout_ns, [this] { return query(); });
}

ds_status Event::elapsed(const Event& start, float* milliseconds) const {
    if (!timing_ || !start.timing_) {
        return fail(DS_STATUS_INVALID_ARGUMENT, timing_ ? "start" : "end", "create both events with timing",
                    "%s was created without timing", timing_ ? "start" : "end");
    }
    return context()->call("cuEventElapsedTime", "start", [&](const Driver& driver) {
        return driver.cuEventElapsedTime(milliseconds, start.handle(), handle());
    });
}

}  // namespace doorstep
