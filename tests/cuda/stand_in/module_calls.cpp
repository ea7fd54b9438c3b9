// The driver's functions for machine code and kernels.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <map>

#include "functions.h"
#include "launches.h"
#include "policy/kernels.h"
#include "render/raycast/block_views.h"

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

// Sections of machine code.
struct Elf {
    explicit Elf(const char* data) : data(data), header(read<Elf64_Ehdr>(data, 0)) {}

    Elf64_Shdr section(uint64_t index) const {
        return read<Elf64_Shdr>(data, header.e_shoff + index * header.e_shentsize);
    }
    const char* names(uint64_t index) const { return data + section(index).sh_offset; }

    const char* data;
    Elf64_Ehdr header;
};

void read_symbols(const Elf& elf, Image* image) {
    for (uint64_t i = 0; i < elf.header.e_shnum; ++i) {
        const Elf64_Shdr table = elf.section(i);
        if (table.sh_type != SHT_SYMTAB) continue;
        for (uint64_t at = 0; at < table.sh_size; at += table.sh_entsize) {
            const auto symbol = read<Elf64_Sym>(elf.data, table.sh_offset + at);
            const std::string name = elf.names(table.sh_link) + symbol.st_name;
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL)
                image->kernels.try_emplace(name);
            if (name == kKindOfWorlds)
                image->kind_of_worlds = read<int32_t>(elf.names(symbol.st_shndx), symbol.st_value);
        }
    }
}

// ---- The attributes of machine code: a format, a number, and a value of two bytes or the size of what follows

constexpr char kCommonAttributes[] = ".nv.info", kAttributesOfKernel[] = ".nv.info.";
constexpr uint8_t kFormatSized = 4;
constexpr uint8_t kRegisterCount = 0x2f;   // symbol, number
constexpr uint8_t kStackBytes = 0x12;      // symbol, number
constexpr uint8_t kParameterBytes = 0x19;  // value: bytes

// Calls visit(number, value, offset of what follows).
void visit_attributes(const char* data, const Elf64_Shdr& section, const auto& visit) {
    for (uint64_t at = section.sh_offset; at + 4 <= section.sh_offset + section.sh_size;) {
        const uint16_t value = read<uint16_t>(data, at + 2);
        visit(read<uint8_t>(data, at + 1), value, at + 4);
        at += 4 + (read<uint8_t>(data, at) == kFormatSized ? value : 0);
    }
}

void read_attributes(const Elf& elf, Image* image) {
    KernelCode other;
    const auto code_of = [&](const char* name) -> KernelCode& {
        const auto kernel = image->kernels.find(name);
        return kernel == image->kernels.end() ? other : kernel->second;
    };
    for (uint64_t i = 0; i < elf.header.e_shnum; ++i) {
        const Elf64_Shdr attributes = elf.section(i), table = elf.section(attributes.sh_link);
        const std::string name = elf.names(elf.header.e_shstrndx) + attributes.sh_name;
        const bool common = name == kCommonAttributes;
        if (!common && !name.starts_with(kAttributesOfKernel)) continue;
        visit_attributes(elf.data, attributes, [&](uint8_t number, uint16_t value, uint64_t at) {
            if (!common && number == kParameterBytes)
                code_of(&name[strlen(kAttributesOfKernel)]).parameter_bytes = value;
            if (!common || (number != kRegisterCount && number != kStackBytes)) return;
            const uint64_t symbol = table.sh_offset + read<uint32_t>(elf.data, at) * table.sh_entsize;
            KernelCode& code = code_of(elf.names(table.sh_link) + read<Elf64_Sym>(elf.data, symbol).st_name);
            (number == kStackBytes ? code.stack_bytes : code.registers) = read<int32_t>(elf.data, at + 4);
        });
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
    if (image.code) return image;
    read_symbols(Elf(bytes), &image);
    read_attributes(Elf(bytes), &image);
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
    if (!kernel.loaded) TRY(refuse_beside_capture());
    kernel.loaded = true;
    return kSuccess;
}

}  // namespace

STAND_IN(cuModuleLoadDataEx, 2010, (uint64_t* handle, const void* data, unsigned count, int* options, void** values), {
    FIND_CONTEXT(context);
    TRY(refuse_beside_capture());
    const Settings& settings = driver().settings;
    Image image = read_image(data, settings.compute_capability, settings.driver_version);
    const bool is_ptx = memcmp(data, ELFMAG, SELFMAG) != 0;
    if (!is_ptx && settings.planted == "refuses_machine_code") image = {kNoBinaryForGpu, "as a test has planted"};
    write_log(count, options, values, image.problem);
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
    if (!module->kernels.contains(name)) return kNotFound;
    for (const auto& [known, kernel] : driver().kernels.alive)
        if (kernel->module == handle && kernel->name == name) return *function = known, kSuccess;
    Kernel kernel{handle, name, module->kind_of_worlds};
    kernel.code = module->kernels.at(name);
    *function = driver().kernels.add(std::move(kernel));
})

STAND_IN(cuFuncLoad, 12040, (uint64_t function), {
    FIND(kernel, kernels, function);
    return load(*kernel);
})

STAND_IN(cuFuncGetAttribute, 2020, (int* value, int attribute, uint64_t function), {
    FIND(kernel, kernels, function);
    TRY(load(*kernel));
    const std::map<int, int> values{{kFunctionMaxThreads, 1024},
                                    {kFunctionNumRegisters, registers_of(*kernel)},
                                    {kFunctionMaxDynamicShared, static_cast<int>(kernel->shared_bytes_allowed)},
                                    {kFunctionStaticShared, 0},
                                    {kFunctionLocal, kernel->code.stack_bytes}};
    REFUSE_IF(!values.contains(attribute), kInvalidValue, "attribute %d is unknown", attribute);
    *value = values.at(attribute);
})

STAND_IN(cuFuncSetAttribute, 9000, (uint64_t function, int attribute, int value), {
    FIND(kernel, kernels, function);
    const bool sets_carveout = attribute == kFunctionCarveout;
    REFUSE_IF(!sets_carveout && attribute != kFunctionMaxDynamicShared, kInvalidValue, "attribute %d", attribute);
    REFUSE_IF(sets_carveout && (value < -1 || value > 100), kInvalidValue, "a carve-out is a percentage");
    if (sets_carveout) return kSuccess;
    if (value < 0 || value > most_shared_bytes()) return kInvalidValue;
    kernel->shared_bytes_allowed = static_cast<uint32_t>(value);
})

STAND_IN(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,
         (int* blocks, uint64_t function, int threads, size_t shared_bytes), {
    FIND(kernel, kernels, function);
    REFUSE_IF(threads < 1 || threads > 1024, kInvalidValue, "occupancy of %d threads", threads);
    const size_t of_multiprocessor = static_cast<size_t>(most_shared_bytes()) + 1024;
    const int by_shared = static_cast<int>(of_multiprocessor / (shared_bytes + 1024));
    *blocks = std::min({kBlocksOfMultiprocessor, kThreadsOfMultiprocessor / threads, by_shared,
                        blocks_by_registers(*kernel, threads)});
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
    REFUSE_IF(block_x == 0 || block_x > 1024, kInvalidValue, "%u threads in a block", block_x);
    const bool has_one_dimension = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
    REFUSE_IF(!has_one_dimension, kInvalidValue, "doorstep's kernels have one dimension");
    const uint32_t allowed = kernel->shared_bytes_allowed;
    REFUSE_IF(shared_bytes > allowed, kInvalidValue, "%u bytes of shared memory, of %u", shared_bytes, allowed);
    TRY(load(*kernel));
    Task task;
    const Launch launch{kernel->name, kernel->kind_of_worlds,        context->device, grid_x, block_x,
                        shared_bytes, kernel->code.parameter_bytes, module->ptx};
    const auto is_one_of = [&](std::initializer_list<const char*> names) {
        return std::find(names.begin(), names.end(), kernel->name) != names.end();
    };
    const bool draws = is_one_of({doorstep::kDrawViewsName, doorstep::kDrawLevelViewsName});
    const bool acts = is_one_of({doorstep::kActKernel, doorstep::kActBf16Kernel, doorstep::kPrepareRowsKernel,
                                 doorstep::kCountStepKernel});
    const auto make = draws ? make_view_launch : acts ? make_policy_launch : make_launch;
    TRY(make(launch, arguments[0], &task));
    return begin(*stream, std::move(task));
})
