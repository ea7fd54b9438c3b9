#include "render/api/core.h"

#include <stdarg.h>
#include <stdio.h>

namespace doorstep {
namespace {

const ds_api* table = nullptr;

}  // namespace

const ds_api& core() { return *table; }
bool has_core() { return table != nullptr; }
void set_core(const ds_api* api) { table = api; }

ds_status fail(ds_status status, const char* argument, const char* hint, const char* format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (table) table->set_error(status, argument, hint, message);
    return status;
}

}  // namespace doorstep
