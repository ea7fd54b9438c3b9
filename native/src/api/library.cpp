// The library as a whole: version, errors, CPU features, layout of structs, table of functions, live counts.
#include <stddef.h>
#include <string.h>

#include "api/call.h"
#include "doorstep_api.h"
#include "exec/cpu/threads.h"
#include "runtime/machine.h"
#include "runtime/reference.h"

namespace doorstep {
namespace {

#define DS_LAYOUT_STRUCT(type) {#type, "", 0, sizeof(type)},
#define DS_LAYOUT_FIELD(type, field) {#type, #field, offsetof(type, field), sizeof(type::field)},
constexpr ds_layout_entry kLayout[] = {
#include "api/layout_table.inc"
};
#undef DS_LAYOUT_STRUCT
#undef DS_LAYOUT_FIELD

// The C API, for native libraries that do not link this one.
constexpr ds_api kTable = {
    DS_ABI_VERSION,
    sizeof(ds_api),
#define DS_API_ADDRESS(result, name, parameters) ds_##name,
    DS_API_TABLE(DS_API_ADDRESS)
#undef DS_API_ADDRESS
};

int64_t count_resources() {
    int64_t sum = 0;
    for (const std::atomic<int64_t>& count : live_counts.resources) sum += count.load();
    return sum;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_check_version(uint32_t abi_version, const char* version) {
    const char* hint = "reinstall doorstep, so that the package and its library come from one wheel";
    if (!version) return fail_null("version");
    if (abi_version != DS_ABI_VERSION) {
        return fail(DS_STATUS_LIBRARY, "abi_version", hint, "the caller expects ABI version %u; this library has %d",
                    abi_version, DS_ABI_VERSION);
    }
    if (strcmp(version, DS_VERSION_STRING) != 0) {
        return fail(DS_STATUS_LIBRARY, "version", hint, "the caller is version %.64s; this library is version %s",
                    version, DS_VERSION_STRING);
    }
    return check_cpu();
}

const char* ds_version(void) { return DS_VERSION_STRING; }

ds_status ds_last_error(ds_error* error) {
    Results<ds_error> results(error, "error");
    if (results.status()) return results.status();
    read_last_error(results.fields());
    return results.give();
}

ds_status ds_set_error(int32_t status, const char* argument, const char* hint, const char* message) {
    if (!argument) return fail_null("argument");
    if (!hint) return fail_null("hint");
    if (!message) return fail_null("message");
    if (const ds_status refused = check_range("status", "pass the status of a failure", status, DS_STATUS_INTERNAL,
                                              DS_STATUS_COUNT - 1)) {
        return refused;
    }
    fail(static_cast<ds_status>(status), argument, hint, "%s", message);
    return DS_STATUS_OK;
}

const char* ds_cpu_features(void) { return cpu_features_text(); }

ds_status ds_layout(const ds_layout_entry** entries, uint64_t* count) {
    if (!entries) return fail_null("entries");
    if (!count) return fail_null("count");
    *entries = kLayout;
    *count = sizeof kLayout / sizeof *kLayout;
    return DS_STATUS_OK;
}

ds_status ds_get_api(uint32_t version, const ds_api** api) {
    if (!api) return fail_null("api");
    if (version != DS_ABI_VERSION) {
        return fail(DS_STATUS_LIBRARY, "version", "compile against the doorstep.h of this library",
                    "the caller expects ABI version %u; this library has %d", version, DS_ABI_VERSION);
    }
    *api = &kTable;
    return DS_STATUS_OK;
}

ds_status ds_live_count(int32_t kind, int64_t* count) {
    if (!count) return fail_null("count");
    switch (kind) {
        case DS_LIVE_SIMULATOR: *count = simulators.size(); break;
        case DS_LIVE_MEMORY: *count = live_counts.memories.load(); break;
        case DS_LIVE_EVENT: *count = events.size(); break;
        case DS_LIVE_EXPORT: *count = live_counts.exports.load(); break;
        case DS_LIVE_THREAD: *count = live_counts.threads.load(); break;
        case DS_LIVE_RESOURCE: *count = count_resources(); break;
        default:
            if (const ds_status status = check_range("kind", "pass a ds_live_kind", kind, 0, DS_LIVE_METRICS)) return status;
            *count = live_counts.objects[kind].load();
    }
    return DS_STATUS_OK;
}

ds_status ds_default_thread_count(int64_t* count) {
    if (!count) return fail_null("count");
    *count = default_thread_count();
    return DS_STATUS_OK;
}
