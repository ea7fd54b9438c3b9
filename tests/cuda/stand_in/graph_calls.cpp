// The driver's functions for captures and graphs.
#include <algorithm>

#include "driver.h"
#include "functions.h"

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

int cuStreamIsCapturing(uint64_t handle, int* status) {
    return call("cuStreamIsCapturing", [&]() -> int {
        Stream* stream = find_stream("cuStreamIsCapturing", handle);
        if (!stream) return kInvalidHandle;
        if (waits_for_capture(*stream)) return kCaptureImplicit;
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
    return call("cuGraphExecDestroy", [&] {
        if (!find("cuGraphExecDestroy", driver().graph_execs, handle)) return kInvalidHandle;
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
