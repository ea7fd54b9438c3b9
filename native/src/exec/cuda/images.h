// Machine code of the kernels. Embedded when the library is built: cubins of named architectures, and PTX. For other
// architectures: compiled from the PTX by the linked compiler library, and cached on disk under a name derived from its
// content.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <memory>

#include "doorstep/cuda.h"
#include "sim/world_model.h"

namespace doorstep {

// ---- Embedded images

// The kernels that an image contains: those that step worlds of the kind with this number, the training kernels, those
// that draw views, or those of policies.
constexpr int kTrainingModule = 0;
constexpr int kViewsModule = 9;
constexpr int kPoliciesModule = 19;
constexpr int kBf16PoliciesModule = 20;  // for compute capability 8.0 and newer

struct KernelImage {
    int32_t module;        // as above
    int32_t architecture;  // 90: machine code for sm_90; 0: PTX text that ends with a zero
    const unsigned char* stream;  // LZMA, of all images of the architecture
    size_t stream_bytes;
    size_t offset;  // in what the stream encodes
    size_t bytes;
};

// All embedded images, and their number: 0 in a library built without the CUDA compiler packages.
const KernelImage* kernel_images(int* count);

// The cubin that runs on a device of this compute capability (90 is 9.0): of the same major number and the largest
// minor number that is not newer. Null without one.
const KernelImage* find_cubin(int module, int compute_capability);

// The same among the given images.
const KernelImage* find_cubin(const KernelImage* images, int count, int module, int compute_capability);

// The PTX; null in a library without images.
const KernelImage* find_ptx(int module);

// ---- Images in memory

struct OwnedImage {
    struct Free {
        void operator()(void* data) const { free(data); }
    };

    std::unique_ptr<void, Free> data;
    size_t bytes = 0;
};

// Decodes the image, which takes as long as all before it in its stream do: 20 ms for two agents, at most 0.1 s. Null
// data, with the thread's error set (OUT_OF_MEMORY, INTERNAL), on failure.
OwnedImage unpack_image(const KernelImage& image);

// Whether a compiler is linked and supports sm_<architecture>.
bool compiler_knows(int architecture);

// The oldest CUDA version (13000 is 13.0) whose drivers accept the compiler's output: the first of its major version.
int compiler_driver_version();

// Reads the image from the disk cache, or compiles it and caches it; ignores a cache that cannot be read or written.
// info may be null. INVALID_ARGUMENT (architecture), OUT_OF_MEMORY, INTERNAL; the error is set.
ds_status compile_ptx(int module, int architecture, OwnedImage* image, ds_cuda_compile_info* info);

}  // namespace doorstep
