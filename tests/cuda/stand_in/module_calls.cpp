// The driver's functions for machine code and kernels.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <map>

#include "driver.h"
#include "functions.h"
#include "launches.h"
#include "policy/kernels.h"
#include "policy_launch.h"
#include "render/raycast/block_views.h"
#include "view_launch.h"

using namespace stand_in;

namespace {

// ---- What the stand-in needs of machine code and PTX

struct Image {
    int code = 0;           // result of loading it
    std::string problem{};  // the reason
    int kind_of_worlds = 0;
    std::map<std::string, KernelCode> kernels{};
};

constexpr uint16_t kCudaMachine = 190;
constexpr int kFirstAbiWithArchitectureAbove = 8;  // in the second byte of the flags, before in the first
constexpr char kKindOfWorlds[] = "doorstep_kind_of_worlds";

template <class T>
T read(const char* data, uint64_t offset) {
    T value;
    memcpy(&value, data + offset, sizeof value);
    return value;
}

// Machine code runs on devices of the same major number and the same or a later minor one.
void check_architecture(const char* data, int64_t compute_capability, Image* image) {
    const auto header = read<Elf64_Ehdr>(data, 0);
    const bool above = header.e_ident[EI_ABIVERSION] >= kFirstAbiWithArchitectureAbove;
    const int64_t architecture = (above ? header.e_flags >> 8 : header.e_flags) & 0xff;
    if (header.e_machine != kCudaMachine) {
        *image = {kInvalidImage, "it is no machine code of a GPU"};
    } else if (architecture / 10 != compute_capability / 10 || architecture > compute_capability) {
        *image = {kNoBinaryForGpu, text("it is for sm_%ld, the device is sm_%ld", architecture, compute_capability)};
    }
}

void read_symbols(const char* data, Image* image) {
    const auto header = read<Elf64_Ehdr>(data, 0);
    const auto section = [&](uint64_t index) {
        return read<Elf64_Shdr>(data, header.e_shoff + index * header.e_shentsize);
    };
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
        const Elf64_Shdr table = section(i);
        if (table.sh_type != SHT_SYMTAB) continue;
        const char* names = data + section(table.sh_link).sh_offset;
        for (uint64_t at = 0; at < table.sh_size; at += table.sh_entsize) {
            const auto symbol = read<Elf64_Sym>(data, table.sh_offset + at);
            const std::string name = names + symbol.st_name;
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL)
                image->kernels.try_emplace(name);
            if (name == kKindOfWorlds)
                image->kind_of_worlds = read<int32_t>(data, section(symbol.st_shndx).sh_offset + symbol.st_value);
        }
    }
}

// ---- The attributes of machine code: a format, a number, and a value of two bytes or the size of what follows

constexpr char kCommonAttributes[] = ".nv.info", kAttributesOfKernel[] = ".nv.info.";
constexpr uint8_t kFormatSized = 4;
constexpr uint8_t kRegisterCount = 0x2f;   // symbol, number
constexpr uint8_t kStackBytes = 0x12;      // symbol, number
constexpr uint8_t kParameterBytes = 0x19;  // value: bytes

template <class Visit>
void visit_attributes(const char* data, const Elf64_Shdr& section, const Visit& visit) {
    for (uint64_t at = section.sh_offset; at + 4 <= section.sh_offset + section.sh_size;) {
        const uint8_t format = read<uint8_t>(data, at), number = read<uint8_t>(data, at + 1);
        const uint16_t value = read<uint16_t>(data, at + 2);
        visit(number, value, at + 4);
        at += 4 + (format == kFormatSized ? value : 0);
    }
}

void read_attributes(const char* data, Image* image) {
    const auto header = read<Elf64_Ehdr>(data, 0);
    const auto section = [&](uint64_t index) {
        return read<Elf64_Shdr>(data, header.e_shoff + index * header.e_shentsize);
    };
    const char* const names = data + section(header.e_shstrndx).sh_offset;
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
        const Elf64_Shdr attributes = section(i);
        const std::string name = names + attributes.sh_name;
        if (name == kCommonAttributes) {
            const Elf64_Shdr table = section(attributes.sh_link);
            const char* const symbols = data + section(table.sh_link).sh_offset;
            visit_attributes(data, attributes, [&](uint8_t number, uint16_t, uint64_t at) {
                if (number != kRegisterCount && number != kStackBytes) return;
                const uint64_t symbol = table.sh_offset + read<uint32_t>(data, at) * table.sh_entsize;
                const auto kernel = image->kernels.find(symbols + read<Elf64_Sym>(data, symbol).st_name);
                if (kernel == image->kernels.end()) return;
                KernelCode& code = kernel->second;
                (number == kStackBytes ? code.stack_bytes : code.registers) = read<int32_t>(data, at + 4);
            });
        } else if (name.starts_with(kAttributesOfKernel)) {
            const auto kernel = image->kernels.find(name.substr(strlen(kAttributesOfKernel)));
            if (kernel == image->kernels.end()) continue;
            visit_attributes(data, attributes, [&](uint8_t number, uint16_t value, uint64_t) {
                if (number == kParameterBytes) kernel->second.parameter_bytes = value;
            });
        }
    }
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
        *image = {kInvalidImage, "it is neither machine code nor PTX"};
        return;
    }
    if (major * 10 + minor > newest_ptx(driver_version)) {
        *image = {kUnsupportedPtxVersion, text("the driver does not know PTX %d.%d", major, minor)};
    } else if (target > compute_capability) {
        *image = {kNoBinaryForGpu, text("it is for sm_%d, the device is sm_%ld", target, compute_capability)};
    }
    constexpr char kEntry[] = ".entry ";
    for (size_t at = ptx.find(kEntry); at != std::string::npos; at = ptx.find(kEntry, at + 1)) {
        const size_t name = at + strlen(kEntry);
        const size_t end = ptx.find_first_of("( \n", name), bytes = ptx.find('[', end);
        KernelCode& code = image->kernels[ptx.substr(name, end - name)];
        if (bytes < ptx.find(')', end)) code.parameter_bytes = atoi(ptx.c_str() + bytes + 1);
    }
    const size_t kind = ptx.find(kKindOfWorlds);
    if (kind != std::string::npos) image->kind_of_worlds = atoi(ptx.c_str() + ptx.find('=', kind) + 1);
}

Image read_image(const void* data, int64_t compute_capability, int64_t driver_version) {
    Image image;
    const char* bytes = static_cast<const char*>(data);
    if (memcmp(bytes, ELFMAG, SELFMAG) != 0) {
        read_ptx(bytes, compute_capability, driver_version, &image);
        return image;
    }
    check_architecture(bytes, compute_capability, &image);
    if (!image.code) read_symbols(bytes, &image), read_attributes(bytes, &image);
    return image;
}

// ---- Modules and kernels

constexpr int kThreadsOfMultiprocessor = 2048, kBlocksOfMultiprocessor = 32;
constexpr int kRegistersOfMultiprocessor = 64 * 1024;
constexpr int kRegistersOfCompiledPtx = 128;  // an arbitrary number

int registers_of(const Kernel& kernel) {
    return kernel.code.registers ? kernel.code.registers : kRegistersOfCompiledPtx;
}

// Registers are given to warps, 256 at a time.
int blocks_by_registers(const Kernel& kernel, int threads) {
    const int warps = (threads + 31) / 32, of_warp = (registers_of(kernel) * 32 + 255) / 256 * 256;
    return kRegistersOfMultiprocessor / (warps * of_warp);
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
        Image image = read_image(data, settings.compute_capability, settings.driver_version);
        const bool is_ptx = memcmp(data, ELFMAG, SELFMAG) != 0;
        if (!is_ptx && settings.planted == "refuses_machine_code") image = {kNoBinaryForGpu, "as a test has planted"};
        write_log(count, options, values, image.problem);
        if (image.code) return image.code;
        const char* const ptx = is_ptx && settings.interprets ? static_cast<const char*>(data) : "";
        *handle = driver().modules.add({context, image.kind_of_worlds, image.kernels, ptx});
        return kSuccess;
    });
}

// Refused beside a capture in every mode: no mode is documented to allow it, and it was reported to end captures.
int cuModuleUnload(uint64_t handle) {
    return call("cuModuleUnload", [&]() -> int {
        const std::shared_ptr<Module> module = find("cuModuleUnload", driver().modules, handle);
        if (!module) return kInvalidHandle;
        if (const int code = refuse_beside_captures_of(*module->context)) return code;
        std::erase_if(driver().kernels.alive, [&](const auto& entry) { return entry.second->module == handle; });
        driver().modules.alive.erase(handle);
        return kSuccess;
    });
}

// A kernel of a module has one handle.
int cuModuleGetFunction(uint64_t* function, uint64_t handle, const char* name) {
    return call("cuModuleGetFunction", [&]() -> int {
        const std::shared_ptr<Module> module = find("cuModuleGetFunction", driver().modules, handle);
        if (!module) return kInvalidHandle;
        if (!module->kernels.contains(name)) return kNotFound;
        for (const auto& [known, kernel] : driver().kernels.alive) {
            if (kernel->module == handle && kernel->name == name) return *function = known, kSuccess;
        }
        Kernel kernel{handle, name, module->kind_of_worlds};
        kernel.code = module->kernels.at(name);
        *function = driver().kernels.add(std::move(kernel));
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
        else if (attribute == kFunctionNumRegisters) *value = registers_of(*kernel);
        else if (attribute == kFunctionMaxDynamicShared) *value = static_cast<int>(kernel->shared_bytes_allowed);
        else if (attribute == kFunctionStaticShared) *value = 0;
        else if (attribute == kFunctionLocal) *value = kernel->code.stack_bytes;
        else return refuse(kInvalidValue, text("cuFuncGetAttribute: attribute %d is unknown", attribute));
        return kSuccess;
    });
}

int cuFuncSetAttribute(uint64_t function, int attribute, int value) {
    return call("cuFuncSetAttribute", [&]() -> int {
        const std::shared_ptr<Kernel> kernel = find("cuFuncSetAttribute", driver().kernels, function);
        if (!kernel) return kInvalidHandle;
        if (attribute == kFunctionCarveout)
            return value < -1 || value > 100 ? refuse(kInvalidValue, "a carve-out is a percentage") : kSuccess;
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
        *blocks = std::min({kBlocksOfMultiprocessor, kThreadsOfMultiprocessor / threads, by_shared,
                            blocks_by_registers(*kernel, threads)});
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
        const std::shared_ptr<Module> module = driver().modules.find(kernel->module);
        const Context* context = module->context;
        if (context != stream->context)
            return refuse(kInvalidHandle, "cuLaunchKernel: kernel and stream differ in context");
        if (!arguments || extra) return refuse(kInvalidValue, "cuLaunchKernel: arguments come as addresses");
        const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
        if (const int code = check_dimensions(*kernel, grid, block, shared_bytes)) return code;
        if (const int code = load(*kernel)) return code;
        Task task;
        const Launch launch{kernel->name, kernel->kind_of_worlds,        context->device, grid_x, block_x,
                            shared_bytes, kernel->code.parameter_bytes, module->ptx};
        const bool draws =
            kernel->name == doorstep::kDrawViewsName || kernel->name == doorstep::kDrawLevelViewsName;
        const bool acts = kernel->name == doorstep::kActKernel || kernel->name == doorstep::kActBf16Kernel ||
                          kernel->name == doorstep::kPrepareRowsKernel || kernel->name == doorstep::kCountStepKernel;
        const auto make = draws ? make_view_launch : acts ? make_policy_launch : make_launch;
        if (const int code = make(launch, arguments[0], &task)) return code;
        return begin(*stream, std::move(task));
    });
}

}  // extern "C"
