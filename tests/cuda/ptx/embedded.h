// Programs of the embedded PTX.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "exec/cuda/images.h"
#include "program.h"

namespace ptx {

// The kernels of a module, as in exec/cuda/images.h. Ends the process in a build without images.
inline Program read_embedded(int module) {
    const doorstep::KernelImage* const image = doorstep::find_ptx(module);
    const doorstep::OwnedImage text = image ? doorstep::unpack_image(*image) : doorstep::OwnedImage{};
    if (!text.data) {
        fprintf(stderr, "this build has no kernels embedded\n");
        exit(1);
    }
    return read_program(static_cast<const char*>(text.data.get()));
}

}  // namespace ptx
