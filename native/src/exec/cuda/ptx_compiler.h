// Machine code for architectures that have no embedded image: from the embedded PTX, by the compiler library that is
// linked in, kept on disk under a name made of its content.
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

// Whether the compiler that is linked in knows sm_<architecture> (and was linked in at all).
bool compiler_knows(int architecture);

// The CUDA version (13000 is 13.0) from which on drivers take the compiler's output: those of its major version.
int compiler_driver_version();

// From the disk cache if it is there, else compiled and kept; a cache that cannot be read or written is no failure.
// info may be null. INVALID_ARGUMENT (architecture), OUT_OF_MEMORY, INTERNAL; the error is set.
ds_status compile_ptx(int module, int architecture, CompiledImage* image, ds_cuda_compile_info* info);

}  // namespace doorstep
