// Engines, their queues of requests and outputs, and the replicas that play them.
#include <float.h>

#include <algorithm>
#include <memory>
#include <new>

#include "api/configs.h"
#include "api/levels.h"
#include "api/rollouts.h"
#include "metrics/labels.h"
#include "sim/observation_layout.h"

namespace doorstep {
namespace {

constexpr int64_t kMaxTargets = 1024;

// ---- Requests

// Of an engine's queue. config: of an engine.
QueueRules rules_of(const Config& config) {
    const ds_simulator_config& simulator = config.part(DS_CONFIG_SIMULATOR)->simulator();
    return {
        .scheduler = config.part(DS_CONFIG_SCHEDULER)->scheduler(),
        .plays_levels = simulator.max_levels > 0,
        .num_agents = simulator.num_agents,
        .num_policies = config.rollout().max_policies,
        .capacity = config.rollout().queue_capacity,
    };
}

// metrics: of the queue, its branches and their replicas; or null.
ds_status make_queue(const Config& config, const Ref<MetricsStore>& metrics, Ref<RequestQueue>* queue) {
    const QueueRules rules = rules_of(config);
    Ref<RequestTable> table = Ref<RequestTable>::adopt(new (std::nothrow) RequestTable);
    if (!table) return fail_memory("a queue");
    if (metrics) {
        const ds_status status = QueueRecorder::create(metrics, rules.scheduler.type, &table->recorder);
        if (status) return status;
    }
    *queue = Ref<RequestQueue>::adopt(new (std::nothrow) RequestQueue(rules, Ref<RequestQueue>(), std::move(table)));
    return *queue ? DS_STATUS_OK : fail_memory("a queue");
}

// The store of a handle; null for 0.
ds_status find_metrics(ds_metrics handle, Ref<MetricsStore>* store) {
    if (!handle) return DS_STATUS_OK;
    *store = metrics_stores.find(handle);
    return *store ? DS_STATUS_OK : fail_closed("metrics");
}

// The one that an engine has by its configuration; null if it measures nothing.
ds_status make_metrics(const Config& config, Ref<MetricsStore>* store) {
    const ds_metrics_config& fields = config.part(DS_CONFIG_METRICS)->metrics();
    if (!fields.enabled) return DS_STATUS_OK;
    *store = Ref<MetricsStore>::adopt(new (std::nothrow) MetricsStore(fields.trace));
    return *store ? DS_STATUS_OK : fail_memory("metrics");
}

ds_status check_number(const char* argument, float value, float low, float high) {
    if (value >= low && value <= high) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "", "%s is %g; it must be %g to %g", argument,
                static_cast<double>(value), static_cast<double>(low), static_cast<double>(high));
}

ds_status check_request(const ds_episode_request& request, const QueueRules& rules) {
    if (const ds_status status = check_seed(request.seed)) return status;
    if (const ds_status status = check_range("sampling_seed", "", request.sampling_seed, 0, DS_MAX_SEED)) return status;
    if (const ds_status status = check_range("max_steps", "0 is no limit", request.max_steps, 0,
                                             DS_MAX_EPISODE_LENGTH)) {
        return status;
    }
    if (const ds_status status = check_range("priority", "", request.priority, -INT64_MAX, INT64_MAX)) return status;
    if (const ds_status status = check_range("deadline_ns", "0 is no deadline", request.deadline_ns, 0, INT64_MAX)) return status;
    if (const ds_status status = check_number("temperature", request.temperature, 0.f, FLT_MAX)) return status;
    if (const ds_status status = check_number("top_p", request.top_p, 0.f, 1.f)) return status;
    if (const ds_status status = check_flag("greedy", request.greedy)) return status;
    if (const ds_status status = check_range("record", "pass bits of ds_episode_record", request.record, 0, 15)) {
        return status;
    }
    for (int64_t agent = 0; agent < rules.num_agents; ++agent) {
        if (const ds_status status = check_range("policies", "pass the index of a policy", request.policies[agent], 0,
                                                 rules.num_policies - 1)) {
            return status;
        }
    }
    return DS_STATUS_OK;
}

ds_status find_level(const ds_episode_request& request, const QueueRules& rules, Ref<SharedLevel>* level) {
    if (!rules.plays_levels) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "level", "create the engine with max_levels",
                    "this queue takes requests on the reference's levels only");
    }
    *level = shared_levels.find(request.level);
    if (!*level) return fail_closed("level");
    if ((*level)->num_agents >= rules.num_agents) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "level", "give the level more spawns",
                "the level has been checked for %lld agents; the episodes have %lld",
                static_cast<long long>((*level)->num_agents), static_cast<long long>(rules.num_agents));
}

// ---- Replicas

// One call on a replica: has its simulator's turn from construction to destruction.
class ReplicaCall {
public:
    explicit ReplicaCall(ds_replica handle) : replica_(replicas.find(handle)) {
        if (replica_) replica_->simulator().turn.lock();
        else status_ = fail_closed("replica");
    }
    ~ReplicaCall() {
        if (replica_) replica_->simulator().turn.unlock();
    }
    ReplicaCall(const ReplicaCall&) = delete;
    ReplicaCall& operator=(const ReplicaCall&) = delete;

    ds_status status() const { return status_; }
    Replica* operator->() const { return replica_.get(); }

private:
    Ref<Replica> replica_;
    ds_status status_ = DS_STATUS_OK;
};

// As close_simulator() of api/simulator.cpp.
void end_replica(Replica* replica) {
    replica->close();
    replica->simulator().turn.lock();
    replica->end();
    replica->simulator().turn.unlock();
    unwatch_forks(&replica->simulator());
}

ds_status check_rules(const ds_simulator_config& config, const QueueRules& rules) {
    if (config.num_agents != rules.num_agents) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "simulator", "use equal numbers",
                    "the simulator has num_agents %lld, the queue %lld", static_cast<long long>(config.num_agents),
                    static_cast<long long>(rules.num_agents));
    }
    if (!rules.plays_levels || config.max_levels > 0) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "simulator", "set max_levels",
                "the simulator plays the reference's levels only; requests of the queue may have others");
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

int64_t ds_monotonic_ns(void) { return monotonic_ns(); }

// ---- Levels ----

ds_status ds_shared_level_create(const ds_level* level, int64_t num_agents, ds_shared_level* shared) {
    if (!level) return fail_null("level");
    if (!shared) return fail_null("shared");
    if (const ds_status status = check_num_agents(num_agents)) return status;
    if (const ds_status status = check_level(*level, 0, num_agents)) return status;
    return give(shared_levels, Ref<SharedLevel>::adopt(new (std::nothrow) SharedLevel(*level, num_agents)), "a level", shared);
}

ds_status ds_shared_level_release(ds_shared_level shared) {
    return shared_levels.remove(shared) ? DS_STATUS_OK : fail_closed("shared");
}

// ---- Requests ----

ds_status ds_request_queue_create(ds_config config, ds_metrics metrics, ds_request_queue* queue) {
    if (!queue) return fail_null("queue");
    const Ref<Config> found = find_config(config, DS_CONFIG_ROLLOUT, "config");
    if (!found) return last_status();
    Ref<MetricsStore> store;
    if (const ds_status status = find_metrics(metrics, &store)) return status;
    Ref<RequestQueue> made;
    if (const ds_status status = make_queue(*found, store, &made)) return status;
    return give(request_queues, made, "a queue", queue);
}

ds_status ds_request_queue_branch(ds_request_queue source, int64_t capacity, ds_request_queue* branch) {
    if (!branch) return fail_null("branch");
    if (const ds_status status = check_range("capacity", "", capacity, 1, DS_MAX_QUEUE_CAPACITY)) return status;
    const Ref<RequestQueue> found = request_queues.find(source);
    if (!found) return fail_closed("source");
    QueueRules rules = found->rules();
    rules.capacity = capacity;
    const Ref<RequestQueue> made = Ref<RequestQueue>::adopt(
        new (std::nothrow) RequestQueue(rules, found, Ref<RequestTable>::share(&found->table())));
    return give(request_queues, made, "a queue", branch);
}

ds_status ds_request_queue_submit(ds_request_queue queue, const ds_episode_request* requests, uint64_t count,
                                  int64_t timeout_ns, uint64_t* ids, uint64_t* accepted) {
    if (!accepted) return fail_null("accepted");
    *accepted = 0;
    const Ref<RequestQueue> found = request_queues.find(queue);
    if (!found) return fail_closed("queue");
    if (count == 0) return DS_STATUS_OK;
    if (!requests) return fail_null("requests");
    if (!ids) return fail_null("ids");
    if (count > INT64_MAX / sizeof *requests) return fail_memory("the requests");
    const bool any_levels = std::any_of(requests, requests + count, [](const auto& one) { return one.level != 0; });
    const std::unique_ptr<Ref<SharedLevel>[]> levels(any_levels ? new (std::nothrow) Ref<SharedLevel>[count] : nullptr);
    if (any_levels && !levels) return fail_memory("the requests");
    for (uint64_t i = 0; i < count; ++i) {
        ds_status status = check_request(requests[i], found->rules());
        if (!status && requests[i].level) status = find_level(requests[i], found->rules(), &levels[i]);
        if (!status) continue;
        add_detail(" (request %llu)", static_cast<unsigned long long>(i));
        return status;
    }
    return found->submit(requests, levels.get(), count, timeout_ns, ids, accepted);
}

ds_status ds_request_queue_move(ds_request_queue queue, const ds_request_queue* targets, uint64_t num_targets,
                                uint64_t first, uint64_t most, int64_t timeout_ns, uint64_t* moved) {
    if (!moved) return fail_null("moved");
    *moved = 0;
    if (!targets) return fail_null("targets");
    if (const ds_status status = check_range("num_targets", "", static_cast<int64_t>(num_targets), 1, kMaxTargets)) {
        return status;
    }
    if (const ds_status status = check_range("most", "", static_cast<int64_t>(most), 1, DS_MAX_QUEUE_CAPACITY)) return status;
    const Ref<RequestQueue> found = request_queues.find(queue);
    if (!found) return fail_closed("queue");
    Ref<RequestQueue> of_targets[kMaxTargets];
    for (uint64_t i = 0; i < num_targets; ++i) {
        of_targets[i] = request_queues.find(targets[i]);
        if (!of_targets[i]) return fail_closed("targets");
        if (of_targets[i]->source().get() == found.get()) continue;
        return fail(DS_STATUS_INVALID_ARGUMENT, "targets", "create them with ds_request_queue_branch",
                    "requests can be moved only to queues that branch from this one; targets[%llu] does not",
                    static_cast<unsigned long long>(i));
    }
    return found->move(of_targets, num_targets, first % num_targets, most, timeout_ns, moved);
}

ds_status ds_request_queue_cancel(ds_request_queue queue, uint64_t request_id, int32_t* found) {
    if (!found) return fail_null("found");
    const Ref<RequestQueue> of_id = request_queues.find(queue);
    if (!of_id) return fail_closed("queue");
    const uint32_t here = of_id->table().number, there = request_id::table_of(request_id);
    if (there != here) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "request_id", "cancel it in the engine that gave this id",
                    "request_id is %llu, an id of engine %u; this is engine %u",
                    static_cast<unsigned long long>(request_id), there, here);
    }
    *found = of_id->cancel(request_id);
    return DS_STATUS_OK;
}

ds_status ds_request_queue_get_info(ds_request_queue queue, ds_request_queue_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    const Ref<RequestQueue> found = request_queues.find(queue);
    if (!found) return fail_closed("queue");
    found->read(info);
    return DS_STATUS_OK;
}

ds_status ds_request_queue_answer(ds_request_queue queue, ds_output_queue outputs, int32_t reason, int64_t cause) {
    if (const ds_status status = check_range("reason", "pass a ds_episode_reason", reason, DS_EPISODE_CANCELLED,
                                             DS_EPISODE_FAILED)) {
        return status;
    }
    const Ref<RequestQueue> found = request_queues.find(queue);
    if (!found) return fail_closed("queue");
    const Ref<OutputQueue> target = output_queues.find(outputs);
    if (!target) return fail_closed("outputs");
    return answer_all(*found, *target, static_cast<ds_episode_reason>(reason), cause);
}

ds_status ds_request_queue_drain(ds_request_queue queue, int64_t timeout_ns) {
    const Ref<RequestQueue> found = request_queues.find(queue);
    return found ? found->drain(timeout_ns) : fail_closed("queue");
}

ds_status ds_request_queue_close(ds_request_queue queue) {
    const Ref<RequestQueue> found = request_queues.find(queue);
    if (!found) return fail_closed("queue");
    found->close();
    return DS_STATUS_OK;
}

ds_status ds_request_queue_release(ds_request_queue queue) {
    return request_queues.remove(queue) ? DS_STATUS_OK : fail_closed("queue");
}

// ---- Outputs ----

ds_status ds_output_queue_create(ds_output_queue* queue) {
    if (!queue) return fail_null("queue");
    return give(output_queues, Ref<OutputQueue>::adopt(new (std::nothrow) OutputQueue), "a queue", queue);
}

ds_status ds_output_queue_take(ds_output_queue queue, uint64_t most, int64_t timeout_ns, ds_episode_output* outputs,
                               uint64_t* taken) {
    if (!taken) return fail_null("taken");
    *taken = 0;
    if (!outputs) return fail_null("outputs");
    if (const ds_status status = check_range("most", "", static_cast<int64_t>(most), 1, DS_MAX_QUEUE_CAPACITY)) return status;
    const Ref<OutputQueue> found = output_queues.find(queue);
    if (!found) return fail_closed("queue");
    struct Receiver {
        ds_episode_output* next;
        uint64_t count;
    } receiver = {outputs, 0};
    const auto receive = [](void* context, const Output& output) {
        Receiver& to = *static_cast<Receiver*>(context);
        *to.next = output.told;
        if (output.data) {
            if (const ds_status status = give_memory(output.data, &to.next->data)) return status;
        }
        ++to.next;
        ++to.count;
        return DS_STATUS_OK;
    };
    const ds_status status = found->take(static_cast<int64_t>(most), timeout_ns, receive, &receiver);
    *taken = receiver.count;
    return receiver.count > 0 ? DS_STATUS_OK : status;
}

ds_status ds_output_queue_size(ds_output_queue queue, uint64_t* size) {
    if (!size) return fail_null("size");
    const Ref<OutputQueue> found = output_queues.find(queue);
    if (!found) return fail_closed("queue");
    *size = static_cast<uint64_t>(found->size());
    return DS_STATUS_OK;
}

ds_status ds_output_queue_close(ds_output_queue queue) {
    const Ref<OutputQueue> found = output_queues.find(queue);
    if (!found) return fail_closed("queue");
    found->close();
    return DS_STATUS_OK;
}

ds_status ds_output_queue_release(ds_output_queue queue) {
    return output_queues.remove(queue) ? DS_STATUS_OK : fail_closed("queue");
}

// ---- Replicas ----

ds_status ds_replica_create(ds_config simulator, ds_request_queue requests, ds_output_queue outputs, int32_t number,
                            ds_replica* replica) {
    if (!replica) return fail_null("replica");
    const Ref<Config> config = find_config(simulator, DS_CONFIG_SIMULATOR, "simulator");
    if (!config) return last_status();
    const Ref<RequestQueue> from = request_queues.find(requests);
    if (!from) return fail_closed("requests");
    const Ref<OutputQueue> to = output_queues.find(outputs);
    if (!to) return fail_closed("outputs");
    ds_simulator_config rules = config->simulator();
    rules.auto_reset = 0;
    if (rules.observations.num_parts == 0) rules.observations = kDefaultObservations;
    if (const ds_status status = check_rules(rules, from->rules())) return status;
    Ref<Simulator> worlds;
    if (const ds_status status = make_simulator(rules, &worlds)) return status;
    Ref<Replica> made;
    if (const ds_status status = Replica::create(worlds, from, to, number, &made)) return status;
    if (!watch_forks(worlds.get())) return fail_memory("the fork handlers");
    const ds_status status = give(replicas, made, "a replica", replica);
    if (status) end_replica(made.get());
    return status;
}

ds_status ds_replica_set_policy(ds_replica replica, int64_t index, int32_t kind, uint64_t policy) {
    const ReplicaCall call(replica);
    if (call.status()) return call.status();
    if (const ds_status status = check_range("index", "", index, 0, call->num_policies() - 1)) return status;
    if (const ds_status status = check_range("kind", "pass a ds_policy_kind", kind, DS_POLICY_CALLER, DS_POLICY_NATIVE)) {
        return status;
    }
    Ref<Policy> native;
    if (kind == DS_POLICY_NATIVE) {
        native = policies.find(policy);
        if (!native) return fail_closed("policy");
        if (native->num_inputs() != call->num_inputs()) {
            return fail(DS_STATUS_INVALID_ARGUMENT, "policy", "use a policy for as many agents",
                        "the policy reads %lld numbers; the observations have %lld",
                        static_cast<long long>(native->num_inputs()), static_cast<long long>(call->num_inputs()));
        }
    }
    return call->set_policy(index, static_cast<ds_policy_kind>(kind), native);
}

ds_status ds_replica_label_policy(ds_replica replica, int64_t index, const char* labels) {
    if (!labels) return fail_null("labels");
    if (const ds_status status = check_labels(labels)) return status;
    const ReplicaCall call(replica);
    if (call.status()) return call.status();
    if (const ds_status status = check_range("index", "", index, 0, call->num_policies() - 1)) return status;
    call->label_policy(index, labels);
    return DS_STATUS_OK;
}

ds_status ds_replica_set_rewards(ds_replica replica, const ds_level_rewards* rewards) {
    const ReplicaCall call(replica);
    if (call.status()) return call.status();
    if (rewards)
        if (const ds_status status = check_rewards(*rewards)) return status;
    call->simulator().set_rewards(rewards);
    return DS_STATUS_OK;
}

ds_status ds_replica_run(ds_replica replica, int64_t timeout_ns, ds_replica_work* work) {
    if (const ds_status status = check_struct(work, "work")) return status;
    const ReplicaCall call(replica);
    return call.status() ? call.status() : call->run(timeout_ns, work);
}

ds_status ds_replica_fail(ds_replica replica, int64_t cause) {
    if (const ds_status status = check_range("cause", "", cause, 1, INT64_MAX)) return status;
    const ReplicaCall call(replica);
    return call.status() ? call.status() : call->fail_rows(cause);
}

ds_status ds_replica_get_info(ds_replica replica, ds_replica_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    const Ref<Replica> found = replicas.find(replica);
    if (!found) return fail_closed("replica");
    found->read(info);
    return DS_STATUS_OK;
}

ds_status ds_replica_close(ds_replica replica) {
    const Ref<Replica> found = replicas.find(replica);
    if (!found) return fail_closed("replica");
    found->close();
    return DS_STATUS_OK;
}

ds_status ds_replica_release(ds_replica replica) {
    const Ref<Replica> found = replicas.remove(replica);
    if (!found) return fail_closed("replica");
    end_replica(found.get());
    return DS_STATUS_OK;
}

// ---- Engines ----

ds_status ds_engine_create(ds_config config, ds_metrics metrics, ds_engine* engine) {
    if (!engine) return fail_null("engine");
    const Ref<Config> found = find_config(config, DS_CONFIG_ROLLOUT, "config");
    if (!found) return last_status();
    Ref<MetricsStore> store;
    if (const ds_status status = metrics ? find_metrics(metrics, &store) : make_metrics(*found, &store)) return status;
    Ref<RequestQueue> waiting;
    if (const ds_status status = make_queue(*found, store, &waiting)) return status;
    Ref<OutputQueue> outputs = Ref<OutputQueue>::adopt(new (std::nothrow) OutputQueue);
    if (!outputs) return fail_memory("a queue");
    return give(engines, Ref<Engine>::adopt(new (std::nothrow) Engine(found, waiting, outputs, store)), "an engine",
                engine);
}

ds_status ds_engine_get_config(ds_engine engine, ds_config* config) {
    if (!config) return fail_null("config");
    const Ref<Engine> found = engines.find(engine);
    return found ? give(configs, found->config, "a configuration", config) : fail_closed("engine");
}

ds_status ds_engine_get_waiting_queue(ds_engine engine, ds_request_queue* queue) {
    if (!queue) return fail_null("queue");
    const Ref<Engine> found = engines.find(engine);
    return found ? give(request_queues, found->waiting, "a queue", queue) : fail_closed("engine");
}

ds_status ds_engine_get_output_queue(ds_engine engine, ds_output_queue* queue) {
    if (!queue) return fail_null("queue");
    const Ref<Engine> found = engines.find(engine);
    return found ? give(output_queues, found->outputs, "a queue", queue) : fail_closed("engine");
}

ds_status ds_engine_get_metrics(ds_engine engine, ds_metrics* metrics) {
    if (!metrics) return fail_null("metrics");
    const Ref<Engine> found = engines.find(engine);
    if (!found) return fail_closed("engine");
    if (found->metrics) return give(metrics_stores, found->metrics, "metrics", metrics);
    *metrics = 0;
    return DS_STATUS_OK;
}

ds_status ds_engine_release(ds_engine engine) {
    return engines.remove(engine) ? DS_STATUS_OK : fail_closed("engine");
}
