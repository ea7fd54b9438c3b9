#include "image.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codes.h"
#include "report.h"

namespace stand_in {
namespace {

constexpr uint16_t kCudaMachine = 190;
constexpr int kFirstAbiWithArchitectureAbove = 8;  // in the second byte of the flags, before in the first
constexpr char kNumAgents[] = "doorstep_num_agents";

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
                image->kernels.insert(name);
            if (name == kNumAgents)
                image->num_agents = read<int32_t>(data, section(symbol.st_shndx).sh_offset + symbol.st_value);
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
        image->kernels.insert(ptx.substr(name, ptx.find_first_of("( \n", name) - name));
    }
    const size_t agents = ptx.find(kNumAgents);
    if (agents != std::string::npos) image->num_agents = atoi(ptx.c_str() + ptx.find('=', agents) + 1);
}

}  // namespace

Image read_image(const void* data, int64_t compute_capability, int64_t driver_version) {
    Image image;
    const char* bytes = static_cast<const char*>(data);
    if (memcmp(bytes, ELFMAG, SELFMAG) != 0) {
        read_ptx(bytes, compute_capability, driver_version, &image);
        return image;
    }
    check_architecture(bytes, compute_capability, &image);
    if (!image.code) read_symbols(bytes, &image);
    return image;
}

}  // namespace stand_in
