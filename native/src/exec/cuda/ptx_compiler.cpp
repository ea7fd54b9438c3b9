// Compiles the embedded PTX, and keeps the images on disk.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "exec/cuda/images.h"
#include "exec/cuda/nv_ptx_compiler.h"
#include "runtime/futex.h"
#include "runtime/hash.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

// ---- Images on disk, in $XDG_CACHE_HOME/doorstep or ~/.cache/doorstep. If the folder cannot be read or written, images
// are compiled again instead.

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

// A file that contains one image.
class CachedImage {
public:
    // `content` is a hash of everything that the image is compiled from. Determines the path.
    CachedImage(int module, int architecture, uint64_t content);

    // "" if the environment names no folder.
    const char* path() const { return path_; }

    // False if the file is missing or damaged.
    bool read(OwnedImage* image) const;

    // Concurrent readers see either the old file or the new one. False if it could not be written.
    bool write(const OwnedImage& image) const;

private:
    char path_[sizeof ds_cuda_compile_info::cache_path] = "";
};

CachedImage::CachedImage(int module, int architecture, uint64_t content) {
    char folder[sizeof path_];
    find_folder(folder, sizeof folder);
    if (!folder[0]) return;
    const int length = snprintf(path_, sizeof path_, "%s/kernels-%d-sm_%d-%016" PRIx64 ".cubin", folder,
                                module, architecture, content);
    // A truncated path would name another file.
    if (length >= static_cast<int>(sizeof path_)) path_[0] = '\0';
}

bool CachedImage::read(OwnedImage* image) const {
    if (!path_[0]) return false;
    const File file(open(path_, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    FileHeader header;
    if (!file.is_open() || !file.read_all(&header, sizeof header)) return false;
    if (header.magic != kMagic || header.bytes == 0 || header.bytes > kLargestImage) return false;
    OwnedImage found = {{malloc(header.bytes), {}}, header.bytes};
    void* data = found.data.get();
    if (!data || !file.read_all(data, header.bytes) || hash_bytes(data, header.bytes) != header.checksum) return false;
    *image = std::move(found);
    return true;
}

bool CachedImage::write(const OwnedImage& image) const {
    if (!path_[0]) return false;
    make_folders(path_);
    char temporary[sizeof path_ + 8];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path_);
    File file(mkostemp(temporary, O_CLOEXEC));
    if (!file.is_open()) return false;
    const FileHeader header = {kMagic, hash_bytes(image.data.get(), image.bytes), image.bytes};
    if (write_file(file, header, image.data.get()) && rename(temporary, path_) == 0) return true;
    unlink(temporary);
    return false;
}

// ---- The compiler library

constexpr int kMaxArchitectures = 64;

// Version and architectures that the compiler library reports.
struct Compiler {
    Compiler() {
        nvPTXCompilerGetVersion(&major, &minor);
        int found = 0;
        if (nvPTXCompilerGetNumSupportedArchs(&found) || found > kMaxArchitectures) return;
        if (nvPTXCompilerGetSupportedArchs(architectures) == NVPTXCOMPILE_SUCCESS) count = found;
    }

    unsigned major = 0, minor = 0;
    int architectures[kMaxArchitectures];
    int count = 0;
};

const Compiler& compiler() {
    static const Compiler compiler;
    return compiler;
}

class Compilation {
public:
    ~Compilation() {
        if (handle_) nvPTXCompilerDestroy(&handle_);
    }

    nvPTXCompileResult run(const OwnedImage& ptx, int architecture, OwnedImage* image) {
        char target[32];
        snprintf(target, sizeof target, "--gpu-name=sm_%d", architecture);
        const char* const options[] = {target, "--fmad=false"};
        // The length excludes the terminating zero of the PTX.
        auto result = nvPTXCompilerCreate(&handle_, ptx.bytes - 1, static_cast<const char*>(ptx.data.get()));
        if (!result) result = nvPTXCompilerCompile(handle_, sizeof options / sizeof *options, options);
        if (!result) result = nvPTXCompilerGetCompiledProgramSize(handle_, &image->bytes);
        if (result) return result;
        image->data.reset(malloc(image->bytes));
        if (!image->data) return NVPTXCOMPILE_ERROR_OUT_OF_MEMORY;
        return nvPTXCompilerGetCompiledProgram(handle_, image->data.get());
    }

    // The beginning of the compiler's error log.
    void read_log(char* text, size_t size) const {
        size_t bytes = 0;
        text[0] = '\0';
        if (!handle_ || nvPTXCompilerGetErrorLogSize(handle_, &bytes) || bytes == 0) return;
        char* log = static_cast<char*>(calloc(bytes + 1, 1));
        if (log && !nvPTXCompilerGetErrorLog(handle_, log)) snprintf(text, size, "%s", log);
        free(log);
    }

private:
    nvPTXCompilerHandle handle_ = nullptr;
};

uint64_t compiler_version() { return uint64_t{compiler().major} << 32 | compiler().minor; }

ds_status run_compiler(const OwnedImage& ptx, int architecture, OwnedImage* image) {
    Compilation compilation;
    const auto result = compilation.run(ptx, architecture, image);
    if (result == NVPTXCOMPILE_SUCCESS) return DS_STATUS_OK;
    if (result == NVPTXCOMPILE_ERROR_OUT_OF_MEMORY) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "free memory on the host", "no memory to compile kernels for sm_%d",
                    architecture);
    }
    char log[256];
    compilation.read_log(log, sizeof log);
    return fail(DS_STATUS_INTERNAL, "", "report this as a defect in doorstep",
                "compiling kernels for sm_%d failed with code %d of PTX compiler %u.%u: %s", architecture, result,
                compiler().major, compiler().minor, log);
}

// Hash of everything that an image is compiled from, except the module and the architecture.
uint64_t content_hash(const OwnedImage& ptx) {
    const uint64_t parts[] = {hash_bytes(ptx.data.get(), ptx.bytes), compiler_version()};
    return hash_bytes(parts, sizeof parts);
}

// "sm_75, sm_80, ..."
void list_architectures(char* text, size_t size) {
    text[0] = '\0';
    size_t length = 0;
    for (int i = 0; i < compiler().count && length < size; ++i) {
        length += static_cast<size_t>(snprintf(text + length, size - length, "%ssm_%d", i ? ", " : "",
                                               compiler().architectures[i]));
    }
}

ds_status fail_unknown(int architecture) {
    if (compiler().count == 0) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "architecture", "install the published wheel",
                    "architecture is sm_%d; this library was built without a compiler", architecture);
    }
    char known[512];
    list_architectures(known, sizeof known);
    return fail(DS_STATUS_INVALID_ARGUMENT, "architecture", "choose an architecture that the compiler supports",
                "architecture is sm_%d; the compiler supports %s", architecture, known);
}

}  // namespace

bool compiler_knows(int architecture) {
    const int* const end = compiler().architectures + compiler().count;
    return std::find(compiler().architectures, end, architecture) != end;
}

int compiler_driver_version() { return static_cast<int>(compiler().major) * 1000; }

ds_status compile_ptx(int module, int architecture, OwnedImage* image, ds_cuda_compile_info* info) {
    const int64_t begin = monotonic_ns();
    const KernelImage* embedded = find_ptx(module);
    if (!embedded || !compiler_knows(architecture)) return fail_unknown(architecture);
    const OwnedImage ptx = unpack_image(*embedded);
    if (!ptx.data) return last_status();
    const CachedImage cached(module, architecture, content_hash(ptx));
    OwnedImage result;
    const bool from_cache = cached.read(&result);
    bool kept = from_cache;
    if (!from_cache) {
        if (const ds_status status = run_compiler(ptx, architecture, &result)) return status;
        kept = cached.write(result);
    }
    if (info) {
        info->from_cache = from_cache;
        info->image_bytes = static_cast<int64_t>(result.bytes);
        info->nanoseconds = monotonic_ns() - begin;
        snprintf(info->cache_path, sizeof info->cache_path, "%s", kept ? cached.path() : "");
    }
    *image = std::move(result);
    return DS_STATUS_OK;
}

}  // namespace doorstep
