// Handles: 8-byte ids {kind, generation, index} for objects that any thread may close at any time.
//
// The kind is in the upper 8 bits, so a handle of another kind is recognised. A slot's generation changes whenever its
// object is removed, so an old id finds nothing. The result of find() keeps the object alive for as long as the caller
// needs it, even if it is removed meanwhile.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "math/base.h"
#include "runtime/argument_checks.h"
#include "runtime/futex.h"
#include "runtime/reference.h"

namespace doorstep {

// X(kind, name with its article). From 1, so that no handle is 0; numbers are not part of the C API.
#define DS_HANDLE_KIND_TABLE(X)                 \
    X(SIMULATOR, "a simulator")                 \
    X(MEMORY, "a memory")                       \
    X(EVENT, "an event")                        \
    X(RESOURCE, "a CUDA resource")              \
    X(LAYER, "a layer")                         \
    X(POLICY, "a policy")                       \
    X(METRICS, "a metrics store")               \
    X(CONFIG, "a configuration")                \
    X(SHARED_LEVEL, "a level")                  \
    X(ENGINE, "an engine")                      \
    X(OUTPUTS, "a queue of outputs")            \
    X(CAMERAS, "cameras") /* of the library that draws */ \
    X(SAVED_STATE, "a saved state")

enum class HandleKind : uint8_t {
    NONE = 0,
#define DS_HANDLE_KIND(kind, name) kind,
    DS_HANDLE_KIND_TABLE(DS_HANDLE_KIND)
#undef DS_HANDLE_KIND
    COUNT
};

constexpr const char* kHandleKindNames[] = {
    "",
#define DS_HANDLE_KIND(kind, name) name,
    DS_HANDLE_KIND_TABLE(DS_HANDLE_KIND)
#undef DS_HANDLE_KIND
};

constexpr HandleKind handle_kind(uint64_t id) { return static_cast<HandleKind>(id >> 56); }

inline ds_status fail_closed(const char* argument) {
    return fail(DS_STATUS_CLOSED, argument, "create a new one; a closed object cannot be used again",
                "%s is not open: it was closed or never existed", argument);
}

// given, expected: what the handles refer to, such as "a policy".
inline ds_status fail_handle_kind(const char* argument, const char* given, const char* expected) {
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass a handle of the expected kind",
                "%s is the handle of %s; it must be that of %s", argument, given, expected);
}

template <class T>
class HandleRegistry {
public:
    constexpr explicit HandleRegistry(HandleKind kind) : kind_(kind) {}

    // The new id, or 0 if memory ran out.
    uint64_t insert(Ref<T> object) {
        DS_ASSERT(object);
        MutexGuard guard(mutex_);
        if (first_free_ == kNone && !grow()) return 0;
        const uint32_t index = first_free_;
        Slot& slot = slots_[index];
        first_free_ = slot.next_free;
        slot.object = object.leak();
        ++size_;
        return head_of(slot) << 32 | index;
    }

    // The object. Null, with the thread's error set, if the id is stale, never existed, or is of another kind.
    Ref<T> find(uint64_t id, const char* argument) {
        {
            MutexGuard guard(mutex_);
            if (Slot* slot = slot_of(id)) return Ref<T>::share(slot->object);
        }
        fail_lookup(id, argument);
        return {};
    }

    // Removes the id. The registry's reference passes to the caller. Null as for find().
    Ref<T> remove(uint64_t id, const char* argument) {
        {
            MutexGuard guard(mutex_);
            if (Slot* slot = slot_of(id)) return Ref<T>::adopt(vacate(slot));
        }
        fail_lookup(id, argument);
        return {};
    }

    // Removes the id and releases its reference.
    ds_status release(uint64_t id, const char* argument) {
        return remove(id, argument) ? DS_STATUS_OK : last_status();
    }

    int64_t size() {
        MutexGuard guard(mutex_);
        return size_;
    }

    // Around a fork, see api/fork.cpp.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    static constexpr uint32_t kNone = UINT32_MAX;
    static constexpr uint32_t kLastGeneration = (1u << 24) - 1;

    struct Slot {
        T* object;            // null while free
        uint32_t generation;  // from 1
        uint32_t next_free;   // kNone: the last one
    };

    // The upper half of the id.
    uint64_t head_of(const Slot& slot) const { return uint64_t{static_cast<uint8_t>(kind_)} << 24 | slot.generation; }

    Slot* slot_of(uint64_t id) {
        const uint32_t index = static_cast<uint32_t>(id);
        if (index >= capacity_ || !slots_[index].object) return nullptr;
        return head_of(slots_[index]) == id >> 32 ? &slots_[index] : nullptr;
    }

    T* vacate(Slot* slot) {
        T* object = slot->object;
        slot->object = nullptr;
        --size_;
        if (slot->generation < kLastGeneration) {  // a slot without further generations is not reused
            ++slot->generation;
            slot->next_free = first_free_;
            first_free_ = static_cast<uint32_t>(slot - slots_);
        }
        return object;
    }

    void fail_lookup(uint64_t id, const char* argument) const {
        const HandleKind given = handle_kind(id);
        if (given == kind_ || given == HandleKind::NONE || given >= HandleKind::COUNT) {
            fail_closed(argument);
        } else {
            fail_handle_kind(argument, kHandleKindNames[static_cast<int>(given)], kHandleKindNames[static_cast<int>(kind_)]);
        }
    }

    bool grow() {
        const uint32_t capacity = capacity_ ? capacity_ * 2 : 16;
        if (capacity > kNone / 2) return false;
        Slot* slots = static_cast<Slot*>(realloc(slots_, capacity * sizeof(Slot)));
        if (!slots) return false;
        for (uint32_t i = capacity_; i < capacity; ++i) slots[i] = {nullptr, 1, i + 1 < capacity ? i + 1 : kNone};
        first_free_ = capacity_;
        slots_ = slots;
        capacity_ = capacity;
        return true;
    }

    const HandleKind kind_;
    Mutex mutex_;
    Slot* slots_ = nullptr;
    uint32_t capacity_ = 0;
    uint32_t first_free_ = kNone;
    int64_t size_ = 0;
};

}  // namespace doorstep
