#include "runtime/cuda/module.h"

#include <new>

#include "runtime/status.h"

namespace doorstep {
namespace {

// Dynamic shared memory that every kernel may use without opting in.
constexpr uint32_t kSharedBytesByDefault = 48 * 1024;

}  // namespace

// ---- Module ----

ds_status Module::load(const Context& context, int number, const void* image) {
    DS_ASSERT(!is_loaded(context, number));
    char log[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
    const ds_status status = context.call("cuModuleLoadDataEx", "", [&](const Driver& driver) {
        CUmodule handle;
        const CUresult result = driver.cuModuleLoadDataEx(&handle, image, 2, options, values);
        if (!result) kept_module(context.device(), number) = handle;
        return result;
    });
    if (status && *log) add_detail("; the compiler reports: %s", log);
    return status;
}

Ref<Module> Module::find(Ref<Context> context, int number) {
    const CUmodule handle = kept_module(context->device(), number);
    DS_ASSERT(handle);
    const Ref<Module> module = check_allocated(new (std::nothrow) Module(std::move(context)));
    if (!module) return {};
    Ref<Resource> known = module->own_unless_known(handle);
    return known ? resource_cast<Module>(std::move(known)) : module;
}

Module::~Module() { disown(); }

// ---- Kernel ----

Kernel::Kernel(Ref<Module> module)
    : Resource(kKind, module->context()),
      module_(std::move(module)),
      allowed_shared_bytes_(kSharedBytesByDefault) {}

// A kernel ends with its module.
Kernel::~Kernel() { disown(); }

Ref<Kernel> Kernel::get(Ref<Module> module, const char* name) {
    const Ref<Context> context = module->context();
    const Ref<Kernel> kernel = check_allocated(new (std::nothrow) Kernel(module));
    if (!kernel) return {};
    CurrentContext current(*context);
    if (current.status()) return {};
    CUfunction handle;
    const CUresult result = driver().cuModuleGetFunction(&handle, module->handle(), name);
    if (result == CUDA_ERROR_NOT_FOUND) {
        fail(DS_STATUS_INVALID_ARGUMENT, "name", "pass the name of a kernel exactly as in the image",
             "the module has no kernel named %.100s", name);
        set_driver_code(result);
    } else if (result) {
        fail_driver(result, "cuModuleGetFunction", "module");
    }
    if (result) return {};
    if (kernel->load_code(handle) || current.restore()) return {};
    Ref<Resource> known = kernel->own_unless_known(handle);
    return known ? resource_cast<Kernel>(std::move(known)) : kernel;
}

// From CUDA 12.2 on the driver loads a kernel's code at its first launch, which is refused within a capture. cuFuncLoad
// exists from 12.4 on; before, asking for an attribute loads the code too.
ds_status Kernel::load_code(CUfunction handle) {
    const CUresult result = driver().cuFuncLoad(handle);
    if (result != kFunctionMissing) return result ? fail_driver(result, "cuFuncLoad") : DS_STATUS_OK;
    int registers;
    const CUresult asked = driver().cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, handle);
    return asked ? fail_driver(asked, "cuFuncGetAttribute") : DS_STATUS_OK;
}

ds_status Kernel::allow_shared_bytes(uint32_t bytes) {
    if (bytes <= allowed_shared_bytes_.load(std::memory_order_relaxed)) return DS_STATUS_OK;
    const ds_status status = context()->call("cuFuncSetAttribute", "shared_bytes", [&](const Driver& driver) {
        return driver.cuFuncSetAttribute(handle(), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         static_cast<int>(bytes));
    });
    if (!status) allowed_shared_bytes_.store(bytes, std::memory_order_relaxed);
    return status;
}

ds_status Kernel::prefer_shared_memory() const {
    constexpr int kAll = 100;  // percent
    return context()->call("cuFuncSetAttribute", "", [&](const Driver& driver) {
        return driver.cuFuncSetAttribute(handle(), CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, kAll);
    });
}

ds_status Kernel::attribute(CUfunction_attribute attribute, int* value) const {
    return context()->call("cuFuncGetAttribute", "", [&](const Driver& driver) {
        return driver.cuFuncGetAttribute(value, attribute, handle());
    });
}

ds_status Kernel::resident_blocks(uint32_t threads, uint32_t shared_bytes, int* blocks) const {
    return context()->call("cuOccupancyMaxActiveBlocksPerMultiprocessor", "threads", [&](const Driver& driver) {
        return driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle(), static_cast<int>(threads),
                                                                  shared_bytes);
    });
}

ds_status Kernel::launch(const Stream& stream, const LaunchShape& shape, void** arguments) {
    if (const ds_status status = stream.check_device(*context(), "kernel")) return status;
    return launch_on(stream.handle(), shape, arguments);
}

ds_status Kernel::launch_on(CUstream stream, const LaunchShape& shape, void** arguments) {
    if (const ds_status status = allow_shared_bytes(shape.shared_bytes)) return status;
    return context()->call("cuLaunchKernel", "kernel", [&](const Driver& driver) {
        return driver.cuLaunchKernel(handle(), shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
                                     shape.block[1], shape.block[2], shape.shared_bytes, stream, arguments,
                                     nullptr);
    });
}

}  // namespace doorstep
