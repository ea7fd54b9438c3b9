#include "exec/cuda/images.h"

#include <string.h>

#include "math/base.h"
#include "runtime/lzma.h"
#include "runtime/status.h"

// The file of images as packed by wheel_build/kernel_image_file.py, which documents the format. The file is named after
// its content, so that compiler caches notice changes.
#ifdef DS_CUDA_IMAGES
asm(R"(
    .section .rodata.doorstep_kernel_images, "a", @progbits
    .balign 64
    .type doorstep_kernel_images, @object
doorstep_kernel_images:
    .incbin ")" DS_CUDA_IMAGES R"("
    .size doorstep_kernel_images, . - doorstep_kernel_images
    .text
)");
extern "C" [[gnu::visibility("hidden")]] const unsigned char doorstep_kernel_images[];
#else
static const unsigned char doorstep_kernel_images[32] = {};  // a header with zero images
#endif

namespace doorstep {
namespace {

struct FileHeader {
    char magic[24];
    uint32_t count;
    uint32_t zero;
};

struct FileEntry {
    int32_t module;
    int32_t architecture;
    uint64_t stream;
    uint64_t stream_bytes;
    uint64_t offset;
    uint64_t bytes;
};

static_assert(sizeof(FileHeader) == 32 && sizeof(FileEntry) == 40, "must equal wheel_build/kernel_image_file.py");

constexpr int kMaxImages = 256;

struct ImageTable {
    ImageTable() {
        FileHeader header;
        memcpy(&header, doorstep_kernel_images, sizeof header);
        DS_ASSERT(header.count <= kMaxImages);
        for (; count < static_cast<int>(header.count) && count < kMaxImages; ++count) {
            FileEntry entry;
            memcpy(&entry, doorstep_kernel_images + sizeof header + count * sizeof entry, sizeof entry);
            images[count] = {entry.module,       entry.architecture, doorstep_kernel_images + entry.stream,
                             entry.stream_bytes, entry.offset,       entry.bytes};
        }
    }

    int count = 0;
    KernelImage images[kMaxImages];
};

const ImageTable& image_table() {
    static const ImageTable table;
    return table;
}

}  // namespace

const KernelImage* kernel_images(int* count) {
    *count = image_table().count;
    return image_table().images;
}

const KernelImage* find_cubin(int module, int compute_capability) {
    return find_cubin(image_table().images, image_table().count, module, compute_capability);
}

const KernelImage* find_cubin(const KernelImage* images, int count, int module, int compute_capability) {
    const KernelImage* best = nullptr;
    for (const KernelImage* image = images; image != images + count; ++image) {
        const bool runs = image->module == module && image->architecture / 10 == compute_capability / 10 &&
                          image->architecture <= compute_capability;
        if (runs && (!best || image->architecture > best->architecture)) best = image;
    }
    return best;
}

const KernelImage* find_ptx(int module) {
    const ImageTable& table = image_table();
    for (const KernelImage* image = table.images; image != table.images + table.count; ++image) {
        if (image->module == module && image->architecture == 0) return image;
    }
    return nullptr;
}

OwnedImage unpack_image(const KernelImage& image) {
    OwnedImage unpacked;
    const size_t end = image.offset + image.bytes;
    unsigned char* data = static_cast<unsigned char*>(malloc(end));
    unpacked.data.reset(data);
    if (!data) {
        fail(DS_STATUS_OUT_OF_MEMORY, "", "free memory on the host", "no memory to unpack kernels");
    } else if (!decode_lzma(image.stream, image.stream_bytes, data, end)) {
        unpacked.data.reset();
        fail(DS_STATUS_INTERNAL, "", "install doorstep again", "the kernels in the library are damaged");
    } else {
        memmove(data, data + image.offset, image.bytes);
        unpacked.bytes = image.bytes;
    }
    return unpacked;
}

}  // namespace doorstep
