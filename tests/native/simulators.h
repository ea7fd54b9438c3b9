// Simulators for tests, through the C API.
#pragma once

#include <string.h>

#include <vector>

#include "check.h"
#include "doorstep.h"

inline ds_simulator_config default_config(int64_t num_worlds) {
    auto config = sized<ds_simulator_config>();
    CHECK_EQUAL(ds_simulator_config_default(&config), DS_STATUS_OK);
    config.num_worlds = num_worlds;
    return config;
}

inline ds_simulator make_simulator(const ds_simulator_config& config) {
    ds_simulator simulator = 0;
    CHECK_EQUAL(ds_simulator_create(&config, &simulator), DS_STATUS_OK);
    CHECK(simulator != 0);
    return simulator;
}

inline ds_simulator make_simulator(int64_t num_worlds, int64_t num_threads) {
    ds_simulator_config config = default_config(num_worlds);
    config.num_threads = num_threads;
    return make_simulator(config);
}

inline void close_simulator(ds_simulator simulator) { CHECK_EQUAL(ds_simulator_close(simulator), DS_STATUS_OK); }

// Closes itself at the end, unless a test has closed it.
struct OpenSimulator {
    explicit OpenSimulator(const ds_simulator_config& config) : handle(make_simulator(config)) {}
    OpenSimulator(int64_t num_worlds, int64_t num_threads) : handle(make_simulator(num_worlds, num_threads)) {}
    OpenSimulator(const OpenSimulator&) = delete;
    ~OpenSimulator() { ds_simulator_close(handle); }
    operator ds_simulator() const { return handle; }

    const ds_simulator handle;
};

inline uint64_t hash_of(ds_simulator simulator) {
    uint64_t hash;
    CHECK_EQUAL(ds_simulator_hash(simulator, nullptr, 0, &hash), DS_STATUS_OK);
    return hash;
}

inline ds_tensor_info tensor_of(ds_simulator simulator, ds_tensor_id tensor) {
    auto info = sized<ds_tensor_info>();
    CHECK_EQUAL(ds_simulator_get_tensor(simulator, tensor, &info), DS_STATUS_OK);
    return info;
}

inline ds_simulator_info info_of(ds_simulator simulator) {
    auto info = sized<ds_simulator_info>();
    CHECK_EQUAL(ds_simulator_get_info(simulator, &info), DS_STATUS_OK);
    return info;
}

// Actions that differ between worlds, agents and steps, all in range.
inline void write_actions(ds_simulator simulator, int step) {
    const ds_tensor_info info = tensor_of(simulator, DS_TENSOR_actions);
    int32_t* actions = static_cast<int32_t*>(info.data);
    const int64_t rows = info.shape[0] * info.shape[1];
    for (int64_t row = 0; row < rows; ++row) {
        const uint64_t draw = (static_cast<uint64_t>(row) * 1000003u + static_cast<uint64_t>(step)) * 2654435761u;
        actions[row * 4 + 0] = static_cast<int32_t>(draw >> 8 & 3);
        actions[row * 4 + 1] = static_cast<int32_t>(draw >> 12 & 7);
        actions[row * 4 + 2] = static_cast<int32_t>((draw >> 16 & 15) % 5);
        actions[row * 4 + 3] = static_cast<int32_t>(draw >> 20 & 1);
    }
}

inline void step_once(ds_simulator simulator, int step) {
    write_actions(simulator, step);
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
}

// Without a list: of all worlds.
inline std::vector<char> save_of(ds_simulator simulator, const std::vector<int64_t>& worlds = {}) {
    uint64_t count = worlds.size(), bytes;
    if (worlds.empty()) count = static_cast<uint64_t>(tensor_of(simulator, DS_TENSOR_resets).shape[0]);
    CHECK_EQUAL(ds_simulator_save_size(simulator, count, &bytes), DS_STATUS_OK);
    std::vector<char> saved(bytes);
    const int64_t* const list = worlds.empty() ? nullptr : worlds.data();
    CHECK_EQUAL(ds_simulator_save(simulator, list, count, saved.data(), bytes), DS_STATUS_OK);
    return saved;
}

inline int64_t live(ds_live_kind kind) {
    int64_t count;
    CHECK_EQUAL(ds_live_count(kind, &count), DS_STATUS_OK);
    return count;
}

inline void check_nothing_lives() {
    for (const auto kind : {DS_LIVE_SIMULATOR, DS_LIVE_MEMORY, DS_LIVE_EVENT, DS_LIVE_EXPORT, DS_LIVE_THREAD})
        CHECK_EQUAL(live(kind), 0);
}
inline const bool checks_after_laws = (check_after_law = check_nothing_lives, true);

inline ds_error last_error() {
    auto error = sized<ds_error>();
    CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
    return error;
}

inline bool last_error_names(const char* argument) {
    const ds_error error = last_error();
    if (strcmp(error.argument, argument) != 0) fprintf(stderr, "%s: %s\n", error.argument, error.message);
    return strcmp(error.argument, argument) == 0;
}

inline bool last_message_has(const char* text) {
    const ds_error error = last_error();
    if (!strstr(error.message, text)) fprintf(stderr, "message: %s\n", error.message);
    return strstr(error.message, text) != nullptr;
}
