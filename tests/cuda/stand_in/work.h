// Device work, executed as late as the rules allow: an operation runs only when a caller waits for it, or for a later
// one that depends on it. Code that forgets to wait, or to order two streams, sees the old contents.
#pragma once

#include <stdint.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace stand_in {

struct Context;
struct Stream;
struct Allocation;
struct Operation;
using OperationRef = std::shared_ptr<Operation>;

// Bytes that an operation accesses.
struct Access {
    std::shared_ptr<Allocation> allocation;
    uint64_t first, last;  // offsets, last excluded
    bool writes;

    bool conflicts_with(const Access& other) const {
        return (writes || other.writes) && first < other.last && other.first < last;
    }
};

// The work of an operation, which may be captured and begun any number of times.
struct Task {
    std::string what;
    std::vector<Access> accesses{};
    std::function<void()> run{};  // may be empty
    bool freeing = false;           // ends its allocation
    std::function<bool()> ready{};  // whether it can run in its turn; empty: always
    // Called with the operation once it is begun; may be empty
    std::function<void(const OperationRef&)> begun{};
};

struct Operation : Task {
    std::vector<OperationRef> after;  // unfinished operations that it waits for
    bool done = false;
    int64_t time = 0;  // index in the order in which operations ran
};

// Runs an operation, after all operations that must come before. While one of these waits for another API, all streams
// continue, and so do callers in other threads. The driver's lock is held, once.
void execute(const OperationRef& operation);

// Runs one operation: the earliest that `operation` needs, or itself; one of another stream if these wait for another
// API. For callers that only poll.
void advance(const OperationRef& operation);

// Whether `earlier` has ended, or will certainly end before `later` begins.
bool comes_before(const OperationRef& earlier, const OperationRef& later);

// Operations that have been begun and have not run.
void count_begun_operation();
int64_t pending_operations();

// Checks the accesses of a new operation against those of earlier ones, and records them.
void note_accesses(const OperationRef& operation);

// ---- Device memory and page-locked host memory
//
// Real memory at addresses that are never reused, with guard pages on both sides. The host cannot access device memory;
// it is accessible only while an operation on it runs.

struct NotedAccess {
    OperationRef operation;
    Access access;
};

struct Allocation {
    uint64_t address = 0, bytes = 0;
    int device = 0;
    bool pinned = false;
    bool shared = false;        // bytes of a file that other code may map
    bool accessible = true;     // false: mapped, but without access rights yet
    uint64_t pool = 0;          // handle, of memory from a pool
    OperationRef made{};        // memory from a pool: when it begins to exist
    bool freeing = false;       // a free has been requested
    bool freed = false;
    std::vector<NotedAccess> accesses{};
    uint64_t mapped = 0, mapped_bytes = 0;  // without the guard pages

    bool contains(uint64_t first, uint64_t count) const {
        return first >= address && first - address <= bytes && count <= bytes - (first - address);
    }
};
using AllocationRef = std::shared_ptr<Allocation>;

// Null if the machine does not have that much memory.
AllocationRef map_memory(uint64_t bytes, int device, bool pinned);
// Maps the bytes of a file at reserved addresses, or (0) at any. Null if the machine refuses.
AllocationRef map_file(int descriptor, uint64_t bytes, int device, uint64_t address = 0);
// Frees the bytes; the address stays reserved.
void unmap_memory(Allocation& allocation);

// The same, and removes it from the driver's records.
void forget(const AllocationRef& allocation);

// Records a violation for all work that uses the memory and has not run.
void check_unused(const Allocation& allocation);

// The allocation, live or not, that contains the address or ends at it; null for memory unknown to the driver.
AllocationRef find_allocation(uint64_t address);

// Reserves so many bytes of addresses with unused space around them; 0 on failure.
uint64_t reserve_addresses(uint64_t bytes, uint64_t alignment);

constexpr int kGarbage = 0xC7;  // new memory is not zero; as a float this is -1e5, as an index nonsense
constexpr int kAnyDevice = -1;

// The access of `count` bytes at an address, or a violation and null in .allocation.
Access access_to(const std::string& what, uint64_t address, uint64_t count, bool writes, int device);

// False, and a violation, if the memory does not exist yet or any more.
bool check_alive(const Operation& operation, const Access& access);

// Gives this process access to the memory that an operation uses.
class OpenMemory {
public:
    explicit OpenMemory(const std::vector<Access>& accesses);
    ~OpenMemory();

private:
    std::vector<AllocationRef> opened_;
};

// ---- Captured work, which may be launched any number of times.

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
