#include "rollouts/engine.h"

#include <algorithm>
#include <new>

#include "exec/cpu/threads.h"
#include "sim/observation_layout.h"

namespace doorstep {
namespace {

ds_status fail_memory() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "close other engines, or raise the memory limit",
                "no memory is left for an engine");
}

ds_status make_queue(const QueueRules& rules, const Ref<MetricsStore>& metrics, Ref<RequestQueue>* queue) {
    Ref<RequestTable> table = Ref<RequestTable>::adopt(new (std::nothrow) RequestTable);
    if (!table) return fail_memory();
    if (metrics) {
        const ds_status status = QueueRecorder::create(metrics, rules.scheduler.type, &table->recorder);
        if (status) return status;
    }
    *queue = Ref<RequestQueue>::adopt(new (std::nothrow) RequestQueue(rules, std::move(table)));
    return *queue ? DS_STATUS_OK : fail_memory();
}

}  // namespace

QueueRules rules_of(const Config& config) {
    const ds_simulator_config& simulator = config.part(DS_CONFIG_SIMULATOR)->simulator();
    return {
        .scheduler = config.part(DS_CONFIG_SCHEDULER)->scheduler(),
        .controller = static_cast<ds_controller>(config.part(DS_CONFIG_CONTROLLER)->controller().type),
        .worlds = {static_cast<int>(simulator.num_agents), simulator.max_levels > 0},
        .episode_length = simulator.episode_length,
        .num_policies = config.rollout().max_policies,
        .capacity = config.rollout().queue_capacity,
        .outputs = {config.rollout().output_capacity, config.rollout().output_bytes},
    };
}

// ---- Creation ----

Engine::Engine(const Ref<Config>& config, MakeSimulator make, const ds_level_rewards* rewards,
               const Ref<MetricsStore>& metrics)
    : config_(config),
      make_(make),
      has_rewards_(rewards),
      rewards_(rewards ? *rewards : ds_level_rewards{}),
      metrics_(metrics) {}

// Where a replica cannot be added, those before it end, and the last one cleans up.
ds_status Engine::create(const Ref<Config>& config, MakeSimulator make, const ds_level_rewards* rewards,
                         const Ref<MetricsStore>& metrics, Ref<Engine>* engine) {
    const Ref<Engine> made = Ref<Engine>::adopt(new (std::nothrow) Engine(config, make, rewards, metrics));
    if (!made) return fail_memory();
    if (const ds_status status = made->take_memory()) return status;
    made->num_playing_ = 1;  // this call: the engine does not end before it has all its replicas
    ds_simulator_config simulator = config->part(DS_CONFIG_SIMULATOR)->simulator();
    const ds_rollout_config& rules = config->rollout();
    ds_status status = DS_STATUS_OK;
    for (int64_t i = 0; !status && i < std::max(rules.num_devices, 1); ++i) {
        if (rules.num_devices > 0) {
            simulator.device_kind = rules.devices[i].kind;
            simulator.device_index = rules.devices[i].index;
        }
        status = made->add_player(simulator);
    }
    if (status) made->close();
    made->end_if_last(DS_CAUSE_CLOSED);
    if (status) made->join(-1);
    else *engine = made;
    return status;
}

ds_status Engine::take_memory() {
    const QueueRules rules = rules_of(*config_);
    if (const ds_status status = make_queue(rules, metrics_, &requests_)) return status;
    policies_ = PolicyTable::create(rules.num_policies);
    desk_ = Ref<RowDesk>::adopt(new (std::nothrow) RowDesk);
    return policies_ && desk_ ? DS_STATUS_OK : fail_memory();
}

// The engine does not end before end_if_last(). False: it has ended.
bool Engine::begin_adding() {
    int64_t playing = num_playing_;
    while (playing > 0 && !num_playing_.compare_exchange_weak(playing, playing + 1)) {}
    return playing > 0;
}

ds_status Engine::add_replica(const ds_simulator_config& config, int64_t* number) {
    MutexGuard guard(adding_);
    if (num_replicas_ == DS_MAX_REPLICAS) {
        return fail(DS_STATUS_INVALID_STATE, "engine", "make a new engine",
                    "this engine has had %d replicas, the most of its time", DS_MAX_REPLICAS);
    }
    const bool can_add = begin_adding();
    ds_status status = DS_STATUS_OK;
    if (!can_add || closed_) status = fail(DS_STATUS_CLOSED, "engine", "make a new one", "the engine was closed");
    *number = num_replicas_;
    if (!status) status = add_player(config);
    if (can_add) end_if_last(DS_CAUSE_CLOSED);
    return status;
}

// Of a caller that counts as one who plays.
ds_status Engine::add_player(const ds_simulator_config& config) {
    const int64_t number = num_replicas_;
    std::unique_ptr<Player> made(new (std::nothrow) Player{this, static_cast<int32_t>(number), config, {}});
    if (!made) return fail_memory();
    Player& player = *made;
    player.config.auto_reset = 0;
    if (config.observations.num_parts == 0) player.config.observations = kDefaultObservations;
    if (const ds_status status = make_replica(player, &player.replica)) return status;
    if (number == 0) num_inputs_ = player.replica->num_inputs();
    DS_ASSERT(player.replica->num_inputs() == num_inputs_);
    players_[number] = std::move(made);
    ++num_playing_;
    ++num_replicas_;
    requests_->open_lane(number);
    if (closed_) end_replica(number);  // close() may not have seen it
    return start(player);
}

ds_status Engine::make_replica(Player& player, Ref<Replica>* replica) const {
    Ref<Simulator> simulator;
    if (const ds_status status = make_(player.config, &simulator)) return status;
    // Also where it is made again, in a thread without a current device
    player.config.device_kind = simulator->config().device_kind;
    player.config.device_index = simulator->config().device_index;
    if (has_rewards_) simulator->set_rewards(&rewards_);
    return Replica::create(simulator, {requests_, policies_, desk_}, player.number, replica);
}

ds_status Engine::start(Player& player) {
    Ref<Engine> of_thread = Ref<Engine>::share(this);
    if (start_thread(&player.thread, enter, &player)) {
        of_thread.leak();
        player.is_joined = false;
        if (abandoned_) abandon();  // which may not have seen it
        return DS_STATUS_OK;
    }
    leave(player);
    return fail(DS_STATUS_OUT_OF_MEMORY, "devices", "use fewer replicas, or raise the limit of threads",
                "the operating system refuses to start a thread for replica %d", player.number);
}

// ---- What it does, and its end ----

Ref<Replica> Engine::replica_of(const Player& player) const {
    MutexGuard guard(mutex_);
    return player.replica;
}

void Engine::read(ds_engine_info* info) const {
    const QueueCounts counts = requests_->counts();
    info->num_replicas = static_cast<int32_t>(num_replicas_);
    info->num_playing = static_cast<int32_t>(num_playing_);
    info->submitted = counts.submitted;
    info->waiting = counts.waiting;
    info->unanswered = counts.unanswered;
    info->restarts = 0;
    for (int64_t i = 0; i < num_replicas_; ++i) {
        info->restarts += player(i).restarts;
    }
}

ds_status Engine::read_replica(int64_t number, ds_replica_info* info) const {
    const Player& one = player(number);
    replica_of(one)->read(info);
    info->restarts = one.restarts;
    info->has_ended = one.has_ended;
    MutexGuard guard(mutex_);
    return one.failure.status ? fail_again(one.failure) : DS_STATUS_OK;
}

// A replica that its thread installs later is closed there.
void Engine::end_replica(int64_t number) {
    player(number).is_ending = true;
    replica_of(player(number))->close();
}

void Engine::close() {
    closed_ = true;
    for (int64_t i = 0; i < num_replicas_; ++i) end_replica(i);
}

ds_status Engine::join(int64_t timeout_ns) {
    const TimeLimit limit(timeout_ns);
    for (;;) {
        const uint32_t before = end_.now();
        if (has_ended_) break;
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        end_.wait(before, left);
    }
    for (int64_t i = 0; i < num_replicas_; ++i) {
        if (!player(i).is_joined.exchange(true)) join_thread(player(i).thread);
    }
    return DS_STATUS_OK;
}

void Engine::abandon() {
    abandoned_ = true;
    for (int64_t i = 0; i < num_replicas_; ++i) {
        if (!player(i).is_joined.exchange(true)) detach_thread(player(i).thread);
    }
}

// ---- The threads ----

void* Engine::enter(void* context) {
    Player& player = *static_cast<Player*>(context);
    const Ref<Engine> engine = Ref<Engine>::adopt(player.engine);
    engine->play(player);
    engine->leave(player);
    return nullptr;
}

void Engine::play(Player& player) {
    for (;;) {
        const Ref<Replica> replica = replica_of(player);
        player.has_failed = replica->play() != DS_STATUS_OK;
        if (player.has_failed) note_failure(player);
        replica->end();
        if (!player.has_failed || !restart(player)) return;
    }
}

void Engine::note_failure(Player& player) {
    MutexGuard guard(mutex_);
    player.failure = last_failure();
}

// False: its end is wanted, or it has been made often enough.
bool Engine::restart(Player& player) {
    while (player.restarts < config_->rollout().max_restarts && !player.is_ending) {
        ++player.restarts;
        Ref<Replica> made;
        if (!make_replica(player, &made)) return install(player, std::move(made));
        note_failure(player);
    }
    return false;
}

// False: the end of the player is wanted.
bool Engine::install(Player& player, Ref<Replica> replica) {
    MutexGuard guard(mutex_);
    if (player.is_ending) return false;
    std::swap(player.replica, replica);
    return true;
}

void Engine::leave(Player& player) {
    DS_ASSERT(!player.has_ended && num_playing_ > 0);
    player.has_ended = true;
    requests_->close_lane(player.number);
    end_if_last(player.has_failed && !closed_ ? DS_CAUSE_REPLICA : DS_CAUSE_CLOSED);
}

void Engine::end_if_last(ds_failure_cause cause) {
    if (num_playing_.fetch_sub(1) == 1) answer_the_rest(cause);
}

void Engine::answer_the_rest(ds_failure_cause cause) {
    DS_ASSERT(num_playing_ == 0 && !has_ended_);
    requests_->close();
    requests_->end(cause);
    desk_->close();
    for (int64_t index = 0; index < policies_->size(); ++index) policies_->give(index, {});
    has_ended_ = true;
    end_.tell();
}

}  // namespace doorstep
