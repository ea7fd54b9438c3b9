// Work recorded from a stream, and its form that can be launched. What the work uses (memory, kernels) is kept by
// whoever records it.
#pragma once

#include "runtime/cuda/stream.h"

namespace doorstep {

// What this thread begins on the stream from now on is recorded instead of done, until Graph::end_capture().
ds_status begin_capture(const Stream& stream);

class Graph final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_GRAPH;

    // What was recorded since begin_capture(). Null, with the thread's error set, on failure.
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
