#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "math/base.h"
#include "runtime/futex.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

enum State : uint32_t {
    kUnopened,
    kOpening,  // also what a fork during the loading finds
    kOpened,   // the table is filled, but cuInit() has not succeeded yet
    kReady,
    kRefused,  // permanently, see refusal
    kForked,   // in the child of a process that was loading, or had loaded, the driver
};

constinit Mutex open_mutex;  // guards what is below but the state, which is read without it, and what is kept
constinit std::atomic<uint32_t> state{kUnopened};
constinit Driver table{};
constinit bool fork_handler_installed = false;
constinit std::atomic<uint64_t> kept_contexts{0};  // a bit per device
constinit CUmodule kept_modules[kMostDevices][kMostModules]{};

// Why the driver was refused, for the errors of all threads.
struct Refusal {
    ds_status status;
    int32_t driver_code;
    char message[768];
    char hint[384];
};
constinit Refusal refusal{};

constexpr const char* kUpdateHint = "update the NVIDIA driver to R525 or newer, or use the CPU";

// ---- Functions that return an error without calling the driver ----

template <class Pointer>
struct Refusing;

template <class... Arguments>
struct Refusing<CUresult (*)(Arguments...)> {
    static CUresult missing(Arguments...) { return kFunctionMissing; }
    static CUresult forked(Arguments...) { return kCalledInForkedProcess; }
};

// A forked child has one thread, so no other thread reads the table meanwhile.
void after_fork_in_child() {
    open_mutex.reset();
    const uint32_t before = state.load(std::memory_order_relaxed);
    if (before == kUnopened || before == kRefused) return;
#define DS_DRIVER_FORKED(name, version, parameters) table.name = Refusing<decltype(table.name)>::forked;
    DS_DRIVER_TABLE(DS_DRIVER_FORKED)
#undef DS_DRIVER_FORKED
    state.store(kForked, std::memory_order_relaxed);
}

// ---- Symbols ----

constinit SymbolResolver resolver_for_tests = nullptr;

// The source of the driver's symbols.
class Library {
public:
    // False, with the thread's error set, if no library can be opened.
    bool open() {
        if (resolver_for_tests) return true;
        handle_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (handle_) return true;
        const char* reason = dlerror();
        char first_reason[256];
        snprintf(first_reason, sizeof first_reason, "%s", reason ? reason : "unknown reason");
        handle_ = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
        if (handle_) return true;
        fail(DS_STATUS_NO_DRIVER, "",
             "install the NVIDIA driver (R525 or newer); in a container, start it with access to the GPUs; or use "
             "the CPU",
             "no NVIDIA driver was found: libcuda.so.1 cannot be opened (%s)", first_reason);
        return false;
    }

    void* symbol(const char* name) const {
        return resolver_for_tests ? resolver_for_tests(name) : dlsym(handle_, name);
    }

private:
    void* handle_ = nullptr;  // never closed: other libraries may use the driver
};

// cuGetProcAddress in its two forms: requests functions from the driver.
class FunctionFinder {
public:
    explicit FunctionFinder(const Library& library)
        : newer_(reinterpret_cast<Newer>(library.symbol("cuGetProcAddress_v2"))),
          older_(reinterpret_cast<Older>(library.symbol("cuGetProcAddress"))) {}

    explicit operator bool() const { return newer_ || older_; }

    // Null if the driver does not have it.
    void* find(const char* name, int version) const {
        void* function = nullptr;
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
        const CUresult result = newer_ ? newer_(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found)
                                       : older_(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
        return result == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS ? function : nullptr;
    }

private:
    using Newer = CUresult (*)(const char*, void**, int, uint64_t, CUdriverProcAddressQueryResult*);
    using Older = CUresult (*)(const char*, void**, int, uint64_t);
    Newer newer_;
    Older older_;
};

// ---- Opening ----

bool install_fork_handler() {
    fork_handler_installed =
        fork_handler_installed || pthread_atfork(nullptr, nullptr, after_fork_in_child) == 0;
    if (!fork_handler_installed) {
        fail(DS_STATUS_OUT_OF_MEMORY, "", "close other programs", "no memory is left for the fork handlers");
    }
    return fork_handler_installed;
}

// The driver's version; 0 if it does not report one.
int ask_version(void* function) {
    int version = 0;
    if (function) reinterpret_cast<CUresult (*)(int*)>(function)(&version);
    return version;
}

bool refuse_version(int version) {
    if (version == 0) {
        fail(DS_STATUS_DRIVER_VERSION, "", kUpdateHint,
             "the NVIDIA driver does not report its version (cuDriverGetVersion); doorstep needs CUDA %d.%d or newer",
             kMinimumDriverVersion / 1000, kMinimumDriverVersion % 1000 / 10);
        return false;
    }
    fail(DS_STATUS_DRIVER_VERSION, "", kUpdateHint,
         "the NVIDIA driver is too old: it supports CUDA %d.%d; doorstep needs %d.%d or newer", version / 1000,
         version % 1000 / 10, kMinimumDriverVersion / 1000, kMinimumDriverVersion % 1000 / 10);
    return false;
}

bool refuse_missing_functions(const char* first, int count) {
    fail(DS_STATUS_DRIVER_FUNCTION, "", kUpdateHint,
         "the NVIDIA driver (CUDA %d.%d) lacks %d functions that doorstep needs (CUDA %d.%d has them), among them %s",
         table.version / 1000, table.version % 1000 / 10, count, kMinimumDriverVersion / 1000,
         kMinimumDriverVersion % 1000 / 10, first);
    return false;
}

// Fills the table; missing functions are replaced by one that returns an error. False if the driver cannot be used.
bool fill_table(const FunctionFinder& finder) {
    const char* first_missing = nullptr;
    int missing_count = 0;
#define DS_DRIVER_FIND(name, introduced, parameters)                                             \
    table.name = reinterpret_cast<decltype(table.name)>(finder.find(#name, introduced));         \
    if (!table.name) table.name = Refusing<decltype(table.name)>::missing;
#define DS_DRIVER_REQUIRE(name, introduced, parameters)          \
    DS_DRIVER_FIND(name, introduced, parameters)                 \
    if (table.name == Refusing<decltype(table.name)>::missing) { \
        if (!first_missing) first_missing = #name;               \
        ++missing_count;                                         \
    }
    DS_DRIVER_BASELINE(DS_DRIVER_REQUIRE)
    DS_DRIVER_OPTIONAL(DS_DRIVER_FIND)
#undef DS_DRIVER_REQUIRE
#undef DS_DRIVER_FIND
    return missing_count == 0 || refuse_missing_functions(first_missing, missing_count);
}

bool open_driver() {
    Library library;
    if (!library.open()) return false;
    const FunctionFinder finder(library);
    // Drivers before CUDA 11.3 have no cuGetProcAddress; only their version is read.
    table.version = ask_version(finder ? finder.find("cuDriverGetVersion", 2020) : library.symbol("cuDriverGetVersion"));
    if (!finder || table.version < kMinimumDriverVersion) return refuse_version(table.version);
    return fill_table(finder);
}

void keep_refusal() {
    ds_error error{};
    read_last_error(&error);
    refusal.status = static_cast<ds_status>(error.status);
    refusal.driver_code = error.driver_code;
    snprintf(refusal.message, sizeof refusal.message, "%s", error.message);
    snprintf(refusal.hint, sizeof refusal.hint, "%s", error.hint);
}

void tell_refusal() {
    fail(refusal.status, "", refusal.hint, "%s", refusal.message);
    set_driver_code(refusal.driver_code);
}

// Under open_mutex. True if the driver may be called.
bool open_once() {
    if (state.load() == kUnopened) {
        if (!install_fork_handler()) return false;
        state.store(kOpening);
        const bool opened = open_driver();
        if (!opened) keep_refusal();
        state.store(opened ? kOpened : kRefused);
    }
    if (state.load() == kOpened) {  // a server that was not ready may be ready the next time
        if (const CUresult result = table.cuInit(0)) {
            fail_driver(result, "cuInit");
            return false;
        }
        state.store(kReady, std::memory_order_release);
    }
    if (state.load() == kRefused) tell_refusal();
    return state.load() == kReady;
}

}  // namespace

const Driver* find_driver() {
    const uint32_t now = state.load(std::memory_order_acquire);
    if (now == kReady) return &table;
    if (now == kForked) {
        fail_driver(kCalledInForkedProcess, "cuInit");
        return nullptr;
    }
    MutexGuard guard(open_mutex);
    return open_once() ? &table : nullptr;
}

const Driver& driver() {
    DS_ASSERT(state.load(std::memory_order_relaxed) != kUnopened);
    return table;
}

bool keeps_primary_context(CUdevice device) {
    DS_ASSERT(device >= 0 && device < kMostDevices);
    const uint64_t bit = uint64_t{1} << device;
    return !(kept_contexts.fetch_or(bit) & bit);
}

CUmodule& kept_module(CUdevice device, int number) {
    DS_ASSERT(device >= 0 && device < kMostDevices && number >= 0 && number < kMostModules);
    return kept_modules[device][number];
}

bool in_forked_process() { return state.load(std::memory_order_relaxed) == kForked; }

void reset_driver(SymbolResolver resolver) {
    MutexGuard guard(open_mutex);
    resolver_for_tests = resolver;
    table = {};
    kept_contexts.store(0);
    memset(kept_modules, 0, sizeof kept_modules);
    state.store(kUnopened);
}

}  // namespace doorstep
