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
    return create_with(new (std::nothrow) Graph(stream.context()), [&](Graph& graph) {
        CUgraph handle;
        const CUresult result = driver().cuStreamEndCapture(stream.handle(), &handle);
        return graph.own_made(result, handle, "cuStreamEndCapture", "stream");
    });
}

Graph::~Graph() {
    destroy([this](const Driver& driver) { driver.cuGraphDestroy(handle()); });
}

// ---- GraphExec ----

GraphExec::GraphExec(Ref<Graph> graph) : Resource(kKind, graph->context()), graph_(std::move(graph)) {}

Ref<GraphExec> GraphExec::create(Ref<Graph> graph) {
    return create_with(new (std::nothrow) GraphExec(std::move(graph)), [](GraphExec& exec) {
        CUgraphExec handle;
        const CUresult result = driver().cuGraphInstantiateWithFlags(&handle, exec.graph_->handle(), 0);
        return exec.own_made(result, handle, "cuGraphInstantiateWithFlags", "graph");
    });
}

GraphExec::~GraphExec() {
    destroy([this](const Driver& driver) { driver.cuGraphExecDestroy(handle()); });
}

ds_status GraphExec::launch(const Stream& stream) const {
    if (const ds_status status = stream.check_device(*context(), "graph")) return status;
    return context()->call("cuGraphLaunch", "graph_exec", [&](const Driver& driver) {
        return driver.cuGraphLaunch(handle(), stream.handle());
    });
}

}  // namespace doorstep
