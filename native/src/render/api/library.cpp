// The library as a whole: the table of the simulators' library, version, layout of structs, available renderers.
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "render/cameras/cameras.h"
#include "render/api/core.h"
#include "render/cameras/renderers.h"
#include "render/embree/memory_margin.h"
#include "runtime/futex.h"

namespace doorstep {
namespace {

#define DS_LAYOUT_STRUCT(type) {#type, "", 0, sizeof(type)},
#define DS_LAYOUT_FIELD(type, field) {#type, #field, offsetof(type, field), sizeof(type::field)},
constexpr ds_layout_entry kLayout[] = {
#include "render/api/layout_table.inc"
};
#undef DS_LAYOUT_STRUCT
#undef DS_LAYOUT_FIELD

const ds_api* core_table = nullptr;

constinit Mutex watching_mutex;
constinit bool watching_forks = false;  // guarded by it

void after_fork_in_child() {
    cameras_registry.unlock();
    forget_memory_margins();
}

// A fork waits for changes of the handles to complete.
bool watch_forks() {
    MutexGuard guard(watching_mutex);
    if (!watching_forks) {
        watching_forks = pthread_atfork([] { cameras_registry.lock(); }, [] { cameras_registry.unlock(); },
                                        after_fork_in_child) == 0;
    }
    return watching_forks;
}

}  // namespace

const ds_api& core() { return *core_table; }
bool has_core() { return core_table != nullptr; }
void set_core(const ds_api* api) { core_table = api; }

ds_status fail(ds_status status, const char* argument, const char* hint, const char* format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (core_table) core_table->set_error(status, argument, hint, message);
    return status;
}

ds_status last_status() {
    ds_error error = {};
    error.struct_size = sizeof error;
    core().last_error(&error);
    return static_cast<ds_status>(error.status);
}

}  // namespace doorstep

using namespace doorstep;

// Functions of another core version cannot be called safely: the caller reports that error itself.
ds_status ds_render_open(const ds_api* api, const char* version) {
    if (!api || !version) return DS_STATUS_INVALID_ARGUMENT;
    if (api->abi_version != DS_ABI_VERSION || api->struct_size < sizeof(ds_api)) return DS_STATUS_LIBRARY;
    if (strcmp(version, DS_VERSION_STRING) != 0) {
        char message[160];
        snprintf(message, sizeof message, "the caller is version %.64s; this library is version %s", version,
                 DS_VERSION_STRING);
        api->set_error(DS_STATUS_LIBRARY, "version", "reinstall doorstep, so that the package and its libraries come "
                       "from one wheel", message);
        return DS_STATUS_LIBRARY;
    }
    if (!watch_forks()) {
        api->set_error(DS_STATUS_OUT_OF_MEMORY, "", "raise the memory limit",
                       "no memory is left for the fork handlers");
        return DS_STATUS_OUT_OF_MEMORY;
    }
    set_core(api);
    return DS_STATUS_OK;
}

ds_status ds_render_layout(const ds_layout_entry** entries, uint64_t* count) {
    if (const ds_status status = check_open()) return status;
    if (!entries) return fail_null("entries");
    if (!count) return fail_null("count");
    *entries = kLayout;
    *count = sizeof kLayout / sizeof *kLayout;
    return DS_STATUS_OK;
}

ds_status ds_renderer_get_info(int32_t renderer, ds_renderer_info* info) {
    if (const ds_status status = check_open()) return status;
    if (const ds_status status = check_struct(info, "info")) return status;
    const ds_status status = check_range("renderer", "pass a ds_renderer that draws", renderer, DS_RENDERER_AUTO + 1,
                                         DS_RENDERER_COUNT - 1);
    if (status) return status;
    return find_renderer(renderer).describe(info);
}
