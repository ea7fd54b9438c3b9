#include "rollouts/episode_outputs.h"

#include <utility>

#include "runtime/status.h"

namespace doorstep {
namespace {

ds_status fail_results() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "num_worlds", "use fewer worlds, or raise the memory limit",
                "no memory is left for results that wait");
}

}  // namespace

Output EpisodeOutputs::make(int64_t world, ds_output_kind kind, Ref<OutputMemory> data) const {
    const PlayedEpisode& episode = episodes_[world];
    DS_ASSERT(episode.request);
    Output output = make_output(*episode.request, kind, episodes_.num_agents());
    output.told.length = episodes_.length(world);
    output.told.started_ns = episode.started_ns;
    output.told.replica = replica_;
    output.told.world = static_cast<int32_t>(world);
    output.told.state_size = recordings_.state_size(world);
    if (data) data->tell(&output.told);
    output.data = std::move(data);
    return output;
}

ds_status EpisodeOutputs::add(int64_t world, Output output) {
    const ds_status status = has_stopped_ ? DS_STATUS_OK : keep_room(output);
    if (status || has_stopped_) return status;
    DS_ASSERT(size_ < outputs_.size() && (size_ == 0 || outputs_[0].told.kind == output.told.kind));
    played_[size_] = {episodes_[world].request, episodes_.length(world)};
    outputs_[size_++] = std::move(output);
    return DS_STATUS_OK;
}

// Until there is room, or the replica is closed. An engine that is closed has room before its replicas are closed.
ds_status EpisodeOutputs::keep_room(const Output& output) {
    for (;;) {
        const uint32_t before = queue_->room().now();
        const bool is_closed = pause_.is_closed();
        const Room room = queue_->reserve(output);
        if (room == Room::kSome) return DS_STATUS_OK;
        push();
        if (room == Room::kNoMemory) return fail_results();
        has_stopped_ = is_closed;
        if (has_stopped_) return DS_STATUS_OK;
        pause_.sleep(queue_->room(), before);
    }
}

void EpisodeOutputs::push() {
    if (size_ == 0) return;
    if (outputs_[0].told.kind == DS_OUTPUT_STEP) push_steps();
    else push_results();
    size_ = 0;
}

// ---- Steps ----

ds_status EpisodeOutputs::add_step(int64_t world) {
    const PlayedEpisode& episode = episodes_[world];
    if (!episode.records(DS_RECORD_STREAM) || episodes_.length(world) <= episode.request->streamed) return DS_STATUS_OK;
    Ref<OutputMemory> memory = recordings_.copy_step(world);
    if (memory) return add(world, make(world, DS_OUTPUT_STEP, std::move(memory)));
    episodes_.mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
    return DS_STATUS_OK;
}

void EpisodeOutputs::push_steps() {
    queue_->push_reserved(outputs_.data(), size_);
    for (int64_t i = 0; i < size_; ++i) {
        DS_ASSERT(played_[i].request->streamed < played_[i].steps);
        played_[i].request->streamed = played_[i].steps;
    }
}

// ---- Results ----

ds_status EpisodeOutputs::add_result(int64_t world, const EpisodeSummary& summary, bool is_strict) {
    DS_ASSERT(episodes_.has_ended(world) && !episodes_[world].request->answered);
    if (is_strict && summary.met_trouble && episodes_.reason(world) != DS_EPISODE_FAILED) {
        episodes_.mark(world, DS_EPISODE_FAILED, DS_CAUSE_SIMULATION);
    }
    Ref<OutputMemory> recorded;
    if (recordings_.has_rows(world)) {
        recorded = recordings_.copy_all(world);
        if (!recorded) episodes_.mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
    }
    const PlayedEpisode& episode = episodes_[world];
    Output output = make(world, DS_OUTPUT_RESULT, std::move(recorded));
    output.told.reason = episodes_.reason(world);
    output.told.cause = episode.cause;
    tell_summary(summary, &output.told);
    return add(world, std::move(output));
}

// Recorded before they are pushed: a result that a caller has is in the metrics.
void EpisodeOutputs::push_results() {
    for (int64_t i = 0; i < size_; ++i) {
        const ds_episode_output& told = outputs_[i].told;
        if (recorder_) recorder_->answered(told, played_[i].request->asked.record & DS_RECORD_TRACE);
        callers_.forget(told.world);
        episodes_.free(told.world);
    }
    if (recorder_) recorder_->ended(start_ns_, size_);
    requests_.begin_answers(played_.data(), size_);
    queue_->push_reserved(outputs_.data(), size_);
    requests_.finish(played_.data(), size_);
}

}  // namespace doorstep
