#include "runtime/cuda/graph.h"

#include <new>

#include "runtime/status.h"

namespace doorstep {

ds_status begin_capture(const Stream& stream) {
    return stream.context()->call("cuStreamBeginCapture", "stream", [&](const Driver& driver) {
        return driver.cuStreamBeginCapture(stream.handle(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    });
}

namespace {
thread_local bool captures = false;
}

bool captures_itself() { return captures; }

// ---- Graph ----

Graph::CaptureScope::CaptureScope() : guard_(capture_mutex) { captures = true; }
Graph::CaptureScope::~CaptureScope() { captures = false; }

Graph::Graph(Ref<Context> context) : Resource(kKind, std::move(context)) {}

Ref<Graph> Graph::end_capture(const Stream& stream) {
    const Ref<Graph> graph = check_allocated(new (std::nothrow) Graph(stream.context()));
    if (!graph) return {};
    CurrentContext current(*stream.context());
    if (current.status()) return {};
    CUgraph handle;
    if (const CUresult result = driver().cuStreamEndCapture(stream.handle(), &handle)) {
        fail_driver(result, "cuStreamEndCapture", "stream");
        return {};
    }
    graph->own(handle);
    return current.restore() ? Ref<Graph>() : graph;
}

Graph::~Graph() {
    if (!disown()) return;
    const DestructionScope scope(*context());
    if (scope.entered()) driver().cuGraphDestroy(handle());
}

// ---- GraphExec ----

GraphExec::GraphExec(Ref<Graph> graph) : Resource(kKind, graph->context()), graph_(std::move(graph)) {}

Ref<GraphExec> GraphExec::create(Ref<Graph> graph) {
    const Ref<GraphExec> exec = check_allocated(new (std::nothrow) GraphExec(graph));
    if (!exec) return {};
    CurrentContext current(*graph->context());
    if (current.status()) return {};
    CUgraphExec handle;
    if (const CUresult result = driver().cuGraphInstantiateWithFlags(&handle, graph->handle(), 0)) {
        fail_driver(result, "cuGraphInstantiateWithFlags", "graph");
        return {};
    }
    exec->own(handle);
    return current.restore() ? Ref<GraphExec>() : exec;
}

GraphExec::~GraphExec() {
    if (!disown()) return;
    const DestructionScope scope(*context());
    if (scope.entered()) driver().cuGraphExecDestroy(handle());
}

ds_status GraphExec::launch(const Stream& stream) const {
    if (stream.context().get() != context().get()) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "stream", "pass a stream of the graph's device",
                    "the stream is of device %d, the graph of device %d", stream.device_index(), device_index());
    }
    return context()->call("cuGraphLaunch", "graph_exec", [&](const Driver& driver) {
        return driver.cuGraphLaunch(handle(), stream.handle());
    });
}

}  // namespace doorstep
