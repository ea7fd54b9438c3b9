#include "runtime/cuda/stream.h"

#include <stdio.h>

#include <new>

#include "runtime/status.h"

namespace doorstep {

// ---- Streams ----

namespace {

// Default streams are numbers, not objects: they exist in every context.
bool is_default_stream(uint64_t raw) { return raw <= reinterpret_cast<uint64_t>(CU_STREAM_PER_THREAD); }

ds_status ask_capture(const Context& context, uint64_t raw, const char* argument, bool* captured) {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const ds_status status = context.call("cuStreamIsCapturing", argument, [&](const Driver& driver) {
        return driver.cuStreamIsCapturing(reinterpret_cast<CUstream>(raw), &capture);
    });
    *captured = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return status;
}

// Checks that a raw stream exists and belongs to this context. Of one that is being captured that is not asked: it would
// end the capture.
ds_status check_stream(const Context& context, uint64_t raw, const char* argument) {
    bool captured;
    ds_status status = ask_capture(context, raw, argument, &captured);
    if (status || captured) return status;
    CUcontext owner;
    status = context.call("cuStreamGetCtx", argument, [&](const Driver& driver) {
        return driver.cuStreamGetCtx(reinterpret_cast<CUstream>(raw), &owner);
    });
    if (status || owner == context.handle()) return status;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass a stream of the device's primary context",
                "%s is 0x%lx, a stream of another context than that of device %d", argument,
                raw, context.device_index());
}

}  // namespace

Stream::Stream(Ref<Context> context) : Resource(kKind, std::move(context)) {}

Stream::Stream(Ref<Context> context, uint64_t raw, ForeignOwner owner)
    : Resource(kKind, std::move(context), raw, owner) {}

Ref<Stream> Stream::create(Ref<Context> context) {
    return create_with(new (std::nothrow) Stream(std::move(context)), [](Stream& stream) {
        CUstream handle;
        const CUresult result = driver().cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING);
        return stream.own_made(result, handle, "cuStreamCreate");
    });
}

Ref<Stream> Stream::borrow(Ref<Context> context, uint64_t raw, ForeignOwner owner, const char* argument) {
    const uint64_t known_raw = raw ? raw : reinterpret_cast<uint64_t>(CU_STREAM_LEGACY);
    if (!owner.release) {
        if (Ref<Stream> known = find_resource<Stream>(context->device_index(), known_raw)) return known;
    }
    if (!is_default_stream(known_raw) && check_stream(*context, known_raw, argument)) return {};
    return check_allocated(new (std::nothrow) Stream(std::move(context), known_raw, owner));
}

Stream::~Stream() {
    destroy([this](const Driver& driver) { driver.cuStreamDestroy(handle()); });
}

ds_status Stream::check_device(const Context& of_other, const char* of) const {
    if (context().get() == &of_other) return DS_STATUS_OK;
    char hint[64];
    snprintf(hint, sizeof hint, "pass a stream of the %s's device", of);
    return fail(DS_STATUS_INVALID_ARGUMENT, "stream", hint, "the stream is of device %d, the %s of device %d",
                device_index(), of, of_other.device_index());
}

ds_status Stream::synchronize() const {
    return context()->call("cuStreamSynchronize", "stream",
                           [&](const Driver& driver) { return driver.cuStreamSynchronize(handle()); });
}

ds_status Stream::query() const {
    return context()->call("cuStreamQuery", "stream",
                           [&](const Driver& driver) { return driver.cuStreamQuery(handle()); });
}

ds_status Stream::wait_event(const Event& event) const {
    return context()->call("cuStreamWaitEvent", "event", [&](const Driver& driver) {
        return driver.cuStreamWaitEvent(handle(), event.handle(), 0);
    });
}

ds_status Stream::follow(const Stream& earlier) const {
    if (earlier.raw() == raw() && earlier.device_index() == device_index()) return DS_STATUS_OK;
    for (const Stream* stream : {this, &earlier}) {
        bool recorded;
        if (const ds_status status = stream->is_capturing(&recorded)) return status;
        if (recorded) return DS_STATUS_OK;
    }
    const Ref<Event> event = Event::create(earlier.context());
    if (!event) return last_status();
    const ds_status status = event->record(earlier);
    return status ? status : wait_event(*event);
}

ds_status Stream::is_capturing(bool* capturing) const { return ask_capture(*context(), raw(), "stream", capturing); }

ds_status Stream::copy(uint64_t to, uint64_t from, uint64_t bytes) const {
    return context()->call("cuMemcpyAsync", "to", [&](const Driver& driver) {
        return driver.cuMemcpyAsync(to, from, bytes, handle());
    });
}

ds_status Stream::fill(uint64_t memory, uint8_t value, uint64_t bytes) const {
    return context()->call("cuMemsetD8Async", "memory", [&](const Driver& driver) {
        return driver.cuMemsetD8Async(memory, value, bytes, handle());
    });
}

ds_status Stream::copy_rows(const ds_row_copy& rows) const {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = rows.source;
    copy.srcPitch = rows.source_pitch;
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = rows.destination;
    copy.dstPitch = rows.destination_pitch;
    copy.WidthInBytes = rows.row_bytes;
    copy.Height = rows.num_rows;
    return context()->call("cuMemcpy2DAsync", "destination",
                           [&](const Driver& driver) { return driver.cuMemcpy2DAsync(&copy, handle()); });
}

bool Stream::may_be_capturing() const {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = driver().cuStreamIsCapturing(handle(), &capture);
    return (result && !loses_context(result)) || capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool Stream::finish() const {
    if (may_be_capturing()) return false;
    // "Per thread" may be another thread's stream than the one that did the work.
    const CUresult result = handle() == CU_STREAM_PER_THREAD
                                ? context()->wait_for_everything()
                                : poll(CUDA_ERROR_NOT_READY, kReleasePatience,
                                       [this] { return driver().cuStreamQuery(handle()); });
    return result == CUDA_SUCCESS || loses_context(result);
}

// ---- Events ----

Event::Event(Ref<Context> context, bool timing) : Resource(kKind, std::move(context)), timing_(timing) {}

Event::Event(Ref<Context> context, uint64_t raw, ForeignOwner owner)
    : Resource(kKind, std::move(context), raw, owner), timing_(true) {}

Ref<Event> Event::create(Ref<Context> context, bool timing) {
    return create_with(new (std::nothrow) Event(std::move(context), timing), [timing](Event& event) {
        CUevent handle;
        const CUresult result = driver().cuEventCreate(&handle, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
        return event.own_made(result, handle, "cuEventCreate");
    });
}

Ref<Event> Event::borrow(Ref<Context> context, uint64_t raw, ForeignOwner owner) {
    if (!owner.release) {
        if (Ref<Event> known = find_resource<Event>(context->device_index(), raw)) return known;
    }
    return check_allocated(new (std::nothrow) Event(std::move(context), raw, owner));
}

Event::~Event() {
    destroy([this](const Driver& driver) { driver.cuEventDestroy(handle()); });
}

ds_status Event::record(const Stream& stream) const {
    if (const ds_status status = stream.check_device(*context(), "event")) return status;
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
