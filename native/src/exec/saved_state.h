// A world in the midst of an episode, from which any number of episodes go on.
#pragma once

#include <memory>

#include "runtime/memory.h"
#include "runtime/reference.h"
#include "sim/world_model.h"

namespace doorstep {

class SavedState : public RefCounted {
public:
    // block: of the model's size, valid, without edits that no step has absorbed.
    SavedState(const WorldModel& model, int32_t episode_length, std::unique_ptr<char[]> block)
        : model(model), episode_length(episode_length), block_(std::move(block)) {
        live_counts.rollouts.fetch_add(1, std::memory_order_relaxed);
    }
    ~SavedState() { live_counts.rollouts.fetch_sub(1, std::memory_order_relaxed); }

    const void* block() const { return block_.get(); }

    const WorldModel& model;
    const int32_t episode_length;  // of the rules that the world was saved under

private:
    const std::unique_ptr<char[]> block_;
};

}  // namespace doorstep
