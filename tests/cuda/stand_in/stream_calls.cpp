// The driver's functions for streams and events.
#include "driver.h"
#include "functions.h"

using namespace stand_in;

namespace {

int record(uint64_t event_handle, uint64_t stream_handle) {
    Stream* stream = find_stream("cuEventRecord", stream_handle);
    const std::shared_ptr<Event> event = find("cuEventRecord", driver().events, event_handle);
    if (!stream || !event) return kInvalidHandle;
    if (event->context != stream->context)
        return refuse(kInvalidHandle, "cuEventRecord: the event is of another context than the stream");
    if (!stream->capture) {
        Task task{"recording an event"};
        task.begun = [event](const OperationRef& operation) {
            event->recorded = operation;
            event->capture = nullptr;
        };
        return begin(*stream, std::move(task));
    }
    if (stream->capture->invalidated) return kCaptureInvalidated;
    event->capture = stream->capture;
    event->capture_tail = stream->capture_tail;
    return kSuccess;
}

int join_capture(Stream& stream, const Event& event) {
    if (!stream.capture) {
        stream.capture = event.capture;
        stream.capture->streams.push_back(&stream);
    }
    stream.capture_tail.insert(stream.capture_tail.end(), event.capture_tail.begin(), event.capture_tail.end());
    return kSuccess;
}

int wait(uint64_t stream_handle, uint64_t event_handle) {
    Stream* stream = find_stream("cuStreamWaitEvent", stream_handle);
    const std::shared_ptr<Event> event = find("cuStreamWaitEvent", driver().events, event_handle);
    if (!stream || !event) return kInvalidHandle;
    if (stream->capture && event->capture != stream->capture) {
        stream->capture->invalidated = true;
        return kCaptureIsolation;
    }
    if (event->capture) return join_capture(*stream, *event);
    if (!event->recorded || event->recorded->done) return kSuccess;
    Task task{"waiting for an event"};
    task.begun = [recorded = event->recorded](const OperationRef& operation) { operation->after.push_back(recorded); };
    return begin(*stream, std::move(task));
}

// The code of a wait for a stream, or of a question whether its work has ended; 0 if it is allowed.
int refuse_wait(const Stream& stream) {
    if (stream.capture) return refuse_in_capture(*stream.capture);
    if (const int code = refuse_beside_captures_shared_with(stream)) return code;
    return refuse_beside_capture();
}

}  // namespace

extern "C" {

int cuStreamCreate(uint64_t* handle, uint32_t flags) {
    return call("cuStreamCreate", [&]() -> int {
        Context* context = current_context("cuStreamCreate");
        if (!context) return kInvalidContext;
        if (flags & ~uint32_t{kNonBlocking}) return refuse(kInvalidValue, text("cuStreamCreate: flags are %u", flags));
        Stream stream;
        stream.context = context;
        stream.blocking = !(flags & kNonBlocking);
        *handle = driver().streams.add(std::move(stream));
        driver().streams.find(*handle)->name = text("stream %#lx", *handle);
        return kSuccess;
    });
}

// Work begun on the stream still runs.
int cuStreamDestroy_v2(uint64_t handle) {
    return call("cuStreamDestroy", [&]() -> int {
        const std::shared_ptr<Stream> stream = find("cuStreamDestroy", driver().streams, handle);
        if (!stream) return kInvalidHandle;
        if (stream->capture) return refuse(kCaptureUnsupported, "cuStreamDestroy: the stream is being captured");
        if (stream->tail) driver().orphans.push_back(stream->tail);
        driver().streams.alive.erase(handle);
        return kSuccess;
    });
}

int cuStreamSynchronize(uint64_t handle) {
    return call("cuStreamSynchronize", [&]() -> int {
        Stream* stream = find_stream("cuStreamSynchronize", handle);
        if (!stream) return kInvalidHandle;
        if (const int code = refuse_wait(*stream)) return code;
        driver().report.count_wait();
        if (stream->tail) execute(stream->tail);
        return kSuccess;
    });
}

int cuStreamQuery(uint64_t handle) {
    return call("cuStreamQuery", [&]() -> int {
        Stream* stream = find_stream("cuStreamQuery", handle);
        if (!stream) return kInvalidHandle;
        if (const int code = refuse_wait(*stream)) return code;
        const OperationRef end = end_of(*stream);
        if (!end) return kSuccess;
        advance(end);
        return kNotReady;
    });
}

int cuStreamWaitEvent(uint64_t stream, uint64_t event, uint32_t flags) {
    return call("cuStreamWaitEvent", [&]() -> int {
        return flags ? refuse(kInvalidValue, "cuStreamWaitEvent: flags must be 0") : wait(stream, event);
    });
}

// Not allowed for a stream that is being captured, as a comment in NVIDIA's CCCL says (get_device_from_stream()).
int cuStreamGetCtx(uint64_t handle, uint64_t* context) {
    return call("cuStreamGetCtx", [&]() -> int {
        const Stream* stream = find_stream("cuStreamGetCtx", handle);
        if (!stream) return kInvalidHandle;
        if (stream->capture) return refuse_in_capture(*stream->capture);
        *context = stream->context->handle;
        return kSuccess;
    });
}

int cuEventCreate(uint64_t* handle, uint32_t flags) {
    return call("cuEventCreate", [&]() -> int {
        Context* context = current_context("cuEventCreate");
        if (!context) return kInvalidContext;
        if (flags & ~uint32_t{kBlockingSync | kDisableTiming})
            return refuse(kInvalidValue, text("cuEventCreate: flags are %u", flags));
        Event event;
        event.context = context;
        event.flags = flags;
        *handle = driver().events.add(std::move(event));
        return kSuccess;
    });
}

int cuEventDestroy_v2(uint64_t handle) {
    return call("cuEventDestroy", [&] {
        if (!find("cuEventDestroy", driver().events, handle)) return kInvalidHandle;
        driver().events.alive.erase(handle);
        return kSuccess;
    });
}

int cuEventRecord(uint64_t event, uint64_t stream) {
    return call("cuEventRecord", [&] { return record(event, stream); });
}

int cuEventQuery(uint64_t handle) {
    return call("cuEventQuery", [&]() -> int {
        const std::shared_ptr<Event> event = find("cuEventQuery", driver().events, handle);
        if (!event) return kInvalidHandle;
        if (event->capture) return refuse_in_capture(*event->capture), kCapturedEvent;
        if (const int code = refuse_beside_capture()) return code;
        if (!event->recorded || event->recorded->done) return kSuccess;
        advance(event->recorded);
        return kNotReady;
    });
}

int cuEventSynchronize(uint64_t handle) {
    return call("cuEventSynchronize", [&]() -> int {
        const std::shared_ptr<Event> event = find("cuEventSynchronize", driver().events, handle);
        if (!event) return kInvalidHandle;
        if (event->capture) return refuse_in_capture(*event->capture), kCapturedEvent;
        if (const int code = refuse_beside_capture()) return code;
        driver().report.count_wait();
        if (event->recorded) execute(event->recorded);
        return kSuccess;
    });
}

// One millisecond per operation that ran between the two.
int cuEventElapsedTime(float* milliseconds, uint64_t start_handle, uint64_t end_handle) {
    return call("cuEventElapsedTime", [&]() -> int {
        const std::shared_ptr<Event> start = find("cuEventElapsedTime", driver().events, start_handle);
        const std::shared_ptr<Event> end = find("cuEventElapsedTime", driver().events, end_handle);
        if (!start || !end) return kInvalidHandle;
        if ((start->flags | end->flags) & kDisableTiming)
            return refuse(kInvalidHandle, "cuEventElapsedTime: an event was made without timing");
        if (!start->recorded || !end->recorded)
            return refuse(kInvalidHandle, "cuEventElapsedTime: an event was never recorded");
        if (!start->recorded->done || !end->recorded->done) return kNotReady;
        *milliseconds = static_cast<float>(end->recorded->time - start->recorded->time);
        return kSuccess;
    });
}

}  // extern "C"
