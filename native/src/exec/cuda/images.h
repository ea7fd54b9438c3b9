// Machine code of the kernels, embedded when the library is built: cubins of named architectures, and PTX.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace doorstep {

// The kernels that an image contains: those that step worlds of a number of agents, the training kernels, or the kernel
// that draws views.
constexpr int kTrainingModule = 0;
constexpr int kViewsModule = 9;

struct KernelImage {
    int32_t module;        // number of agents, kTrainingModule or kViewsModule
    int32_t architecture;  // 90: machine code for sm_90; 0: PTX text that ends with a zero
    const void* data;
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

}  // namespace doorstep
