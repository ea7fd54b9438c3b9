// The C API as a table, for native libraries that do not link this one.
#include "doorstep_api.h"

#include "api/call.h"

namespace doorstep {
namespace {

constexpr ds_api kTable = {
    DS_ABI_VERSION,
    sizeof(ds_api),
#define DS_API_ADDRESS(result, name, parameters) ds_##name,
    DS_API_TABLE(DS_API_ADDRESS)
#undef DS_API_ADDRESS
};

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_get_api(uint32_t version, const ds_api** api) {
    if (!api) return fail_null("api");
    if (version != DS_ABI_VERSION) {
        return fail(DS_STATUS_LIBRARY, "version", "compile against the doorstep.h of this library",
                    "the caller expects ABI version %u; this library has %d", version, DS_ABI_VERSION);
    }
    *api = &kTable;
    return DS_STATUS_OK;
}
