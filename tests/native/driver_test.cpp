// Loading the CUDA driver, and the translation of its results.
#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "driver_checks.h"
#include "functions.h"
#include "processes.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/stream.h"

namespace {

using namespace doorstep;

bool message_has(const char* text) { return strstr(latest_error().message, text) != nullptr; }

void check_refused(ds_status status) {
    CHECK(!find_driver());
    CHECK_EQUAL(last_status(), status);
    CHECK(*latest_error().hint);
}

// cuGetProcAddress of the drivers of CUDA 11.3 to 11.8.
CUresult get_older_proc_address(const char* name, void** function, int version, uint64_t flags) {
    int found;
    const int result = cuGetProcAddress_v2(name, function, version, flags, &found);
    return result || *function ? static_cast<CUresult>(result) : CUDA_ERROR_NOT_FOUND;
}

void* find_older_symbol(const char* name) {
    return strcmp(name, "cuGetProcAddress") == 0 ? reinterpret_cast<void*>(&get_older_proc_address) : nullptr;
}

// ---- Loading ----

void a_machine_without_a_driver_is_told_so() {
    if (dlopen("libcuda.so.1", RTLD_LAZY) || dlopen("libcuda.so", RTLD_LAZY)) return;
    reset_driver(nullptr);
    check_refused(DS_STATUS_NO_DRIVER);
    CHECK(message_has("libcuda.so.1"));
}

void a_driver_that_is_too_old_is_refused_with_both_versions() {
    stand_in::install({.driver_version = 11080});
    check_refused(DS_STATUS_DRIVER_VERSION);
    CHECK(message_has("11.8"));
    CHECK(message_has("12.0"));
    CHECK_EQUAL(stand_in::first_call("cuInit"), -1);
}

void a_driver_from_before_versioned_functions_tells_its_version_too() {
    stand_in::install({.driver_version = 10020});
    reset_driver([](const char* name) -> void* {
        return strcmp(name, "cuDriverGetVersion") == 0 ? reinterpret_cast<void*>(&cuDriverGetVersion) : nullptr;
    });
    check_refused(DS_STATUS_DRIVER_VERSION);
    CHECK(message_has("10.2"));
}

void the_older_way_to_find_functions_will_do() {
    stand_in::install();
    reset_driver(find_older_symbol);
    CHECK(find_driver());
}

void a_driver_that_lacks_a_needed_function_is_refused_by_its_name() {
    for (const bool newer : {true, false}) {
        stand_in::install({.driver_version = 12040, .missing = {"cuDeviceGetDefaultMemPool"}});
        if (!newer) reset_driver(find_older_symbol);
        check_refused(DS_STATUS_DRIVER_FUNCTION);
        CHECK(message_has("cuDeviceGetDefaultMemPool"));
        CHECK(message_has("12.4"));
        CHECK(message_has("12.0"));
    }
}

void a_newer_function_that_is_missing_fails_when_it_is_called() {
    stand_in::install({.driver_version = 12020});
    const Driver* found = find_driver();
    CHECK(found);
    CHECK_EQUAL(fail_driver(found->cuFuncLoad(nullptr), "cuFuncLoad"), DS_STATUS_DRIVER_FUNCTION);
    CHECK(message_has("cuFuncLoad"));
    CHECK(message_has("12.4"));
    CHECK(message_has("12.2"));
}

void a_refusal_is_kept_and_told_in_every_thread() {
    stand_in::install({.driver_version = 11080});
    check_refused(DS_STATUS_DRIVER_VERSION);
    const int64_t calls = stand_in::calls();
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, nullptr,
                               [](void*) -> void* {
                                   check_refused(DS_STATUS_DRIVER_VERSION);
                                   CHECK(message_has("11.8"));
                                   return nullptr;
                               },
                               nullptr),
                0);
    pthread_join(thread, nullptr);
    CHECK_EQUAL(stand_in::calls(), calls);
}

void the_driver_is_initialised_once_by_many_threads() {
    stand_in::install();
    pthread_t threads[8];
    for (pthread_t& thread : threads) {
        CHECK_EQUAL(pthread_create(&thread, nullptr,
                                   [](void*) -> void* {
                                       CHECK(find_driver());
                                       return nullptr;
                                   },
                                   nullptr),
                    0);
    }
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    CHECK_EQUAL(stand_in::count_calls("cuInit"), 1);
}

void what_was_not_ready_may_be_so_the_next_time() {
    stand_in::install();
    stand_in::fail_next("cuInit", CUDA_ERROR_MPS_SERVER_NOT_READY);
    check_refused(DS_STATUS_DEVICE_BUSY);
    CHECK(find_driver());
}

void a_machine_without_devices_is_told_so() {
    stand_in::install({.devices = 0});
    check_refused(DS_STATUS_NO_DEVICE);
}

void a_device_that_does_not_exist_is_named_with_the_number_there_is() {
    stand_in::install({.devices = 2});
    CUdevice device;
    for (const int64_t index : {int64_t{-1}, int64_t{2}, INT64_MAX}) {
        CHECK_EQUAL(find_device(index, &device), DS_STATUS_NO_DEVICE);
        CHECK(message_has("the driver has 2"));
        CHECK(strcmp(latest_error().argument, "device_index") == 0);
    }
}

// ---- Results ----

void every_result_has_its_status() {
    stand_in::install({.driver_version = 12040});
    CHECK(find_driver());
    const struct {
        int result;
        ds_status status;
    } expected[] = {
        {2, DS_STATUS_OUT_OF_MEMORY},   // OUT_OF_MEMORY
        {4, DS_STATUS_DEVICE},          // DEINITIALIZED
        {34, DS_STATUS_NO_DRIVER},      // STUB_LIBRARY
        {46, DS_STATUS_DEVICE_BUSY},    // DEVICE_UNAVAILABLE
        {100, DS_STATUS_NO_DEVICE},     // NO_DEVICE
        {101, DS_STATUS_NO_DEVICE},     // INVALID_DEVICE
        {222, DS_STATUS_DRIVER_VERSION},  // UNSUPPORTED_PTX_VERSION
        {700, DS_STATUS_DEVICE},        // ILLEGAL_ADDRESS
        {803, DS_STATUS_DRIVER_VERSION},  // SYSTEM_DRIVER_MISMATCH
        {805, DS_STATUS_DEVICE},        // MPS_CONNECTION_FAILED
        {807, DS_STATUS_DEVICE_BUSY},   // MPS_SERVER_NOT_READY
        {808, DS_STATUS_DEVICE_BUSY},   // MPS_MAX_CLIENTS_REACHED
        {809, DS_STATUS_DEVICE_BUSY},   // MPS_MAX_CONNECTIONS_REACHED
        {906, DS_STATUS_DEVICE},        // STREAM_CAPTURE_IMPLICIT
        {12345, DS_STATUS_DEVICE},      // an unknown one
    };
    for (const auto& [result, status] : expected) {
        CHECK_EQUAL(fail_driver(static_cast<CUresult>(result), "cuSomething"), status);
        CHECK_EQUAL(latest_error().driver_code, result);
        CHECK(message_has("cuSomething"));
        CHECK(message_has("12.4"));
        CHECK(*latest_error().hint);
    }
}

void a_bad_handle_is_blamed_on_the_argument_if_there_is_one() {
    stand_in::install();
    CHECK(find_driver());
    CHECK_EQUAL(fail_driver(CUDA_ERROR_INVALID_HANDLE, "cuStreamQuery", "stream"), DS_STATUS_INVALID_ARGUMENT);
    CHECK(strcmp(latest_error().argument, "stream") == 0);
    CHECK_EQUAL(fail_driver(CUDA_ERROR_INVALID_HANDLE, "cuStreamQuery"), DS_STATUS_DEVICE);
}

void the_drivers_code_is_that_of_the_latest_failure_of_the_thread() {
    stand_in::install();
    CHECK(find_driver());
    fail_driver(CUDA_ERROR_ILLEGAL_ADDRESS, "cuStreamQuery");
    CHECK_EQUAL(latest_error().driver_code, 700);
    fail(DS_STATUS_CLOSED, "stream", "", "closed");
    CHECK_EQUAL(latest_error().driver_code, 0);
}

// ---- Forks ----

int64_t owners_released = 0;

void a_forked_child_calls_the_driver_never_and_is_told_why() {
    stand_in::install();
    const int code = run_in_child([] {
        // If the driver was not loaded before the fork, the child can load it.
        stand_in::replace_driver({});
        CHECK(find_driver());
        return 0;
    });
    CHECK_EQUAL(code, 0);
    Ref<Context> context = Context::of_device(0);
    Ref<Stream> stream = Stream::create(context);
    Ref<Stream> foreign = Stream::borrow(context, 2, {&owners_released, [](void*) { ++owners_released; }});
    CHECK(foreign);
    const int64_t calls = stand_in::calls();
    const int in_child = run_in_child([&] {
        CHECK(!find_driver());
        CHECK_EQUAL(last_status(), DS_STATUS_DEVICE);
        CHECK(strstr(latest_error().hint, "spawn"));
        CHECK(!Context::of_device(0));
        CHECK(!Stream::create(context));
        CHECK_EQUAL(stream->synchronize(), DS_STATUS_DEVICE);
        CHECK(!find_resource<Stream>(0, stream->raw()));
        stream = {};
        foreign = {};
        context = {};
        CHECK_EQUAL(owners_released, 0);
        CHECK_EQUAL(stand_in::calls(), calls);
        return 0;
    });
    CHECK_EQUAL(in_child, 0);
    CHECK_EQUAL(stream->synchronize(), DS_STATUS_OK);
}

}  // namespace

int main() {
    RUN(a_machine_without_a_driver_is_told_so);
    RUN(a_driver_that_is_too_old_is_refused_with_both_versions);
    RUN(a_driver_from_before_versioned_functions_tells_its_version_too);
    RUN(the_older_way_to_find_functions_will_do);
    RUN(a_driver_that_lacks_a_needed_function_is_refused_by_its_name);
    RUN(a_newer_function_that_is_missing_fails_when_it_is_called);
    RUN(a_refusal_is_kept_and_told_in_every_thread);
    RUN(the_driver_is_initialised_once_by_many_threads);
    RUN(what_was_not_ready_may_be_so_the_next_time);
    RUN(a_machine_without_devices_is_told_so);
    RUN(a_device_that_does_not_exist_is_named_with_the_number_there_is);
    RUN(every_result_has_its_status);
    RUN(a_bad_handle_is_blamed_on_the_argument_if_there_is_one);
    RUN(the_drivers_code_is_that_of_the_latest_failure_of_the_thread);
    RUN(a_forked_child_calls_the_driver_never_and_is_told_why);
}
