// Work that is recorded instead of done, and done later as often as one likes.
#pragma once

#include <stdint.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

namespace stand_in {

struct Stream;

// What an operation will do, whenever it is begun.
struct Task {
    std::string what;
    std::vector<Access> accesses{};
    std::function<void()> run{};
    bool freeing = false;
    std::function<bool()> ready{};  // may be empty: whether it can run once its turn has come
    // What becomes of the operation, once begun; may be empty
    std::function<void(const OperationRef&)> begun{};
};

struct Graph {
    struct Node {
        Task task;
        std::vector<int> after;
    };
    std::vector<Node> nodes;
};

struct GraphExec {
    std::shared_ptr<Graph> graph;
    OperationRef latest;  // launches of one executable graph follow one another
};

struct Capture {
    int mode = 0;
    bool invalidated = false;
    std::thread::id thread;
    uint64_t origin = 0;  // the stream's handle
    std::shared_ptr<Graph> graph;
    std::vector<Stream*> streams;
};

// Begins a task on a stream, or records it if the stream is being captured. A code, 0 if all is well.
int begin(Stream& stream, Task task);

// Whether the stream is the legacy default stream and would wait for a stream that is being captured; that capture
// ends.
bool waits_for_capture(const Stream& stream);

// The operation that ends when everything begun on the stream so far has ended; null if nothing is left.
OperationRef end_of(Stream& stream);

// Begins all tasks of an executable graph on a stream that is not being captured.
void begin_graph(GraphExec& exec, Stream& stream);

// Whether all nodes of the graph come before one of `ends`.
bool ends_everything(const Graph& graph, const std::vector<int>& ends);

// The code that a call which is not allowed beside a capture returns; it ends the capture. 0 if there is none.
int refuse_beside_capture();

// What the calling thread's own calls beside captures are judged by: cuThreadExchangeStreamCaptureMode.
int& thread_capture_mode();

// The code for a call that is not allowed on a captured stream; it ends the capture.
int refuse_in_capture(Capture& capture);

}  // namespace stand_in
