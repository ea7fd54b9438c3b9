#include "runtime/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace doorstep {
namespace {

// Plain data, so that foreign threads run no constructor or destructor.
thread_local Failure last_error;

}  // namespace

ds_status fail(ds_status status, const char* argument, const char* hint, const char* format, ...) {
    Failure failure;  // the strings may be those of the last error
    failure.status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure.message, sizeof failure.message, format, arguments);
    va_end(arguments);
    snprintf(failure.argument, sizeof failure.argument, "%s", argument);
    snprintf(failure.hint, sizeof failure.hint, "%s", hint);
    failure.driver_code = 0;
    return fail_again(failure);
}

void set_driver_code(int32_t code) { last_error.driver_code = code; }

void add_detail(const char* format, ...) {
    const size_t length = strlen(last_error.message);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error.message + length, sizeof last_error.message - length, format, arguments);
    va_end(arguments);
}

const Failure& last_failure() { return last_error; }

ds_status fail_again(const Failure& failure) {
    last_error = failure;
    return failure.status;
}

ds_status last_status() { return last_error.status; }

void read_last_error(ds_error* error) {
    error->status = last_error.status;
    error->message = last_error.message;
    error->argument = last_error.argument;
    error->hint = last_error.hint;
    error->driver_code = last_error.driver_code;
}

}  // namespace doorstep
