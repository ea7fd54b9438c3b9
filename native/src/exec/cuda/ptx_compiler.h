// Machine code for architectures without an embedded image: compiled from the embedded PTX by the linked compiler
// library, and cached on disk under a name derived from its content.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "doorstep.h"

namespace doorstep {

// A compiled image; owns its bytes.
class CompiledImage {
public:
    CompiledImage() = default;
    CompiledImage(CompiledImage&& other) noexcept;
    CompiledImage& operator=(CompiledImage&& other) noexcept;
    ~CompiledImage();

    const void* data() const { return data_; }
    size_t bytes() const { return bytes_; }
    explicit operator bool() const { return data_ != nullptr; }

private:
    friend ds_status compile_ptx(int, int, CompiledImage*, ds_cuda_compile_info*);
    void swap(CompiledImage& other);
    void* data_ = nullptr;
    size_t bytes_ = 0;
};

// Whether a compiler is linked and supports sm_<architecture>.
bool compiler_knows(int architecture);

// The oldest CUDA version (13000 is 13.0) whose drivers accept the compiler's output: the first of its major version.
int compiler_driver_version();

// Reads the image from the disk cache, or compiles it and caches it; ignores a cache that cannot be read or written.
// info may be null. INVALID_ARGUMENT (architecture), OUT_OF_MEMORY, INTERNAL; the error is set.
ds_status compile_ptx(int module, int architecture, CompiledImage* image, ds_cuda_compile_info* info);

}  // namespace doorstep
