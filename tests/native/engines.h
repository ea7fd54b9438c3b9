// Configurations and engines' queues for tests, through the C API.
#pragma once

#include <string.h>

#include <vector>

#include "simulators.h"

// The functions of configurations by their structs.
#define DS_CONFIG_OVERLOADS(name)                                                                                    \
    inline ds_status config_default(ds_##name##_config* fields) { return ds_##name##_config_default(fields); }       \
    inline ds_status config_create(const ds_##name##_config* fields, ds_config* config) {                            \
        return ds_##name##_config_create(fields, config);                                                            \
    }                                                                                                                \
    inline ds_status config_get(ds_config config, ds_##name##_config* fields) {                                      \
        return ds_##name##_config_get(config, fields);                                                               \
    }
DS_CONFIG_OVERLOADS(simulator)
DS_CONFIG_OVERLOADS(sampling)
DS_CONFIG_OVERLOADS(scheduler)
DS_CONFIG_OVERLOADS(controller)
DS_CONFIG_OVERLOADS(metrics)
DS_CONFIG_OVERLOADS(rollout)
#undef DS_CONFIG_OVERLOADS

template <class Struct>
Struct defaults_of() {
    Struct fields;
    memset(&fields, 0xff, sizeof fields);
    fields.struct_size = sizeof fields;
    CHECK_EQUAL(config_default(&fields), DS_STATUS_OK);
    return fields;
}

// Released at the end of a scope.
struct ConfigHandle {
    ds_config handle = 0;

    template <class Struct>
    explicit ConfigHandle(const Struct& fields) {
        CHECK_EQUAL(config_create(&fields, &handle), DS_STATUS_OK);
    }
    ConfigHandle(const ConfigHandle&) = delete;
    ConfigHandle& operator=(const ConfigHandle&) = delete;
    ~ConfigHandle() { CHECK_EQUAL(ds_config_release(handle), DS_STATUS_OK); }
    operator ds_config() const { return handle; }
};

// An engine's queues; the engine and its configurations are released at once.
struct Engine {
    ds_request_queue requests = 0;
    ds_output_queue outputs = 0;

    explicit Engine(int32_t scheduler = DS_SCHEDULER_FIXED_CHUNK, int64_t max_levels = 0, int64_t num_policies = 4,
                    ds_metrics metrics = 0) {
        ds_simulator_config simulator = default_config(1);
        simulator.max_levels = max_levels;
        auto order = defaults_of<ds_scheduler_config>();
        order.type = scheduler;
        const ConfigHandle parts[] = {ConfigHandle(simulator), ConfigHandle(order),
                                      ConfigHandle(defaults_of<ds_controller_config>()),
                                      ConfigHandle(defaults_of<ds_metrics_config>())};
        auto rules = defaults_of<ds_rollout_config>();
        rules.simulator = parts[0];
        rules.scheduler = parts[1];
        rules.controller = parts[2];
        rules.metrics = parts[3];
        rules.max_policies = num_policies;
        ds_engine engine;
        CHECK_EQUAL(ds_engine_create(ConfigHandle(rules), metrics, &engine), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_get_waiting_queue(engine, &requests), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_get_output_queue(engine, &outputs), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_release(engine), DS_STATUS_OK);
    }
    ~Engine() {
        CHECK_EQUAL(ds_request_queue_release(requests), DS_STATUS_OK);
        CHECK_EQUAL(ds_output_queue_release(outputs), DS_STATUS_OK);
    }

    ds_replica make_replica(int64_t num_worlds, int64_t num_threads = 1, int64_t max_levels = 0) const {
        ds_simulator_config config = default_config(num_worlds);
        config.num_threads = num_threads;
        config.max_levels = max_levels;
        ds_replica replica;
        CHECK_EQUAL(ds_replica_create(ConfigHandle(config), requests, outputs, 7, &replica),
                    DS_STATUS_OK);
        CHECK_EQUAL(ds_replica_set_policy(replica, 0, DS_POLICY_RANDOM, 0), DS_STATUS_OK);
        CHECK_EQUAL(ds_replica_set_policy(replica, 1, DS_POLICY_IDLE, 0), DS_STATUS_OK);
        return replica;
    }
    std::vector<uint64_t> submit(const std::vector<ds_episode_request>& asked) const {
        std::vector<uint64_t> ids(asked.size());
        uint64_t accepted;
        CHECK_EQUAL(ds_request_queue_submit(requests, asked.data(), asked.size(), 0, ids.data(), &accepted),
                    DS_STATUS_OK);
        return ids;
    }
    uint64_t num_unanswered() const {
        ds_request_queue_info info;
        info.struct_size = sizeof info;
        CHECK_EQUAL(ds_request_queue_get_info(requests, &info), DS_STATUS_OK);
        return static_cast<uint64_t>(info.unanswered);
    }
    std::vector<ds_episode_output> take_all() const {
        std::vector<ds_episode_output> all;
        ds_episode_output some[50];
        uint64_t taken;
        while (ds_output_queue_take(outputs, 50, 0, some, &taken) == DS_STATUS_OK) {
            all.insert(all.end(), some, some + taken);
        }
        return all;
    }
};
