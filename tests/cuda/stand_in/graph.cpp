#include "graph.h"

#include <algorithm>

#include "driver.h"
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
    auto operation = std::make_shared<Operation>();
    operation->what = task.what;
    operation->accesses = task.accesses;
    operation->run = task.run;
    operation->freeing = task.freeing;
    operation->ready = task.ready;
    operation->after = std::move(after);
    count_begun_operation();
    note_accesses(operation);
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

OperationRef end_of(Stream& stream) { return stream.tail && !stream.tail->done ? stream.tail : nullptr; }

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

extern "C" {

// The question itself ends no capture.
int cuStreamIsCapturing(uint64_t handle, int* status) {
    return call("cuStreamIsCapturing", [&]() -> int {
        Stream* stream = find_stream("cuStreamIsCapturing", handle);
        if (!stream) return kInvalidHandle;
        if (!captures_shared_with(*stream).empty()) return kCaptureImplicit;
        *status = !stream->capture               ? kCaptureNone
                  : stream->capture->invalidated ? kCaptureStatusInvalidated
                                                 : kCaptureActive;
        return kSuccess;
    });
}

int cuStreamBeginCapture_v2(uint64_t handle, int mode) {
    return call("cuStreamBeginCapture", [&]() -> int {
        Stream* stream = find_stream("cuStreamBeginCapture", handle);
        if (!stream) return kInvalidHandle;
        if (mode < kCaptureGlobal || mode > kCaptureRelaxed)
            return refuse(kInvalidValue, "cuStreamBeginCapture: the mode");
        if (handle < 2) return kCaptureUnsupported;
        if (stream->capture) return refuse(kInvalidValue, "cuStreamBeginCapture: the stream is being captured");
        auto capture = std::make_shared<Capture>();
        capture->mode = mode;
        capture->thread = std::this_thread::get_id();
        capture->origin = handle;
        capture->graph = std::make_shared<Graph>();
        capture->streams = {stream};
        stream->capture = capture;
        driver().captures.insert(capture);
        return kSuccess;
    });
}

int cuStreamEndCapture(uint64_t handle, uint64_t* graph) {
    return call("cuStreamEndCapture", [&]() -> int {
        Stream* stream = find_stream("cuStreamEndCapture", handle);
        if (!stream) return kInvalidHandle;
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
        return kSuccess;
    });
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
    return call("cuThreadExchangeStreamCaptureMode", [&]() -> int {
        if (*mode < kCaptureGlobal || *mode > kCaptureRelaxed)
            return refuse(kInvalidValue, "cuThreadExchangeStreamCaptureMode: the mode");
        std::swap(*mode, thread_capture_mode());
        return kSuccess;
    });
}

int cuGraphInstantiateWithFlags(uint64_t* exec, uint64_t handle, unsigned long long flags) {
    return call("cuGraphInstantiateWithFlags", [&]() -> int {
        const std::shared_ptr<Graph> graph = find("cuGraphInstantiateWithFlags", driver().graphs, handle);
        if (!graph) return kInvalidHandle;
        if (flags) return refuse(kInvalidValue, text("cuGraphInstantiateWithFlags: flags are %llu", flags));
        *exec = driver().graph_execs.add({std::make_shared<Graph>(*graph), nullptr});
        return kSuccess;
    });
}

int cuGraphLaunch(uint64_t handle, uint64_t stream_handle) {
    return call("cuGraphLaunch", [&]() -> int {
        const std::shared_ptr<GraphExec> exec = find("cuGraphLaunch", driver().graph_execs, handle);
        Stream* stream = find_stream("cuGraphLaunch", stream_handle);
        if (!exec || !stream) return kInvalidHandle;
        if (stream->capture) return refuse_in_capture(*stream->capture);
        begin_graph(*exec, *stream);
        return kSuccess;
    });
}

int cuGraphExecDestroy(uint64_t handle) {
    return call("cuGraphExecDestroy", [&]() -> int {
        if (!find("cuGraphExecDestroy", driver().graph_execs, handle)) return kInvalidHandle;
        if (const int code = refuse_beside_capture()) return code;
        driver().graph_execs.alive.erase(handle);
        return kSuccess;
    });
}

int cuGraphDestroy(uint64_t handle) {
    return call("cuGraphDestroy", [&] {
        if (!find("cuGraphDestroy", driver().graphs, handle)) return kInvalidHandle;
        driver().graphs.alive.erase(handle);
        return kSuccess;
    });
}

}  // extern "C"
