#include "driver.h"

#include <stdlib.h>
#include <unistd.h>

namespace stand_in {
namespace {

constexpr uint64_t kContextTag = uint64_t{0x10} << 40;

void read_number(const char* name, int64_t& value) {
    if (const char* chosen = getenv(name)) value = atoll(chosen);
}

Settings settings_of_environment() {
    Settings settings;
    read_number("STAND_IN_DEVICES", settings.devices);
    read_number("STAND_IN_DRIVER_VERSION", settings.driver_version);
    read_number("STAND_IN_COMPUTE_CAPABILITY", settings.compute_capability);
    read_number("STAND_IN_MULTIPROCESSORS", settings.multiprocessors);
    read_number("STAND_IN_MEMORY_BYTES", settings.memory_bytes);
    read_number("STAND_IN_BUSY", settings.busy);
    read_number("STAND_IN_EAGER", settings.eager);
    read_number("STAND_IN_SHARING", settings.sharing);
    read_number("STAND_IN_INTERPRETS", settings.interprets);
    if (const char* planted = getenv("STAND_IN_PLANTED")) settings.planted = planted;
    std::string missing = getenv("STAND_IN_MISSING") ? getenv("STAND_IN_MISSING") : "";
    for (size_t comma; !missing.empty(); missing.erase(0, comma == std::string::npos ? comma : comma + 1)) {
        comma = missing.find(',');
        settings.missing.insert(missing.substr(0, comma));
    }
    return settings;
}

bool needs_initialization(const std::string& function) {
    return function != "cuInit" && function != "cuDriverGetVersion" && !function.starts_with("cuGet");
}

// Codes after which the device has lost the context.
bool loses_context(int code) { return code == kIllegalAddress || (code >= 714 && code <= 719); }

thread_local std::vector<uint64_t> contexts_of_thread;

// Not destroyed with the process: the library may call until it ends.
Driver*& latest_driver() {
    static Driver* latest = new Driver(settings_of_environment());
    return latest;
}

}  // namespace

Driver::Driver(const Settings& settings) : settings(settings), process(getpid()) {
    contexts = std::vector<Context>(static_cast<size_t>(settings.devices));
    for (size_t device = 0; device < contexts.size(); ++device) {
        Context& context = contexts[device];
        context.device = static_cast<int>(device);
        context.handle = kContextTag + (device + 1) * 0x100;
        context.legacy.name = "the legacy default stream";
        context.legacy.context = &context;
        default_pools.push_back(pools.add({context.device}));
    }
}

// What callers have not ended keeps its file open until here.
Driver::~Driver() {
    std::vector<FileDescriptor> owned;
    for (const auto& [handle, memory] : physical_memories.alive) owned.push_back(memory->file);
    for (const auto& [handle, memory] : external_memories.alive) owned.push_back(memory->file);
    for (const auto& [handle, semaphore] : external_semaphores.alive) owned.push_back(semaphore->file);
    for (const FileDescriptor& file : owned)
        if (file.is_open()) close(file.number);
}

std::map<std::string, int64_t> Driver::live() const {
    std::map<std::string, int64_t> counts;
    for (const Context& context : contexts) counts["contexts"] += context.retained;
    for (const auto& [address, allocation] : memory)
        counts[allocation->pinned ? "pinned_memory" : "device_memory"] += !allocation->freeing;
    counts["streams"] = static_cast<int64_t>(streams.alive.size());
    counts["events"] = static_cast<int64_t>(events.alive.size());
    counts["modules"] = static_cast<int64_t>(modules.alive.size());
    counts["graphs"] = static_cast<int64_t>(graphs.alive.size());
    counts["physical_memories"] = static_cast<int64_t>(physical_memories.alive.size());
    counts["address_ranges"] = static_cast<int64_t>(address_ranges.size());
    counts["external_memories"] = static_cast<int64_t>(external_memories.alive.size());
    counts["external_semaphores"] = static_cast<int64_t>(external_semaphores.alive.size());
    for (const FileDescriptor& exported : exported_descriptors) counts["file_descriptors"] += exported.is_open();
    counts["graph_execs"] = static_cast<int64_t>(graph_execs.alive.size());
    std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
    return counts;
}

int64_t Driver::used_bytes(int device) const {
    int64_t bytes = 0;
    for (const auto& [handle, physical] : physical_memories.alive)
        if (physical->device == device) bytes += static_cast<int64_t>(physical->bytes);
    for (const auto& [address, allocation] : memory) {
        const bool taken_here = !allocation->pinned && !allocation->shared && allocation->device == device;
        if (taken_here) bytes += static_cast<int64_t>(allocation->bytes);
    }
    return bytes;
}

Driver& driver() { return *latest_driver(); }

void replace_driver(const Settings& settings) {
    delete latest_driver();
    latest_driver() = new Driver(settings);
    context_stack().clear();
    thread_capture_mode() = kCaptureGlobal;
}

int most_shared_bytes() {
    switch (driver().settings.compute_capability) {
        case 75: return 64 * 1024;
        case 80: case 87: return 163 * 1024;
        case 86: case 89: case 120: case 121: return 99 * 1024;
        default: return 227 * 1024;
    }
}

void execute_everything() {
    for (Context& context : driver().contexts) execute_everything(context);
}

void execute_everything(Context& context) {
    if (context.legacy.tail) execute(context.legacy.tail);
    for (const auto& [thread, stream] : context.per_thread)
        if (stream.tail) execute(stream.tail);
    for (const auto& [handle, stream] : driver().streams.alive)
        if (stream->context == &context && stream->tail) execute(stream->tail);
    for (const OperationRef& orphan : driver().orphans) execute(orphan);
    driver().orphans.clear();
}

std::vector<OperationRef> unfinished_ends() {
    std::vector<OperationRef> ends = driver().orphans;
    for (const Context& context : driver().contexts) {
        ends.push_back(context.legacy.tail);
        for (const auto& [thread, stream] : context.per_thread) ends.push_back(stream.tail);
    }
    for (const auto& [handle, stream] : driver().streams.alive) ends.push_back(stream->tail);
    std::erase_if(ends, [](const OperationRef& end) { return !end || end->done; });
    return ends;
}

std::vector<uint64_t>& context_stack() { return contexts_of_thread; }

Context* find_context(uint64_t handle) {
    for (Context& context : driver().contexts)
        if (context.handle == handle) return &context;
    return nullptr;
}

Context* current_context(const char* function) {
    Context* context = context_stack().empty() ? nullptr : find_context(context_stack().back());
    if (!context) driver().report.violation(text("%s: the thread has no current context", function));
    else if (context->retained == 0) driver().report.violation(text("%s: the current context was released", function));
    else return context;
    return nullptr;
}

Stream* find_stream(const char* function, uint64_t handle) {
    if (handle > 2) return find(function, driver().streams, handle).get();
    Context* context = current_context(function);
    if (!context) return nullptr;
    if (handle < 2) return &context->legacy;
    Stream& stream = context->per_thread[std::this_thread::get_id()];
    stream.name = "a per-thread default stream";
    stream.context = context;
    return &stream;
}

int refuse(int code, const std::string& message) {
    driver().report.violation(message);
    return code;
}

bool needs_context(const std::string& function) {
    for (const char* free : {"cuInit", "cuDriverGet", "cuDevice", "cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxSetCurrent",
                             "cuCtxPush", "cuCtxPop", "cuGetError", "cuGetProcAddress", "cuThread"})
        if (function.starts_with(free)) return false;
    return true;
}

int admit(const char* function) {
    Driver& state = driver();
    if (state.finalized) return kDeinitialized;
    if (getpid() != state.process) return refuse(kNotInitialized, text("%s: called in a forked process", function));
    if (const int code = state.report.begin_call(function)) {
        if (loses_context(code)) state.lost = code;
        return code;
    }
    if (needs_initialization(function) && !state.initialized)
        return refuse(kNotInitialized, text("%s: called before cuInit", function));
    return state.lost && needs_context(function) ? state.lost : kSuccess;
}

}  // namespace stand_in
