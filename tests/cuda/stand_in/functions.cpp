// Looks up the driver's functions for the library.
#include "functions.h"

#include <string.h>

#include "driver.h"

using namespace stand_in;

namespace {

struct Function {
    const char* name;
    int version;
    void* address;
};

const Function kFunctions[] = {
#define STAND_IN_ROW(name, version, symbol, parameters) {#name, version, reinterpret_cast<void*>(&symbol)},
    STAND_IN_FUNCTIONS(STAND_IN_ROW)
#undef STAND_IN_ROW
};

constexpr uint64_t kLegacyStream = 1;

const Function* find_function(const char* name) {
    for (const Function& function : kFunctions)
        if (strcmp(function.name, name) == 0) return &function;
    return nullptr;
}

}  // namespace

// Functions of another version have other parameters: requesting one is a mistake of the library.
STAND_IN_EXPORT int cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t flags, int* status) {
    return call("cuGetProcAddress", [&]() -> int {
        *address = nullptr;
        const Function* function = find_function(name);
        const Settings& settings = driver().settings;
        if (!function || settings.missing.contains(name)) {
            *status = kSymbolNotFound;
            return kSuccess;
        }
        if (version != function->version)
            return refuse(kInvalidValue,
                          text("cuGetProcAddress: %s is of %d, not of %d", name, function->version, version));
        if (flags & ~kLegacyStream) return refuse(kInvalidValue, text("cuGetProcAddress: flags are %lu", flags));
        *status = version > settings.driver_version ? kSymbolVersionNotSufficient : kSymbolFound;
        if (*status == kSymbolFound) *address = function->address;
        return kSuccess;
    });
}
