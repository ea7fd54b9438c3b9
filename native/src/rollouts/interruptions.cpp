#include "rollouts/interruptions.h"

#include <algorithm>
#include <new>

#include "rollouts/answers.h"

namespace doorstep {

void InterruptedEpisode::tell(ds_episode_output* result) const {
    result->length = length;
    result->started_ns = started_ns;
    tell_summary(summary, result);
}

int64_t Interruptions::list(const Actors& actors) {
    int64_t count = 0;
    for (int64_t world = 0; world < episodes_.num_worlds(); ++world) {
        if (episodes_.state(world) != SlotState::kToAct || episodes_.has_ended(world)) continue;
        if (actors.can_leave(world)) worlds_[count++] = world;
    }
    std::sort(worlds_.begin(), worlds_.begin() + count, [this](int64_t a, int64_t b) {
        const Request &first = *episodes_[a].request, &second = *episodes_[b].request;
        return first.key != second.key ? first.key < second.key : first.sequence < second.sequence;
    });
    return count;
}

ds_status Interruptions::interrupt(int64_t world, const Actors& actors) {
    Request* const request = episodes_[world].request;
    DS_ASSERT(episodes_.state(world) == SlotState::kToAct && !request->interrupted && !request->answered);
    std::unique_ptr<InterruptedEpisode> kept(new (std::nothrow) InterruptedEpisode{});
    if (!kept) return DS_STATUS_OUT_OF_MEMORY;
    if (const int64_t floats = actors.state_floats(world)) {
        kept->states.reset(new (std::nothrow) float[static_cast<size_t>(floats)]);
        if (!kept->states) return DS_STATUS_OUT_OF_MEMORY;
        actors.save_states(world, kept->states.get());
    }
    if (const ds_status status = save(world, kept.get())) return status;
    kept->started_ns = episodes_[world].started_ns;
    kept->length = episodes_.length(world);
    recordings_.exchange(world, &kept->record);
    request->interrupted = std::move(kept);
    return DS_STATUS_OK;
}

ds_status Interruptions::save(int64_t world, InterruptedEpisode* kept) {
    const SavedParts parts = saved_parts(simulator_.simulation(), simulator_.model());
    kept->world.reset(new (std::nothrow) char[static_cast<size_t>(parts.bytes())]);
    if (!kept->world) return DS_STATUS_OUT_OF_MEMORY;
    uint8_t* const mask = simulator_.mask();
    mask[world] = 1;
    const ds_status status = simulator_.save({&world, 1, mask}, kept->world.get());
    mask[world] = 0;
    if (!status) simulator_.summarise_block(kept->world.get(), &kept->summary);
    return status;
}

void Interruptions::resume(int64_t world, Actors& actors) {
    InterruptedEpisode& kept = *episodes_[world].request->interrupted;
    episodes_.resume(world, kept.length, kept.started_ns);
    recordings_.exchange(world, &kept.record);
    if (kept.states) actors.restore_states(world, kept.states.get());
}

}  // namespace doorstep
