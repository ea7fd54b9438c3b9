// The kernels on a device: which machine code is taken, and loading it once for all simulators that use it.
#pragma once

#include "exec/cuda/kernels.h"
#include "runtime/cuda/module.h"

namespace doorstep {

// The oldest compute capability that the kernels are compiled for (75 is 7.5).
constexpr int kOldestComputeCapability = 75;

// Modules are named as in images.h.

// Where the machine code for a device comes from. The driver has been opened.
ds_kernel_source find_kernel_source(int module, int compute_capability);

// Puts a module's machine code on a device. Null, with the thread's error set, if it cannot be had.
Ref<Module> load_module(const Ref<Context>& context, int module);

class KernelModule final : public RefCounted {
public:
    // Loads the kernels for a number of agents, unless that has been done and somebody still holds them. Null, with
    // the thread's error set, if they cannot be had.
    static Ref<KernelModule> find(const Ref<Context>& context, int num_agents);
    ~KernelModule();

    Kernel& kernel(KernelId id) const { return *kernels_[id]; }
    const KernelShape& shape() const { return find_kernel_shape(num_agents_); }
    // Blocks that the whole device runs at once.
    int resident_blocks() const { return resident_blocks_; }

private:
    KernelModule(const Ref<Context>& context, int num_agents) : context_(context), num_agents_(num_agents) {}
    static Ref<KernelModule> load(const Ref<Context>& context, int num_agents);
    ds_status get_kernels(const Ref<Module>& module);
    ds_status count_resident_blocks();

    Ref<Context> context_;
    int num_agents_;
    int resident_blocks_ = 0;
    Ref<Kernel> kernels_[kKernelCount];
    bool listed_ = false;
    KernelModule* next_ = nullptr;  // in the list of loaded modules
};

}  // namespace doorstep
