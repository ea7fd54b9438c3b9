#include "exec/cuda/kernel_module.h"

#include <new>

#include "exec/cuda/images.h"

namespace doorstep {
namespace {

constinit Mutex loading_mutex;  // held while a module is looked for and loaded, so that none is loaded twice

ds_status fail_without_kernels(int compute_capability) {
    if (compute_capability < kOldestComputeCapability) {
        return fail(DS_STATUS_DEVICE, "device", "use a newer device, or use the CPU",
                    "the device has compute capability %d.%d; doorstep needs %d.%d or newer", compute_capability / 10,
                    compute_capability % 10, kOldestComputeCapability / 10, kOldestComputeCapability % 10);
    }
    return fail(DS_STATUS_DEVICE, "device", "install a released build of doorstep, or use the CPU",
                "this library was built without CUDA kernels");
}

// Whether machine code exists, or PTX to compile it from.
bool has_kernels(int module, int compute_capability) {
    return compute_capability >= kOldestComputeCapability &&
           (find_cubin(module, compute_capability) || find_ptx(module));
}

// The image for a device. Without data, and with the thread's error set, if no image runs on the device.
OwnedImage choose_image(int module, int compute_capability) {
    OwnedImage image;
    if (!has_kernels(module, compute_capability)) {
        fail_without_kernels(compute_capability);
        return image;
    }
    switch (find_kernel_source(module, compute_capability)) {
        case DS_KERNEL_SOURCE_EMBEDDED: return unpack_image(*find_cubin(module, compute_capability));
        case DS_KERNEL_SOURCE_COMPILER: compile_ptx(module, compute_capability, &image, nullptr); return image;
        case DS_KERNEL_SOURCE_DRIVER: break;
    }
    return unpack_image(*find_ptx(module));
}

}  // namespace

ds_kernel_source find_kernel_source(int module, int compute_capability) {
    if (find_cubin(module, compute_capability)) return DS_KERNEL_SOURCE_EMBEDDED;
    const bool compiles = find_ptx(module) && compiler_knows(compute_capability);
    return compiles && driver().version >= compiler_driver_version() ? DS_KERNEL_SOURCE_COMPILER
                                                                     : DS_KERNEL_SOURCE_DRIVER;
}

Ref<Module> load_module(const Ref<Context>& context, int module) {
    MutexGuard guard(loading_mutex);
    if (!Module::is_loaded(*context, module)) {
        const OwnedImage image = choose_image(module, context->compute_capability());
        if (!image.data || Module::load(*context, module, image.data.get())) return {};
    }
    return Module::find(context, module);
}

Ref<KernelModule> KernelModule::find(const Ref<Context>& context, WorldKind kind) {
    DS_ASSERT(kind.num_agents >= 1 && kind.num_agents <= DS_MAX_AGENTS);
    const Ref<Module> module = load_module(context, number_of(kind));
    if (!module) return {};
    const Ref<KernelModule> made = check_allocated(new (std::nothrow) KernelModule(context, kind));
    if (!made || made->get_kernels(module) || made->count_resident_blocks()) return {};
    return made;
}

ds_status KernelModule::get_kernels(const Ref<Module>& module) {
    for (int id = 0; id < kKernelCount; ++id) {
        kernels_[id] = Kernel::get(module, kKernelNames[id]);
        if (!kernels_[id]) return last_status();
        if (const ds_status status = kernels_[id]->allow_shared_bytes(shape().shared_bytes)) return status;
    }
    return kernels_[kKernel_step]->prefer_shared_memory();
}

ds_status KernelModule::count_resident_blocks() {
    int multiprocessors, blocks;
    if (const ds_status status =
            context_->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &multiprocessors)) {
        return status;
    }
    const uint32_t threads = static_cast<uint32_t>(shape().threads);
    if (const ds_status status = kernel(kKernel_step).resident_blocks(threads, shape().shared_bytes, &blocks)) {
        return status;
    }
    resident_blocks_ = blocks * multiprocessors;
    if (resident_blocks_ > 0) return DS_STATUS_OK;
    return fail(DS_STATUS_DEVICE, "device", "use another device, or use the CPU",
                "a block of %u threads with %u bytes of shared memory does not fit this device", threads,
                shape().shared_bytes);
}

}  // namespace doorstep
