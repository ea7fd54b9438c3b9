// Work captured from a stream, and its executable form. The code that captures keeps the memory and kernels that the
// work uses alive.
#pragma once

#include "runtime/cuda/stream.h"

namespace doorstep {

// Until Graph::end_capture(), work that this thread begins on the stream is captured instead of executed.
ds_status begin_capture(const Stream& stream);

class Graph final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_GRAPH;

    // The work captured since begin_capture(). Null, with the thread's error set, on failure.
    static Ref<Graph> end_capture(const Stream& stream);
    ~Graph();

    CUgraph handle() const { return reinterpret_cast<CUgraph>(raw()); }

private:
    explicit Graph(Ref<Context> context);
};

class GraphExec final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_GRAPH_EXEC;

    static Ref<GraphExec> create(Ref<Graph> graph);
    ~GraphExec();

    CUgraphExec handle() const { return reinterpret_cast<CUgraphExec>(raw()); }

    ds_status launch(const Stream& stream) const;

private:
    explicit GraphExec(Ref<Graph> graph);

    Ref<Graph> graph_;
};

}  // namespace doorstep
