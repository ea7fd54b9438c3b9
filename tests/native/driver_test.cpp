// Loads the CUDA driver and translates its results to ds_status. Tests in Python check the texts of the errors.
#include "runtime/cuda/driver.h"

#include <string.h>

#include "installed_driver.h"
#include "functions.h"

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

LAW(a_driver_from_before_versioned_functions_tells_its_version_too) {
    stand_in::install({.driver_version = 10020});
    reset_driver([](const char* name) -> void* {
        void* found = nullptr;
        int status;
        if (strcmp(name, "cuDriverGetVersion") == 0) cuGetProcAddress_v2(name, &found, 2020, 0, &status);
        return found;
    });
    check_refused(DS_STATUS_DRIVER_VERSION);
    CHECK(message_has("10.2"));
}

LAW(the_older_way_to_find_functions_will_do) {
    stand_in::install();
    reset_driver(find_older_symbol);
    CHECK(find_driver());
}

LAW(a_driver_that_lacks_a_needed_function_is_refused_by_its_name) {
    for (const bool newer : {true, false}) {
        stand_in::install({.driver_version = 12040, .missing = {"cuDeviceGetDefaultMemPool"}});
        if (!newer) reset_driver(find_older_symbol);
        check_refused(DS_STATUS_DRIVER_FUNCTION);
        CHECK(message_has("cuDeviceGetDefaultMemPool") && message_has("12.4") && message_has("12.0"));
    }
}

LAW(a_newer_function_that_is_missing_fails_when_it_is_called) {
    stand_in::install({.driver_version = 12020});
    const Driver* found = find_driver();
    CHECK(found);
    CHECK_EQUAL(fail_driver(found->cuFuncLoad(nullptr), "cuFuncLoad"), DS_STATUS_DRIVER_FUNCTION);
    CHECK(message_has("cuFuncLoad") && message_has("12.4") && message_has("12.2"));
}

LAW(a_refusal_is_kept_and_told_in_every_thread) {
    stand_in::install({.driver_version = 11080});
    check_refused(DS_STATUS_DRIVER_VERSION);
    const int64_t calls = stand_in::calls();
    run_in_threads(1, [] {
        check_refused(DS_STATUS_DRIVER_VERSION);
        CHECK(message_has("11.8"));
    });
    CHECK_EQUAL(stand_in::calls(), calls);
}

LAW(the_driver_is_initialised_once_by_many_threads) {
    stand_in::install();
    run_in_threads(8, [] { CHECK(find_driver()); });
    CHECK_EQUAL(stand_in::count_calls("cuInit"), 1);
}

LAW(what_was_not_ready_may_be_so_the_next_time) {
    stand_in::install();
    stand_in::fail_next("cuInit", CUDA_ERROR_MPS_SERVER_NOT_READY);
    check_refused(DS_STATUS_DEVICE_BUSY);
    CHECK(find_driver());
}

// ---- Results ----

LAW(every_result_has_its_status) {
    stand_in::install({.driver_version = 12040});
    CHECK(find_driver());
    // Memory, deinitialized, stub; unavailable, no, invalid device; PTX, address, mismatch; MPS; capture, unknown
    const std::pair<int, ds_status> expected[] = {
        {2, DS_STATUS_OUT_OF_MEMORY},    {4, DS_STATUS_DEVICE},           {34, DS_STATUS_NO_DRIVER},
        {46, DS_STATUS_DEVICE_BUSY},     {100, DS_STATUS_NO_DEVICE},      {101, DS_STATUS_NO_DEVICE},
        {222, DS_STATUS_DRIVER_VERSION}, {700, DS_STATUS_DEVICE},         {803, DS_STATUS_DRIVER_VERSION},
        {805, DS_STATUS_DEVICE},         {807, DS_STATUS_DEVICE_BUSY},    {808, DS_STATUS_DEVICE_BUSY},
        {809, DS_STATUS_DEVICE_BUSY},    {906, DS_STATUS_DEVICE},         {12345, DS_STATUS_DEVICE}};
    for (const auto& [result, status] : expected) {
        CHECK_EQUAL(fail_driver(static_cast<CUresult>(result), "cuSomething"), status);
        CHECK_EQUAL(latest_error().driver_code, result);
        CHECK(message_has("cuSomething") && message_has("12.4") && *latest_error().hint);
    }
}

LAW(a_bad_handle_is_blamed_on_the_argument_if_there_is_one) {
    stand_in::install();
    CHECK(find_driver());
    CHECK_EQUAL(fail_driver(CUDA_ERROR_INVALID_HANDLE, "cuStreamQuery", "stream"), DS_STATUS_INVALID_ARGUMENT);
    CHECK(strcmp(latest_error().argument, "stream") == 0);
    CHECK_EQUAL(fail_driver(CUDA_ERROR_INVALID_HANDLE, "cuStreamQuery"), DS_STATUS_DEVICE);
}

}  // namespace
