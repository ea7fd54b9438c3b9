#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measured.h"

namespace gpu_model {
namespace {

[[noreturn]] void refuse(const char* kernel) {
    fprintf(stderr, "this build has no machine code of %s for compute capability 9.0\n", kernel);
    exit(1);
}

class Cubin {
public:
    explicit Cubin(const char* data) : data_(data) {}

    const Elf64_Shdr* section(const std::string& name) const {
        const Elf64_Shdr* const names = sections() + header()->e_shstrndx;
        for (int i = 0; i < header()->e_shnum; ++i)
            if (name == data_ + names->sh_offset + sections()[i].sh_name) return sections() + i;
        return nullptr;
    }
    const char* contents(const Elf64_Shdr* section) const { return data_ + section->sh_offset; }

private:
    const Elf64_Ehdr* header() const { return reinterpret_cast<const Elf64_Ehdr*>(data_); }
    const Elf64_Shdr* sections() const { return reinterpret_cast<const Elf64_Shdr*>(data_ + header()->e_shoff); }

    const char* data_;
};

}  // namespace

// The code's section names the kernel's symbol in sh_info. The section .nv.info is a list of entries, each of a format,
// an attribute and 16 bits: in the format kSized the size of a value that follows. The value of kRegisterCount is a
// symbol and its number of registers.
uint32_t registers_of(int module, const char* kernel) {
    constexpr uint8_t kSized = 4, kRegisterCount = 0x2F;
    const doorstep::KernelImage* const image = doorstep::find_cubin(module, 90);
    const doorstep::OwnedImage unpacked = image ? doorstep::unpack_image(*image) : doorstep::OwnedImage{};
    if (!unpacked.data) refuse(kernel);
    const Cubin cubin(static_cast<const char*>(unpacked.data.get()));
    const Elf64_Shdr *code = cubin.section(std::string(".text.") + kernel), *info = cubin.section(".nv.info");
    if (!code || !info) refuse(kernel);
    const char* const end = cubin.contents(info) + info->sh_size;
    for (const char* at = cubin.contents(info); at + 4 <= end; at += 4) {
        uint16_t bytes;
        memcpy(&bytes, at + 2, sizeof bytes);
        if (at[0] != kSized) continue;
        uint32_t value[2];
        memcpy(value, at + 4, sizeof value);
        if (at[1] == kRegisterCount && value[0] == code->sh_info) return value[1];
        at += bytes;
    }
    refuse(kernel);
}

}  // namespace gpu_model
