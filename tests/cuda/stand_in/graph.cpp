#include "graph.h"

#include "driver.h"

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
    if (waits_for_capture(stream)) return kCaptureImplicit;
    stream.tail = make_operation(task, predecessors(stream));
    if (driver().settings.eager) execute(stream.tail);
    return kSuccess;
}

bool waits_for_capture(const Stream& stream) {
    if (&stream != &stream.context->legacy) return false;
    bool result = false;
    for (const auto& [handle, other] : driver().streams.alive)
        if (other->context == stream.context && other->blocking && other->capture) {
            other->capture->invalidated = true;
            result = true;
        }
    return result;
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

int& thread_capture_mode() {
    thread_local int mode = kCaptureGlobal;
    return mode;
}

int refuse_in_capture(Capture& capture) {
    capture.invalidated = true;
    return kCaptureUnsupported;
}

}  // namespace stand_in
