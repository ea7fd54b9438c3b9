#include "rollouts/episode_outputs.h"

#include <string.h>

#include <utility>

#include "runtime/status.h"

namespace doorstep {
namespace {

ds_status fail_results() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "num_worlds", "use fewer worlds, or raise the memory limit",
                "no memory is left for results that wait");
}

}  // namespace

Output& EpisodeOutputs::add(int64_t world, ds_output_kind kind, Ref<OutputMemory> data) {
    const PlayedEpisode& episode = episodes_[world];
    DS_ASSERT(episode.request && size_ < outputs_.size());
    played_[size_] = {episode.request, episode.length};
    Output& output = outputs_[size_++] = make_output(*episode.request, kind, episodes_.num_agents());
    output.told.length = episode.length;
    output.told.started_ns = episode.started_ns;
    output.told.replica = replica_;
    output.told.world = static_cast<int32_t>(world);
    output.told.state_size = recordings_.state_size(world);
    if (data) data->tell(&output.told);
    output.data = std::move(data);
    return output;
}

void EpisodeOutputs::drop() {
    for (int64_t i = 0; i < size_; ++i) outputs_[i].data = {};
    size_ = 0;
}

// ---- Steps ----

void EpisodeOutputs::add_step(int64_t world) {
    const PlayedEpisode& episode = episodes_[world];
    if (!episode.records(DS_RECORD_STREAM) || episode.length <= episode.request->streamed) return;
    Ref<OutputMemory> memory = recordings_.copy_step(world);
    if (memory) add(world, DS_OUTPUT_STEP, std::move(memory));
    else episodes_.mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
}

ds_status EpisodeOutputs::push_steps() {
    if (size_ == 0) return DS_STATUS_OK;
    const int64_t pushed = size_;
    const bool has_room = queue_->push(outputs_.data(), size_);
    drop();
    if (!has_room) return fail_results();
    for (int64_t i = 0; i < pushed; ++i) {
        DS_ASSERT(played_[i].request->streamed < played_[i].steps);
        played_[i].request->streamed = played_[i].steps;
    }
    return DS_STATUS_OK;
}

// ---- Results ----

void EpisodeOutputs::add_result(int64_t world, const EpisodeSummary& summary, bool is_strict) {
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
    ds_episode_output& told = add(world, DS_OUTPUT_RESULT, std::move(recorded)).told;
    told.reason = episodes_.reason(world);
    told.cause = episode.cause;
    told.state_hash = episode.length > 0 ? summary.hash : 0;
    const size_t bytes = static_cast<size_t>(episodes_.num_agents()) * sizeof(float);
    memcpy(told.returns, summary.progress.returns, bytes);
    memcpy(told.max_y, summary.progress.max_y, bytes);
}

ds_status EpisodeOutputs::push_results(int64_t start_ns) {
    const int64_t results = size_;
    if (!queue_->reserve(results)) {
        drop();
        return fail_results();
    }
    record_results(start_ns);
    requests_.begin_answers(played_.data(), results);
    queue_->push_reserved(outputs_.data(), results);
    drop();
    requests_.finish(played_.data(), results);
    return DS_STATUS_OK;
}

// Before they are pushed: a result that a caller has is in the metrics.
void EpisodeOutputs::record_results(int64_t start_ns) {
    if (!recorder_) return;
    for (int64_t i = 0; i < size_; ++i) {
        recorder_->answered(outputs_[i].told, played_[i].request->asked.record & DS_RECORD_TRACE);
    }
    recorder_->ended(start_ns, size_);
}

}  // namespace doorstep
