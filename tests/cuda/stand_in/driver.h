// The state of the stand-in: devices and their live objects.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "codes.h"
#include "work.h"

namespace stand_in {

// ---- The stand-in's records for the tests: violations of the driver's rules, calls made, calls to fail.

// Makes the n-th next call of a function (or of any, if the name is empty) return a code without effect.
struct Fault {
    std::string function;
    int64_t calls_left;
    int code;
};

struct Report {
    std::vector<std::string> violations, calls;
    std::vector<Fault> faults;
    bool has_failed = false;  // a planned failure has happened: the object that the call should have ended may be live
    std::string failed;       // the function of the latest planned failure
    int64_t waits = 0, bus_bytes = 0;  // what costs time on a real device, since clear_calls()

    void violation(const std::string& message) { violations.push_back(message); }
    // Records the call; returns the code it shall fail with, or 0.
    int begin_call(const std::string& function);
    void clear_calls();
    // The caller adds the live objects per kind, as JSON.
    std::string to_json(const std::map<std::string, int64_t>& live, int64_t pending) const;
};

// printf into a string.
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

// ---- Memory and semaphores that the driver shares with other APIs of the process, by file descriptors
//
// Memory is a memory file, so that a test that maps the file sees the device's writes and acts as the other API; a
// semaphore is a file that contains its value. The files' names describe their use.

constexpr uint64_t kGranularity = uint64_t{2} << 20;  // of memory that can be exported

// The number of an open file. Only its owner may close it.
struct FileDescriptor {
    int number = -1;
    dev_t device = 0;
    ino_t file = 0;

    static FileDescriptor of(int number);
    // Whether the number still refers to that file.
    bool is_open() const;
    uint64_t size() const;
    std::string name() const;  // of the file: "memory", ...
};

// A memory file of that name and size; null (-1) on failure.
FileDescriptor make_file(const char* name, uint64_t bytes);

// Closes a descriptor that the driver owns; a violation if other code has closed it.
void close_owned(const FileDescriptor& descriptor);

// The result of cuMemCreate: bytes without an address.
struct PhysicalMemory {
    int device = 0;
    uint64_t bytes = 0;
    FileDescriptor file;
};

struct AddressRange {
    uint64_t bytes = 0;
    AllocationRef mapped;  // null: not mapped
};

struct ExternalMemory {
    Context* context = nullptr;
    uint64_t bytes = 0;
    FileDescriptor file;
    AllocationRef buffer;  // null: not mapped
};

struct ExternalSemaphore {
    Context* context = nullptr;
    bool timeline = false;
    FileDescriptor file;
    uint64_t* value = nullptr;  // of the file
    int unfinished = 0;         // operations that use it and have not run
};

// cuMemFree for the memory of a file.
int free_external_buffer(const AllocationRef& allocation);

// ---- The driver

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
    std::string planted{};                    // how devices fail: wrong_bit, hang
    std::set<std::string> missing{};          // functions that the driver lacks
};

struct Stream {
    std::string name;
    Context* context = nullptr;
    bool blocking = true;  // ordered with the legacy default stream
    OperationRef tail{};
    std::shared_ptr<Capture> capture{};
    std::vector<int> capture_tail{};
};

struct Event {
    Context* context = nullptr;
    uint32_t flags = 0;
    OperationRef recorded{};             // null: never
    std::shared_ptr<Capture> capture{};  // of the latest record, if it was captured
    std::vector<int> capture_tail{};
};

struct Pool { int device = 0; };

struct Module {
    Context* context = nullptr;
    int kind_of_worlds = 0;
    std::map<std::string, int> kernels;  // the bytes of their parameters; 0: unknown
    std::string ptx{};  // empty: machine code
};

struct Kernel {
    uint64_t module = 0;
    std::string name;
    int kind_of_worlds = 0;
    int parameter_bytes = 0;
    uint32_t shared_bytes_allowed = 48 * 1024;
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

// Runs all work of all streams, or of those of a context and of streams that were destroyed.
void execute_everything(const Context* of = nullptr);

// The last operations of these streams, if they are unfinished.
std::vector<OperationRef> unfinished_ends(const Context* of = nullptr);

// The calling thread's contexts, the current one last.
std::vector<uint64_t>& context_stack();
// The current context, or null after a violation.
Context* current_context();
Context* find_context(uint64_t handle);

// Records a violation of the calling function; returns the code.
int refuse(int code, const std::string& message);

// A live object, or null after a violation.
template <class T>
std::shared_ptr<T> find(const Objects<T>& objects, uint64_t handle) {
    std::shared_ptr<T> object = objects.find(handle);
    if (!object) refuse(0, text("%#lx is not one of the %s", handle, objects.kind));
    return object;
}

// The stream of a handle, including special handles; null after a violation.
Stream* find_stream(uint64_t handle);

// All functions of the driver, by their names without a version.
struct Listed {
    Listed(const char* symbol, int version, void* address);
    static const Listed* find(const std::string& name);

    std::string name;
    int version;
    void* address;
};

// Whether a call is allowed now, and the code to return if not. The symbol may end in a version.
int admit(const char* symbol);

// The code that a function returns that has returned this one: of a lost context, perhaps by work that has just run.
int code_of_end(int code);

// Runs every driver function: one at a time, recorded, and failing where a test requests it.
int call(const char* symbol, const auto& body) {
    std::lock_guard<std::recursive_mutex> guard(driver().mutex);
    if (const int code = admit(symbol)) return code;
    return code_of_end(body());
}

}  // namespace stand_in
