// Calls the C API in a loop of native code, as a client would: Python is involved only through its objects.
#include <time.h>

#include "doorstep.h"

namespace {

double now() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

using Read = ds_status (*)(void* const*, uint64_t, const ds_python_rules*, ds_python_tensor*);
using Sign = ds_status (*)(const ds_python_tensor*, char*, uint64_t*);

constexpr int kMany = 16;

}  // namespace

// Nanoseconds per tensor of reading count (at most 16) tensors in one call; also writes a signature of each if `sign`
// is given. Negative if a call failed.
extern "C" __attribute__((visibility("default"))) double nanoseconds_per_tensor(Read read, Sign sign, void** objects,
                                                                                 uint64_t count, int calls) {
    ds_python_tensor tensors[kMany];
    for (auto& tensor : tensors) tensor.struct_size = sizeof tensor;
    char text[DS_PYTHON_SIGNATURE_BYTES];
    const double begin = now();
    for (int call = 0; call < calls; ++call) {
        if (read(objects, count, nullptr, tensors)) return -1;
        for (uint64_t i = 0; sign && i < count; ++i) {
            if (sign(&tensors[i], text, nullptr)) return -1;
        }
    }
    return (now() - begin) / calls / static_cast<double>(count);
}
