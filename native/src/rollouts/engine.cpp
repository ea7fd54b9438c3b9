#include "rollouts/engine.h"

#include <algorithm>
#include <new>

#include "exec/cpu/threads.h"

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

// Whether a replica does.
bool plays_on_device(const ds_rollout_config& rollout, const ds_simulator_config& simulator) {
    if (rollout.num_devices == 0) return simulator.device_kind == DS_DEVICE_CUDA;
    return std::any_of(rollout.devices, rollout.devices + rollout.num_devices,
                       [](const ds_device& device) { return device.kind == DS_DEVICE_CUDA; });
}

}  // namespace

QueueRules rules_of(const Config& config) {
    const ds_simulator_config& simulator = config.part(DS_CONFIG_SIMULATOR)->simulator();
    return {
        .scheduler = config.part(DS_CONFIG_SCHEDULER)->scheduler(),
        .worlds = {static_cast<int>(simulator.num_agents), simulator.max_levels > 0},
        .plays_on_device = plays_on_device(config.rollout(), simulator),
        .episode_length = simulator.episode_length,
        .num_policies = config.rollout().max_policies,
        .capacity = config.rollout().queue_capacity,
        .requests_choose = config.part(DS_CONFIG_CONTROLLER)->controller().type == DS_CONTROLLER_CALLER,
    };
}

// ---- Creation and end ----

Engine::Engine(const Ref<Config>& config, const Ref<MetricsStore>& metrics)
    : config_(config), metrics_(metrics), forks_(num_forks()) {
    live_counts.rollouts.fetch_add(1, std::memory_order_relaxed);
}

Engine::~Engine() { live_counts.rollouts.fetch_sub(1, std::memory_order_relaxed); }

ds_status Engine::create(const Ref<Config>& config, const Ref<MetricsStore>& metrics, const Ref<Simulator>* simulators,
                         int64_t num_replicas, Ref<Engine>* engine) {
    const Ref<Engine> made = Ref<Engine>::adopt(new (std::nothrow) Engine(config, metrics));
    if (!made) return fail_memory();
    if (const ds_status status = made->take_memory(num_replicas)) return status;
    for (int64_t i = 0; i < num_replicas; ++i) {
        if (const ds_status status = made->make_replica(simulators[i])) return status;
    }
    if (const ds_status status = made->start()) return status;
    *engine = made;
    return DS_STATUS_OK;
}

ds_status Engine::take_memory(int64_t num_replicas) {
    const QueueRules rules = rules_of(*config_);
    if (const ds_status status = make_queue(rules, metrics_, &requests_)) return status;
    const ds_rollout_config& config = config_->rollout();
    const OutputLimits limits = {config.output_capacity, config.output_bytes};
    outputs_ = Ref<OutputQueue>::adopt(new (std::nothrow) OutputQueue(limits));
    policies_ = PolicyTable::create(rules.num_policies);
    desk_ = Ref<RowDesk>::adopt(new (std::nothrow) RowDesk);
    players_.reset(new (std::nothrow) Player[static_cast<size_t>(num_replicas)]);
    return outputs_ && policies_ && desk_ && players_ ? DS_STATUS_OK : fail_memory();
}

ds_status Engine::make_replica(const Ref<Simulator>& simulator) {
    const ds_controller_config& controller = config_->part(DS_CONFIG_CONTROLLER)->controller();
    Ref<RequestQueue> from = requests_;
    if (controller.type != DS_CONTROLLER_PULL) {
        from = Ref<RequestQueue>::adopt(new (std::nothrow) RequestQueue(requests_, controller.depth));
        if (!from) return fail_memory();
    }
    const ReplicaParts parts = {from, outputs_, policies_, desk_};
    Player& player = players_[static_cast<size_t>(num_replicas_)];
    DS_ASSERT(!player.replica && player.is_joined);
    player.engine = this;
    num_inputs_ = simulator->simulation().flat.size;
    const ds_status status = Replica::create(simulator, parts, static_cast<int32_t>(num_replicas_), &player.replica);
    if (!status) ++num_replicas_;
    return status;
}

// Where a thread is refused, those before it end, and the last one cleans up.
ds_status Engine::start() {
    num_playing_ = num_replicas_;
    ds_status status = DS_STATUS_OK;
    for (int64_t i = 0; i < num_replicas_; ++i) {
        Player& player = players_[static_cast<size_t>(i)];
        if (!status) {
            Ref<Engine> of_thread = Ref<Engine>::share(this);
            player.is_joined = false;
            if (start_thread(&player.thread, enter, &player)) {
                of_thread.leak();
                continue;
            }
            player.is_joined = true;
            close();
            status = fail(DS_STATUS_OUT_OF_MEMORY, "devices", "use fewer replicas, or raise the limit of threads",
                          "the operating system refuses to start a thread for replica %lld", static_cast<long long>(i));
        }
        leave(player);
    }
    if (status) abandon();
    return status;
}

void Engine::read(ds_engine_info* info) const {
    const QueueCounts counts = requests_->counts();
    info->num_replicas = static_cast<int32_t>(num_replicas_);
    info->num_playing = static_cast<int32_t>(num_playing_);
    info->submitted = counts.submitted;
    info->waiting = counts.waiting;
    info->unanswered = counts.unanswered;
    info->full_readers = 0;
    for (int32_t reader = 0; reader < DS_NUM_READERS; ++reader) {
        info->outputs[reader] = outputs_->size(reader);
        info->full_readers |= outputs_->is_full(reader) << reader;
    }
    info->unasked_rows = 0;
    for (int64_t i = 0; i < num_replicas_; ++i) info->unasked_rows += replica(i).num_unasked();
}

ds_status Engine::read_replica(int64_t number, ds_replica_info* info) const {
    const Player& player = players_[static_cast<size_t>(number)];
    info->has_ended = player.has_ended;
    player.replica->read(info);
    return info->has_ended && player.failure.status ? fail_again(player.failure) : DS_STATUS_OK;
}

void Engine::close() {
    closed_ = true;
    outputs_->lift_limits();
    for (int64_t i = 0; i < num_replicas_; ++i) replica(i).close();
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
        Player& player = players_[static_cast<size_t>(i)];
        if (!player.is_joined.exchange(true)) join_thread(player.thread);
    }
    return DS_STATUS_OK;
}

void Engine::abandon() {
    for (int64_t i = 0; i < num_replicas_; ++i) {
        Player& player = players_[static_cast<size_t>(i)];
        if (!player.is_joined.exchange(true)) detach_thread(player.thread);
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
    if (player.replica->play()) player.failure = last_failure();
    player.replica->end();
}

void Engine::leave(Player& player) {
    DS_ASSERT(!player.has_ended && num_playing_ > 0);
    player.has_ended = true;
    if (num_playing_.fetch_sub(1) == 1) {
        return answer_the_rest(player.failure.status && !closed_ ? DS_CAUSE_REPLICA : DS_CAUSE_CLOSED);
    }
    RequestQueue& from = player.replica->requests();
    if (&from != requests_.get()) from.close();
}

// As far as there is memory for it.
void Engine::answer_the_rest(ds_failure_cause cause) {
    for (int64_t i = 0; i < num_replicas_; ++i) replica(i).requests().close();
    requests_->close();
    DS_ASSERT(num_playing_ == 0 && !has_ended_);
    outputs_->lift_limits();
    answer_all(*requests_, *outputs_, DS_EPISODE_FAILED, cause);
    outputs_->close();
    desk_->close();
    for (int64_t index = 0; index < policies_->size(); ++index) policies_->give(index, {});
    has_ended_ = true;
    end_.tell();
}

}  // namespace doorstep
