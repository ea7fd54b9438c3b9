// Configurations and engines for tests, through the C API.
#pragma once

#include <string.h>

#include <vector>

#include "simulators.h"

// The functions of configurations by their structs.
#define DS_CONFIG_OVERLOADS(name)                                                                                    \
    inline ds_status config_default(ds_##name##_config* fields) { return ds_##name##_config_default(fields); }       \
    inline ds_status config_create(const ds_##name##_config* fields, ds_config* config) {                            \
        return ds_##name##_config_create(fields, config);                                                            \
    }
DS_CONFIG_OVERLOADS(simulator)
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

struct EngineOptions {
    int64_t num_worlds = 1, num_threads = 1, num_replicas = 1;
    int32_t scheduler = DS_SCHEDULER_FIXED_CHUNK, controller = DS_CONTROLLER_PULL;
    int64_t max_levels = 0, num_policies = 4, max_restarts = 0;
    ds_metrics metrics = 0;
};

inline ds_config make_rollout_config(const EngineOptions& options) {
    ds_simulator_config simulator = default_config(options.num_worlds);
    simulator.num_threads = options.num_threads;
    simulator.max_levels = options.max_levels;
    auto order = defaults_of<ds_scheduler_config>();
    order.type = options.scheduler;
    auto controller = defaults_of<ds_controller_config>();
    controller.type = options.controller;
    const ConfigHandle parts[] = {ConfigHandle(simulator), ConfigHandle(order), ConfigHandle(controller),
                                  ConfigHandle(defaults_of<ds_metrics_config>())};
    auto rules = defaults_of<ds_rollout_config>();
    rules.simulator = parts[0];
    rules.scheduler = parts[1];
    rules.controller = parts[2];
    rules.metrics = parts[3];
    rules.max_policies = options.num_policies;
    rules.max_restarts = options.max_restarts;
    rules.num_devices = static_cast<int32_t>(options.num_replicas);
    for (int32_t i = 0; i < rules.num_devices; ++i) rules.devices[i].kind = DS_DEVICE_CPU;
    ds_config config;
    CHECK_EQUAL(config_create(&rules, &config), DS_STATUS_OK);
    return config;
}

// An engine whose first policies are "random" and "idle"; at the end of a scope it is closed and awaited.
struct PlayingEngine {
    ds_engine handle;

    explicit PlayingEngine(const EngineOptions& options = {}) {
        const ds_config config = make_rollout_config(options);
        CHECK_EQUAL(ds_engine_create(config, nullptr, options.metrics, &handle), DS_STATUS_OK);
        CHECK_EQUAL(ds_config_release(config), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_set_policy(handle, 0, DS_POLICY_RANDOM, 0, 0), DS_STATUS_OK);
        if (options.num_policies > 1) CHECK_EQUAL(ds_engine_set_policy(handle, 1, DS_POLICY_IDLE, 0, 0), DS_STATUS_OK);
    }
    PlayingEngine(const PlayingEngine&) = delete;
    PlayingEngine& operator=(const PlayingEngine&) = delete;
    ~PlayingEngine() {
        end();
        CHECK_EQUAL(ds_engine_release(handle), DS_STATUS_OK);
    }

    void end() const {
        CHECK_EQUAL(ds_engine_close(handle), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_join(handle, -1), DS_STATUS_OK);
    }
    void drain() const { CHECK_EQUAL(ds_engine_drain(handle, -1), DS_STATUS_OK); }
    std::vector<uint64_t> submit(const std::vector<ds_episode_request>& asked) const {
        std::vector<uint64_t> ids(asked.size());
        uint64_t accepted;
        CHECK_EQUAL(ds_engine_submit(handle, asked.data(), asked.size(), -1, ids.data(), &accepted), DS_STATUS_OK);
        return ids;
    }
    ds_engine_info info() const {
        ds_engine_info info;
        info.struct_size = sizeof info;
        CHECK_EQUAL(ds_engine_get_info(handle, &info), DS_STATUS_OK);
        return info;
    }
    std::vector<ds_episode_output> take_all() const {
        std::vector<ds_episode_output> all;
        ds_episode_output some[50];
        uint64_t taken;
        while (ds_engine_take(handle, 0, 50, 0, some, &taken) == DS_STATUS_OK) {
            all.insert(all.end(), some, some + taken);
        }
        return all;
    }
    std::vector<ds_episode_output> play(const std::vector<ds_episode_request>& asked) const {
        submit(asked);
        drain();
        return take_all();
    }
    // Waits for rows.
    ds_rows take_rows() const {
        ds_rows rows;
        rows.struct_size = sizeof rows;
        CHECK_EQUAL(ds_engine_take_rows(handle, -1, &rows), DS_STATUS_OK);
        return rows;
    }
};
