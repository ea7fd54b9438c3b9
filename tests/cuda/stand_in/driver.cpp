#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

namespace stand_in {
namespace {

constexpr uint64_t kContextTag = uint64_t{0x10} << 40;

Settings settings_of_environment() {
    Settings settings;
    const std::pair<const char*, int64_t*> numbers[] = {
        {"DEVICES", &settings.devices},           {"DRIVER_VERSION", &settings.driver_version},
        {"MULTIPROCESSORS", &settings.multiprocessors}, {"COMPUTE_CAPABILITY", &settings.compute_capability},
        {"BUSY", &settings.busy},                 {"SHARING", &settings.sharing},
        {"INTERPRETS", &settings.interprets}};
    for (const auto& [name, value] : numbers)
        if (const char* chosen = getenv(text("STAND_IN_%s", name).c_str())) *value = atoll(chosen);
    if (const char* planted = getenv("STAND_IN_PLANTED")) settings.planted = planted;
    return settings;
}

bool needs_initialization(const std::string& function) {
    return function != "cuInit" && function != "cuDriverGetVersion" && !function.starts_with("cuGet");
}

// Codes after which the device has lost the context.
bool loses_context(int code) { return code == kIllegalAddress || (code >= 714 && code <= 719); }

thread_local std::vector<uint64_t> contexts_of_thread;
thread_local char calling[64];  // the name of the function

std::string without_version(const std::string& symbol) { return symbol.substr(0, symbol.find("_v")); }

// Whether a function fails once the context is lost.
bool needs_context(const std::string& function) {
    for (const char* free : {"cuInit", "cuDriverGet", "cuDevice", "cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxPush",
                             "cuCtxPop", "cuGetError", "cuGetProcAddress", "cuThread"})
        if (function.starts_with(free)) return false;
    return true;
}

std::vector<const Listed*>& listed() {
    static auto* all = new std::vector<const Listed*>;
    return *all;
}

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
    const auto close_files = [](const auto& objects) {
        for (const auto& [handle, object] : objects.alive)
            if (object->file.is_open()) close(object->file.number);
    };
    close_files(physical_memories);
    close_files(external_memories);
    close_files(external_semaphores);
}

std::map<std::string, int64_t> Driver::live() const {
    std::map<std::string, int64_t> counts{{"address_ranges", static_cast<int64_t>(address_ranges.size())}};
    const auto add = [&](const auto&... objects) {
        ((counts[objects.kind] = static_cast<int64_t>(objects.alive.size())), ...);
    };
    add(streams, events, modules, graphs, graph_execs, physical_memories, external_memories, external_semaphores);
    for (const Context& context : contexts) counts["contexts"] += context.retained;
    for (const auto& [address, allocation] : memory)
        counts[allocation->pinned ? "pinned_memory" : "device_memory"] += !allocation->freeing;
    for (const FileDescriptor& exported : exported_descriptors) counts["file_descriptors"] += exported.is_open();
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

void execute_everything(const Context* of) {
    for (const OperationRef& end : unfinished_ends(of)) execute(end);
}

std::vector<OperationRef> unfinished_ends(const Context* of) {
    const auto is_finished = [](const OperationRef& end) { return !end || end->done; };
    std::erase_if(driver().orphans, is_finished);
    std::vector<OperationRef> ends = driver().orphans;
    for (const Context& context : driver().contexts) {
        if (of && of != &context) continue;
        ends.push_back(context.legacy.tail);
        for (const auto& [thread, stream] : context.per_thread) ends.push_back(stream.tail);
    }
    for (const auto& [handle, stream] : driver().streams.alive)
        if (!of || of == stream->context) ends.push_back(stream->tail);
    std::erase_if(ends, is_finished);
    return ends;
}

std::vector<uint64_t>& context_stack() { return contexts_of_thread; }

Context* find_context(uint64_t handle) {
    for (Context& context : driver().contexts)
        if (context.handle == handle) return &context;
    return nullptr;
}

Context* current_context() {
    Context* context = context_stack().empty() ? nullptr : find_context(context_stack().back());
    if (context && context->retained) return context;
    refuse(0, context ? "the current context was released" : "the thread has no current context");
    return nullptr;
}

Stream* find_stream(uint64_t handle) {
    if (handle > 2) return find(driver().streams, handle).get();
    Context* context = current_context();
    if (!context) return nullptr;
    if (handle < 2) return &context->legacy;
    Stream& stream = context->per_thread[std::this_thread::get_id()];
    stream.name = "a per-thread default stream";
    stream.context = context;
    return &stream;
}

int refuse(int code, const std::string& message) {
    driver().report.violation(text("%s: %s", calling, message.c_str()));
    return code;
}

Listed::Listed(const char* symbol, int version, void* address)
    : name(without_version(symbol)), version(version), address(address) {
    listed().push_back(this);
}

const Listed* Listed::find(const std::string& name) {
    for (const Listed* function : listed())
        if (function->name == name) return function;
    return nullptr;
}

int admit(const char* symbol) {
    Driver& state = driver();
    snprintf(calling, sizeof calling, "%s", without_version(symbol).c_str());
    if (state.finalized) return kDeinitialized;
    if (getpid() != state.process) return refuse(kNotInitialized, "called in a forked process");
    if (const int code = state.report.begin_call(calling)) {
        if (loses_context(code)) state.lost = code;
        return code;
    }
    if (needs_initialization(calling) && !state.initialized) return refuse(kNotInitialized, "called before cuInit");
    return state.lost && needs_context(calling) ? state.lost : kSuccess;
}

int code_of_end(int code) {
    const int lost = driver().lost;
    return code == kSuccess && lost && needs_context(calling) ? lost : code;
}

// ---- The report

namespace {

constexpr size_t kLongestLog = 20000;  // further calls are not recorded

std::string quoted(const std::string& value) {
    std::string result = "\"";
    for (const char c : value) {
        if (c == '"' || c == '\\') result += '\\';
        result += c < ' ' ? ' ' : c;
    }
    return result + "\"";
}

std::string list(const std::vector<std::string>& values) {
    std::string result;
    for (const std::string& value : values) result += (result.empty() ? "" : ", ") + quoted(value);
    return "[" + result + "]";
}

}  // namespace

int Report::begin_call(const std::string& function) {
    if (calls.size() < kLongestLog) calls.push_back(function);
    for (Fault& fault : faults) {
        if (!fault.function.empty() && fault.function != function) continue;
        if (--fault.calls_left != 0) continue;
        failed = function;
        has_failed = true;
        return fault.code;
    }
    return 0;
}

void Report::clear_calls() {
    calls.clear(), faults.clear(), failed.clear();
    waits = bus_bytes = 0;
}

std::string Report::to_json(const std::map<std::string, int64_t>& live, int64_t pending) const {
    std::string counts;
    for (const auto& [kind, count] : live)
        counts += text("%s\"%s\": %ld", counts.empty() ? "" : ", ", kind.c_str(), count);
    return text("{\"violations\": %s, \"live\": {%s}, \"pending\": %ld, \"calls\": %s, \"failed\": %s, \"waits\": %ld, "
                "\"bus_bytes\": %ld}",
                list(violations).c_str(), counts.c_str(), pending, list(calls).c_str(), quoted(failed).c_str(),
                waits, bus_bytes);
}

std::string text(const char* format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    std::string result(static_cast<size_t>(vsnprintf(nullptr, 0, format, arguments)), '\0');
    vsnprintf(result.data(), result.size() + 1, format, again);
    va_end(again);
    va_end(arguments);
    return result;
}

}  // namespace stand_in
