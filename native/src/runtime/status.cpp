#include "runtime/status.h"

#include <stdarg.h>
#include <stdio.h>

namespace doorstep {
namespace {

struct LastError {
    ds_status status;
    char message[768];
    char argument[64];
    char hint[384];
};

// Plain data: no constructor to run in foreign threads, no destructor to run at their end.
thread_local LastError last_error;

}  // namespace

ds_status fail(ds_status status, const char* argument, const char* hint, const char* format, ...) {
    last_error.status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error.message, sizeof last_error.message, format, arguments);
    va_end(arguments);
    snprintf(last_error.argument, sizeof last_error.argument, "%s", argument);
    snprintf(last_error.hint, sizeof last_error.hint, "%s", hint);
    return status;
}

void read_last_error(ds_error* error) {
    error->status = last_error.status;
    error->message = last_error.message;
    error->argument = last_error.argument;
    error->hint = last_error.hint;
}

}  // namespace doorstep
