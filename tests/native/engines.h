// Configurations and engines' queues for tests, through the C API.
#pragma once

#include <string.h>

#include <vector>

#include "simulators.h"

template <class Struct>
Struct defaults_of(int32_t kind) {
    Struct fields;
    memset(&fields, 0xff, sizeof fields);
    fields.struct_size = sizeof fields;
    CHECK_EQUAL(ds_config_default(kind, &fields), DS_STATUS_OK);
    return fields;
}

// Released at the end of a scope.
struct ConfigHandle {
    ds_config handle = 0;

    template <class Struct>
    ConfigHandle(int32_t kind, const Struct& fields) {
        CHECK_EQUAL(ds_config_create(kind, &fields, &handle), DS_STATUS_OK);
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
        auto order = defaults_of<ds_scheduler_config>(DS_CONFIG_SCHEDULER);
        order.type = scheduler;
        const ConfigHandle parts[] = {{DS_CONFIG_SIMULATOR, simulator},
                                      {DS_CONFIG_SCHEDULER, order},
                                      {DS_CONFIG_CONTROLLER, defaults_of<ds_controller_config>(DS_CONFIG_CONTROLLER)},
                                      {DS_CONFIG_METRICS, defaults_of<ds_metrics_config>(DS_CONFIG_METRICS)}};
        auto rules = defaults_of<ds_rollout_config>(DS_CONFIG_ROLLOUT);
        rules.simulator = parts[0];
        rules.scheduler = parts[1];
        rules.controller = parts[2];
        rules.metrics = parts[3];
        rules.max_policies = num_policies;
        ds_engine engine;
        CHECK_EQUAL(ds_engine_create(ConfigHandle(DS_CONFIG_ROLLOUT, rules), metrics, &engine), DS_STATUS_OK);
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
        CHECK_EQUAL(ds_replica_create(ConfigHandle(DS_CONFIG_SIMULATOR, config), requests, outputs, 7, &replica),
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
