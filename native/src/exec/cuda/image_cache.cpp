#include "exec/cuda/image_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/hash.h"

namespace doorstep {
namespace {

constexpr uint64_t kMagic = 0x3167616d69737364;  // "dssimag1"
constexpr uint64_t kLargestImage = uint64_t{1} << 30;

struct FileHeader {
    uint64_t magic;
    uint64_t checksum;  // of the image
    uint64_t bytes;     // of the image
};

class File {
public:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    ~File() { close(); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    bool is_open() const { return descriptor_ >= 0; }

    // Whether everything was written, as far as fclose() reports it.
    bool close() {
        const bool done = descriptor_ < 0 || ::close(descriptor_) == 0;
        descriptor_ = -1;
        return done;
    }

    bool read_all(void* data, size_t bytes) const {
        for (char* next = static_cast<char*>(data); bytes;) {
            const ssize_t done = ::read(descriptor_, next, bytes);
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) return false;
            next += done;
            bytes -= static_cast<size_t>(done);
        }
        return true;
    }

    bool write_all(const void* data, size_t bytes) const {
        for (const char* next = static_cast<const char*>(data); bytes;) {
            const ssize_t done = ::write(descriptor_, next, bytes);
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) return false;
            next += done;
            bytes -= static_cast<size_t>(done);
        }
        return true;
    }

private:
    int descriptor_;
};

// "" if neither variable contains an absolute path; relative ones are ignored, as the XDG specification requires.
void find_folder(char* folder, size_t size) {
    const char* cache = getenv("XDG_CACHE_HOME");
    const char* home = getenv("HOME");
    folder[0] = '\0';
    if (cache && cache[0] == '/') {
        snprintf(folder, size, "%s/doorstep", cache);
    } else if (home && home[0] == '/') {
        snprintf(folder, size, "%s/.cache/doorstep", home);
    }
}

// Creates the parent folders of a file, for this user alone. Failures show when the file is opened.
void make_folders(const char* path) {
    char folder[sizeof ds_cuda_compile_info::cache_path];
    snprintf(folder, sizeof folder, "%s", path);
    for (char* next = strchr(folder + 1, '/'); next; next = strchr(next + 1, '/')) {
        *next = '\0';
        mkdir(folder, 0700);
        *next = '/';
    }
}

bool write_file(File& file, const FileHeader& header, const void* data) {
    return file.write_all(&header, sizeof header) && file.write_all(data, header.bytes) && file.close();
}

}  // namespace

CachedImage::CachedImage(int module, int architecture, uint64_t content) {
    char folder[sizeof path_];
    find_folder(folder, sizeof folder);
    if (!folder[0]) return;
    const int length = snprintf(path_, sizeof path_, "%s/kernels-%d-sm_%d-%016" PRIx64 ".cubin", folder,
                                module, architecture, content);
    // A truncated path would name another file.
    if (length >= static_cast<int>(sizeof path_)) path_[0] = '\0';
}

bool CachedImage::read(void** data, size_t* bytes) const {
    if (!path_[0]) return false;
    const File file(open(path_, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    FileHeader header;
    if (!file.is_open() || !file.read_all(&header, sizeof header)) return false;
    if (header.magic != kMagic || header.bytes == 0 || header.bytes > kLargestImage) return false;
    void* image = malloc(header.bytes);
    if (!image) return false;
    if (!file.read_all(image, header.bytes) || hash_bytes(image, header.bytes) != header.checksum) {
        free(image);
        return false;
    }
    *data = image;
    *bytes = header.bytes;
    return true;
}

bool CachedImage::write(const void* data, size_t bytes) const {
    if (!path_[0]) return false;
    make_folders(path_);
    char temporary[sizeof path_ + 8];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path_);
    File file(mkostemp(temporary, O_CLOEXEC));
    if (!file.is_open()) return false;
    const FileHeader header = {kMagic, hash_bytes(data, bytes), bytes};
    if (write_file(file, header, data) && rename(temporary, path_) == 0) return true;
    unlink(temporary);
    return false;
}

}  // namespace doorstep
