// The lifetimes of objects: intrusive reference counts, owners in other code, and counts of what is alive.
#pragma once

#include <stdint.h>

#include <atomic>
#include <type_traits>
#include <utility>

#include "doorstep.h"
#include "math/base.h"

namespace doorstep {

// ---- References ----

// Intrusive reference counting: an object lives while a Ref to it exists. Sharing a reference allocates nothing.
class RefCounted {
public:
    RefCounted() = default;
    RefCounted(const RefCounted&) = delete;
    RefCounted& operator=(const RefCounted&) = delete;

    // A snapshot: other threads may change it at any time.
    uint32_t reference_count() const { return references_.load(std::memory_order_relaxed); }

private:
    template <class T>
    friend class Ref;
    std::atomic<uint32_t> references_{1};
};

template <class T>
class Ref {
public:
    Ref() = default;
    Ref(const Ref& other) : object_(other.object_) {
        if (object_) object_->references_.fetch_add(1, std::memory_order_relaxed);
    }
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    // To a base class, which deletes through a virtual destructor.
    template <class Derived>
        requires std::is_convertible_v<Derived*, T*>
    Ref(Ref<Derived> other) noexcept : object_(other.leak()) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() {
        if (!object_) return;
        const uint32_t before = object_->references_.fetch_sub(1, std::memory_order_acq_rel);
        DS_ASSERT(before > 0);
        if (before == 1) delete object_;
    }

    // Takes over the reference of a new object, or one released by leak().
    static Ref adopt(T* object) {
        Ref result;
        result.object_ = object;
        return result;
    }
    // Another reference to an object that another reference keeps alive.
    static Ref share(T* object) {
        DS_ASSERT(object->reference_count() > 0);
        object->references_.fetch_add(1, std::memory_order_relaxed);
        return adopt(object);
    }
    // The same for an object that may be losing its last reference: null if it has. Its destructor must not have
    // finished.
    static Ref share_if_alive(T* object) {
        uint32_t references = object->references_.load(std::memory_order_relaxed);
        while (references != 0) {
            if (object->references_.compare_exchange_weak(references, references + 1, std::memory_order_relaxed)) {
                return adopt(object);
            }
        }
        return {};
    }
    // Gives the reference up without releasing it, for a later adopt().
    T* leak() { return std::exchange(object_, nullptr); }

    T* get() const { return object_; }
    T* operator->() const {
        DS_ASSERT(object_);
        return object_;
    }
    T& operator*() const {
        DS_ASSERT(object_);
        return *object_;
    }
    explicit operator bool() const { return object_ != nullptr; }

private:
    T* object_ = nullptr;
};

// ---- Foreign owners ----

// An owner, and the function that releases it. A null `release`: nothing is released.
struct ForeignOwner {
    void* owner = nullptr;
    ds_release_owner release = nullptr;
};

// ---- Live objects ----

// Counts of live objects that no handle registry counts.
struct LiveCounts {
    std::atomic<int64_t> memories{0};  // memories of simulators
    std::atomic<int64_t> exports{0};   // DLPack tensors not yet deleted
    std::atomic<int64_t> threads{0};   // threads started and not yet joined
    std::atomic<int64_t> layers{0};    // of policies
    std::atomic<int64_t> policies{0};
    std::atomic<int64_t> rollouts{0};  // engines, queues, replicas, shared levels, states
    std::atomic<int64_t> configs{0};   // configurations with handles
    std::atomic<int64_t> metrics{0};   // stores
    std::atomic<int64_t> resources[DS_RESOURCE_KIND_COUNT]{};
};

inline constinit LiveCounts live_counts;

}  // namespace doorstep
