// Engines, and the levels that their requests refer to.
#include <math.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <new>

#include "api/arguments.h"
#include "api/call.h"
#include "api/save.h"
#include "sim/observation_layout.h"

namespace doorstep {
namespace {

// ---- Engines

// An engine, or what it made. Null, with the thread's error set, if it was released or is the parent's.
template <class T>
Ref<T> find_here(HandleRegistry<T>& registry, uint64_t handle, const char* argument) {
    Ref<T> found = registry.find(handle, argument);
    if (!found || !found->table().is_copy()) return found;
    fail(DS_STATUS_CLOSED, "engine", "make one after the fork", "this engine belongs to the process that was forked");
    return {};
}

Ref<Engine> find_engine(ds_engine handle) { return find_here(engines, handle, "engine"); }
Ref<OutputQueue> find_outputs(ds_outputs handle) { return find_here(output_queues, handle, "outputs"); }

// The table of the engine whose rows this thread has taken and not returned: it would wait for itself.
thread_local const RequestTable* acting_for = nullptr;

ds_status fail_waits_for_itself() {
    return fail(DS_STATUS_INVALID_STATE, "engine",
                "wait in another thread, or play these episodes with another engine; a timeout of 0 does not wait",
                "a policy would wait for the engine that calls it, for ever");
}

// The store of a handle; without one, that which the engine has by its configuration: null if it measures nothing.
ds_status find_metrics(ds_metrics handle, const Config& config, Ref<MetricsStore>* store) {
    if (handle) {
        *store = metrics_stores.find(handle, "metrics");
        return *store ? DS_STATUS_OK : last_status();
    }
    const ds_metrics_config& fields = config.part(DS_CONFIG_METRICS)->metrics();
    if (!fields.enabled) return DS_STATUS_OK;
    *store = Ref<MetricsStore>::adopt(new (std::nothrow) MetricsStore(fields.trace));
    return *store ? DS_STATUS_OK : fail_memory("metrics");
}

constexpr const char kAlike[] = "replicas differ in num_worlds, num_threads and their device alone";

bool are_equal(const ds_observations& one, const ds_observations& other) {
    const ds_observations &a = one.num_parts ? one : kDefaultObservations,
                          &b = other.num_parts ? other : kDefaultObservations;
    return a.num_parts == b.num_parts && std::equal(a.parts, a.parts + a.num_parts, b.parts) &&
           std::equal(a.scales, a.scales + a.num_parts, b.scales);
}

// In what results depend on.
ds_status check_alike(const ds_simulator_config& config, const ds_simulator_config& of_engine) {
    const struct {
        const char* field;
        int64_t value, of_engine;
    } fields[] = {
        {"num_agents", config.num_agents, of_engine.num_agents},
        {"episode_length", config.episode_length, of_engine.episode_length},
        {"action_check", config.action_check, of_engine.action_check},
        {"strict", config.strict, of_engine.strict},
        {"max_levels", std::min<int64_t>(config.max_levels, 1), std::min<int64_t>(of_engine.max_levels, 1)},
    };
    for (const auto& [field, value, other] : fields) {
        if (value == other) continue;
        return fail(DS_STATUS_INVALID_ARGUMENT, field, kAlike, "%s is %ld; it must be %ld, as in the engine's config",
                    field, value, other);
    }
    if (are_equal(config.observations, of_engine.observations)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "observations", kAlike, "observations differ from those of the engine's config");
}

// ---- Requests

ds_status check_request(const ds_episode_request& request, const QueueRules& rules) {
    if (const ds_status status = check_seed(request.seed)) return status;
    if (const ds_status status = check_ranges(
            {{"sampling_seed", "", request.sampling_seed, 0, DS_MAX_SEED},
             {"max_steps", "0 is no limit", request.max_steps, 0, DS_MAX_EPISODE_LENGTH},
             {"priority", "", request.priority, -INT64_MAX, INT64_MAX},
             {"deadline_ns", "0 is no deadline", request.deadline_ns, 0, INT64_MAX}})) {
        return status;
    }
    if (isnan(request.key)) return fail(DS_STATUS_INVALID_ARGUMENT, "key", "pass a number", "key is NaN");
    if (const ds_status status = check_sampling(request.sampling)) return status;
    if (const ds_status status = check_ranges(
            {{"record", "pass bits of ds_episode_record", request.record, 0, 2 * DS_RECORD_STATES - 1},
             {"replica", "-1 is any", request.replica, -1, DS_MAX_REPLICAS - 1},
             {"n", "0 is 1", request.n, 0, DS_MAX_QUEUE_CAPACITY}})) {
        return status;
    }
    for (int64_t agent = 0; agent < rules.worlds.num_agents; ++agent) {
        if (const ds_status status = check_range("policies", "pass the index of a policy", request.policies[agent], 0,
                                                 rules.num_policies - 1)) {
            return status;
        }
    }
    return DS_STATUS_OK;
}

ds_status find_level(const ds_episode_request& request, const QueueRules& rules, Ref<SharedLevel>* level) {
    if (!rules.worlds.plays_levels) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "level", "create the engine with max_levels",
                    "this engine plays the reference's levels only");
    }
    *level = shared_levels.find(request.level, "level");
    if (!*level) return last_status();
    if ((*level)->num_agents >= rules.worlds.num_agents) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "level", "give the level more spawns",
                "the level has been checked for %ld agents; the episodes have %d",
                (*level)->num_agents, rules.worlds.num_agents);
}

ds_status find_parts(const ds_episode_request& request, const QueueRules& rules, RequestParts* parts) {
    if (!request.state) return request.level ? find_level(request, rules, &parts->level) : DS_STATUS_OK;
    if (!request.level) return find_state(request.state, rules.worlds, rules.episode_length, &parts->state);
    return fail(DS_STATUS_INVALID_ARGUMENT, "level", "pass 0", "a saved state has its own level");
}

// Finds what they refer to: the parts of each, or none for all. OUT_OF_MEMORY.
ds_status check_requests(const ds_episode_request* requests, uint64_t count, const QueueRules& rules,
                         std::unique_ptr<RequestParts[]>* parts) {
    if (count > INT64_MAX / sizeof *requests) return fail_memory("the requests");
    if (std::any_of(requests, requests + count, [](const auto& one) { return one.level || one.state; })) {
        parts->reset(new (std::nothrow) RequestParts[count]);
        if (!*parts) return fail_memory("the requests");
    }
    for (uint64_t i = 0; i < count; ++i) {
        ds_status status = check_request(requests[i], rules);
        if (!status && *parts) status = find_parts(requests[i], rules, &(*parts)[i]);
        if (!status) continue;
        add_detail(" (request %lu)", i);
        return status;
    }
    return DS_STATUS_OK;
}

// ---- Policies

ds_status find_policy(uint64_t handle, const Engine& engine, Ref<Policy>* policy) {
    *policy = policies.find(handle, "policy");
    if (!*policy) return last_status();
    if ((*policy)->num_inputs() == engine.num_inputs()) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "policy", "use a policy for as many agents",
                "the policy reads %ld numbers; the observations have %ld",
                (*policy)->num_inputs(), engine.num_inputs());
}

bool overlap(const void* one, uint64_t bytes, const void* other, uint64_t other_bytes) {
    const uintptr_t first = reinterpret_cast<uintptr_t>(one), second = reinterpret_cast<uintptr_t>(other);
    return first < second + other_bytes && second < first + bytes;
}

// What is written of a submission must not be what is still to be read.
ds_status check_apart(const ds_episode_request* requests, uint64_t count, const uint64_t* ids,
                      const uint64_t* accepted) {
    const uint64_t request_bytes = count * sizeof *requests, id_bytes = count * sizeof *ids;
    const auto refuse = [](const char* argument, const char* other) {
        return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass memory of its own", "%s overlaps %s", argument, other);
    };
    if (overlap(accepted, sizeof *accepted, ids, id_bytes)) return refuse("accepted", "ids");
    if (overlap(accepted, sizeof *accepted, requests, request_bytes)) return refuse("accepted", "requests");
    return overlap(ids, id_bytes, requests, request_bytes) ? refuse("ids", "requests") : DS_STATUS_OK;
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
    return shared_levels.release(shared, "shared");
}

// ---- Requests ----

ds_status ds_episode_requests_check(ds_config config, const ds_episode_request* requests, uint64_t count) {
    const Ref<Config> found = find_config(config, DS_CONFIG_ROLLOUT, "config");
    if (!found) return last_status();
    if (!requests) return fail_null("requests");
    std::unique_ptr<RequestParts[]> parts;
    return check_requests(requests, count, rules_of(*found), &parts);
}

ds_status ds_engine_open_outputs(ds_engine engine, int32_t limited, ds_outputs* outputs) {
    if (!outputs) return fail_null("outputs");
    if (const ds_status status = check_range("limited", "pass 0 or 1", limited, 0, 1)) return status;
    const Ref<Engine> found = find_engine(engine);
    return found ? give(output_queues, found->requests().open_outputs(limited), "a queue of outputs", outputs) : last_status();
}

ds_status ds_engine_submit(ds_engine engine, ds_outputs outputs, const ds_episode_request* requests, uint64_t count,
                           int64_t timeout_ns, uint64_t* ids, uint64_t* accepted) {
    if (!accepted) return fail_null("accepted");
    if (const ds_status status = check_apart(requests, count, ids, accepted)) return status;
    *accepted = 0;
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    const Ref<OutputQueue> to = find_outputs(outputs);
    if (!to) return last_status();
    if (&to->table() != &found->table()) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "outputs", "pass one that it opened", "outputs are those of another engine");
    }
    if (count == 0) return DS_STATUS_OK;
    if (!requests) return fail_null("requests");
    if (!ids) return fail_null("ids");
    std::unique_ptr<RequestParts[]> parts;
    if (const ds_status status = check_requests(requests, count, found->requests().rules(), &parts)) return status;
    const bool cannot_wait = acting_for == &to->table() && timeout_ns != 0;
    const ds_status status = found->requests().submit(to, requests, parts.get(), count, cannot_wait ? 0 : timeout_ns, ids,
                                                      accepted);
    return status == DS_STATUS_PENDING && cannot_wait ? fail_waits_for_itself() : status;
}

ds_status ds_engine_cancel(ds_engine engine, uint64_t request_id, int32_t* found) {
    if (!found) return fail_null("found");
    const Ref<Engine> of_id = find_engine(engine);
    if (!of_id) return last_status();
    const uint32_t here = of_id->table().number, there = request_id::table_of(request_id);
    if (there != here) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "request_id", "cancel it in the engine that gave this id",
                    "request_id is %lu, an id of engine %u; this is engine %u", request_id, there, here);
    }
    *found = of_id->requests().cancel(request_id);
    return DS_STATUS_OK;
}

ds_status ds_engine_get_tags(ds_engine engine, uint64_t most, uint64_t* tags, uint64_t* count) {
    if (!count) return fail_null("count");
    if (most > 0 && !tags) return fail_null("tags");
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    *count = found->requests().read_tags(most, tags);
    return DS_STATUS_OK;
}

// ---- Outputs ----

ds_status ds_outputs_take(ds_outputs outputs, uint64_t least, uint64_t most, int64_t timeout_ns, ds_delivery* delivery,
                          ds_episode_output* taken_outputs, uint64_t* taken) {
    if (!taken) return fail_null("taken");
    *taken = 0;
    if (!delivery) return fail_null("delivery");
    if (!taken_outputs) return fail_null("taken_outputs");
    const int64_t few = static_cast<int64_t>(least), many = static_cast<int64_t>(most);
    if (const ds_status status = check_range("most", "", many, 1, DS_MAX_QUEUE_CAPACITY)) return status;
    if (const ds_status status = check_range("least", "", few, 1, many)) return status;
    const Ref<OutputQueue> found = find_outputs(outputs);
    if (!found) return last_status();
    const auto give = [](const Ref<OutputMemory>& memory, ds_memory* handle) { return give_memory(memory, handle); };
    const bool cannot_wait = acting_for == &found->table() && timeout_ns != 0;
    const ds_status status =
        found->take(few, many, cannot_wait ? 0 : timeout_ns, delivery, {taken_outputs, taken, give});
    if (*taken > 0) return DS_STATUS_OK;
    return status == DS_STATUS_PENDING && cannot_wait ? fail_waits_for_itself() : status;
}

ds_status ds_outputs_settle(ds_outputs outputs, ds_delivery* delivery, uint64_t* outstanding) {
    if (!delivery) return fail_null("delivery");
    if (!outstanding) return fail_null("outstanding");
    const Ref<OutputQueue> found = find_outputs(outputs);
    if (!found) return last_status();
    *outstanding = static_cast<uint64_t>(found->settle(delivery));
    return DS_STATUS_OK;
}

ds_status ds_outputs_release(ds_outputs outputs) {
    const Ref<OutputQueue> found = output_queues.remove(outputs, "outputs");
    if (!found) return last_status();
    found->abandon();
    return DS_STATUS_OK;
}

// ---- Policies ----

ds_status ds_engine_set_policy(ds_engine engine, int64_t index, int32_t kind, ds_policy policy, int64_t cause,
                               int32_t version, int32_t series) {
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    const bool is_failing = kind == DS_POLICY_FAILING;
    if (const ds_status status = check_ranges(
            {{"index", "", index, 0, found->policies().size() - 1},
             {"kind", "pass a ds_policy_kind", kind, DS_POLICY_CALLER, DS_POLICY_FAILING},
             {"cause", is_failing ? "pass a positive number" : "this kind needs none", cause, is_failing, is_failing ? INT64_MAX : 0},
             {"series", "", series, 0, DS_MAX_POLICY_SERIES - 1}})) {
        return status;
    }
    GivenPolicy given = {static_cast<ds_policy_kind>(kind), {}, cause, version, series};
    if (kind == DS_POLICY_NATIVE) {
        if (const ds_status status = find_policy(policy, *found, &given.native)) return status;
    } else if (const ds_status status = check_range("policy", "this kind needs none", static_cast<int64_t>(policy), 0, 0)) {
        return status;
    }
    found->policies().give(index, std::move(given));
    return DS_STATUS_OK;
}

ds_status ds_engine_replace_policy(ds_engine engine, int64_t index, int64_t by) {
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    const int64_t last = found->policies().size() - 1;
    if (const ds_status status = check_range("index", "", index, 0, last)) return status;
    if (const ds_status status = check_range("by", "pass the index of a policy", by, 0, last)) return status;
    found->requests().replace_policy(index, by);
    return DS_STATUS_OK;
}

ds_status ds_engine_take_rows(ds_engine engine, int64_t timeout_ns, ds_rows* rows) {
    if (const ds_status status = check_struct(rows, "rows")) return status;
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    Ref<AskedRows> asked;
    if (const ds_status status = found->desk().take(timeout_ns, &asked)) return status;
    ds_rows fields = asked->fields;
    if (const ds_status status = give_memory(asked->memory, &fields.data)) {
        found->desk().give_back(fields.id, nullptr, DS_CAUSE_MEMORY, &found->table().arrivals);
        return status;
    }
    *rows = fields;
    acting_for = &found->table();
    return DS_STATUS_OK;
}

ds_status ds_engine_return_rows(ds_engine engine, uint64_t id, const int32_t* actions, int64_t cause) {
    if (const ds_status status = check_range("cause", "0 if the rows have actions", cause, 0, INT64_MAX)) return status;
    if (cause == 0 && !actions) return fail_null("actions");
    const Ref<Engine> found = find_engine(engine);
    acting_for = nullptr;
    return found ? found->desk().give_back(id, actions, cause, &found->table().arrivals) : last_status();
}

// ---- Engines ----

ds_status ds_engine_create(ds_config config, const ds_level_rewards* rewards, ds_metrics metrics, ds_engine* engine) {
    if (!engine) return fail_null("engine");
    const Ref<Config> found = find_config(config, DS_CONFIG_ROLLOUT, "config");
    if (!found) return last_status();
    if (rewards) {
        if (const ds_status status = check_rewards(*rewards)) return status;
    }
    Ref<MetricsStore> store;
    if (const ds_status status = find_metrics(metrics, *found, &store)) return status;
    if (!has_fork_handlers()) return fail_memory("the fork handlers");
    Ref<Engine> made;
    if (const ds_status status = Engine::create(found, make_simulator, rewards, store, &made)) return status;
    const ds_status status = give(engines, made, "an engine", engine);
    if (status) {
        made->close();
        made->abandon();
    }
    return status;
}

ds_status ds_engine_get_config(ds_engine engine, ds_config* config) {
    if (!config) return fail_null("config");
    const Ref<Engine> found = find_engine(engine);
    return found ? give(configs, found->config(), "a configuration", config) : last_status();
}

ds_status ds_engine_get_metrics(ds_engine engine, ds_metrics* metrics) {
    if (!metrics) return fail_null("metrics");
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    if (found->metrics()) return give(metrics_stores, found->metrics(), "metrics", metrics);
    *metrics = 0;
    return DS_STATUS_OK;
}

ds_status ds_engine_get_info(ds_engine engine, ds_engine_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    found->read(info);
    return DS_STATUS_OK;
}

ds_status ds_engine_get_replica(ds_engine engine, int64_t number, ds_replica_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    if (const ds_status status = check_range("number", "", number, 0, found->num_replicas() - 1)) return status;
    return found->read_replica(number, info);
}

ds_status ds_engine_add_replica(ds_engine engine, ds_config simulator, int64_t* number) {
    if (!number) return fail_null("number");
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    const Ref<Config> config = find_config(simulator, DS_CONFIG_SIMULATOR, "simulator");
    if (!config) return last_status();
    const ds_simulator_config& of_engine = found->config()->part(DS_CONFIG_SIMULATOR)->simulator();
    if (const ds_status status = check_alike(config->simulator(), of_engine)) return status;
    return found->add_replica(config->simulator(), number);
}

ds_status ds_engine_end_replica(ds_engine engine, int64_t number) {
    const Ref<Engine> found = find_engine(engine);
    if (!found) return last_status();
    if (const ds_status status = check_range("number", "", number, 0, found->num_replicas() - 1)) return status;
    found->end_replica(number);
    return DS_STATUS_OK;
}

// Also in a forked child, where nothing is left to end.
ds_status ds_engine_close(ds_engine engine) {
    const Ref<Engine> found = engines.find(engine, "engine");
    if (!found) return last_status();
    found->close();
    return DS_STATUS_OK;
}

ds_status ds_engine_join(ds_engine engine, int64_t timeout_ns) {
    const Ref<Engine> found = find_engine(engine);
    return found ? found->join(timeout_ns) : last_status();
}

ds_status ds_engine_release(ds_engine engine) {
    const Ref<Engine> found = engines.remove(engine, "engine");
    if (!found) return last_status();
    if (found->table().is_copy()) return DS_STATUS_OK;
    found->close();
    found->abandon();
    return DS_STATUS_OK;
}
