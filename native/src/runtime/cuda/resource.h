// What all CUDA resources have in common. A resource lives while a Ref to it exists, and keeps its parents alive by
// the Refs it holds. It may be let go in any thread: destructors call neither Python nor anything that can fail
// loudly, restore the caller's current context, and leave the thread's error alone.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "runtime/reference.h"

namespace doorstep {

class Context;

// Who is let go with a resource that somebody else made. Without `release` nobody is.
struct ForeignOwner {
    void* owner = nullptr;
    ds_release_owner release = nullptr;
};

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
    // Of memory; otherwise 0.
    virtual uint64_t bytes() const { return 0; }
    // Address for the CPU of pinned memory; otherwise 0.
    virtual uint64_t host() const { return 0; }

protected:
    // Owned, below a context.
    Resource(ds_resource_kind kind, Ref<Context> context, const void* raw);
    // Borrowed, or with a foreign owner, who is taken over.
    Resource(ds_resource_kind kind, Ref<Context> context, uint64_t raw, ForeignOwner owner);
    // A context.
    Resource(int device_index, const void* raw);

    bool owned() const { return ownership_ == DS_OWNERSHIP_OWNED; }

    // From now on find_resource() finds this one, until forget().
    void remember();
    // The first thing in the destructor of every class that remembers.
    void forget();

private:
    friend class ResourceRegistry;

    ds_resource_kind kind_;
    ds_ownership ownership_;
    int device_index_;
    uint64_t raw_;
    Ref<Context> context_;
    ForeignOwner owner_;
    Resource* next_in_registry_ = nullptr;
    bool remembered_ = false;
};

// The resource of this kind that doorstep made and that this raw handle or first address belongs to; null if there is
// none.
Ref<Resource> find_resource(ds_resource_kind kind, int64_t device_index, uint64_t raw);

// Null if the resource is of another kind.
template <class T>
Ref<T> resource_cast(Ref<Resource> resource) {
    if (!resource || resource->kind() != T::kKind) return {};
    return Ref<T>::adopt(static_cast<T*>(resource.leak()));
}

template <class T>
Ref<T> find_resource(int64_t device_index, uint64_t raw) {
    return resource_cast<T>(find_resource(T::kKind, device_index, raw));
}

}  // namespace doorstep
