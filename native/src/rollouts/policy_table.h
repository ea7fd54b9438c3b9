// The policies that the indices in requests stand for. Callers give them at any time; a replica takes over what has
// changed between two of its passes.
#pragma once

#include <memory>

#include "policy/policy.h"
#include "runtime/fork_mutex.h"

namespace doorstep {

struct GivenPolicy {
    ds_policy_kind kind = DS_POLICY_CALLER;
    Ref<Policy> native;  // of the kind NATIVE
    int64_t cause = 0;   // of the kind FAILING
    int32_t version = 0;
    int32_t series = 0;  // under which metrics record its times
};

class PolicyTable : public RefCounted {
public:
    // Null if memory ran out.
    static Ref<PolicyTable> create(int64_t size);

    int64_t size() const { return size_; }
    void give(int64_t index, GivenPolicy policy);
    // Changes with every give().
    uint32_t version() const { return version_.load(std::memory_order_acquire); }
    // Whether the policy was given after a version; copies it then.
    bool was_given_since(uint32_t version, int64_t index, GivenPolicy* policy);

private:
    struct Entry {
        GivenPolicy policy;
        uint32_t version = 0;
    };

    explicit PolicyTable(int64_t size) : size_(size) {}

    const int64_t size_;
    ForkMutex mutex_;  // guards the entries
    std::unique_ptr<Entry[]> entries_;
    std::atomic<uint32_t> version_{0};
};

}  // namespace doorstep
