// Compiled images on disk, in $XDG_CACHE_HOME/doorstep or ~/.cache/doorstep. If the folder cannot be read or written,
// images are compiled again instead.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "doorstep.h"

namespace doorstep {

// A file that contains one image.
class CachedImage {
public:
    // `content` is a hash of everything that the image is compiled from. Determines the path.
    CachedImage(int module, int architecture, uint64_t content);

    // "" if the environment names no folder.
    const char* path() const { return path_; }

    // Allocates *data with malloc. False if the file is missing or damaged.
    bool read(void** data, size_t* bytes) const;

    // Concurrent readers see either the old file or the new one. False if it could not be written.
    bool write(const void* data, size_t bytes) const;

private:
    char path_[sizeof ds_cuda_compile_info::cache_path] = "";
};

}  // namespace doorstep
