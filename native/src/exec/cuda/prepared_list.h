// Kernels prepared before they are launched from any thread: loaded once, kept until the last release.
#pragma once

#include <stdint.h>

#include "runtime/cuda/context.h"
#include "runtime/cuda/driver.h"
#include "runtime/futex.h"
#include "runtime/status.h"

namespace doorstep {

// Shared by all launches of a module's kernels on one device.
template <class Kernels>
struct Prepared : RefCounted {
    Ref<Context> context;
    int64_t module = 0;
    int64_t users = 0;  // prepares minus releases
    Kernels* next = nullptr;
};

// Kernels: a Prepared<Kernels>. fail_unprepared: sets the error for kernels that are not prepared.
template <class Kernels>
class PreparedList {
public:
    // load: returns a Ref<Kernels>, or null with the error set.
    template <class Load>
    ds_status prepare(int64_t device_index, int64_t module, const Load& load) {
        if (in_forked_process()) return fail_driver(kCalledInForkedProcess, "");
        MutexGuard guard(mutex_);
        Kernels** link = find_link(device_index, module);
        if (!*link) {
            Ref<Kernels> loaded = load();
            if (!loaded) return last_status();
            *link = loaded.leak();
        }
        (*link)->users++;
        return DS_STATUS_OK;
    }

    template <class Fail>
    ds_status find(int64_t device_index, int64_t module, const Fail& fail_unprepared, Ref<Kernels>* found) {
        if (in_forked_process()) return fail_driver(kCalledInForkedProcess, "");
        MutexGuard guard(mutex_);
        Kernels* prepared = *find_link(device_index, module);
        if (!prepared) return fail_unprepared();
        *found = Ref<Kernels>::share(prepared);
        return DS_STATUS_OK;
    }

    template <class Fail>
    ds_status release(int64_t device_index, int64_t module, const Fail& fail_unprepared) {
        if (in_forked_process()) return DS_STATUS_OK;
        Ref<Kernels> last;
        {
            MutexGuard guard(mutex_);
            Kernels** link = find_link(device_index, module);
            if (!*link) return fail_unprepared();
            if (--(*link)->users > 0) return DS_STATUS_OK;
            last = Ref<Kernels>::adopt(*link);
            *link = last->next;
        }
        return last->context->synchronize();  // launches may be running
    }

private:
    Kernels** find_link(int64_t device_index, int64_t module) {
        Kernels** link = &first_;
        while (*link && ((*link)->context->device_index() != device_index || (*link)->module != module))
            link = &(*link)->next;
        return link;
    }

    Mutex mutex_;
    Kernels* first_ = nullptr;  // the list owns a reference to each
};

}  // namespace doorstep
