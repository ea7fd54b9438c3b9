// Machine code on a device, and the kernels in it.
#pragma once

#include <atomic>

#include "runtime/cuda/stream.h"

namespace doorstep {

// Stays loaded until the process ends, even if no object does: unloading may end the captures of other code, whatever
// the modes, and the last reference may go at any time.
class Module final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_MODULE;

    // Modules have numbers below kMostModules. The caller of these holds a lock.
    static bool is_loaded(const Context& context, int number) { return kept_module(context.device(), number); }
    // image: a cubin, a fatbin, or PTX text that ends with a zero.
    static ds_status load(const Context& context, int number, const void* image);
    // One object per loaded module, however often it is called. Null, with the thread's error set, on failure.
    static Ref<Module> find(Ref<Context> context, int number);
    ~Module();

    CUmodule handle() const { return reinterpret_cast<CUmodule>(raw()); }

private:
    explicit Module(Ref<Context> context) : Resource(kKind, std::move(context)) {}
};

// The dimensions of one launch.
struct LaunchShape {
    uint32_t grid[3];   // blocks: x, y, z
    uint32_t block[3];  // threads of a block
    uint32_t shared_bytes = 0;
};

class Kernel final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_KERNEL;

    // INVALID_ARGUMENT (name) if the module has no kernel of that name. Loads its code before returning, so that the
    // first launch may be captured.
    static Ref<Kernel> get(Ref<Module> module, const char* name);
    ~Kernel();

    CUfunction handle() const { return reinterpret_cast<CUfunction>(raw()); }

    // Allows launches with that much dynamic shared memory; launch() calls it beyond 48 KiB.
    ds_status allow_shared_bytes(uint32_t bytes);
    // Prefers shared memory to the cache of a multiprocessor, for as many blocks as that allows.
    ds_status prefer_shared_memory() const;
    ds_status attribute(CUfunction_attribute attribute, int* value) const;
    // Number of blocks of that shape that one multiprocessor runs at once.
    ds_status resident_blocks(uint32_t threads, uint32_t shared_bytes, int* blocks) const;

    // arguments: addresses of the parameters' values, which are copied before this returns.
    ds_status launch(const Stream& stream, const LaunchShape& shape, void** arguments);
    // On any stream of the kernel's context.
    ds_status launch_on(CUstream stream, const LaunchShape& shape, void** arguments);

private:
    explicit Kernel(Ref<Module> module);
    static ds_status load_code(CUfunction handle);

    Ref<Module> module_;
    std::atomic<uint32_t> allowed_shared_bytes_;
};

}  // namespace doorstep
