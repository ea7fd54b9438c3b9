// Captured work, which may be launched any number of times.
#pragma once

#include <stdint.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

namespace stand_in {

struct Context;
struct Stream;

// The work of an operation, whenever it is begun.
struct Task {
    std::string what;
    std::vector<Access> accesses{};
    std::function<void()> run{};
    bool freeing = false;
    std::function<bool()> ready{};  // may be empty: whether it can run in its turn
    // Called with the operation once it is begun; may be empty
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
    OperationRef latest;  // launches of one executable graph are ordered
};

struct Capture {
    int mode = 0;
    bool invalidated = false;
    std::thread::id thread;
    uint64_t origin = 0;  // the stream's handle
    std::shared_ptr<Graph> graph;
    std::vector<Stream*> streams;
};

// Begins a task on a stream, or captures it if the stream is being captured. Returns a code, 0 on success.
int begin(Stream& stream, Task task);

// The captures of blocking streams, if the stream is the legacy default stream, which they share; else none.
std::vector<std::shared_ptr<Capture>> captures_shared_with(const Stream& stream);
// The code of a use of the stream, which ends these captures. Without one it is 0.
int refuse_beside_captures_shared_with(const Stream& stream);

// The operation that ends with all work begun on the stream so far; null without unfinished work.
OperationRef end_of(Stream& stream);

// Begins all tasks of an executable graph on a stream that is not being captured.
void begin_graph(GraphExec& exec, Stream& stream);

// Whether all nodes of the graph come before one of `ends`.
bool ends_everything(const Graph& graph, const std::vector<int>& ends);

// The code of a call that is not allowed during a capture, which it ends. 0 if no capture forbids the call.
int refuse_beside_capture();

// The code of a call that ends every capture of a context, whatever the modes of threads. Without one it is 0.
int refuse_beside_captures_of(const Context& context);

// The mode of the calling thread during captures: cuThreadExchangeStreamCaptureMode.
int& thread_capture_mode();

// The code of a call that is not allowed on a captured stream; it ends the capture.
int refuse_in_capture(Capture& capture);

}  // namespace stand_in
