// Work captured from a stream, and its executable form. The code that captures keeps the memory and kernels that the
// work uses alive.
#pragma once

#include "runtime/cuda/stream.h"
#include "runtime/status.h"

namespace doorstep {

// Until Graph::end_capture(), work that this thread begins on the stream is captured instead of executed.
ds_status begin_capture(const Stream& stream);

// Whether this thread is in a Graph::capture().
bool captures_itself();

class Graph final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_GRAPH;

    // The work captured since begin_capture(). Null, with the thread's error set, on failure.
    static Ref<Graph> end_capture(const Stream& stream);

    // The work that begin_work(), which returns a status, begins on the stream. Repeated where calls of other code in
    // other threads end the capture. The graph is launched on this stream only, so that whatever waits for the stream
    // waits for the graph. Null, with the thread's error set, on failure.
    template <class Work>
    static Ref<Graph> capture(const Stream& stream, const Work& begin_work) {
        Ref<Graph> graph;
        for (int attempt = 0; attempt < kMostCaptures; ++attempt) {
            const CaptureScope scope;
            if (begin_capture(stream)) return {};
            const ds_status status = begin_work();
            const Failure failure = last_failure();
            graph = end_capture(stream);
            if (graph && !status) return graph;
            if (status) fail_again(failure);
            if (!is_capture_error(static_cast<CUresult>(last_failure().driver_code))) break;
        }
        return {};
    }
    ~Graph();

    CUgraph handle() const { return reinterpret_cast<CUgraph>(raw()); }

private:
    static constexpr int kMostCaptures = 100;

    // Around an attempt.
    class CaptureScope {
    public:
        CaptureScope();
        ~CaptureScope();

    private:
        MutexGuard guard_;
    };

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
