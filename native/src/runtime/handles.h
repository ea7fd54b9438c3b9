// Handles: 8-byte ids {generation, index} for objects that any thread may close at any time.
//
// A slot's generation changes whenever its object is removed, so an old id finds nothing. The result of find() keeps
// the object alive for as long as the caller needs it, even if it is removed meanwhile.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "math/base.h"
#include "runtime/futex.h"
#include "runtime/reference.h"

namespace doorstep {

template <class T>
class HandleRegistry {
public:
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
        return uint64_t{slot.generation} << 32 | index;
    }

    // The object, or null if the id is stale or never existed.
    Ref<T> find(uint64_t id) {
        MutexGuard guard(mutex_);
        Slot* slot = slot_of(id);
        return slot ? Ref<T>::share(slot->object) : Ref<T>();
    }

    // Removes the id. The registry's reference passes to the caller.
    Ref<T> remove(uint64_t id) {
        MutexGuard guard(mutex_);
        Slot* slot = slot_of(id);
        if (!slot) return Ref<T>();
        T* object = slot->object;
        slot->object = nullptr;
        --size_;
        if (++slot->generation != 0) {  // a slot without further generations is not reused
            slot->next_free = first_free_;
            first_free_ = static_cast<uint32_t>(slot - slots_);
        }
        return Ref<T>::adopt(object);
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

    struct Slot {
        T* object;            // null while free
        uint32_t generation;  // from 1
        uint32_t next_free;   // kNone: the last one
    };

    Slot* slot_of(uint64_t id) {
        const uint32_t index = static_cast<uint32_t>(id);
        if (index >= capacity_ || !slots_[index].object) return nullptr;
        return slots_[index].generation == id >> 32 ? &slots_[index] : nullptr;
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

    Mutex mutex_;
    Slot* slots_ = nullptr;
    uint32_t capacity_ = 0;
    uint32_t first_free_ = kNone;
    int64_t size_ = 0;
};

}  // namespace doorstep
