#include "rollouts/replica.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "exec/cpu/cpu_simulator.h"
#include "exec/open_simulators.h"
#include "runtime/status.h"
#include "sim/constants.h"

namespace doorstep {
namespace {

// The longest sleep of a replica that has nothing to do, nanoseconds.
constexpr int64_t kLongestSleep = 50'000'000;

// Rows that a thread gets actions for at a time.
constexpr int64_t kRandomRows = 256;

// Weight of the latest measurement in smoothed times.
constexpr double kSmoothing = 0.1;

void smooth(double* average, double latest) { *average += (*average > 0 ? kSmoothing : 1.0) * (latest - *average); }

void add_to(std::atomic<int64_t>* counter, int64_t more) { counter->fetch_add(more, std::memory_order_relaxed); }

ds_status fail_memory(const char* what) {
    return fail(DS_STATUS_OUT_OF_MEMORY, "num_worlds", "use fewer worlds, or raise the memory limit",
                "no memory is left for %s", what);
}

template <class Value>
bool take_array(std::unique_ptr<Value[]>* array, int64_t count) {
    array->reset(new (std::nothrow) Value[static_cast<size_t>(count)]());
    return *array != nullptr;
}

}  // namespace

// ---- Creation and end ----

Replica::Replica(const Ref<Simulator>& simulator, const ReplicaParts& parts, int32_t number)
    : simulator_(simulator),
      requests_(parts.requests),
      outputs_(parts.outputs),
      given_(parts.policies),
      desk_(parts.desk),
      number_(number),
      num_worlds_(simulator->config().num_worlds),
      num_agents_(simulator->config().num_agents),
      num_inputs_(simulator->simulation().flat.size),
      time_left_(place_of(DS_OBSERVATION_PART_steps_remaining, simulator->simulation().flat.parts,
                          static_cast<int>(num_agents_))),
      on_host_(simulator->config().device_kind == DS_DEVICE_CPU),
      records_(num_worlds_, num_agents_, num_inputs_) {
    DS_ASSERT(num_inputs_ > 0 && !simulator->config().auto_reset);
    live_counts.rollouts.fetch_add(1, std::memory_order_relaxed);
}

ds_status Replica::create(const Ref<Simulator>& simulator, const ReplicaParts& parts, int32_t number,
                          Ref<Replica>* replica) {
    const Ref<Replica> made = Ref<Replica>::adopt(new (std::nothrow) Replica(simulator, parts, number));
    if (!made || !made->take_memory()) return fail_memory("the replica's records");
    if (const ds_status status = made->open_recorder()) return status;
    if (!made->on_host_) {
        made->device_ = DeviceRows::create(simulator, made->num_policies());
        if (!made->device_) return last_status();
    }
    list_open(simulator.get());
    *replica = made;
    return DS_STATUS_OK;
}

bool Replica::take_memory() {
    if (!take_array(&played_, num_worlds_) || !records_.take_memory() || !take_array(&free_worlds_, num_worlds_) ||
        !take_array(&starts_, num_worlds_) || !take_array(&ended_, num_worlds_) ||
        !take_array(&nonfinite_, num_rows()) ||
        !take_array(&summaries_, num_worlds_) || !take_array(&rows_, num_rows()) ||
        !take_array(&ready_, num_worlds_) || !take_array(&waits_, num_rows()) ||
        !take_array(&sampling_, num_rows()) || !take_array(&keys_, num_rows()) ||
        !take_array(&new_outputs_, num_worlds_) || !take_array(&finished_, num_worlds_) ||
        !take_array(&native_calls_, num_policies())) {
        return false;
    }
    for (int64_t world = 0; world < num_worlds_; ++world) free_worlds_[world] = num_worlds_ - 1 - world;
    if (!on_host_) return take_staging();
    const TensorPointers& tensors = simulator_->simulation().tensors;
    observations_ = tensors.observations;
    rewards_ = tensors.rewards;
    terminations_ = tensors.terminations;
    truncations_ = tensors.truncations;
    actions_ = tensors.actions;
    return true;
}

ds_status Replica::open_recorder() {
    const Ref<MetricsStore> store = requests_->metrics();
    if (!store) return DS_STATUS_OK;
    const RolloutLabels labels = {requests_->rules().scheduler.type, number_};
    return ReplicaRecorder::create(store, labels, num_worlds_, num_policies(), &recorder_);
}

bool Replica::take_staging() {
    const int64_t row_bytes = (num_inputs_ + 1) * 4 + kActionBytes + 2;
    staging_ = map_pages(num_rows() * row_bytes, "num_worlds");
    if (!staging_) return false;
    float* floats = reinterpret_cast<float*>(staging_.data());
    observations_ = floats;
    rewards_ = floats + num_rows() * num_inputs_;
    actions_ = reinterpret_cast<int32_t*>(floats + num_rows() * (num_inputs_ + 1));
    terminations_ = reinterpret_cast<uint8_t*>(actions_ + num_rows() * kActionComponents);
    truncations_ = terminations_ + num_rows();
    return true;
}

Replica::~Replica() {
    end();
    free(scratch_);
    live_counts.rollouts.fetch_sub(1, std::memory_order_relaxed);
}

void Replica::close() {
    closed_ = true;
    requests_->wake();
}

void Replica::end() {
    if (!simulator_) return;
    simulator_->turn.lock();
    device_ = {};
    if (!simulator_->closed) simulator_->close();
    simulator_->closed = true;
    simulator_->turn.unlock();
    unlist_open(simulator_.get());
    simulator_ = {};
    for (PolicySlot& slot : policies_) slot = {};
}

void Replica::read(ds_replica_info* info) const {
    info->num_worlds = num_worlds_;
    info->steps = steps_.load(std::memory_order_relaxed);
    info->world_steps = world_steps_.load(std::memory_order_relaxed);
    info->episodes = episodes_.load(std::memory_order_relaxed);
}

// ---- Policies ----

void Replica::adopt_policies() {
    const uint32_t version = given_->version();
    if (version == policies_version_) return;
    for (int64_t index = 0; index < num_policies(); ++index) {
        GivenPolicy given;
        PolicyLabels labels;
        if (!given_->was_given_since(policies_version_, index, &given, &labels)) continue;
        if (recorder_) recorder_->label_policy(index, labels.text);
        const ds_failure_cause cause = adopt(index, given);
        if (cause) adopt(index, {DS_POLICY_FAILING, {}, cause});
    }
    policies_version_ = version;
    rows_changed_ = true;
}

// NONE, or why the policy cannot act here.
ds_failure_cause Replica::adopt(int64_t index, const GivenPolicy& given) {
    const Ref<Policy>& policy = given.native;
    const ds_simulator_config& config = simulator_->config();
    const bool needs_device = policy && policy->device_kind() == DS_DEVICE_CUDA;
    if (needs_device && (on_host_ || policy->device_index() != config.device_index)) return DS_CAUSE_DEVICE;
    PolicySlot& before = policies_[index];
    PolicySlot slot = {given.kind, policy, given.cause, {}, 0, given.version, false, before.asked, before.asked_ns, before.num_to_ask};
    if (policy && !needs_device) {
        const int64_t size = policy->state_size();
        if (size > 0 && size != before.state_size) {
            slot.states = map_pages(num_rows() * size * 4, "policy");
            if (!slot.states) return DS_CAUSE_MEMORY;
            slot.state_size = size;
        }
        if (!take_scratch(*policy)) return DS_CAUSE_MEMORY;
    }
    if (device_) {
        slot.on_device = needs_device || given.kind == DS_POLICY_RANDOM || given.kind == DS_POLICY_IDLE;
        if (device_->set_policy(index, needs_device ? policy : Ref<Policy>())) return DS_CAUSE_MEMORY;
    }
    if (!slot.states && before.states) {  // a policy may be renewed: its episodes go on
        slot.states = std::move(before.states);
        slot.state_size = before.state_size;
    }
    before = std::move(slot);
    return DS_CAUSE_NONE;
}

bool Replica::take_scratch(const Policy& policy) {
    const int64_t alignment = Policy::kScratchAlignment;
    const int64_t bytes = (policy.scratch_bytes() + alignment - 1) / alignment * alignment;
    if (bytes <= scratch_bytes_) return true;
    void* scratch;
    const size_t all = static_cast<size_t>(bytes * simulator_->num_workers());
    if (posix_memalign(&scratch, static_cast<size_t>(alignment), all) != 0) return false;
    free(scratch_);
    scratch_ = static_cast<char*>(scratch);
    scratch_bytes_ = bytes;
    return true;
}

// ---- Play ----

ds_status Replica::play() {
    simulator_->turn.lock();
    const ds_status status = play_on();
    withdraw_questions();
    give_back_all();
    simulator_->turn.unlock();
    return status;
}

ds_status Replica::play_on() {
    if (const ds_status status = simulator_->prepare()) return status;
    while (!closed_) {
        take_answers();
        if (const ds_status status = step()) return status;
        if (const ds_status status = begin()) return status;
        if (active_ == 0) {
            const int64_t start = recorder_ ? monotonic_ns() : 0;
            sleep_until([this] { return requests_->has_some(); });
            if (recorder_) recorder_->waited(start);
            continue;
        }
        if (const ds_status status = act()) return status;
        if (num_ready_ > 0 || num_ended_ > 0) give_up_turn();
        else sleep_until([this] { return some_have_returned() || (active_ < num_worlds_ && requests_->has_some()); });
    }
    return DS_STATUS_OK;
}

// Without the turn, until something may be done, the replica is closed, or kLongestSleep is over.
template <class IsDone>
void Replica::sleep_until(const IsDone& is_done) {
    Signal& arrivals = requests_->arrivals();
    const uint32_t before = arrivals.now();
    if (closed_ || is_done()) return;
    simulator_->turn.unlock();
    arrivals.wait(before, kLongestSleep);
    simulator_->turn.lock();
}

// For a fork, which waits for it.
void Replica::give_up_turn() {
    simulator_->turn.unlock();
    simulator_->turn.lock();
}

// ---- Begin ----

ds_status Replica::begin() {
    const int64_t now = monotonic_ns();
    if (mark_over(now) || num_ended_ > 0) {
        if (const ds_status status = end_marked()) return status;
    }
    Request *to_play, *over;
    const int64_t taken = requests_->take(std::min(num_worlds_ - active_, chunk()), now, &to_play, &over);
    adopt_policies();  // that were given before these requests were submitted
    if (recorder_) recorder_->took(now, taken);
    // First of all the episodes get worlds: from there they are taken back if anything fails
    const ds_status of_start = to_play ? start(to_play) : DS_STATUS_OK;
    if (recorder_) recorder_->passed(requests_->waiting(), active_);
    if (const ds_status status = answer_over(*requests_, *outputs_, over)) return status;
    if (of_start || active_ == 0) return of_start;
    list_rows();
    if (device_) return prepare_rows();
    show_time_left();
    return DS_STATUS_OK;
}

// What the host needs of the rows on CUDA, which is nothing if all act there and none is recorded.
ds_status Replica::prepare_rows() {
    if (rows_changed_) {
        if (const ds_status status = upload_rows()) return status;
    }
    if (!some_act_on_host_ && !some_record_) return DS_STATUS_OK;
    if (const ds_status status = device_->prepare()) return status;
    if (const ds_status status = read_tensor(DS_TENSOR_observations, observations_)) return status;
    return read_tensor(DS_TENSOR_actions, actions_);
}

ds_status Replica::upload_rows() {
    some_record_ = some_act_on_host_ = false;
    std::fill_n(device_->rows(), num_rows(), PlayedRow{});
    for (int64_t world = 0; world < num_worlds_; ++world) {
        const PlayedEpisode& played = played_[world];
        if (!played.request) continue;
        some_record_ |= played.recorded != 0;
        for (int64_t agent = 0; agent < num_agents_; ++agent) {
            const PolicySlot& slot = policies_[played.policies[agent]];
            const RowChooser chooser = !slot.on_device                    ? RowChooser::kNone
                                       : slot.kind == DS_POLICY_NATIVE ? RowChooser::kNetwork
                                       : slot.kind == DS_POLICY_RANDOM ? RowChooser::kRandom
                                                                       : RowChooser::kIdle;
            some_act_on_host_ |= !slot.on_device;
            device_->rows()[world * num_agents_ + agent] = {chooser, played.policies[agent], played.shown_steps};
        }
    }
    std::copy_n(rows_.get(), first_row_[num_policies()], device_->order());
    rows_changed_ = false;
    return device_->upload(sampling_.get(), keys_.get(), first_row_);
}

int64_t Replica::chunk() const {
    const ds_scheduler_config& scheduler = requests_->rules().scheduler;
    const int64_t limit = scheduler.max_chunk > 0 ? scheduler.max_chunk : num_worlds_;
    if (scheduler.type != DS_SCHEDULER_DYNAMIC_CHUNK || begin_ns_ <= 0) return limit;
    const double affordable = scheduler.begin_fraction * step_ns_ / begin_ns_;
    const double most = static_cast<double>(limit);
    return static_cast<int64_t>(std::clamp(affordable, 1.0, most));
}

// Marks the episodes that were cancelled or whose deadline has passed. Returns whether there are any.
bool Replica::mark_over(int64_t now_ns) {
    const uint32_t cancellations = requests_->table().cancellations();
    if (cancellations == cancellations_ && now_ns < next_deadline_ns_) return false;
    cancellations_ = cancellations;
    next_deadline_ns_ = INT64_MAX;
    MutexGuard guard(requests_->table().mutex);
    for (int64_t world = 0; world < num_worlds_; ++world) {
        const Request* request = played_[world].request;
        if (!request) continue;
        if (request->is_over(now_ns)) {
            mark(world, request->cancelled ? DS_EPISODE_CANCELLED : DS_EPISODE_EXPIRED);
        } else if (request->asked.deadline_ns) {
            next_deadline_ns_ = std::min(next_deadline_ns_, request->asked.deadline_ns);
        }
    }
    return num_ended_ > 0;
}

ds_status Replica::start(Request* first) {
    const int64_t now = monotonic_ns();
    uint8_t* mask = simulator_->mask();
    int64_t begun = 0;
    for (Request* request = first; request; ++begun) {
        Request* next = request->next;
        const int64_t world = free_worlds_[num_worlds_ - ++active_];
        DS_ASSERT(!played_[world].request && !mask[world]);
        mask[world] = 1;
        start_in(world, request, now);
        request = next;
    }
    const ds_status status = simulator_->begin(mask, starts_.get());
    memset(mask, 0, static_cast<size_t>(num_worlds_));
    smooth(&begin_ns_, static_cast<double>(monotonic_ns() - now) / static_cast<double>(begun));
    add_to(&episodes_, begun);
    if (recorder_) recorder_->begun(now, begun);
    return status;
}

void Replica::start_in(int64_t world, Request* request, int64_t now_ns) {
    const ds_episode_request& asked = request->asked;
    PlayedEpisode& played = played_[world];
    played.request = request;
    played.started_ns = now_ns;
    played.cause = DS_CAUSE_NONE;
    played.length = 0;
    played.shown_steps = steps_to_show(asked);
    played.recorded = asked.record & ~DS_RECORD_TRACE;
    played.has_acted = false;
    played.num_awaited = 0;
    std::copy_n(asked.policies, num_agents_, played.policies);
    if (!records_.begin(world, asked.record, largest_state(world))) mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
    rows_changed_ = true;
    starts_[world] = {request->level ? &request->level->level : nullptr, static_cast<uint32_t>(asked.seed),
                      static_cast<int32_t>(asked.max_steps)};
    set_sampling(world);
    reset_states(world);
    if (asked.deadline_ns) next_deadline_ns_ = std::min(next_deadline_ns_, asked.deadline_ns);
    if (recorder_) recorder_->episode_begun(*request, now_ns);
}

// Worlds without levels know the simulator's length only, and show the part of that which is left.
int32_t Replica::steps_to_show(const ds_episode_request& asked) const {
    const ds_simulator_config& config = simulator_->config();
    const bool shows_another = config.max_levels == 0 && asked.max_steps < config.episode_length;
    return shows_another ? static_cast<int32_t>(asked.max_steps) : 0;
}

void Replica::set_sampling(int64_t world) {
    const ds_episode_request& asked = played_[world].request->asked;
    const RandomKey key = base_key(static_cast<uint32_t>(asked.sampling_seed));
    for (int64_t agent = 0; agent < num_agents_; ++agent) {
        const int64_t row = world * num_agents_ + agent;
        sampling_[row] = asked.sampling;
        keys_[row] = {{key.a, key.b}, 0, static_cast<uint32_t>(agent)};
    }
}

void Replica::reset_states(int64_t world) {
    for (int64_t p = 0; p < num_policies(); ++p) {
        const PolicySlot& slot = policies_[p];
        if (!slot.states) continue;
        const int64_t bytes = num_agents_ * slot.state_size * 4;
        memset(slot.states.data() + world * bytes, 0, static_cast<size_t>(bytes));
    }
}

// Rows of worlds that have not acted, in the order of their policies: a counting sort.
void Replica::list_rows() {
    int64_t places[DS_MAX_POLICIES + 1];
    const int64_t used = num_policies();
    std::fill_n(places, used + 1, 0);
    for (int64_t world = 0; world < num_worlds_; ++world) {
        if (!played_[world].request || played_[world].has_acted) continue;
        for (int64_t agent = 0; agent < num_agents_; ++agent) ++places[played_[world].policies[agent] + 1];
    }
    for (int64_t p = 0; p < used; ++p) places[p + 1] += places[p];
    std::copy_n(places, used + 1, first_row_);
    for (int64_t world = 0; world < num_worlds_; ++world) {
        const PlayedEpisode& played = played_[world];
        if (!played.request || played.has_acted) continue;
        for (int64_t agent = 0; agent < num_agents_; ++agent) {
            const int64_t place = places[played.policies[agent]]++;
            const int64_t row = world * num_agents_ + agent;
            rows_[place] = static_cast<int32_t>(row);
            keys_[row].step = static_cast<uint32_t>(played.length);
        }
    }
}

// Policies see the part of the episode that is left, as in a simulator whose episodes have the request's length.
void Replica::show_time_left() {
    for (int64_t world = 0; world < num_worlds_; ++world) {
        if (played_[world].request) show_time_left(world);
    }
}

void Replica::show_time_left(int64_t world) {
    const PlayedEpisode& played = played_[world];
    if (played.shown_steps == 0 || time_left_.place < 0) return;
    const float left = static_cast<float>(played.shown_steps - played.length) / static_cast<float>(played.shown_steps);
    for (int64_t row = world * num_agents_; row < (world + 1) * num_agents_; ++row) {
        observations_[row * num_inputs_ + time_left_.place] = time_left_.scale * left;
    }
}

// ---- Act ----

ds_status Replica::act() {
    for (int64_t policy = 0; policy < num_policies(); ++policy) {
        const int64_t first = first_row_[policy], rows = first_row_[policy + 1] - first;
        PolicySlot& slot = policies_[policy];
        if (rows == 0 || slot.on_device) continue;
        const int64_t start = recorder_ ? monotonic_ns() : 0;
        note_rows(policy, rows_.get() + first, rows);
        switch (slot.kind) {
        case DS_POLICY_CALLER: note_to_ask(first, rows); continue;
        case DS_POLICY_FAILING: fail_rows(first, rows, slot.cause); continue;
        case DS_POLICY_NATIVE:
            native_calls_[num_native_calls_++] = {policy, slot.native.get(), native_call(slot, first, rows), 0};
            continue;
        case DS_POLICY_RANDOM: act_randomly(first, rows); break;
        case DS_POLICY_IDLE: act_idly(first, rows); break;
        }
        if (recorder_) recorder_->acted(policy, slot.kind, start, monotonic_ns(), rows);
    }
    act_natively();
    for (int64_t world = 0; world < num_worlds_; ++world) played_[world].has_acted = true;
    if (const ds_status status = ask_callers()) return status;
    while (device_ && num_asked_ > 0 && !closed_) {  // there all worlds step together
        sleep_until([this] { return some_have_returned(); });
        take_answers();
    }
    find_ready();
    return DS_STATUS_OK;
}

ActCall Replica::native_call(const PolicySlot& slot, int64_t first, int64_t rows) const {
    ActCall call = {};
    call.num_rows = rows;
    call.rows = rows_.get() + first;
    call.observations = observations_;
    call.observation_stride = num_inputs_;
    call.states = reinterpret_cast<float*>(slot.states.data());
    call.state_stride = slot.native->state_size();
    call.sampling = sampling_.get();
    call.keys = keys_.get();
    call.actions = actions_;
    call.nonfinite = nonfinite_.get();
    call.log_probs = records_.log_probs();
    call.values = records_.values();
    return call;
}

// The native policies since the last call. A policy's share of their time is that of its rows.
void Replica::act_natively() {
    const int64_t count = std::exchange(num_native_calls_, 0);
    if (count == 0) return;
    const int64_t start = recorder_ ? monotonic_ns() : 0;
    PolicyCall* const calls = native_calls_.get();
    some_nonfinite_ |= act_together(*simulator_, calls, count, scratch_, scratch_bytes_) != kPolicyTroubleNone;
    if (!recorder_) return;
    int64_t rows = 0, done = 0;
    for (int64_t i = 0; i < count; ++i) rows += calls[i].call.num_rows;
    const int64_t taken = monotonic_ns() - start;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t begin = start + taken * done / rows;
        done += calls[i].call.num_rows;
        const int64_t end = start + taken * done / rows;
        recorder_->acted(calls[i].index, DS_POLICY_NATIVE, begin, end, calls[i].call.num_rows);
    }
}

// Every action has random numbers of its own, by its episode's seed, its step, agent and component.
RandomKey Replica::key_of(int64_t row) const {
    const ds_sampling_key& key = keys_[row];
    return split({key.key[0], key.key[1]}, key.step, key.agent);
}

void Replica::act_randomly(int64_t first, int64_t rows) {
    struct Job {
        Replica* self;
        const int32_t* rows;
    } job = {this, rows_.get() + first};
    simulator_->run_on_host(
        rows, kRandomRows,
        [](void* context, int64_t begin, int64_t count, int32_t) {
            const Job& of = *static_cast<const Job*>(context);
            for (int64_t place = begin; place < begin + count; ++place) {
                const int32_t row = of.rows[place];
                choose_randomly(of.self->keys_[row], 0, of.self->actions_ + row * kActionComponents);
            }
        },
        &job);
}

void Replica::act_idly(int64_t first, int64_t rows) {
    for (int64_t place = first; place < first + rows; ++place) {
        choose_neutrally(actions_ + rows_[place] * kActionComponents);
    }
}

// After the rows that act on the host; if there are none and nothing is recorded, the step does it all.
ds_status Replica::act_on_device() {
    if (some_act_on_host_) {
        if (const ds_status status = write_actions()) return status;
    }
    if (!some_act_on_host_ && !some_record_) return DS_STATUS_OK;
    if (const ds_status status = device_->act()) return status;
    return some_record_ ? read_tensor(DS_TENSOR_actions, actions_) : DS_STATUS_OK;
}

// ---- Callers ----

void Replica::note_to_ask(int64_t first, int64_t count) {
    for (int64_t place = first; place < first + count; ++place) {
        const int64_t row = rows_[place];
        PlayedEpisode& played = played_[row / num_agents_];
        waits_[row] = RowWait::kAsking;
        ++played.num_awaited;
        ++policies_[played.policies[row % num_agents_]].num_to_ask;
    }
}

// A policy is asked for the actions of all its rows together; those that come while it is asked wait.
ds_status Replica::ask_callers() {
    int64_t unasked = 0;
    for (int64_t policy = 0; policy < num_policies(); ++policy) {
        PolicySlot& slot = policies_[policy];
        if (slot.num_to_ask == 0) continue;
        if (slot.asked) {
            unasked += slot.num_to_ask;
            continue;
        }
        slot.asked = rows_to_ask(policy);
        if (!slot.asked) return fail_memory("rows that await actions");
        slot.asked_ns = recorder_ ? monotonic_ns() : 0;
        slot.num_to_ask = 0;
        ++num_asked_;
        desk_->ask(slot.asked);
    }
    unasked_.store(unasked, std::memory_order_relaxed);
    return DS_STATUS_OK;
}

Ref<AskedRows> Replica::rows_to_ask(int64_t policy) {
    const Ref<AskedRows> asked = AskedRows::create(requests_, policies_[policy].num_to_ask, num_inputs_);
    if (!asked) return {};
    asked->replica = number_;
    asked->policy = static_cast<int32_t>(policy);
    asked->num_replica_rows = num_rows();
    int64_t i = 0;
    for (int64_t row = 0; row < num_rows(); ++row) {
        const PlayedEpisode& played = played_[row / num_agents_];
        if (waits_[row] != RowWait::kAsking || played.policies[row % num_agents_] != policy) continue;
        const RandomKey key = key_of(row);
        waits_[row] = RowWait::kCaller;
        asked->rows[i] = static_cast<int32_t>(row);
        asked->steps[i] = played.length;
        asked->keys[2 * i] = key.a;
        asked->keys[2 * i + 1] = key.b;
        asked->tags[i] = played.request->asked.tag;
        asked->rewards[i] = rewards_[row];
        memcpy(asked->observations + i * num_inputs_, observations_ + row * num_inputs_,
               static_cast<size_t>(num_inputs_) * sizeof(float));
        ++i;
    }
    DS_ASSERT(i == asked->num_rows);
    return asked;
}

bool Replica::some_have_returned() const {
    return std::any_of(policies_, policies_ + num_policies(),
                       [](const PolicySlot& slot) { return slot.asked && slot.asked->have_returned(); });
}

void Replica::take_answers() {
    for (int64_t policy = 0; num_asked_ > 0 && policy < num_policies(); ++policy) {
        if (policies_[policy].asked && policies_[policy].asked->have_returned()) take_answer(policy);
    }
}

// Rows of episodes that have ended meanwhile do not wait for it any more.
void Replica::take_answer(int64_t policy) {
    PolicySlot& slot = policies_[policy];
    const Ref<AskedRows> asked = std::move(slot.asked);
    --num_asked_;
    for (int64_t i = 0; i < asked->num_rows; ++i) {
        const int64_t row = asked->rows[i];
        if (row < 0 || row >= num_rows() || waits_[row] != RowWait::kCaller) continue;
        PlayedEpisode& played = played_[row / num_agents_];
        if (played.policies[row % num_agents_] != policy) continue;
        waits_[row] = RowWait::kNothing;
        --played.num_awaited;
        if (asked->cause()) mark(row / num_agents_, DS_EPISODE_FAILED, asked->cause());
        else memcpy(actions_ + row * kActionComponents, asked->actions() + i * kActionComponents, kActionBytes);
    }
    if (recorder_) recorder_->acted(policy, DS_POLICY_CALLER, slot.asked_ns, monotonic_ns(), asked->num_rows);
}

void Replica::fail_rows(int64_t first, int64_t count, int64_t cause) {
    for (int64_t place = first; place < first + count; ++place) {
        choose_neutrally(actions_ + rows_[place] * kActionComponents);
        mark(rows_[place] / num_agents_, DS_EPISODE_FAILED, cause);
    }
}

void Replica::withdraw_questions() {
    for (int64_t policy = 0; num_asked_ > 0 && policy < num_policies(); ++policy) {
        if (!policies_[policy].asked) continue;
        desk_->withdraw(policies_[policy].asked);
        policies_[policy].asked = {};
        --num_asked_;
    }
}

// ---- Step ----

// The worlds whose actions are all there.
void Replica::find_ready() {
    num_ready_ = 0;
    for (int64_t world = 0; world < num_worlds_; ++world) {
        const PlayedEpisode& played = played_[world];
        ready_[world] = played.request && played.has_acted && played.num_awaited == 0;
        num_ready_ += ready_[world];
    }
}

// Of the worlds that are ready. On the CPU the others wait, and what is there stays as it is.
ds_status Replica::step() {
    find_ready();
    if (num_ready_ == 0) return DS_STATUS_OK;
    const int64_t start = monotonic_ns();
    if (device_) {
        if (const ds_status status = act_on_device()) return status;
    }
    record_steps();
    if (num_ended_ > 0) {  // their policies failed: they do not take part
        if (const ds_status status = end_marked()) return status;
    }
    if (num_ready_ == 0) return DS_STATUS_OK;
    if (const ds_status status = step_worlds()) return status;
    if (const ds_status status = read_ends()) return status;
    smooth(&step_ns_, static_cast<double>(monotonic_ns() - start));
    add_to(&steps_, 1);
    add_to(&world_steps_, num_ready_);
    if (recorder_) recorder_->stepped(start, num_ready_);
    mark_ends();
    if (const ds_status status = mark_nonfinite()) return status;
    if (recorder_ && recorder_->awaits_first_steps()) record_first_steps();
    if (const ds_status status = stream_steps()) return status;
    return num_ended_ > 0 ? end_marked() : DS_STATUS_OK;
}

void Replica::record_steps() {
    for (int64_t world = 0; world < num_worlds_; ++world) {
        if (!ready_[world] || ended_[world] || !played_[world].recorded) continue;
        if (!records_.add_step(world, observations_, actions_)) mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
    }
}

void Replica::note_rows(int64_t policy, const int32_t* rows, int64_t count) {
    const PolicySlot& slot = policies_[policy];
    const bool has_states = slot.kind == DS_POLICY_NATIVE && slot.native->state_size() > 0;
    const float* states = has_states ? reinterpret_cast<const float*>(slot.states.data()) : nullptr;
    records_.note({rows, count, slot.kind, slot.version, states, slot.state_size});
}

int64_t Replica::largest_state(int64_t world) const {
    int64_t largest = 0;
    for (int64_t agent = 0; agent < num_agents_; ++agent) {
        const PolicySlot& slot = policies_[played_[world].policies[agent]];
        if (slot.kind == DS_POLICY_NATIVE) largest = std::max(largest, slot.native->state_size());
    }
    return largest;
}

void Replica::mark_ends() {
    for (int64_t world = 0; world < num_worlds_; ++world) {
        PlayedEpisode& played = played_[world];
        if (!ready_[world]) continue;
        const int64_t row = world * num_agents_;
        ++played.length;
        played.has_acted = false;
        records_.add_rewards(world, rewards_);
        if (terminations_[row]) mark(world, DS_EPISODE_GOAL);
        else if (truncations_[row]) mark(world, DS_EPISODE_TIME);
    }
}

// Episodes that have made the step with a neutral action that no policy has chosen. On CUDA it is known only now: one
// graph chooses the actions and steps. On the host it is the same, so that results do not depend on the device.
ds_status Replica::mark_nonfinite() {
    const uint8_t* on_device = nullptr;
    if (device_) {
        if (const ds_status status = device_->read_nonfinite(&on_device)) return status;
    }
    const bool some_wait = num_ready_ < active_;  // who may have flags
    if (!std::exchange(some_nonfinite_, some_nonfinite_ && some_wait) && !on_device) return DS_STATUS_OK;
    for (int64_t world = 0; world < num_worlds_; ++world) {
        if (!ready_[world]) continue;
        const PlayedEpisode& played = played_[world];
        // Backwards, so that the cause names the first of several agents.
        for (int64_t agent = num_agents_ - 1; played.request && agent >= 0; --agent) {
            const PolicySlot& slot = policies_[played.policies[agent]];
            const uint8_t* const flags = slot.on_device ? on_device : nonfinite_.get();
            if (slot.kind != DS_POLICY_NATIVE || !flags || !flags[world * num_agents_ + agent]) continue;
            if (recorder_) recorder_->met_nonfinite(1);
            mark(world, DS_EPISODE_FAILED, DS_CAUSE_LOGITS - (8 * (played.length - 1) + agent));
        }
    }
    return DS_STATUS_OK;
}

void Replica::record_first_steps() {
    const int64_t now = monotonic_ns();
    bool others_wait = false;
    for (int64_t world = 0; world < num_worlds_; ++world) {
        const PlayedEpisode& played = played_[world];
        others_wait |= played.request && played.length == 0;
        if (ready_[world] && played.length == 1) recorder_->made_first_step(*played.request, now);
    }
    if (!others_wait) recorder_->made_first_steps();
}

// An episode that is played again, because another replica gave it back, does not tell its steps again.
ds_status Replica::stream_steps() {
    for (int64_t world = 0; world < num_worlds_; ++world) {
        PlayedEpisode& played = played_[world];
        if (!played.request || !played.records(DS_RECORD_STREAM) || played.length <= played.request->streamed) continue;
        const Ref<OutputMemory> memory = records_.last_step(world);
        if (!memory) {
            mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
            continue;
        }
        Output& output = new_outputs_[num_new_outputs_++] = make_output(*played.request, DS_OUTPUT_STEP, num_agents_);
        output.told.length = played.length;
        output.told.started_ns = played.started_ns;
        output.told.replica = number_;
        output.told.world = static_cast<int32_t>(world);
        output.told.state_size = records_.state_size(world);
        memory->tell(&output.told);
        output.data = memory;
        finished_[num_new_outputs_ - 1] = {played.request, played.length};
    }
    const int64_t streamed = num_new_outputs_;
    if (const ds_status status = push_outputs()) return status;
    for (int64_t i = 0; i < streamed; ++i) finished_[i].request->streamed = finished_[i].steps;
    return DS_STATUS_OK;
}

// ---- Ends ----

// The episode ends with this reason at the next end_marked(). A failure outdoes what was marked before.
void Replica::mark(int64_t world, ds_episode_reason reason, int64_t cause) {
    DS_ASSERT(played_[world].request);
    num_ended_ += ended_[world] == 0;
    ended_[world] = static_cast<uint8_t>(1 + reason);
    played_[world].cause = cause;
}

// Requests end when their results are in the output queue: until then they can be taken back.
ds_status Replica::end_marked() {
    const int64_t start = recorder_ ? monotonic_ns() : 0;
    if (const ds_status status = simulator_->summarise(ended_.get(), summaries_.get())) return status;
    if (const ds_status status = record_ends()) return status;
    for (int64_t world = 0; world < num_worlds_; ++world) {
        if (!ended_[world]) continue;
        finished_[num_new_outputs_] = {played_[world].request, played_[world].length};
        new_outputs_[num_new_outputs_++] = make_result(world, summaries_[world]);
    }
    const int64_t results = num_new_outputs_;
    if (const ds_status status = push_results(start)) return status;
    requests_->finish(finished_.get(), results);
    for (int64_t world = 0; world < num_worlds_; ++world) {
        if (ended_[world]) free_world(world);
    }
    return DS_STATUS_OK;
}

// Recorded before they are pushed: a result that a caller has is in the metrics.
ds_status Replica::push_results(int64_t start_ns) {
    if (!outputs_->reserve(num_new_outputs_)) {
        drop_outputs();
        return fail_memory("results that wait");
    }
    if (recorder_) {
        for (int64_t i = 0; i < num_new_outputs_; ++i) {
            recorder_->answered(new_outputs_[i].told, finished_[i].request->asked.record & DS_RECORD_TRACE);
        }
        recorder_->ended(start_ns, num_new_outputs_);
    }
    requests_->begin_answers(finished_.get(), num_new_outputs_);
    outputs_->push_reserved(new_outputs_.get(), num_new_outputs_);
    drop_outputs();
    return DS_STATUS_OK;
}

// What there is after the last step, behind the rows of the steps.
ds_status Replica::record_ends() {
    bool are_read = false;
    for (int64_t world = 0; world < num_worlds_; ++world) {
        const PlayedEpisode& played = played_[world];
        if (!ended_[world] || !played.records(kStepRecords) || played.length == 0) continue;
        if (!are_read && device_ && played.records(DS_RECORD_OBSERVATIONS)) {
            if (const ds_status status = read_tensor(DS_TENSOR_observations, observations_)) return status;
            are_read = true;
        }
        if (played.records(DS_RECORD_OBSERVATIONS)) show_time_left(world);
        for (int64_t agent = 0; !played.has_acted && agent < num_agents_; ++agent) {
            const int32_t row = static_cast<int32_t>(world * num_agents_ + agent);
            note_rows(played.policies[agent], &row, 1);
        }
        if (records_.add_end(world, observations_)) continue;
        mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
        records_.clear(world);
    }
    return DS_STATUS_OK;
}

Output Replica::make_result(int64_t world, const EpisodeSummary& summary) {
    PlayedEpisode& played = played_[world];
    const bool met_trouble = simulator_->config().strict && summary.met_trouble;
    if (met_trouble && ended_[world] != 1 + DS_EPISODE_FAILED) mark(world, DS_EPISODE_FAILED, DS_CAUSE_SIMULATION);
    Ref<OutputMemory> recorded;
    if (played.records(kStepRecords) && played.length > 0 && !records_.is_empty(world)) {
        recorded = records_.all(world, played.length);
        if (!recorded) mark(world, DS_EPISODE_FAILED, DS_CAUSE_MEMORY);
    }
    Output output = make_output(*played.request, DS_OUTPUT_RESULT, num_agents_);
    output.told.reason = ended_[world] - 1;
    output.told.cause = played.cause;
    output.told.length = played.length;
    output.told.started_ns = played.started_ns;
    output.told.replica = number_;
    output.told.world = static_cast<int32_t>(world);
    output.told.state_size = records_.state_size(world);
    output.told.state_hash = played.length > 0 ? summary.hash : 0;
    const size_t bytes = static_cast<size_t>(num_agents_) * sizeof(float);
    memcpy(output.told.returns, summary.progress.returns, bytes);
    memcpy(output.told.max_y, summary.progress.max_y, bytes);
    if (recorded) recorded->tell(&output.told);
    output.data = recorded;
    return output;
}

ds_status Replica::push_outputs() {
    const bool pushed = outputs_->push(new_outputs_.get(), num_new_outputs_);
    drop_outputs();
    return pushed ? DS_STATUS_OK : fail_memory("results that wait");
}

void Replica::drop_outputs() {
    for (int64_t i = 0; i < num_new_outputs_; ++i) new_outputs_[i].data = {};
    num_new_outputs_ = 0;
}

void Replica::free_world(int64_t world) {
    rows_changed_ = true;
    num_ended_ -= ended_[world] != 0;
    ended_[world] = 0;
    for (int64_t row = world * num_agents_; row < (world + 1) * num_agents_; ++row) {
        if (waits_[row] == RowWait::kAsking) --policies_[played_[world].policies[row % num_agents_]].num_to_ask;
        waits_[row] = RowWait::kNothing;
    }
    num_ready_ -= ready_[world];
    ready_[world] = 0;
    played_[world].request = nullptr;
    free_worlds_[num_worlds_ - active_--] = world;
}

void Replica::give_back_all() {
    for (int64_t world = 0; world < num_worlds_; ++world) {
        if (!played_[world].request) continue;
        requests_->take_back(played_[world].request);
        free_world(world);
    }
    if (recorder_) recorder_->passed(requests_->waiting(), active_);
}

// ---- Tensors ----

template <class Value>
ds_status Replica::read_tensor(int tensor, Value* host) {
    ds_tensor_info info = {};
    simulator_->describe_tensor(tensor, &info);
    return simulator_->memory_of(tensor)->read(info.data, tensor_bytes(info), const_cast<std::remove_const_t<Value>*>(host));
}

ds_status Replica::step_worlds() {
    if (!device_) {
        const bool all_step = num_ready_ == num_worlds_;
        return all_step ? simulator_->step() : static_cast<CpuSimulator&>(*simulator_).step_some(ready_.get());
    }
    return some_act_on_host_ || some_record_ ? device_->step() : device_->play();
}

ds_status Replica::write_actions() {
    ds_tensor_info info = {};
    simulator_->describe_tensor(DS_TENSOR_actions, &info);
    return simulator_->memory_of(DS_TENSOR_actions)->write(info.data, tensor_bytes(info), actions_);
}

ds_status Replica::read_ends() {
    if (on_host_) return DS_STATUS_OK;
    const ds_status status =
        device_->read_ends(const_cast<uint8_t*>(terminations_), const_cast<uint8_t*>(truncations_));
    if (status || (!some_record_ && !some_act_on_host_)) return status;
    return read_tensor(DS_TENSOR_rewards, rewards_);
}

}  // namespace doorstep
