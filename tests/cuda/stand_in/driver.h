// The state of the stand-in: devices and their live objects.
#pragma once

#include <stdint.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "codes.h"
#include "graph.h"
#include "memory.h"
#include "report.h"
#include "sharing.h"
#include "work.h"

namespace stand_in {

// How the driver behaves: native tests install it, Python tests set environment variables named STAND_IN_...
struct Settings {
    int64_t devices = 1;
    int64_t driver_version = 13000;
    int64_t compute_capability = 90;
    int64_t multiprocessors = 4;
    int64_t memory_bytes = int64_t{1} << 30;  // of each device
    int64_t busy = 0;                         // 1: another process uses the devices exclusively
    int64_t eager = 0;                        // 1: operations run when they are begun
    int64_t sharing = 1;                      // 0: no device shares memory or timelines with other APIs
    int64_t memory_pools = 1;                 // 0: no device has them
    int64_t interprets = 0;                   // 1: steps that came as PTX are interpreted, which is slow
    std::string planted{};                    // how devices fail: refuses_machine_code, wrong_bit, hang, crash
    std::set<std::string> missing{};          // functions that the driver lacks
};

struct Stream {
    std::string name;
    Context* context = nullptr;
    bool blocking = true;  // ordered with the legacy default stream
    OperationRef tail;
    std::shared_ptr<Capture> capture;
    std::vector<int> capture_tail;
};

struct Event {
    Context* context = nullptr;
    uint32_t flags = 0;
    OperationRef recorded;  // null: never
    std::shared_ptr<Capture> capture;  // of the latest record, if it was captured
    std::vector<int> capture_tail;
};

struct Pool {
    int device = 0;
};

// What machine code or PTX tells of a kernel.
struct KernelCode {
    int registers = 0;        // of a thread; 0: unknown, as in PTX
    int parameter_bytes = 0;  // of all parameters; 0: unknown
    int stack_bytes = 0;      // of a thread, with the functions that it calls; 0 for PTX
};

struct Module {
    Context* context = nullptr;
    int kind_of_worlds = 0;
    std::map<std::string, KernelCode> kernels;
    std::string ptx{};  // empty: machine code
};

struct Kernel {
    uint64_t module = 0;
    std::string name;
    int kind_of_worlds = 0;
    uint32_t shared_bytes_allowed = 48 * 1024;
    KernelCode code{};
    bool loaded = false;  // its code, which the first use loads
};

struct Context {
    int device = 0;
    uint64_t handle = 0;
    int retained = 0;
    Stream legacy;
    std::map<std::thread::id, Stream> per_thread;
};

// Objects of one kind by handle. Handles are not reused, so that the use of an ended object is detected.
template <class T>
class Objects {
public:
    Objects(const char* kind, uint64_t tag) : kind(kind), first_(tag << 40 | kSpacing), next_(first_) {}

    uint64_t add(T object) {
        const uint64_t handle = reuses_handles ? first_free() : next_;
        if (handle == next_) next_ += kSpacing;
        alive[handle] = std::make_shared<T>(std::move(object));
        return handle;
    }

    std::shared_ptr<T> find(uint64_t handle) const {
        const auto found = alive.find(handle);
        return found == alive.end() ? nullptr : found->second;
    }
    bool was_alive(uint64_t handle) const { return handle < next_ && handle >> 40 == next_ >> 40; }

    const char* kind;
    std::map<uint64_t, std::shared_ptr<T>> alive;
    bool reuses_handles = false;  // as soon as they are free, as real drivers do

private:
    static constexpr uint64_t kSpacing = 0x100;

    uint64_t first_free() const {
        for (uint64_t handle = first_; handle < next_; handle += kSpacing)
            if (!alive.contains(handle)) return handle;
        return next_;
    }

    uint64_t first_, next_;
};

struct Driver {
    explicit Driver(const Settings& settings);
    ~Driver();
    Driver(const Driver&) = delete;

    std::recursive_mutex mutex;
    Settings settings;
    Report report;
    int process;               // calls in a forked child fail
    bool initialized = false;
    bool finalized = false;    // the process is ending
    int lost = 0;              // the code of an error that no context survives
    std::vector<Context> contexts;  // primary contexts, one per device

    Objects<Stream> streams{"streams", 0x11};
    Objects<Event> events{"events", 0x12};
    Objects<Pool> pools{"pools", 0x13};
    Objects<Module> modules{"modules", 0x14};
    Objects<Kernel> kernels{"kernels", 0x15};
    Objects<Graph> graphs{"graphs", 0x16};
    Objects<GraphExec> graph_execs{"graph_execs", 0x17};
    Objects<PhysicalMemory> physical_memories{"physical_memories", 0x18};
    Objects<ExternalMemory> external_memories{"external_memories", 0x19};
    Objects<ExternalSemaphore> external_semaphores{"external_semaphores", 0x1a};
    std::map<uint64_t, AddressRange> address_ranges;
    std::vector<FileDescriptor> exported_descriptors;  // descriptors that callers must close
    std::map<uint64_t, AllocationRef> memory;  // device and pinned memory alive, by address
    std::vector<uint64_t> default_pools;       // one per device
    std::set<std::shared_ptr<Capture>> captures;
    std::vector<OperationRef> orphans;  // ends of destroyed streams

    std::map<std::string, int64_t> live() const;
    int64_t used_bytes(int device) const;
};

Driver& driver();

// Replaces the driver by a new one. No other thread may be calling it, and the calling thread has no context then.
void replace_driver(const Settings& settings);

// Maximum dynamic shared memory of a block on these devices.
int most_shared_bytes();

// Runs all work of all streams.
void execute_everything();
void execute_everything(Context& context);

// The last operations of all streams with unfinished work.
std::vector<OperationRef> unfinished_ends();

// The calling thread's contexts, the current one last.
std::vector<uint64_t>& context_stack();
// The current context, or null after a violation.
Context* current_context(const char* function);
Context* find_context(uint64_t handle);

// A live object, or null after a violation.
template <class T>
std::shared_ptr<T> find(const char* function, const Objects<T>& objects, uint64_t handle) {
    std::shared_ptr<T> object = objects.find(handle);
    if (!object)
        driver().report.violation(text("%s: %#lx %s of the %s", function, handle,
                                       objects.was_alive(handle) ? "is no longer one" : "never was one", objects.kind));
    return object;
}

// The stream of a handle, including special handles; null after a violation.
Stream* find_stream(const char* function, uint64_t handle);

// Records a violation; returns the code.
int refuse(int code, const std::string& message);

// Runs every driver function: one at a time, recorded, and failing where a test requests it.
template <class Body>
int call(const char* function, Body&& body);

// Whether a call is allowed now, and the code to return if not.
int admit(const char* function);

// Whether a function fails once the context is lost.
bool needs_context(const std::string& function);

template <class Body>
int call(const char* function, Body&& body) {
    std::lock_guard<std::recursive_mutex> guard(driver().mutex);
    if (const int code = admit(function)) return code;
    const int result = body(), lost = driver().lost;  // perhaps by work that has just run
    return result == kSuccess && needs_context(function) && lost ? lost : result;
}

}  // namespace stand_in
