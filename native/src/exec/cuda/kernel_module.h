// The kernels on a device: chooses the machine code, loads it once, and keeps kernels that are prepared before they are
// launched from any thread.
#pragma once

#include <stdint.h>

#include "exec/cuda/kernels.h"
#include "math/base.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/module.h"
#include "runtime/futex.h"
#include "runtime/list.h"
#include "runtime/status.h"

namespace doorstep {

// The oldest compute capability that the kernels are compiled for (75 is 7.5).
constexpr int kOldestComputeCapability = 75;

// Modules are named as in images.h.

// Where the machine code for a device comes from. The driver must be loaded.
ds_kernel_source find_kernel_source(int module, int compute_capability);

// Loads a module's machine code on a device, unless that is loaded. Null, with the thread's error set, on failure.
Ref<Module> load_module(const Ref<Context>& context, int module);

class KernelModule final : public RefCounted {
public:
    // The kernels for a kind of worlds. Null, with the thread's error set, on failure.
    static Ref<KernelModule> find(const Ref<Context>& context, WorldKind kind);

    Kernel& kernel(KernelId id) const {
        DS_ASSERT(id >= 0 && id < kKernelCount);
        return *kernels_[id];
    }
    const KernelShape& shape() const { return find_kernel_shape(kind_); }
    // Number of blocks that the whole device runs at once.
    int resident_blocks() const { return resident_blocks_; }
    // Scratch memory of all these blocks, when each takes as many worlds as it can.
    int64_t most_scratch_bytes() const { return resident_blocks_ * workspace_bytes(shape(), shape().tile_worlds); }

private:
    KernelModule(const Ref<Context>& context, WorldKind kind) : context_(context), kind_(kind) {}
    ds_status get_kernels(const Ref<Module>& module);
    ds_status count_resident_blocks();

    Ref<Context> context_;
    WorldKind kind_;
    int resident_blocks_ = 0;
    Ref<Kernel> kernels_[kKernelCount];
};

// ---- Prepared kernels: loaded once, kept until the last release

// Shared by all launches of a module's kernels on one device.
template <class Kernels>
struct Prepared : RefCounted {
    Ref<Context> context;
    int64_t module = 0;
    int64_t users = 0;  // prepares minus releases
    Kernels *next_listed = nullptr, *previous_listed = nullptr;
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
        Kernels* prepared = find(device_index, module);
        if (!prepared) {
            Ref<Kernels> loaded = load();
            if (!loaded) return last_status();
            prepared = loaded.leak();
            list_.insert(prepared);
        }
        prepared->users++;
        return DS_STATUS_OK;
    }

    template <class Fail>
    ds_status find(int64_t device_index, int64_t module, const Fail& fail_unprepared, Ref<Kernels>* found) {
        if (in_forked_process()) return fail_driver(kCalledInForkedProcess, "");
        MutexGuard guard(mutex_);
        Kernels* prepared = find(device_index, module);
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
            Kernels* prepared = find(device_index, module);
            if (!prepared) return fail_unprepared();
            DS_ASSERT(prepared->users > 0);
            if (--prepared->users > 0) return DS_STATUS_OK;
            list_.remove(prepared);
            last = Ref<Kernels>::adopt(prepared);
        }
        return last->context->synchronize();  // launches may be running
    }

private:
    Kernels* find(int64_t device_index, int64_t module) const {
        return list_.find([&](const Kernels& prepared) {
            return prepared.context->device_index() == device_index && prepared.module == module;
        });
    }

    Mutex mutex_;
    List<Kernels> list_;  // owns a reference to each
};

}  // namespace doorstep
