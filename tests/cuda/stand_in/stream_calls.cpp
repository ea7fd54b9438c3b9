// The driver's functions for streams and events.
#include "functions.h"

using namespace stand_in;

namespace {

int join_capture(Stream& stream, const Event& event) {
    if (!stream.capture) {
        stream.capture = event.capture;
        stream.capture->streams.push_back(&stream);
    }
    stream.capture_tail.insert(stream.capture_tail.end(), event.capture_tail.begin(), event.capture_tail.end());
    return kSuccess;
}

// The code of a wait for a stream, or of a question whether its work has ended; 0 if it is allowed.
int refuse_wait(const Stream& stream) {
    if (stream.capture) return refuse_in_capture(*stream.capture);
    TRY(refuse_beside_captures_shared_with(stream));
    return refuse_beside_capture();
}

int refuse_wait(const Event& event) {
    if (event.capture) return refuse_in_capture(*event.capture), kCapturedEvent;
    return refuse_beside_capture();
}

}  // namespace

STAND_IN(cuStreamCreate, 2000, (uint64_t* handle, uint32_t flags), {
    FIND_CONTEXT(context);
    REFUSE_IF(flags & ~uint32_t{kNonBlocking}, kInvalidValue, "flags are %u", flags);
    *handle = driver().streams.add({"", context, !(flags & kNonBlocking)});
    driver().streams.find(*handle)->name = text("stream %#lx", *handle);
})

// Work begun on the stream still runs.
STAND_IN(cuStreamDestroy_v2, 4000, (uint64_t handle), {
    FIND(stream, streams, handle);
    REFUSE_IF(stream->capture, kCaptureUnsupported, "the stream is being captured");
    if (stream->tail) driver().orphans.push_back(stream->tail);
    driver().streams.alive.erase(handle);
})

STAND_IN(cuStreamSynchronize, 2000, (uint64_t handle), {
    FIND_STREAM(stream, handle);
    TRY(refuse_wait(*stream));
    ++driver().report.waits;
    if (stream->tail) execute(stream->tail);
})

STAND_IN(cuStreamQuery, 2000, (uint64_t handle), {
    FIND_STREAM(stream, handle);
    TRY(refuse_wait(*stream));
    if (!stream->tail || stream->tail->done) return kSuccess;
    advance(stream->tail);
    return kNotReady;
})

STAND_IN(cuStreamWaitEvent, 3020, (uint64_t stream_handle, uint64_t event_handle, uint32_t flags), {
    REFUSE_IF(flags, kInvalidValue, "flags must be 0");
    FIND_STREAM(stream, stream_handle);
    FIND(event, events, event_handle);
    if (stream->capture && event->capture != stream->capture) {
        stream->capture->invalidated = true;
        return kCaptureIsolation;
    }
    if (event->capture) return join_capture(*stream, *event);
    if (!event->recorded || event->recorded->done) return kSuccess;
    Task task{"waiting for an event"};
    task.begun = [recorded = event->recorded](const OperationRef& operation) { operation->after.push_back(recorded); };
    return begin(*stream, std::move(task));
})

// Not allowed for a stream that is being captured, as a comment in NVIDIA's CCCL says (get_device_from_stream()).
STAND_IN(cuStreamGetCtx, 9020, (uint64_t handle, uint64_t* context), {
    FIND_STREAM(stream, handle);
    if (stream->capture) return refuse_in_capture(*stream->capture);
    *context = stream->context->handle;
})

STAND_IN(cuEventCreate, 2000, (uint64_t* handle, uint32_t flags), {
    FIND_CONTEXT(context);
    REFUSE_IF(flags & ~uint32_t{kBlockingSync | kDisableTiming}, kInvalidValue, "flags are %u", flags);
    *handle = driver().events.add({context, flags});
})

STAND_IN(cuEventDestroy_v2, 4000, (uint64_t handle), {
    FIND(event, events, handle);
    driver().events.alive.erase(handle);
})

STAND_IN(cuEventRecord, 2000, (uint64_t event_handle, uint64_t stream_handle), {
    FIND_STREAM(stream, stream_handle);
    FIND(event, events, event_handle);
    REFUSE_IF(event->context != stream->context, kInvalidHandle, "the event is of another context than the stream");
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
})

STAND_IN(cuEventQuery, 2000, (uint64_t handle), {
    FIND(event, events, handle);
    TRY(refuse_wait(*event));
    if (!event->recorded || event->recorded->done) return kSuccess;
    advance(event->recorded);
    return kNotReady;
})

STAND_IN(cuEventSynchronize, 2000, (uint64_t handle), {
    FIND(event, events, handle);
    TRY(refuse_wait(*event));
    ++driver().report.waits;
    if (event->recorded) execute(event->recorded);
})

// One millisecond per operation that ran between the two.
STAND_IN(cuEventElapsedTime, 2000, (float* milliseconds, uint64_t start_handle, uint64_t end_handle), {
    FIND(start, events, start_handle);
    FIND(end, events, end_handle);
    REFUSE_IF((start->flags | end->flags) & kDisableTiming, kInvalidHandle, "an event was made without timing");
    REFUSE_IF(!start->recorded || !end->recorded, kInvalidHandle, "an event was never recorded");
    if (!start->recorded->done || !end->recorded->done) return kNotReady;
    *milliseconds = static_cast<float>(end->recorded->time - start->recorded->time);
})
