#include "runtime/cuda/resource.h"

#include "math/base.h"
#include "runtime/cuda/context.h"
#include "runtime/futex.h"
#include "runtime/hash.h"
#include "runtime/reference.h"
#include "runtime/status.h"

namespace doorstep {

// Maps a raw handle to the object that owns it, without keeping it alive: an object leaves it in its destructor. The
// lock protects a few links only; neither the driver nor an owner is called while it is held.
class ResourceRegistry {
public:
    void add(Resource& resource, uint64_t raw) {
        MutexGuard guard(mutex_);
        insert(resource, raw);
    }

    // The existing object, or null if `resource` has been added.
    Ref<Resource> add_unless_known(Resource& resource, uint64_t raw) {
        MutexGuard guard(mutex_);
        if (Ref<Resource> known = look_up(resource.kind_, resource.device_index_, raw)) return known;
        insert(resource, raw);
        return {};
    }

    void remove(Resource& resource) {
        MutexGuard guard(mutex_);
        Resource** link = &bucket(resource.kind_, resource.device_index_, resource.raw_);
        while (*link && *link != &resource) link = &(*link)->next_in_registry_;
        DS_ASSERT(*link);
        *link = resource.next_in_registry_;
    }

    Ref<Resource> find(ds_resource_kind kind, int64_t device_index, uint64_t raw) {
        MutexGuard guard(mutex_);
        return look_up(kind, device_index, raw);
    }

private:
    static constexpr uint64_t kBuckets = 1024;

    void insert(Resource& resource, uint64_t raw) {
        DS_ASSERT(raw && !resource.raw_ && resource.ownership_ == DS_OWNERSHIP_OWNED);
        resource.raw_ = raw;
        Resource*& first = bucket(resource.kind_, resource.device_index_, raw);
        resource.next_in_registry_ = first;
        first = &resource;
    }

    Ref<Resource> look_up(ds_resource_kind kind, int64_t device_index, uint64_t raw) {
        for (Resource* at = bucket(kind, device_index, raw); at; at = at->next_in_registry_) {
            if (at->kind_ != kind || at->device_index_ != device_index || at->raw_ != raw) continue;
            // Skip objects that are being destroyed: the raw handle may already be reused.
            if (Ref<Resource> found = Ref<Resource>::share_if_alive(at)) return found;
        }
        return {};
    }

    Resource*& bucket(ds_resource_kind kind, int64_t device_index, uint64_t raw) {
        const uint64_t key[] = {static_cast<uint64_t>(kind), static_cast<uint64_t>(device_index), raw};
        return buckets_[hash_bytes(key, sizeof key) % kBuckets];
    }

    Mutex mutex_;
    Resource* buckets_[kBuckets]{};
};

namespace {

// Never destroyed: threads may still use it while the process exits. A forked child does not use it, because the fork
// may have happened during a change of it.
constinit ResourceRegistry registry;

std::atomic<int64_t>& live_count(ds_resource_kind kind) { return live_counts.resources[kind]; }

}  // namespace

Resource::Resource(ds_resource_kind kind, Ref<Context> context)
    : kind_(kind),
      ownership_(DS_OWNERSHIP_OWNED),
      device_index_(context->device_index()),
      context_(std::move(context)),
      owner_{} {
    live_count(kind_).fetch_add(1, std::memory_order_relaxed);
}

Resource::Resource(ds_resource_kind kind, Ref<Context> context, uint64_t raw, ForeignOwner owner)
    : kind_(kind),
      ownership_(owner.release ? DS_OWNERSHIP_FOREIGN : DS_OWNERSHIP_BORROWED),
      device_index_(context->device_index()),
      raw_(raw),
      context_(std::move(context)),
      owner_(owner) {
    live_count(kind_).fetch_add(1, std::memory_order_relaxed);
}

Resource::Resource(int device_index)
    : kind_(DS_RESOURCE_CONTEXT), ownership_(DS_OWNERSHIP_OWNED), device_index_(device_index), owner_{} {
    live_count(kind_).fetch_add(1, std::memory_order_relaxed);
}

// The context outlives the owner, which may need it. In a forked child the owner is leaked, because releasing it may
// call the driver.
Resource::~Resource() {
    if (owner_.release && !in_forked_process()) owner_.release(owner_.owner);
    live_count(kind_).fetch_sub(1, std::memory_order_relaxed);
}

void Resource::own(uint64_t raw) { registry.add(*this, raw); }

Ref<Resource> Resource::own_unless_known(const void* raw) {
    return registry.add_unless_known(*this, reinterpret_cast<uint64_t>(raw));
}

bool Resource::disown() {
    if (ownership_ != DS_OWNERSHIP_OWNED || !raw_ || in_forked_process()) return false;
    registry.remove(*this);
    return true;
}

Ref<Resource> find_resource(ds_resource_kind kind, int64_t device_index, uint64_t raw) {
    return in_forked_process() ? Ref<Resource>() : registry.find(kind, device_index, raw);
}

ds_status fail_no_memory() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "close other programs", "no host memory is left for a small object");
}

}  // namespace doorstep
