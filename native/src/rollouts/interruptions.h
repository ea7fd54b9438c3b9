// Preemption: an episode gives its world to a request that the scheduler wants earlier. It waits again, with everything
// that its future depends on, and goes on with the same bits, in any replica.
#pragma once

#include "rollouts/actors.h"
#include "rollouts/recordings.h"

namespace doorstep {

// What a request keeps of its episode while that is interrupted.
struct InterruptedEpisode {
    std::unique_ptr<char[]> world;    // as in a save: its block, then rows of tensors
    std::unique_ptr<float[]> states;  // of its networks, by agent
    StepRecord record;
    int64_t started_ns;
    int32_t length;
    EpisodeSummary summary;

    // Fills in what a result tells of it, if it is not played on.
    void tell(ds_episode_output* result) const;
};

class Interruptions {
public:
    // All live as long as this.
    Interruptions(Simulator& simulator, Episodes* episodes, Recordings* recordings, RequestQueue& requests)
        : simulator_(simulator), episodes_(*episodes), recordings_(*recordings), requests_(requests) {}
    // Only where the scheduler preempts; without it there are none.
    bool take_memory() { return !requests_.rules().scheduler.preempts || worlds_.take(episodes_.num_worlds()); }

    // Whether a request waits that has no world, and may get one of another.
    bool may_be_wanted() const {
        return worlds_.size() > 0 && episodes_.num_active() == episodes_.num_worlds() && requests_.waiting() > 0;
    }
    // Lists the episodes that can be interrupted, those last that the scheduler plays last. Returns their number.
    int64_t list(const Actors& actors);
    int64_t operator[](int64_t place) const { return worlds_[place]; }
    // Saves an episode with its request, which then is another's. OUT_OF_MEMORY: it plays on.
    ds_status interrupt(int64_t world, const Actors& actors);
    // An episode that has just begun here, and was interrupted, has what it had. Its request says how the world begins.
    void resume(int64_t world, Actors& actors);

private:
    ds_status save(int64_t world, InterruptedEpisode* kept);

    Simulator& simulator_;
    Episodes& episodes_;
    Recordings& recordings_;
    RequestQueue& requests_;
    Array<int64_t> worlds_;  // of the list
};

}  // namespace doorstep
