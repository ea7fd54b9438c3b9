// The CUDA driver, its devices, and the kernels' machine code: the embedded architectures, and compiling for others
// without a device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "exec/cuda/images.h"
#include "exec/cuda/kernel_module.h"
#include "policy/kernels.h"
#include "runtime/cuda/context.h"

namespace doorstep {
namespace {

// All numbers of agents have images for the same architectures.
constexpr int kAnyNumAgents = 1;

ds_status describe_device(const Context& context, ds_cuda_device_info* info) {
    if (const CUresult result = driver().cuDeviceGetName(info->name, sizeof info->name, context.device())) {
        return fail_driver(result, "cuDeviceGetName");
    }
    if (const ds_status status = context.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->multiprocessors)) {
        return status;
    }
    if (const ds_status status = device_uuid(context.device(), info->uuid)) return status;
    size_t free_bytes, total_bytes;
    if (const ds_status status = context.free_memory(&free_bytes, &total_bytes)) return status;
    info->free_bytes = static_cast<int64_t>(free_bytes);
    info->total_bytes = static_cast<int64_t>(total_bytes);
    info->compute_capability = context.compute_capability();
    info->kernel_source = find_kernel_source(kAnyNumAgents, info->compute_capability);
    return DS_STATUS_OK;
}

// ---- Kernels

struct DescribedKernel {
    const char* name;
    int module;         // 0: that of the kind of worlds
    bool plays_levels;  // of that kind
};

// Those of views are named as in render/raycast/block_views.h, which belongs to the library of cameras.
constexpr DescribedKernel kDescribedKernels[DS_KERNEL_COUNT] = {
    {kKernelNames[kKernel_step], 0, false},
    {kKernelNames[kKernel_step], 0, true},
    {"doorstep_draw_views", kViewsModule, false},
    {"doorstep_draw_level_views", kViewsModule, false},
    {kActKernel, kPoliciesModule, false},
};

ds_status describe_kernel(const Ref<Context>& context, const DescribedKernel& described, WorldKind kind,
                          ds_cuda_kernel_info* info) {
    const Ref<Module> module = load_module(context, described.module ? described.module : number_of(kind));
    if (!module) return last_status();
    const Ref<Kernel> kernel = Kernel::get(module, described.name);
    if (!kernel) return last_status();
    int multiprocessors, threads;
    if (const ds_status status = kernel->attribute(CU_FUNC_ATTRIBUTE_NUM_REGS, &info->registers)) return status;
    if (const ds_status status = kernel->attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &info->local_bytes)) {
        return status;
    }
    if (const ds_status status = context->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &multiprocessors)) {
        return status;
    }
    if (const ds_status status =
            context->attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &threads)) {
        return status;
    }
    info->threads = threads * multiprocessors;
    info->local_memory = static_cast<int64_t>(info->threads) * info->local_bytes;
    info->scratch_memory = 0;
    if (described.module) return DS_STATUS_OK;
    const Ref<KernelModule> kernels = KernelModule::find(context, kind);
    if (!kernels) return last_status();
    info->scratch_memory = kernels->most_scratch_bytes();
    return DS_STATUS_OK;
}

// ---- Architectures

// The number in "sm_103"; 0 if the name has another form.
int parse_architecture(const char* name) {
    if (strncmp(name, "sm_", 3) != 0) return 0;
    const char* digits = name + 3;
    const size_t length = strspn(digits, "0123456789");
    if (length == 0 || length > 6 || digits[length] || digits[0] == '0') return 0;
    return atoi(digits);
}

struct ArchitectureNames {
    ArchitectureNames() {
        int count = 0;
        size_t length = 0;
        const KernelImage* images = kernel_images(&count);
        for (const KernelImage* image = images; image != images + count; ++image) {
            if (image->module != kAnyNumAgents || image->architecture == 0) continue;
            length += static_cast<size_t>(snprintf(text + length, sizeof text - length, "%ssm_%d", length ? "," : "",
                                                   image->architecture));
        }
    }

    char text[256] = "";
};

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_cuda_get_driver(ds_cuda_driver_info* info) {
    Results<ds_cuda_driver_info> results(info, "info");
    if (results.status()) return results.status();
    if (!has_fork_handlers()) return fail_no_memory();
    int count;
    if (const ds_status status = count_devices(&count)) return status;
    results->version = driver().version;
    results->minimum_version = kMinimumDriverVersion;
    results->device_count = count;
    return results.give();
}

ds_status ds_cuda_get_device(int64_t device_index, ds_cuda_device_info* info) {
    Results<ds_cuda_device_info> results(info, "info");
    if (results.status()) return results.status();
    if (!has_fork_handlers()) return fail_no_memory();
    const Ref<Context> context = Context::of_device(device_index);
    if (!context) return last_status();
    if (const ds_status status = describe_device(*context, results.fields())) return status;
    return results.give();
}

ds_status ds_cuda_get_kernel(int64_t device_index, int64_t num_agents, int32_t kernel, ds_cuda_kernel_info* info) {
    Results<ds_cuda_kernel_info> results(info, "info");
    if (results.status()) return results.status();
    if (!has_fork_handlers()) return fail_no_memory();
    if (const ds_status status = check_num_agents(num_agents)) return status;
    if (kernel < 0 || kernel >= DS_KERNEL_COUNT) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "kernel", "pass a ds_kernel", "kernel is %d; it must be 0 to %d",
                    kernel, DS_KERNEL_COUNT - 1);
    }
    const Ref<Context> context = Context::of_device(device_index);
    if (!context) return last_status();
    const DescribedKernel& described = kDescribedKernels[kernel];
    const WorldKind kind{static_cast<int32_t>(num_agents), described.plays_levels};
    if (const ds_status status = describe_kernel(context, described, kind, results.fields())) return status;
    return results.give();
}

ds_status ds_cuda_compile(const char* architecture, int64_t num_agents, ds_cuda_compile_info* info) {
    if (!architecture) return fail_null("architecture");
    Results<ds_cuda_compile_info> results(info, "info");
    if (results.status()) return results.status();
    if (const ds_status status = check_num_agents(num_agents)) return status;
    const int number = parse_architecture(architecture);
    if (number == 0) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "architecture", "pass a name such as sm_103",
                    "architecture is \"%.64s\"; it must be sm_ and a number", architecture);
    }
    OwnedImage image;
    const int module = number_of({static_cast<int>(num_agents), false});
    const ds_status status = compile_ptx(module, number, &image, results.fields());
    return status ? status : results.give();
}

const char* ds_cuda_architectures(void) {
    static const ArchitectureNames names;
    return names.text;
}
