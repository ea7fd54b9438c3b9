// Streams, events, captures and graphs.
#include <algorithm>

#include "functions.h"

namespace stand_in {
namespace {

void add_if_undone(std::vector<OperationRef>& operations, const OperationRef& operation) {
    if (operation && !operation->done) operations.push_back(operation);
}

// The operations that a stream's next operation waits for. The legacy default stream and the blocking streams wait for
// each other.
std::vector<OperationRef> predecessors(Stream& stream) {
    std::vector<OperationRef> result;
    add_if_undone(result, stream.tail);
    Context& context = *stream.context;
    if (&stream != &context.legacy) {
        if (stream.blocking) add_if_undone(result, context.legacy.tail);
        return result;
    }
    for (const auto& [handle, other] : driver().streams.alive)
        if (other->context == &context && other->blocking) add_if_undone(result, other->tail);
    for (const auto& [thread, other] : context.per_thread) add_if_undone(result, other.tail);
    return result;
}

OperationRef make_operation(const Task& task, std::vector<OperationRef> after) {
    const auto operation = std::make_shared<Operation>(Operation{task, std::move(after)});
    count_begun_operation();
    note_accesses(operation);
    operation->begun = nullptr;  // it holds an event or memory that holds the operation
    if (task.begun) task.begun(operation);
    return operation;
}

int record(Stream& stream, Task task) {
    if (stream.capture->invalidated) return kCaptureInvalidated;
    Graph& graph = *stream.capture->graph;
    graph.nodes.push_back({std::move(task), stream.capture_tail});
    stream.capture_tail = {static_cast<int>(graph.nodes.size()) - 1};
    return kSuccess;
}

}  // namespace

int begin(Stream& stream, Task task) {
    task.what += " on " + stream.name;
    if (stream.capture) return record(stream, std::move(task));
    if (const int code = refuse_beside_captures_shared_with(stream)) return code;
    stream.tail = make_operation(task, predecessors(stream));
    if (driver().settings.eager) execute(stream.tail);
    return kSuccess;
}

std::vector<std::shared_ptr<Capture>> captures_shared_with(const Stream& stream) {
    std::vector<std::shared_ptr<Capture>> result;
    if (&stream != &stream.context->legacy) return result;
    for (const auto& [handle, other] : driver().streams.alive)
        if (other->context == stream.context && other->blocking && other->capture) result.push_back(other->capture);
    return result;
}

int refuse_beside_captures_shared_with(const Stream& stream) {
    const std::vector<std::shared_ptr<Capture>> captures = captures_shared_with(stream);
    for (const auto& capture : captures) capture->invalidated = true;
    return captures.empty() ? kSuccess : kCaptureImplicit;
}

void begin_graph(GraphExec& exec, Stream& stream) {
    std::vector<OperationRef> before = predecessors(stream);
    add_if_undone(before, exec.latest);
    std::vector<OperationRef> begun;
    for (const Graph::Node& node : exec.graph->nodes) {
        std::vector<OperationRef> after = node.after.empty() ? before : std::vector<OperationRef>();
        for (const int earlier : node.after) add_if_undone(after, begun[static_cast<size_t>(earlier)]);
        begun.push_back(make_operation(node.task, std::move(after)));
    }
    std::vector<OperationRef> all = before;
    all.insert(all.end(), begun.begin(), begun.end());
    stream.tail = exec.latest = make_operation({"end of a graph on " + stream.name}, std::move(all));
    if (driver().settings.eager) execute(stream.tail);
}

bool ends_everything(const Graph& graph, const std::vector<int>& ends) {
    std::vector<bool> reached(graph.nodes.size());
    std::vector<int> open = ends;
    while (!open.empty()) {
        const size_t node = static_cast<size_t>(open.back());
        open.pop_back();
        if (reached[node]) continue;
        reached[node] = true;
        open.insert(open.end(), graph.nodes[node].after.begin(), graph.nodes[node].after.end());
    }
    for (const bool node : reached)
        if (!node) return false;
    return true;
}

int refuse_beside_capture() {
    int code = kSuccess;
    for (const auto& capture : driver().captures) {
        const bool own = capture->thread == std::this_thread::get_id();
        if (thread_capture_mode() == kCaptureRelaxed || capture->mode == kCaptureRelaxed) continue;
        if (!own && (capture->mode != kCaptureGlobal || thread_capture_mode() != kCaptureGlobal)) continue;
        code = refuse_in_capture(*capture);
    }
    return code;
}

int refuse_beside_captures_of(const Context& context) {
    int code = kSuccess;
    for (const auto& capture : driver().captures)
        if (capture->streams.front()->context == &context) code = refuse_in_capture(*capture);
    return code;
}

int& thread_capture_mode() {
    thread_local int mode = kCaptureGlobal;
    return mode;
}

int refuse_in_capture(Capture& capture) {
    capture.invalidated = true;
    return kCaptureUnsupported;
}

}  // namespace stand_in

// ---- The driver's functions for captures and graphs

using namespace stand_in;

namespace {

// Makes all streams of the capture ordinary again.
void finish(const std::shared_ptr<Capture>& capture) {
    for (Stream* stream : capture->streams) {
        stream->capture = nullptr;
        stream->capture_tail.clear();
    }
    driver().captures.erase(capture);
}

}  // namespace

// The question itself ends no capture.
STAND_IN(cuStreamIsCapturing, 10000, (uint64_t handle, int* status), {
    FIND_STREAM(stream, handle);
    if (!captures_shared_with(*stream).empty()) return kCaptureImplicit;
    const Capture* capture = stream->capture.get();
    *status = !capture ? kCaptureNone : capture->invalidated ? kCaptureStatusInvalidated : kCaptureActive;
})

STAND_IN(cuStreamBeginCapture_v2, 10010, (uint64_t handle, int mode), {
    FIND_STREAM(stream, handle);
    if (handle < 2) return kCaptureUnsupported;
    REFUSE_IF(stream->capture, kInvalidValue, "the stream is being captured");
    const auto capture = std::make_shared<Capture>(
        Capture{mode, false, std::this_thread::get_id(), handle, std::make_shared<Graph>(), {stream}});
    stream->capture = capture;
    driver().captures.insert(capture);
})

STAND_IN(cuStreamEndCapture, 10000, (uint64_t handle, uint64_t* graph), {
    FIND_STREAM(stream, handle);
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture || capture->origin != handle) return kCaptureUnmatched;
    const bool same_thread = capture->thread == std::this_thread::get_id();
    if (capture->mode != kCaptureRelaxed && !same_thread) return kCaptureWrongThread;
    const bool joined = ends_everything(*capture->graph, stream->capture_tail);
    finish(capture);
    *graph = 0;
    if (capture->invalidated) return kCaptureInvalidated;
    if (!joined) return kCaptureUnjoined;
    *graph = driver().graphs.add(*capture->graph);
})

STAND_IN(cuThreadExchangeStreamCaptureMode, 10010, (int* mode), {
    std::swap(*mode, thread_capture_mode());
})

STAND_IN(cuGraphInstantiateWithFlags, 11040, (uint64_t* exec, uint64_t handle, unsigned long long), {
    FIND(graph, graphs, handle);
    *exec = driver().graph_execs.add({std::make_shared<Graph>(*graph), nullptr});
})

STAND_IN(cuGraphLaunch, 10000, (uint64_t handle, uint64_t stream_handle), {
    FIND(exec, graph_execs, handle);
    FIND_STREAM(stream, stream_handle);
    if (stream->capture) return refuse_in_capture(*stream->capture);
    begin_graph(*exec, *stream);
})

STAND_IN(cuGraphExecDestroy, 10000, (uint64_t handle), {
    FIND(exec, graph_execs, handle);
    TRY(refuse_beside_capture());
    driver().graph_execs.alive.erase(handle);
})

STAND_IN(cuGraphDestroy, 10000, (uint64_t handle), {
    FIND(graph, graphs, handle);
    driver().graphs.alive.erase(handle);
})

// ---- For streams and events

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

STAND_IN(cuStreamWaitEvent, 3020, (uint64_t stream_handle, uint64_t event_handle, uint32_t), {
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
