#include "rollouts/replica.h"

#include <algorithm>
#include <new>

#include "exec/simulator.h"
#include "runtime/marks.h"

namespace doorstep {
namespace {

// Weight of the latest measurement in smoothed times.
constexpr double kSmoothing = 0.1;

void smooth(double* average, double latest) { *average += (*average > 0 ? kSmoothing : 1.0) * (latest - *average); }

ds_status fail_replica_memory() { return fail_worlds_memory("the replica's records"); }

}  // namespace

// ---- Creation and end ----

Replica::Replica(const Ref<Simulator>& simulator, const ReplicaParts& parts, int32_t number,
                 std::unique_ptr<ReplicaRecorder> recorder)
    : simulator_(simulator),
      requests_(parts.requests),
      given_(parts.policies),
      number_(number),
      recorder_(std::move(recorder)),
      pause_(simulator->turn, parts.requests->table().arrivals),
      episodes_(simulator->config().num_worlds, simulator->config().num_agents),
      callers_(&episodes_, &tensors_, parts.desk, number, recorder_.get()),
      trajectories_(&episodes_, &tensors_, &acted_) {
    DS_ASSERT(!simulator->config().auto_reset);
}

ds_status Replica::create(const Ref<Simulator>& simulator, const ReplicaParts& parts, int32_t number,
                          Ref<Replica>* replica) {
    std::unique_ptr<ReplicaRecorder> recorder;
    if (const Ref<MetricsStore> store = parts.requests->metrics()) {
        const RolloutLabels labels = {parts.requests->rules().scheduler.type, number};
        const int64_t num_worlds = simulator->config().num_worlds;
        if (const ds_status status = ReplicaRecorder::create(store, labels, num_worlds, &recorder)) return status;
    }
    const Ref<Replica> made =
        Ref<Replica>::adopt(new (std::nothrow) Replica(simulator, parts, number, std::move(recorder)));
    if (!made) return fail_replica_memory();
    if (const ds_status status = made->take_memory()) return status;
    list_open(simulator.get());
    *replica = made;
    return DS_STATUS_OK;
}

ds_status Replica::take_memory() {
    const int64_t num_worlds = episodes_.num_worlds();
    if (!episodes_.take_memory() || !acted_.take_memory(episodes_.num_rows()) || !callers_.take_memory(given_->size()) ||
        !starts_.take(num_worlds) || !summaries_.take(num_worlds) || !answered_.take(num_worlds)) {
        return fail_replica_memory();
    }
    const ActorParts parts = {simulator_, &episodes_, &tensors_, &acted_,          &callers_,
                              &pause_,    recorder_.get(), given_->size()};
    return Actors::create(parts, &actors_);
}

Replica::~Replica() { end(); }

void Replica::close() {
    pause_.close();
    requests_->table().arrivals.tell();
}

void Replica::end() {
    if (!simulator_) return;
    DS_ASSERT(episodes_.num_active() == 0 && callers_.num_asked() == 0);
    simulator_->turn.lock();
    actors_ = {};
    if (!simulator_->closed) simulator_->close();
    simulator_->closed = true;
    simulator_->turn.unlock();
    unlist_open(simulator_.get());
    simulator_ = {};
}

void Replica::read(ds_replica_info* info) const {
    info->num_worlds = episodes_.num_worlds();
    info->steps = steps_;
    info->world_steps = world_steps_;
    info->episodes = begun_;
}

// ---- A pass ----

// Whatever ends it, its requests are played elsewhere or later.
ds_status Replica::play() {
    simulator_->turn.lock();
    const ds_status status = play_on();
    callers_.withdraw();
    give_back_all();
    simulator_->turn.unlock();
    return status;
}

ds_status Replica::play_on() {
    DS_ASSERT(actors_ && episodes_.num_active() == 0);
    if (const ds_status status = simulator_->prepare()) return status;
    while (!pause_.is_closed()) {
        callers_.take_answers();
        if (const ds_status status = step()) return status;
        if (const ds_status status = begin()) return status;
        if (episodes_.num_active() == 0) {
            await_requests();
            continue;
        }
        if (const ds_status status = actors_->act()) return status;
        await_answers();
    }
    return DS_STATUS_OK;
}

void Replica::await_requests() {
    const int64_t start = recorder_ ? monotonic_ns() : 0;
    pause_.until([this] { return requests_->has_some(number_); });
    if (recorder_) recorder_->record_span_until_now(DS_TRACE_WAIT, start, 0);
}

// Or requests for free worlds, where no world can go on.
void Replica::await_answers() {
    if (episodes_.num_ready() > 0 || episodes_.num_ended() > 0) return pause_.briefly();
    pause_.until([this] {
        const bool has_room = episodes_.num_active() < episodes_.num_worlds();
        return callers_.take_answers() || (has_room && requests_->has_some(number_));
    });
}

// ---- Step ----

// Of the worlds that are ready. On the CPU the others wait, and what is there stays as it is.
ds_status Replica::step() {
    if (episodes_.num_ready() == 0) return DS_STATUS_OK;
    record_steps();
    if (const ds_status status = end_marked()) return status;  // their policies failed: they do not take part
    if (episodes_.num_ready() == 0) return DS_STATUS_OK;
    if (const ds_status status = step_worlds()) return status;
    return end_marked();
}

void Replica::record_steps() {
    episodes_.for_each_recorded([this](int64_t world) {
        if (!episodes_.ready()[world] || episodes_.has_ended(world)) return;
        if (!trajectories_.record_before_step(world)) episodes_.mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
    });
}

ds_status Replica::step_worlds() {
    const int64_t start = monotonic_ns(), ready = episodes_.num_ready();
    DS_ASSERT(ready > 0 && episodes_.num_ended() == 0);
    if (const ds_status status = actors_->step()) return status;
    smooth(&step_ns_, static_cast<double>(monotonic_ns() - start));
    ++steps_;
    world_steps_ += ready;
    if (recorder_) recorder_->stepped(start, ready);
    episodes_.stepped();
    if (recorder_) record_first_steps();
    mark_ends();
    if (actors_->has_nonfinite()) mark_nonfinite();
    actors_->forget_nonfinite();
    finish_records();
    return DS_STATUS_OK;
}

void Replica::record_first_steps() {
    const int64_t now = monotonic_ns();
    for_each_marked(episodes_.begun(), episodes_.num_worlds(), [&](int64_t world) {
        const int64_t length = episodes_.length(world);
        if (length == 0) return;  // its callers have not chosen yet
        episodes_.begun()[world] = 0;
        if (length == 1) recorder_->made_first_step(*episodes_[world].request, now);
    });
}

// In the tensors, worlds that have not stepped have the ends of earlier steps.
void Replica::mark_ends() {
    const auto mark = [this](int64_t world, ds_episode_reason reason) {
        if (episodes_.state(world) == SlotState::kToAct) episodes_.mark(world, reason);
    };
    const int64_t rows = episodes_.num_rows(), agents = episodes_.num_agents();
    for_each_marked(tensors_.truncations, rows, [&](int64_t row) { mark(row / agents, DS_EPISODE_TIME); });
    for (int64_t world = 0; episodes_.num_limited() > 0 && world < episodes_.num_worlds(); ++world) {
        if (episodes_.length(world) == episodes_[world].most_steps) mark(world, DS_EPISODE_TIME);
    }
    for_each_marked(tensors_.terminations, rows, [&](int64_t row) { mark(row / agents, DS_EPISODE_GOAL); });
}

// Episodes that have made the step with a neutral action that no policy has chosen. On CUDA it is known only now: one
// graph chooses the actions and steps. On the host it is the same, so that results do not depend on the device.
void Replica::mark_nonfinite() {
    const int64_t agents = episodes_.num_agents();
    // Backwards, so that the cause names the first of several agents.
    for (int64_t row = episodes_.num_rows() - 1; row >= 0; --row) {
        const int64_t world = row / agents, agent = row % agents;
        if (episodes_.state(world) != SlotState::kToAct || !actors_->is_nonfinite(row)) continue;
        if (recorder_) recorder_->met_nonfinite(1);
        episodes_.mark(world, DS_EPISODE_FAILED, DS_CAUSE_LOGITS, episodes_.length(world) - 1,
                       static_cast<int32_t>(agent));
    }
}

// One that is played again, because its replica has ended, does not output its steps again.
void Replica::finish_records() {
    episodes_.for_each_recorded([this](int64_t world) {
        const PlayedEpisode& episode = episodes_[world];
        if (episodes_.state(world) != SlotState::kToAct) return;
        trajectories_.record_after_step(world);
        if (!episode.records(DS_RECORD_STREAM) || episodes_.length(world) <= episode.request->steps_made) return;
        requests_->output_step(episode.request);
    });
}

// ---- Begin ----

ds_status Replica::begin() {
    const int64_t now = monotonic_ns();
    mark_over(now);
    if (const ds_status status = end_marked()) return status;
    Request* taken;
    const int64_t count = requests_->take(number_, most_to_begin(), now, &taken);
    DS_ASSERT((count > 0) == (taken != nullptr) && count <= episodes_.num_worlds() - episodes_.num_active());
    actors_->adopt(*given_);  // that were given before these requests were submitted
    if (recorder_ && count > 0) recorder_->record_span_until_now(DS_TRACE_TAKE, now, count);
    // First of all the episodes get worlds: from there they are taken back if anything fails
    const ds_status status = taken ? start(taken) : DS_STATUS_OK;
    if (recorder_) recorder_->passed(requests_->waiting(), episodes_.num_active());
    return status;
}

// Marks the episodes that were cancelled or whose deadline has passed.
void Replica::mark_over(int64_t now_ns) {
    const uint32_t cancellations = requests_->table().cancellations.load(std::memory_order_acquire);
    if (cancellations == cancellations_ && now_ns < next_deadline_ns_) return;
    cancellations_ = cancellations;
    next_deadline_ns_ = INT64_MAX;
    MutexGuard guard(requests_->table().mutex);
    for (int64_t world = 0; world < episodes_.num_worlds(); ++world) {
        const Request* request = episodes_[world].request;
        if (!request) continue;
        if (request->is_over(now_ns)) {
            episodes_.mark(world, request->is_cancelled() ? DS_EPISODE_CANCELLED : DS_EPISODE_EXPIRED);
        } else if (request->asked.deadline_ns) {
            next_deadline_ns_ = std::min(next_deadline_ns_, request->asked.deadline_ns);
        }
    }
}

// As many as there are free worlds for, and as the scheduler wants at a time.
int64_t Replica::most_to_begin() const {
    const ds_scheduler_config& scheduler = requests_->rules().scheduler;
    const int64_t free_worlds = episodes_.num_worlds() - episodes_.num_active();
    const int64_t limit = scheduler.max_chunk > 0 ? scheduler.max_chunk : episodes_.num_worlds();
    if (scheduler.type != DS_SCHEDULER_DYNAMIC_CHUNK || begin_ns_ <= 0) return std::min(free_worlds, limit);
    const double affordable = scheduler.begin_fraction * step_ns_ / begin_ns_;
    return std::min(free_worlds, static_cast<int64_t>(std::clamp(affordable, 1.0, static_cast<double>(limit))));
}

// Episodes of a list of requests: they get worlds, then these are written.
ds_status Replica::start(Request* first) {
    const int64_t now = monotonic_ns(), active_before = episodes_.num_active();
    for (Request* request = first; request;) {
        Request* next = request->next_taken;
        place(request, now);
        request = next;
    }
    const int64_t begun = episodes_.num_active() - active_before;
    DS_ASSERT(begun > 0);
    uint8_t* const mask = simulator_->mask();
    const ds_status status = simulator_->begin(mask, starts_.data());
    std::fill_n(mask, episodes_.num_worlds(), 0);
    smooth(&begin_ns_, static_cast<double>(monotonic_ns() - now) / static_cast<double>(begun));
    begun_ += begun;
    if (recorder_) recorder_->begun(now, begun);
    return status;
}

void Replica::place(Request* request, int64_t now_ns) {
    DS_ASSERT(request->submitted_ns <= now_ns);
    const int64_t deadline = request->asked.deadline_ns;
    const int64_t world = episodes_.begin(request, steps_to_show(*request));
    const int64_t state_size = actors_->state_size(world);
    request->begin_output(DS_OUTPUT_RESULT, &request->result);
    request->result.started_ns = now_ns;
    request->result.replica = number_;
    request->result.world = static_cast<int32_t>(world);
    const bool has_room = (!episodes_[world].records(DS_RECORD_STATES) || acted_.reserve_states(state_size)) &&
                          trajectories_.begin(world, state_size, expected_steps(*request));
    if (!has_room) episodes_.mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
    DS_ASSERT(!simulator_->mask()[world]);
    simulator_->mask()[world] = 1;
    const RequestParts& parts = request->parts;
    if (parts.state) {
        starts_[world] = {nullptr, parts.state->block(), 0, 0};
    } else {
        starts_[world] = {parts.level ? &parts.level->level : nullptr, nullptr,
                          static_cast<uint32_t>(request->asked.seed), static_cast<int32_t>(request->asked.max_steps)};
    }
    if (deadline) next_deadline_ns_ = std::min(next_deadline_ns_, deadline);
    if (recorder_) recorder_->episode_begun(*request, now_ns);
}

// Worlds without levels know the simulator's length only, and show the part of that which is left. Those of saved states
// show what their episode has left.
int32_t Replica::steps_to_show(const Request& request) const {
    const ds_simulator_config& config = simulator_->config();
    const int64_t most = request.asked.max_steps;
    const bool shows_another = config.max_levels == 0 && !request.parts.state && most < config.episode_length;
    return shows_another ? static_cast<int32_t>(most) : 0;
}

// At most, unless the level or the state says otherwise.
int64_t Replica::expected_steps(const Request& request) const {
    const Ref<SharedLevel>& level = request.parts.level;
    const int64_t length = level && level->level.max_episode_length ? level->level.max_episode_length
                                                                   : simulator_->config().episode_length;
    return request.asked.max_steps > 0 ? std::min(request.asked.max_steps, length) : length;
}

// ---- Ends ----

ds_status Replica::end_marked() {
    if (episodes_.num_ended() == 0) return DS_STATUS_OK;
    const int64_t now = monotonic_ns();
    if (const ds_status status = simulator_->summarise(episodes_.ended(), summaries_.data())) return status;
    if (const ds_status status = record_ends()) return status;
    int64_t count = 0;
    for_each_marked(episodes_.ended(), episodes_.num_worlds(), [&](int64_t world) {
        Request* const request = episodes_[world].request;
        write_result(world, now);
        if (recorder_) recorder_->count(request->result);
        answered_[count++] = request;
        free(world);
    });
    if (recorder_) recorder_->record_span_until_now(DS_TRACE_END, now, count);
    requests_->answer(answered_.data(), count);  // after they were counted: a result that a caller has is in the metrics
    DS_ASSERT(episodes_.num_ended() == 0);
    return DS_STATUS_OK;
}

// What mark() has not written.
void Replica::write_result(int64_t world, int64_t now_ns) {
    const EpisodeSummary& summary = summaries_[world];
    ds_episode_output& result = episodes_[world].request->result;
    if (simulator_->config().strict && summary.met_trouble && result.reason != DS_EPISODE_FAILED) {
        episodes_.mark(world, DS_EPISODE_FAILED, DS_CAUSE_SIMULATION);
    }
    result.ended_ns = now_ns;
    result.length = episodes_.length(world);
    result.state_hash = result.length > 0 ? summary.hash : 0;
    std::copy_n(summary.progress.returns, result.num_agents, result.returns);
    std::copy_n(summary.progress.max_y, result.num_agents, result.max_y);
}

// What there is after the last step, behind the rows of the steps.
ds_status Replica::record_ends() {
    if (episodes_.num_recorded() == 0) return DS_STATUS_OK;
    const auto for_each_recorded_end = [this](const auto& function) {
        for_each_marked(episodes_.ended(), episodes_.num_worlds(), [&](int64_t world) {
            if (episodes_[world].recorded && episodes_.length(world) > 0) function(world);
        });
    };
    int32_t recorded = 0;
    for_each_recorded_end([&](int64_t world) { recorded |= episodes_[world].recorded; });
    if (!recorded) return DS_STATUS_OK;
    if (const ds_status status = actors_->read_ends(recorded)) return status;
    for_each_recorded_end([&](int64_t world) {
        if (episodes_.state(world) == SlotState::kToAct) actors_->note_states(world);
        trajectories_.record_end(world);
    });
    return DS_STATUS_OK;
}

void Replica::free(int64_t world) {
    callers_.forget(world);
    episodes_.free(world);
}

void Replica::give_back_all() {
    for (int64_t world = 0; world < episodes_.num_worlds(); ++world) {
        if (!episodes_[world].request) continue;
        requests_->take_back(episodes_[world].request);
        free(world);
    }
    DS_ASSERT(episodes_.num_active() == 0 && callers_.num_to_ask() == 0);
    if (recorder_) recorder_->passed(requests_->waiting(), episodes_.num_active());
}

}  // namespace doorstep
