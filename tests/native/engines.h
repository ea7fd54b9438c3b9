// Configurations and engines for tests, through the C API.
#pragma once

#include <string.h>

#include <memory>
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
    int64_t queue_capacity = 1048576, output_capacity = 1048576;
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
    rules.queue_capacity = options.queue_capacity;
    rules.output_capacity = options.output_capacity;
    rules.num_devices = static_cast<int32_t>(options.num_replicas);
    for (int32_t i = 0; i < rules.num_devices; ++i) rules.devices[i].kind = DS_DEVICE_CPU;
    ds_config config;
    CHECK_EQUAL(config_create(&rules, &config), DS_STATUS_OK);
    return config;
}

// A queue of an engine's outputs, and what has been taken from it.
struct Outputs {
    ds_outputs handle;
    mutable ds_delivery delivery = {};

    explicit Outputs(ds_engine engine, bool is_limited = false) {
        CHECK_EQUAL(ds_engine_open_outputs(engine, is_limited, &handle), DS_STATUS_OK);
    }
    Outputs(const Outputs&) = delete;
    Outputs& operator=(const Outputs&) = delete;
    ~Outputs() { CHECK_EQUAL(ds_outputs_release(handle), DS_STATUS_OK); }

    // Some, none of which is received yet.
    std::vector<ds_episode_output> take(uint64_t most, uint64_t least = 1) const {
        std::vector<ds_episode_output> some(most);
        uint64_t taken;
        const ds_status status = ds_outputs_take(handle, least, most, -1, &delivery, some.data(), &taken);
        CHECK(status == DS_STATUS_OK || status == DS_STATUS_CLOSED);
        some.resize(status == DS_STATUS_OK ? taken : 0);
        return some;
    }
    // Receives so many of those that were taken. Returns how many are outstanding.
    uint64_t settle(uint64_t received) const {
        delivery.received = received;
        uint64_t outstanding;
        CHECK_EQUAL(ds_outputs_settle(handle, &delivery, &outstanding), DS_STATUS_OK);
        return outstanding;
    }
    // All that come until none is outstanding.
    std::vector<ds_episode_output> take_all() const {
        std::vector<ds_episode_output> all;
        for (;;) {
            const auto some = take(50);
            if (some.empty()) return all;
            all.insert(all.end(), some.begin(), some.end());
            delivery.received = some.size();
        }
    }
};

inline void set_policy(ds_engine engine, int64_t index, int32_t kind) {
    CHECK_EQUAL(ds_engine_set_policy(engine, index, kind, 0, 0, 0, 0), DS_STATUS_OK);
}

// An engine whose first policies are "random" and "idle", with outputs of its own; at the end of a scope it is closed
// and awaited.
struct PlayingEngine {
    ds_engine handle;
    std::unique_ptr<const Outputs> queue;
    ds_outputs outputs = 0;

    explicit PlayingEngine(const EngineOptions& options = {}) {
        const ds_config config = make_rollout_config(options);
        CHECK_EQUAL(ds_engine_create(config, nullptr, options.metrics, &handle), DS_STATUS_OK);
        CHECK_EQUAL(ds_config_release(config), DS_STATUS_OK);
        queue.reset(new Outputs(handle));
        outputs = queue->handle;
        set_policy(handle, 0, DS_POLICY_RANDOM);
        if (options.num_policies > 1) set_policy(handle, 1, DS_POLICY_IDLE);
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
    // to: 0: its own outputs.
    ds_status submit_some(const std::vector<ds_episode_request>& asked, int64_t timeout_ns, uint64_t* accepted,
                          ds_outputs to = 0, std::vector<uint64_t>* ids = nullptr) const {
        std::vector<uint64_t> made(asked.size());
        const ds_status status = ds_engine_submit(handle, to ? to : outputs, asked.data(), asked.size(), timeout_ns,
                                                  made.data(), accepted);
        if (ids) *ids = made;
        return status;
    }
    std::vector<uint64_t> submit(const std::vector<ds_episode_request>& asked, ds_outputs to = 0) const {
        std::vector<uint64_t> ids;
        uint64_t accepted;
        CHECK_EQUAL(submit_some(asked, -1, &accepted, to, &ids), DS_STATUS_OK);
        return ids;
    }
    ds_engine_info info() const {
        ds_engine_info info = sized<ds_engine_info>();
        CHECK_EQUAL(ds_engine_get_info(handle, &info), DS_STATUS_OK);
        return info;
    }
    std::vector<ds_episode_output> take_all() const { return queue->take_all(); }
    std::vector<ds_episode_output> play(const std::vector<ds_episode_request>& asked) const {
        submit(asked);
        return take_all();
    }
    // Waits for rows.
    ds_rows take_rows() const {
        ds_rows rows = sized<ds_rows>();
        CHECK_EQUAL(ds_engine_take_rows(handle, -1, &rows), DS_STATUS_OK);
        return rows;
    }
};
