// The driver's functions for machine code and kernels.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <map>

#include "functions.h"
#include "launches.h"

using namespace stand_in;

namespace {

// ---- What the stand-in needs of machine code and PTX

struct Image {
    int code = 0;                          // result of loading it
    int kind_of_worlds = 0;                // 0: unknown, as of machine code
    std::map<std::string, int> kernels{};  // the bytes of their parameters; 0: unknown. Empty: machine code
};

constexpr uint16_t kCudaMachine = 190;
constexpr int kFirstAbiWithArchitectureAbove = 8;  // in the second byte of the flags, before in the first
constexpr char kKindOfWorlds[] = "doorstep_kind_of_worlds";

// Machine code runs on devices of the same major number and the same or a later minor one.
void check_architecture(const char* data, int64_t compute_capability, Image* image) {
    Elf64_Ehdr header;
    memcpy(&header, data, sizeof header);
    const bool above = header.e_ident[EI_ABIVERSION] >= kFirstAbiWithArchitectureAbove;
    const int64_t architecture = (above ? header.e_flags >> 8 : header.e_flags) & 0xff;
    const bool fits = architecture / 10 == compute_capability / 10 && architecture <= compute_capability;
    image->code = header.e_machine != kCudaMachine ? kInvalidImage : fits ? kSuccess : kNoBinaryForGpu;
}

// The newest PTX that a driver supports, times 10.
int64_t newest_ptx(int64_t driver_version) {
    if (driver_version >= 13000) return 90 + driver_version % 1000 / 10;
    const int64_t minor = driver_version % 1000 / 10;  // of 12
    return 80 + (minor > 5 ? minor - 1 : minor);
}

void read_ptx(const std::string& ptx, int64_t compute_capability, int64_t driver_version, Image* image) {
    int major = 0, minor = 0, target = 0;
    const size_t version_at = ptx.find(".version"), target_at = ptx.find(".target sm_");
    if (version_at == std::string::npos || target_at == std::string::npos ||
        sscanf(ptx.c_str() + version_at, ".version %d.%d", &major, &minor) != 2 ||
        sscanf(ptx.c_str() + target_at, ".target sm_%d", &target) != 1) {
        image->code = kInvalidImage;
        return;
    }
    if (major * 10 + minor > newest_ptx(driver_version)) image->code = kUnsupportedPtxVersion;
    else if (target > compute_capability) image->code = kNoBinaryForGpu;
    constexpr char kEntry[] = ".entry ";
    for (size_t at = ptx.find(kEntry); at != std::string::npos; at = ptx.find(kEntry, at + 1)) {
        const size_t name = at + strlen(kEntry);
        const size_t end = ptx.find_first_of("( \n", name), bytes = ptx.find('[', end);
        const bool has_size = bytes < ptx.find(')', end);
        image->kernels[ptx.substr(name, end - name)] = has_size ? atoi(ptx.c_str() + bytes + 1) : 0;
    }
    const size_t kind = ptx.find(kKindOfWorlds);
    if (kind != std::string::npos) image->kind_of_worlds = atoi(ptx.c_str() + ptx.find('=', kind) + 1);
}

Image read_image(const void* data, int64_t compute_capability, int64_t driver_version) {
    Image image;
    const char* bytes = static_cast<const char*>(data);
    if (memcmp(bytes, ELFMAG, SELFMAG) == 0) check_architecture(bytes, compute_capability, &image);
    else read_ptx(bytes, compute_capability, driver_version, &image);
    return image;
}

// ---- Modules and kernels

constexpr int kThreadsOfMultiprocessor = 2048, kBlocksOfMultiprocessor = 32;
constexpr int kRegistersOfMultiprocessor = 64 * 1024;
constexpr int kRegisters = 128, kStackBytes = 640;  // of a thread of any kernel: arbitrary numbers

// Loading code is not allowed beside a capture.
int load(Kernel& kernel) {
    if (!kernel.loaded) TRY(refuse_beside_capture());
    kernel.loaded = true;
    return kSuccess;
}

}  // namespace

STAND_IN(cuModuleLoadDataEx, 2010, (uint64_t* handle, const void* data, unsigned, int*, void**), {
    FIND_CONTEXT(context);
    TRY(refuse_beside_capture());
    const Settings& settings = driver().settings;
    Image image = read_image(data, settings.compute_capability, settings.driver_version);
    const bool is_ptx = memcmp(data, ELFMAG, SELFMAG) != 0;
    if (image.code) return image.code;
    const char* const ptx = is_ptx && settings.interprets ? static_cast<const char*>(data) : "";
    *handle = driver().modules.add({context, image.kind_of_worlds, image.kernels, ptx});
})

// Refused beside a capture in every mode: no mode is documented to allow it, and it was reported to end captures.
STAND_IN(cuModuleUnload, 2000, (uint64_t handle), {
    FIND(module, modules, handle);
    TRY(refuse_beside_captures_of(*module->context));
    std::erase_if(driver().kernels.alive, [&](const auto& entry) { return entry.second->module == handle; });
    driver().modules.alive.erase(handle);
})

// A kernel of a module has one handle.
STAND_IN(cuModuleGetFunction, 2000, (uint64_t* function, uint64_t handle, const char* name), {
    FIND(module, modules, handle);
    const auto found = module->kernels.find(name);
    const bool is_known = found != module->kernels.end();
    if (!is_known && !module->kernels.empty()) return kNotFound;
    for (const auto& [known, kernel] : driver().kernels.alive)
        if (kernel->module == handle && kernel->name == name) return *function = known, kSuccess;
    *function = driver().kernels.add({handle, name, module->kind_of_worlds, is_known ? found->second : 0});
})

STAND_IN(cuFuncLoad, 12040, (uint64_t function), {
    FIND(kernel, kernels, function);
    return load(*kernel);
})

STAND_IN(cuFuncGetAttribute, 2020, (int* value, int attribute, uint64_t function), {
    FIND(kernel, kernels, function);
    TRY(load(*kernel));
    const std::map<int, int> values{{kFunctionNumRegisters, kRegisters},
                                    {kFunctionMaxDynamicShared, static_cast<int>(kernel->shared_bytes_allowed)},
                                    {kFunctionLocal, kStackBytes}};
    REFUSE_IF(!values.contains(attribute), kInvalidValue, "attribute %d is unknown", attribute);
    *value = values.at(attribute);
})

STAND_IN(cuFuncSetAttribute, 9000, (uint64_t function, int attribute, int value), {
    FIND(kernel, kernels, function);
    if (attribute == kFunctionCarveout) return kSuccess;
    REFUSE_IF(attribute != kFunctionMaxDynamicShared, kInvalidValue, "attribute %d", attribute);
    if (value < 0 || value > most_shared_bytes()) return kInvalidValue;
    kernel->shared_bytes_allowed = static_cast<uint32_t>(value);
})

STAND_IN(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,
         (int* blocks, uint64_t function, int threads, size_t shared_bytes), {
    FIND(kernel, kernels, function);
    const size_t of_multiprocessor = static_cast<size_t>(most_shared_bytes()) + 1024;
    const int by_shared = static_cast<int>(of_multiprocessor / (shared_bytes + 1024));
    *blocks = std::min({kBlocksOfMultiprocessor, kThreadsOfMultiprocessor / threads, by_shared,
                        kRegistersOfMultiprocessor / (threads * kRegisters)});
})

STAND_IN(cuLaunchKernel, 4000,
         (uint64_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
          unsigned block_z, unsigned shared_bytes, uint64_t stream_handle, void** arguments, void** extra), {
    FIND(kernel, kernels, function);
    FIND_STREAM(stream, stream_handle);
    const std::shared_ptr<Module> module = driver().modules.find(kernel->module);
    const Context* context = module->context;
    REFUSE_IF(context != stream->context, kInvalidHandle, "kernel and stream differ in context");
    REFUSE_IF(!arguments || extra, kInvalidValue, "arguments come as addresses");
    REFUSE_IF(grid_x == 0 || grid_x > 0x7fffffff, kInvalidValue, "the grid is %u", grid_x);
    const bool has_one_dimension = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
    REFUSE_IF(!has_one_dimension, kInvalidValue, "doorstep's kernels have one dimension");
    const uint32_t allowed = kernel->shared_bytes_allowed;
    REFUSE_IF(shared_bytes > allowed, kInvalidValue, "%u bytes of shared memory, of %u", shared_bytes, allowed);
    TRY(load(*kernel));
    Task task;
    const Launch launch{kernel->name, kernel->kind_of_worlds,  context->device, grid_x, block_x,
                        shared_bytes, kernel->parameter_bytes, module->ptx};
    TRY(make_launch(launch, arguments[0], &task));
    return begin(*stream, std::move(task));
})
