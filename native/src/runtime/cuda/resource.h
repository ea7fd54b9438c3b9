// Base class of all CUDA resources. A resource lives while a Ref to it exists, and keeps its parents alive by the Refs
// it has. It may be released in any thread: destructors do not call Python or raise errors, restore the caller's
// current context, and do not change the thread's error.
#pragma once

#include <stdint.h>

#include "doorstep/cuda.h"
#include "runtime/cuda/driver.h"
#include "runtime/reference.h"

namespace doorstep {

class Context;

class Resource : public RefCounted {
public:
    virtual ~Resource();

    ds_resource_kind kind() const { return kind_; }
    ds_ownership ownership() const { return ownership_; }
    int device_index() const { return device_index_; }
    // The driver's handle or address, as a number.
    uint64_t raw() const { return raw_; }
    // Null for a context itself.
    const Ref<Context>& context() const { return context_; }
    // Size of memory; otherwise 0.
    virtual uint64_t bytes() const { return 0; }
    // Host address of pinned memory; otherwise 0.
    virtual uint64_t host() const { return 0; }

    // For resources that may be in use and cannot be waited for: the resource is leaked when this object ends.
    void abandon() {
        if (disown()) raw_ = 0;
    }

protected:
    // Owned, below a context. Until own() there is nothing to destroy.
    Resource(ds_resource_kind kind, Ref<Context> context);
    // Borrowed, or with a foreign owner, which is taken over.
    Resource(ds_resource_kind kind, Ref<Context> context, uint64_t raw, ForeignOwner owner);
    // A context.
    explicit Resource(int device_index);

    // From now on this object owns the raw resource, and find_resource() finds it.
    void own(uint64_t raw);
    void own(const void* raw) { own(reinterpret_cast<uint64_t>(raw)); }
    // The same, unless an object for that raw resource exists already, which is then returned.
    Ref<Resource> own_unless_known(const void* raw);
    // Owns what a function of the driver has written to `raw`, unless it failed.
    template <class Raw>
    ds_status own_made(CUresult result, const Raw& raw, const char* function, const char* argument = "");

    // The new object, once make(object) has made the raw resource that it owns, in its context. Null, with the thread's
    // error set, if `object` is null or make() returns a failure.
    template <class T, class Make>
    static Ref<T> create_with(T* object, const Make& make);

    // In every destructor: if there is a raw resource to destroy, calls end(driver), unless the driver must not be
    // called.
    template <class End>
    void destroy(const End& end);

    // For resources that end in another way: removes the object from the registry. True if there is a raw resource to
    // destroy.
    bool disown();

private:
    friend class ResourceRegistry;

    const ds_resource_kind kind_;
    const ds_ownership ownership_;
    const int device_index_;
    uint64_t raw_ = 0;
    const Ref<Context> context_;
    const ForeignOwner owner_;
    Resource* next_in_registry_ = nullptr;  // guarded by the registry
};

// Finds the resource of this kind that doorstep created with this raw handle or first address; null if not found.
Ref<Resource> find_resource(ds_resource_kind kind, int64_t device_index, uint64_t raw);

// The host has no memory for a small object.
ds_status fail_no_memory();

// Null if the resource is of another kind.
template <class T>
Ref<T> resource_cast(Ref<Resource> resource) {
    if (!resource || resource->kind() != T::kKind) return {};
    return Ref<T>::adopt(static_cast<T*>(resource.leak()));
}

// A new object, or null with the thread's error set if there was no memory.
template <class T>
Ref<T> check_allocated(T* object) {
    if (!object) fail_no_memory();
    return Ref<T>::adopt(object);
}

template <class T>
Ref<T> find_resource(int64_t device_index, uint64_t raw) {
    return resource_cast<T>(find_resource(T::kKind, device_index, raw));
}

}  // namespace doorstep
