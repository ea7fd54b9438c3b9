#include "rollouts/policy_table.h"

#include <new>
#include <utility>

namespace doorstep {

Ref<PolicyTable> PolicyTable::create(int64_t size) {
    Ref<PolicyTable> made = Ref<PolicyTable>::adopt(new (std::nothrow) PolicyTable(size));
    if (!made) return {};
    made->entries_.reset(new (std::nothrow) Entry[static_cast<size_t>(size)]);
    return made->entries_ ? std::move(made) : Ref<PolicyTable>();
}

// The policy before is released without the lock: its owner is the caller's.
void PolicyTable::give(int64_t index, GivenPolicy policy) {
    DS_ASSERT(index >= 0 && index < size_ && (policy.kind == DS_POLICY_NATIVE) == static_cast<bool>(policy.native));
    MutexGuard guard(mutex_);
    Entry& entry = entries_[static_cast<size_t>(index)];
    std::swap(entry.policy, policy);
    entry.version = version_.load(std::memory_order_relaxed) + 1;
    version_.store(entry.version, std::memory_order_release);
}

bool PolicyTable::was_given_since(uint32_t version, int64_t index, GivenPolicy* policy) {
    MutexGuard guard(mutex_);
    DS_ASSERT(index >= 0 && index < size_);
    const Entry& entry = entries_[static_cast<size_t>(index)];
    if (static_cast<int32_t>(entry.version - version) <= 0) return false;
    *policy = entry.policy;
    return true;
}

}  // namespace doorstep
