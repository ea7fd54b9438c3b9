// Machine code on a device, and the kernels in it.
#pragma once

#include <atomic>

#include "runtime/cuda/stream.h"

namespace doorstep {

class Module final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_MODULE;

    // image: a cubin, a fatbin, or PTX text that ends with a zero. argument: the argument that a bad image is reported
    // for; "" if it is doorstep's. Null, with the thread's error set, on failure.
    static Ref<Module> load(Ref<Context> context, const void* image, const char* argument = "image");
    // The module that is loaded under this number, which is at least 0, in the context, or else what load() returns: a
    // Ref<Module>, null with the error set. Two threads do not load it twice.
    template <class Load>
    static Ref<Module> share(const Context& context, int number, const Load& load) {
        MutexGuard guard(shared_mutex);
        Ref<Module> module = find_shared(context, number);
        if (!module && (module = load())) module->list_as(number);
        return module;
    }
    ~Module();

    Module *next_listed = nullptr, *previous_listed = nullptr;  // in the list of those that are shared

    CUmodule handle() const { return reinterpret_cast<CUmodule>(raw()); }

private:
    explicit Module(Ref<Context> context);
    static Ref<Module> find_shared(const Context& context, int number);
    void list_as(int number);

    static constinit Mutex shared_mutex;

    int number_ = -1;  // -1: it is not shared
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
