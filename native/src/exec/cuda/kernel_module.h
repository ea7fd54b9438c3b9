// The kernels on a device: chooses the machine code and loads it once for all simulators that use it.
#pragma once

#include "exec/cuda/kernels.h"
#include "runtime/cuda/module.h"

namespace doorstep {

// The oldest compute capability that the kernels are compiled for (75 is 7.5).
constexpr int kOldestComputeCapability = 75;

// Modules are named as in images.h.

// Where the machine code for a device comes from. The driver must be loaded.
ds_kernel_source find_kernel_source(int module, int compute_capability);

// Loads a module's machine code on a device. Null, with the thread's error set, on failure.
Ref<Module> load_module(const Ref<Context>& context, int module);

class KernelModule final : public RefCounted {
public:
    // Loads the kernels for a number of agents, or shares them if they are in use already. Null, with the thread's
    // error set, on failure.
    static Ref<KernelModule> find(const Ref<Context>& context, int num_agents);
    ~KernelModule();

    Kernel& kernel(KernelId id) const { return *kernels_[id]; }
    const KernelShape& shape() const { return find_kernel_shape(num_agents_); }
    // Number of blocks that the whole device runs at once.
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
