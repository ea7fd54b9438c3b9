// The driver's functions for machine code and kernels.
#include <stdio.h>

#include <algorithm>

#include "driver.h"
#include "functions.h"
#include "image.h"
#include "kernel_launch.h"
#include "render/raycast/block_views.h"
#include "training_launch.h"
#include "view_launch.h"

using namespace stand_in;

namespace {

constexpr int kThreadsOfMultiprocessor = 2048, kBlocksOfMultiprocessor = 32;
constexpr int kRegistersOfThread = 64;  // an arbitrary number

// A module of worlds contains its number of agents; the others do not.
int make_task(const Kernel& kernel, int device, unsigned grid, unsigned threads, unsigned shared_bytes, const void* call,
              Task* task) {
    if (kernel.name == doorstep::kDrawViewsName)
        return make_view_launch(kernel.name, device, grid, threads, shared_bytes, call, task);
    if (kernel.num_agents == 0) return make_training_launch(kernel.name, device, grid, threads, call, task);
    const auto& arguments = *static_cast<const doorstep::KernelArguments*>(call);
    return make_launch({kernel.name, kernel.num_agents, device, grid, threads, shared_bytes, arguments}, task);
}

// The caller's buffer for errors of an image.
void write_log(unsigned count, const int* options, void** values, const std::string& problem) {
    char* buffer = nullptr;
    size_t size = 0;
    for (unsigned i = 0; i < count; ++i) {
        if (options[i] == kErrorLog) buffer = static_cast<char*>(values[i]);
        if (options[i] == kErrorLogBytes) size = reinterpret_cast<size_t>(values[i]);
    }
    if (buffer && size) snprintf(buffer, size, "%s", problem.c_str());
}

// Loading code is not allowed beside a capture.
int load(Kernel& kernel) {
    if (kernel.loaded) return kSuccess;
    if (const int code = refuse_beside_capture()) return code;
    kernel.loaded = true;
    return kSuccess;
}

int check_dimensions(const Kernel& kernel, const unsigned (&grid)[3], const unsigned (&block)[3],
                     unsigned shared_bytes) {
    const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 0x7fffffff || grid[1] > 0xffff || grid[2] > 0xffff)
        return refuse(kInvalidValue, text("cuLaunchKernel: the grid is %u, %u, %u", grid[0], grid[1], grid[2]));
    if (threads == 0 || threads > 1024)
        return refuse(kInvalidValue, text("cuLaunchKernel: %lu threads in a block", threads));
    if (shared_bytes > kernel.shared_bytes_allowed)
        return refuse(kInvalidValue, text("cuLaunchKernel: %u bytes of shared memory, %u are allowed", shared_bytes,
                                          kernel.shared_bytes_allowed));
    if (grid[1] * grid[2] * block[1] * block[2] != 1)
        return refuse(kInvalidValue, "cuLaunchKernel: doorstep's kernels have one dimension");
    return kSuccess;
}

}  // namespace

extern "C" {

int cuModuleLoadDataEx(uint64_t* handle, const void* data, unsigned count, int* options, void** values) {
    return call("cuModuleLoadDataEx", [&]() -> int {
        Context* context = current_context("cuModuleLoadDataEx");
        if (!context) return kInvalidContext;
        if (const int code = refuse_beside_capture()) return code;
        const Settings& settings = driver().settings;
        const Image image = read_image(data, settings.compute_capability, settings.driver_version);
        write_log(count, options, values, image.problem);
        if (image.code) return image.code;
        *handle = driver().modules.add({context, image.num_agents, image.kernels});
        return kSuccess;
    });
}

int cuModuleUnload(uint64_t handle) {
    return call("cuModuleUnload", [&]() -> int {
        if (!find("cuModuleUnload", driver().modules, handle)) return kInvalidHandle;
        if (const int code = refuse_beside_capture()) return code;
        std::erase_if(driver().kernels.alive, [&](const auto& entry) { return entry.second->module == handle; });
        driver().modules.alive.erase(handle);
        return kSuccess;
    });
}

int cuModuleGetFunction(uint64_t* function, uint64_t handle, const char* name) {
    return call("cuModuleGetFunction", [&]() -> int {
        const std::shared_ptr<Module> module = find("cuModuleGetFunction", driver().modules, handle);
        if (!module) return kInvalidHandle;
        if (!module->kernels.contains(name)) return kNotFound;
        *function = driver().kernels.add({handle, name, module->num_agents});
        return kSuccess;
    });
}

int cuFuncLoad(uint64_t function) {
    return call("cuFuncLoad", [&]() -> int {
        const std::shared_ptr<Kernel> kernel = find("cuFuncLoad", driver().kernels, function);
        return kernel ? load(*kernel) : kInvalidHandle;
    });
}

int cuFuncGetAttribute(int* value, int attribute, uint64_t function) {
    return call("cuFuncGetAttribute", [&]() -> int {
        const std::shared_ptr<Kernel> kernel = find("cuFuncGetAttribute", driver().kernels, function);
        if (!kernel) return kInvalidHandle;
        if (const int code = load(*kernel)) return code;
        if (attribute == kFunctionMaxThreads) *value = 1024;
        else if (attribute == kFunctionNumRegisters) *value = kRegistersOfThread;
        else if (attribute == kFunctionMaxDynamicShared) *value = static_cast<int>(kernel->shared_bytes_allowed);
        else if (attribute == kFunctionStaticShared || attribute == kFunctionLocal) *value = 0;
        else return refuse(kInvalidValue, text("cuFuncGetAttribute: attribute %d is unknown", attribute));
        return kSuccess;
    });
}

int cuFuncSetAttribute(uint64_t function, int attribute, int value) {
    return call("cuFuncSetAttribute", [&]() -> int {
        const std::shared_ptr<Kernel> kernel = find("cuFuncSetAttribute", driver().kernels, function);
        if (!kernel) return kInvalidHandle;
        if (attribute != kFunctionMaxDynamicShared)
            return refuse(kInvalidValue, text("cuFuncSetAttribute: attribute %d is unknown", attribute));
        if (value < 0 || value > most_shared_bytes()) return kInvalidValue;
        kernel->shared_bytes_allowed = static_cast<uint32_t>(value);
        return kSuccess;
    });
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, uint64_t function, int threads, size_t shared_bytes) {
    constexpr char kName[] = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
    return call(kName, [&]() -> int {
        const std::shared_ptr<Kernel> kernel = find(kName, driver().kernels, function);
        if (!kernel) return kInvalidHandle;
        if (threads < 1 || threads > 1024) return refuse(kInvalidValue, text("occupancy of %d threads", threads));
        const size_t of_multiprocessor = static_cast<size_t>(most_shared_bytes()) + 1024;
        const int by_shared = static_cast<int>(of_multiprocessor / (shared_bytes + 1024));
        *blocks = std::min({kBlocksOfMultiprocessor, kThreadsOfMultiprocessor / threads, by_shared});
        return kSuccess;
    });
}

int cuLaunchKernel(uint64_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, uint64_t stream_handle, void** arguments,
                   void** extra) {
    return call("cuLaunchKernel", [&]() -> int {
        const std::shared_ptr<Kernel> kernel = find("cuLaunchKernel", driver().kernels, function);
        Stream* stream = find_stream("cuLaunchKernel", stream_handle);
        if (!kernel || !stream) return kInvalidHandle;
        const Context* context = driver().modules.find(kernel->module)->context;
        if (context != stream->context)
            return refuse(kInvalidHandle, "cuLaunchKernel: kernel and stream differ in context");
        if (!arguments || extra) return refuse(kInvalidValue, "cuLaunchKernel: arguments come as addresses");
        const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
        if (const int code = check_dimensions(*kernel, grid, block, shared_bytes)) return code;
        if (const int code = load(*kernel)) return code;
        Task task;
        if (const int code = make_task(*kernel, context->device, grid_x, block_x, shared_bytes, arguments[0], &task))
            return code;
        return begin(*stream, std::move(task));
    });
}

}  // extern "C"
