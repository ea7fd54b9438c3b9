// Functions with which the tests query and control the stand-in; a real driver does not have them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "functions.h"

using namespace stand_in;

// Violations, live objects and calls so far, as JSON; valid until the thread's next call.
STAND_IN_EXPORT const char* stand_in_report() {
    std::lock_guard<std::recursive_mutex> guard(driver().mutex);
    thread_local std::string json;
    json = driver().report.to_json(driver().live(), pending_operations());
    return json.c_str();
}

// The n-th next call of a function ("" any) returns the code without effect.
STAND_IN_EXPORT void stand_in_fail(const char* function, int64_t nth, int code) {
    std::lock_guard<std::recursive_mutex> guard(driver().mutex);
    driver().report.faults.push_back({function, nth, code});
}

// Clears the recorded calls and the planned failures.
STAND_IN_EXPORT void stand_in_clear() {
    std::lock_guard<std::recursive_mutex> guard(driver().mutex);
    driver().report.clear_calls();
}

// Runs all work that was begun.
STAND_IN_EXPORT void stand_in_finish() {
    std::lock_guard<std::recursive_mutex> guard(driver().mutex);
    execute_everything();
}

// Copies bytes of a device's memory at once, without waiting for work. 0 if the memory does not exist.
STAND_IN_EXPORT int stand_in_peek(uint64_t address, void* to, uint64_t bytes) {
    std::lock_guard<std::recursive_mutex> guard(driver().mutex);
    const AllocationRef allocation = find_allocation(address);
    if (!allocation || allocation->freed || !allocation->contains(address, bytes)) return 0;
    const OpenMemory open({{allocation, 0, bytes, false}});
    memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return 1;
}

// As in the driver when a process ends: from here on every call fails. Tests of the end of a process name a file for
// the report.
__attribute__((destructor)) static void end_of_process() {
    std::lock_guard<std::recursive_mutex> guard(driver().mutex);
    driver().finalized = true;
    const char* path = getenv("STAND_IN_REPORT");
    FILE* file = path ? fopen(path, "w") : nullptr;
    if (!file) return;
    fputs(stand_in_report(), file);
    fclose(file);
}
