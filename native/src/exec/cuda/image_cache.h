// Compiled images on disk, in $XDG_CACHE_HOME/doorstep or ~/.cache/doorstep. A folder that cannot be read or written
// is no failure: images are then compiled anew.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "doorstep.h"

namespace doorstep {

// A file that holds one image.
class CachedImage {
public:
    // `content` is a hash of everything that the image is made from. Finds where the file would be.
    CachedImage(int module, int architecture, uint64_t content);

    // "" if the environment names no folder.
    const char* path() const { return path_; }

    // Allocates *data with malloc. False if there is no such file, or what it holds is not what was written.
    bool read(void** data, size_t* bytes) const;

    // Whoever reads meanwhile sees the old file or the new one. False if it could not be written.
    bool write(const void* data, size_t bytes) const;

private:
    char path_[sizeof ds_cuda_compile_info::cache_path] = "";
};

}  // namespace doorstep
