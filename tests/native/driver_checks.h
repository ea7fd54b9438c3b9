// Checks of tests on the stand-in driver: the thread's error, and leaks.
#pragma once

#include <stdint.h>

#include "check.h"
#include "installed_driver.h"
#include "runtime/reference.h"
#include "runtime/status.h"

inline ds_error latest_error() {
    ds_error error{};
    doorstep::read_last_error(&error);
    return error;
}

inline int64_t live_resources() {
    int64_t sum = 0;
    for (const auto& count : doorstep::live_counts.resources) sum += count.load();
    return sum;
}

// Nothing is left alive but contexts and modules, which the process keeps, and no call broke the driver's rules.
inline void check_clean() {
    CHECK_EQUAL(live_resources(), 0);
    CHECK_EQUAL(stand_in::alive(), 0);
    for (int device = 0; device < stand_in::driver().settings.devices; ++device) CHECK(stand_in::retained(device) <= 1);
    CHECK_EQUAL(stand_in::violations(), 0);
}
