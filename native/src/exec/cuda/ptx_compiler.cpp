#include "exec/cuda/ptx_compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "exec/cuda/image_cache.h"
#include "exec/cuda/images.h"
#include "exec/cuda/nv_ptx_compiler.h"
#include "runtime/hash.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

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

    // *image is from malloc, or null.
    nvPTXCompileResult run(const KernelImage& ptx, int architecture, void** image, size_t* bytes) {
        char target[32];
        snprintf(target, sizeof target, "--gpu-name=sm_%d", architecture);
        const char* const options[] = {target, "--fmad=false"};
        // The length excludes the terminating zero of the PTX.
        auto result = nvPTXCompilerCreate(&handle_, ptx.bytes - 1, static_cast<const char*>(ptx.data));
        if (!result) result = nvPTXCompilerCompile(handle_, sizeof options / sizeof *options, options);
        if (!result) result = nvPTXCompilerGetCompiledProgramSize(handle_, bytes);
        if (result) return result;
        *image = malloc(*bytes);
        if (!*image) return NVPTXCOMPILE_ERROR_OUT_OF_MEMORY;
        return nvPTXCompilerGetCompiledProgram(handle_, *image);
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

ds_status run_compiler(const KernelImage& ptx, int architecture, void** image, size_t* bytes) {
    Compilation compilation;
    const auto result = compilation.run(ptx, architecture, image, bytes);
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

int64_t monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Hash of everything that an image is compiled from, except the module and the architecture.
uint64_t content_hash(const KernelImage& ptx) {
    const uint64_t parts[] = {hash_bytes(ptx.data, ptx.bytes), compiler_version()};
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

CompiledImage::CompiledImage(CompiledImage&& other) noexcept { swap(other); }

CompiledImage& CompiledImage::operator=(CompiledImage&& other) noexcept {
    swap(other);
    return *this;
}

CompiledImage::~CompiledImage() { free(data_); }

void CompiledImage::swap(CompiledImage& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
}

bool compiler_knows(int architecture) {
    const int* const end = compiler().architectures + compiler().count;
    return std::find(compiler().architectures, end, architecture) != end;
}

int compiler_driver_version() { return static_cast<int>(compiler().major) * 1000; }

ds_status compile_ptx(int module, int architecture, CompiledImage* image, ds_cuda_compile_info* info) {
    const int64_t begin = monotonic_ns();
    const KernelImage* ptx = find_ptx(module);
    if (!ptx || !compiler_knows(architecture)) return fail_unknown(architecture);
    const CachedImage cached(module, architecture, content_hash(*ptx));
    CompiledImage result;
    const bool from_cache = cached.read(&result.data_, &result.bytes_);
    bool kept = from_cache;
    if (!from_cache) {
        if (const ds_status status = run_compiler(*ptx, architecture, &result.data_, &result.bytes_)) return status;
        kept = cached.write(result.data_, result.bytes_);
    }
    if (info) {
        info->from_cache = from_cache;
        info->image_bytes = static_cast<int64_t>(result.bytes_);
        info->nanoseconds = monotonic_ns() - begin;
        snprintf(info->cache_path, sizeof info->cache_path, "%s", kept ? cached.path() : "");
    }
    *image = std::move(result);
    return DS_STATUS_OK;
}

}  // namespace doorstep
