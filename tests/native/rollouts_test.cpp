// What Python cannot observe of engines that play requests: the C API's arguments, replicas that fail, threads.
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include "api/save.h"
#include "check.h"
#include "draws.h"
#include "engines.h"
#include "processes.h"

using namespace doorstep;

namespace {

constexpr int64_t kMillisecond = 1'000'000;

// ---- Begin

void beginnings_are_checked() {
    const ds_simulator simulator = make_simulator(default_config(4));
    ds_level level;
    level.struct_size = sizeof level;
    CHECK_EQUAL(ds_level_default(&level), DS_STATUS_OK);
    ds_episode_start start = {};
    const auto is_refused = [&](const char* argument) {
        CHECK_EQUAL(ds_simulator_begin(simulator, &start, 1), DS_STATUS_INVALID_ARGUMENT);
        start = {};
        return last_error_names(argument);
    };
    start.level = &level;
    CHECK(is_refused("level"));
    start.world = 4;
    CHECK(is_refused("worlds"));
    start.seed = DS_MAX_SEED + 1;
    CHECK(is_refused("seed"));
    start.max_steps = -1;
    CHECK(is_refused("max_steps"));
    const ds_episode_start twice[2] = {};
    CHECK_EQUAL(ds_simulator_begin(simulator, twice, 2), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_begin(simulator, nullptr, 1), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_begin(simulator, twice, 0), DS_STATUS_INVALID_ARGUMENT);
    close_simulator(simulator);
}

// ---- Engines

std::vector<ds_episode_request> some_requests(int count) {
    std::vector<ds_episode_request> asked(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
        asked[static_cast<size_t>(i)].seed = 100 + i;
        asked[static_cast<size_t>(i)].max_steps = 1 + i * 7 % 50;
        asked[static_cast<size_t>(i)].priority = i % 3;
    }
    return asked;
}

// ---- Saved states

void states_are_checked() {
    const ds_simulator simulator = make_simulator(2, 1);
    std::vector<char> saved = save_of(simulator, {0});
    ds_saved_state state, made;
    const auto create = [&](size_t bytes) { return ds_saved_state_create(saved.data(), bytes, &made); };
    CHECK_EQUAL(ds_saved_state_create(saved.data(), saved.size(), &state), DS_STATUS_OK);
    CHECK_EQUAL(ds_saved_state_create(nullptr, 1, &made), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_saved_state_create(saved.data(), saved.size(), nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(create(saved.size() - 1), DS_STATUS_INVALID_STATE);
    ++saved.back();
    CHECK_EQUAL(create(saved.size()), DS_STATUS_INVALID_STATE);
    SaveHeader header;
    memcpy(&header, saved.data(), sizeof header);
    header.padding = 1;
    header.checksum = save_checksum(header, saved.data() + sizeof header);
    memcpy(saved.data(), &header, sizeof header);
    CHECK_EQUAL(create(saved.size()), DS_STATUS_INVALID_STATE);
    CHECK(last_message_has("padding is 1"));
    const PlayingEngine engine;
    uint64_t id, accepted;
    ds_episode_request one = {};
    one.state = state;
    one.continuation = -1;
    CHECK_EQUAL(ds_engine_submit(engine.handle, &one, 1, 0, &id, &accepted), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("continuation"));
    one.continuation = 0;
    one.level = state;
    CHECK_EQUAL(ds_engine_submit(engine.handle, &one, 1, 0, &id, &accepted), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("level"));
    CHECK_EQUAL(ds_saved_state_release(state), DS_STATUS_OK);
    close_simulator(simulator);
}

// ---- Replicas that fail, come and go

#ifndef DS_SANITIZED  // sanitizers need terabytes of address space
void set_memory_limit(rlim_t bytes) {
    const rlimit limit{bytes, RLIM_INFINITY};
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
}

// Leaves this process so much more address space, bytes.
void limit_memory(uint64_t bytes) {
    unsigned long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    set_memory_limit(pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + bytes);
}

// An engine that plays 4,000 long episodes, whose replica then fails: there is no memory for the rows that its callers
// are to be given.
void make_its_replica_fail(const PlayingEngine& engine) {
    CHECK_EQUAL(mallopt(M_MMAP_THRESHOLD, 1 << 17), 1);  // what is large comes from no memory that was freed
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 3, DS_POLICY_RANDOM, 0, 0), DS_STATUS_OK);
    std::vector<ds_episode_request> asked(4000);
    for (ds_episode_request& one : asked) one.policies[0] = one.policies[1] = 3, one.max_steps = 1;
    engine.play(asked);  // now queues have room for as many
    for (ds_episode_request& one : asked) one.max_steps = 0;
    engine.submit(asked);
    while (engine.info().waiting > 0) usleep(100);
    limit_memory(2 << 20);
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 3, DS_POLICY_CALLER, 0, 0), DS_STATUS_OK);
}

// Its episodes begin again.
void a_replica_that_fails_is_made_again() {
    const int status = run_in_child([] {
        const PlayingEngine engine({.num_worlds = 4000, .max_restarts = DS_MAX_RESTARTS});
        make_its_replica_fail(engine);
        while (engine.info().restarts == 0) usleep(100);
        set_memory_limit(RLIM_INFINITY);
        CHECK_EQUAL(ds_engine_set_policy(engine.handle, 3, DS_POLICY_IDLE, 0, 0), DS_STATUS_OK);
        engine.drain();
        const auto results = engine.take_all();
        CHECK_EQUAL(results.size(), 4000);
        for (const ds_episode_output& told : results) CHECK(told.reason == DS_EPISODE_TIME && told.length == 200);
        ds_replica_info info;
        info.struct_size = sizeof info;
        CHECK_EQUAL(ds_engine_get_replica(engine.handle, 0, &info), DS_STATUS_OUT_OF_MEMORY);
        CHECK(!info.has_ended && info.restarts > 0 && info.restarts == engine.info().restarts);
        CHECK_EQUAL(engine.info().num_playing, 1);
        return 0;
    });
    CHECK_EQUAL(status, 0);
}

void a_replica_that_fails_too_often_ends_and_says_why() {
    const int status = run_in_child([] {
        const PlayingEngine engine({.num_worlds = 4000, .max_restarts = 2});
        make_its_replica_fail(engine);
        CHECK_EQUAL(ds_engine_join(engine.handle, -1), DS_STATUS_OK);
        CHECK_EQUAL(engine.info().restarts, 2);
        ds_replica_info info;
        info.struct_size = sizeof info;
        CHECK_EQUAL(ds_engine_get_replica(engine.handle, 0, &info), DS_STATUS_OUT_OF_MEMORY);
        CHECK(last_message_has("rows that await actions"));
        CHECK_EQUAL(engine.info().unanswered, 0);
        CHECK_EQUAL(engine.info().outputs[0], 4000);
        ds_episode_output told;
        uint64_t taken;
        CHECK_EQUAL(ds_engine_take(engine.handle, 0, 1, 0, &told, &taken), DS_STATUS_OK);
        CHECK(told.reason == DS_EPISODE_FAILED && told.cause == DS_CAUSE_REPLICA);
        return 0;
    });
    CHECK_EQUAL(status, 0);
}
#else
void a_replica_that_fails_is_made_again() {}
void a_replica_that_fails_too_often_ends_and_says_why() {}
#endif

void engines_end_while_replicas_are_added() {
    for (int round = 0; round < 40; ++round) {
        const PlayingEngine engine({.controller = round % 2 ? DS_CONTROLLER_PULL : DS_CONTROLLER_ROUND_ROBIN});
        engine.submit(some_requests(20));
        std::thread adder([&] {
            int64_t number;
            ds_status status;
            const ConfigHandle config(default_config(1));
            while (!(status = ds_engine_add_replica(engine.handle, config, &number))) {}
            CHECK(status == DS_STATUS_CLOSED || status == DS_STATUS_INVALID_STATE);
        });
        usleep(static_cast<useconds_t>(round) * 50);
        engine.end();
        adder.join();
        CHECK_EQUAL(engine.take_all().size(), 20);
    }
}

void an_engine_has_so_many_replicas_in_its_time() {
    const PlayingEngine engine;
    const ConfigHandle config(default_config(1));
    int64_t number;
    for (int64_t i = 1; i < DS_MAX_REPLICAS; ++i) {
        CHECK_EQUAL(ds_engine_add_replica(engine.handle, config, &number), DS_STATUS_OK);
        CHECK_EQUAL(number, i);
        CHECK_EQUAL(ds_engine_end_replica(engine.handle, i), DS_STATUS_OK);
    }
    CHECK_EQUAL(ds_engine_add_replica(engine.handle, config, &number), DS_STATUS_INVALID_STATE);
    CHECK_EQUAL(engine.play(some_requests(10)).size(), 10);
}

// close(), end_replica(), set_policy() and release() while replicas play, and submissions all the time, some of which are
// cancelled or expire.
void threads_may_end_engines_at_any_moment() {
    Draws draw{3};
    for (int round = 0; round < 30; ++round) {
        {
            const PlayingEngine engine({.num_worlds = 20, .num_threads = 2, .num_replicas = 3,
                                        .scheduler = DS_SCHEDULER_PRIORITY,
                                        .controller = round % 2 ? DS_CONTROLLER_PULL : DS_CONTROLLER_ROUND_ROBIN});
            std::atomic<uint64_t> num_accepted{0};
            std::thread submitter([&] {
                auto asked = some_requests(50);
                std::vector<uint64_t> ids(50);
                uint64_t accepted;
                int32_t found;
                while (ds_engine_submit(engine.handle, asked.data(), 50, kMillisecond, ids.data(), &accepted) !=
                       DS_STATUS_CLOSED) {
                    num_accepted += accepted;
                    if (accepted > 0) CHECK_EQUAL(ds_engine_cancel(engine.handle, ids[0], &found), DS_STATUS_OK);
                    usleep(200);
                    asked[9].deadline_ns = monotonic_ns() + kMillisecond;
                }
                num_accepted += accepted;
            });
            std::thread ender([&] {
                usleep(static_cast<useconds_t>(draw.integer(0, 3000)));
                CHECK_EQUAL(ds_engine_end_replica(engine.handle, 1), DS_STATUS_OK);
                CHECK_EQUAL(ds_engine_set_policy(engine.handle, 3, DS_POLICY_IDLE, 0, 0), DS_STATUS_OK);
                usleep(static_cast<useconds_t>(draw.integer(0, 3000)));
                CHECK_EQUAL(ds_engine_close(engine.handle), DS_STATUS_OK);
            });
            ender.join();
            submitter.join();
            engine.end();
            std::set<uint64_t> answered;
            for (const ds_episode_output& told : engine.take_all()) CHECK(answered.insert(told.id).second);
            CHECK_EQUAL(answered.size(), num_accepted.load());
        }
        ds_engine abandoned;  // ends by itself
        const ds_config config = make_rollout_config({.num_worlds = 5, .num_replicas = 2});
        CHECK_EQUAL(ds_engine_create(config, nullptr, 0, &abandoned), DS_STATUS_OK);
        CHECK_EQUAL(ds_config_release(config), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_release(abandoned), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_join(abandoned, 0), DS_STATUS_CLOSED);
    }
    while (live(DS_LIVE_ROLLOUT) > 0) usleep(1000);
    CHECK_EQUAL(live(DS_LIVE_THREAD), 0);
}

// ---- Arguments

// What fields may be, and how long parts live, is tested from Python.
void configs_are_checked() {
    const ConfigHandle simulator(default_config(1)), scheduler(defaults_of<ds_scheduler_config>());
    const ConfigHandle controller(defaults_of<ds_controller_config>()), metrics(defaults_of<ds_metrics_config>());
    auto good = defaults_of<ds_rollout_config>();
    good.simulator = simulator, good.scheduler = scheduler, good.controller = controller, good.metrics = metrics;
    ds_config made = 77;
    CHECK_EQUAL(ds_rollout_config_create(nullptr, &made), DS_STATUS_INVALID_ARGUMENT);
    const std::pair<const char*, void (*)(ds_rollout_config&)> rows[] = {
        {"fields", [](ds_rollout_config& one) { one.struct_size = 8; }},
        {"scheduler", [](ds_rollout_config& one) { one.scheduler = one.controller; }},
        {"num_devices", [](ds_rollout_config& one) { one.num_devices = DS_MAX_REPLICAS + 1; }},
        {"device_kind", [](ds_rollout_config& one) { one.num_devices = 2, one.devices[1].kind = 9; }}};
    for (const auto& [argument, spoil] : rows) {
        ds_rollout_config bad = good;
        spoil(bad);
        CHECK_EQUAL(config_create(&bad, &made), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(argument) && made == 77);
    }
    good.scheduler = 1;
    CHECK_EQUAL(config_create(&good, &made), DS_STATUS_CLOSED);
    CHECK_EQUAL(ds_config_get_part(scheduler, DS_CONFIG_SIMULATOR, &made), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_rollout_config_get(scheduler, &good), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("config"));
    CHECK_EQUAL(ds_rollout_config_get(1, &good), DS_STATUS_CLOSED);
}

void requests_are_checked() {
    const PlayingEngine engine;
    const ds_config config = make_rollout_config({});
    const struct {
        const char* argument;
        void (*spoil)(ds_episode_request&);
    } cases[] = {
        {"seed", [](ds_episode_request& one) { one.seed = -1; }},
        {"sampling_seed", [](ds_episode_request& one) { one.sampling_seed = DS_MAX_SEED + 1; }},
        {"max_steps", [](ds_episode_request& one) { one.max_steps = -1; }},
        {"deadline_ns", [](ds_episode_request& one) { one.deadline_ns = -1; }},
        {"key", [](ds_episode_request& one) { one.key = __builtin_nan(""); }},
        {"sampling", [](ds_episode_request& one) { one.sampling.temperature = -1; }},
        {"sampling", [](ds_episode_request& one) { one.sampling.temperature = __builtin_nanf(""); }},
        {"sampling", [](ds_episode_request& one) { one.sampling = {1, 1.5f}; }},
        {"record", [](ds_episode_request& one) { one.record = 128; }},
        {"policies", [](ds_episode_request& one) { one.policies[1] = 4; }},
        {"level", [](ds_episode_request& one) { one.level = 1; }},
        {"replica", [](ds_episode_request& one) { one.replica = -2; }},
    };
    for (const auto& row : cases) {
        ds_episode_request both[2] = {};
        row.spoil(both[1]);
        uint64_t ids[2], accepted = 5;
        CHECK_EQUAL(ds_episode_requests_check(config, both, 2), DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(ds_episode_requests_check(config, both, 1), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_submit(engine.handle, both, 2, 0, ids, &accepted), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(row.argument) && last_message_has("(request 1)"));
        CHECK_EQUAL(accepted, 0);
    }
    CHECK_EQUAL(engine.info().unanswered, 0);
    CHECK_EQUAL(ds_config_release(config), DS_STATUS_OK);
}

void submissions_with_overlapping_arrays_are_refused() {
    const PlayingEngine engine;
    ds_episode_request asked[2] = {};
    uint64_t words[3] = {5, 6, 7};
    for (uint64_t* const accepted : {&words[0], &words[1]}) {
        CHECK_EQUAL(ds_engine_submit(engine.handle, asked, 2, 0, words, accepted), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names("accepted") && last_message_has("overlaps ids"));
    }
    uint64_t* const within = reinterpret_cast<uint64_t*>(&asked[1]);
    CHECK_EQUAL(ds_engine_submit(engine.handle, asked, 2, 0, words, within), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("accepted") && last_message_has("overlaps requests"));
    CHECK_EQUAL(ds_engine_submit(engine.handle, asked, 2, 0, within, words), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("ids") && last_message_has("overlaps requests"));
    CHECK(words[0] == 5 && words[1] == 6 && words[2] == 7);
    CHECK_EQUAL(ds_engine_submit(engine.handle, asked, 2, 0, words, &words[2]), DS_STATUS_OK);
    CHECK_EQUAL(words[2], 2);
}

void engines_are_checked() {
    ds_engine made;
    const ConfigHandle scheduler(defaults_of<ds_scheduler_config>());
    CHECK_EQUAL(ds_engine_create(scheduler, nullptr, 0, &made), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_create(1, nullptr, 0, &made), DS_STATUS_CLOSED);
    const PlayingEngine engine;
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 4, DS_POLICY_IDLE, 0, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 0, DS_POLICY_FAILING + 1, 0, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 0, DS_POLICY_NATIVE, 0, 0), DS_STATUS_CLOSED);
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 0, DS_POLICY_IDLE, 5, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 0, DS_POLICY_FAILING, 0, 0), DS_STATUS_INVALID_ARGUMENT);
    ds_rows rows = {};
    CHECK_EQUAL(ds_engine_take_rows(engine.handle, 0, &rows), DS_STATUS_INVALID_ARGUMENT);
    rows.struct_size = sizeof rows;
    CHECK_EQUAL(ds_engine_take_rows(engine.handle, 0, &rows), DS_STATUS_PENDING);
    const int32_t actions[4] = {};
    CHECK_EQUAL(ds_engine_return_rows(engine.handle, 1, actions, 0), DS_STATUS_CLOSED);
    CHECK_EQUAL(ds_engine_return_rows(engine.handle, 1, nullptr, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_return_rows(engine.handle, 1, nullptr, -1), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_join(engine.handle, 0), DS_STATUS_PENDING);
    for (const int64_t number : {-1, 1})
        CHECK_EQUAL(ds_engine_end_replica(engine.handle, number), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_replace_policy(engine.handle, 3, 4), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("by"));
    CHECK_EQUAL(ds_engine_replace_policy(engine.handle, -1, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("index"));
    // Rows that a caller has taken outlive the engine, which waits for no caller
    ds_episode_request asked = {};
    asked.policies[0] = 3;
    engine.submit({asked});
    rows = engine.take_rows();
    engine.end();
    CHECK(rows.num_rows == 1 && rows.observations[0] == rows.observations[0]);
    CHECK_EQUAL(ds_engine_return_rows(engine.handle, rows.id, actions, 0), DS_STATUS_CLOSED);
    CHECK_EQUAL(ds_memory_release(rows.data), DS_STATUS_OK);
    CHECK_EQUAL(ds_engine_take_rows(engine.handle, -1, &rows), DS_STATUS_CLOSED);
    const auto results = engine.take_all();
    CHECK(results.size() == 1 && results[0].cause == DS_CAUSE_CLOSED);
}

}  // namespace

int main() {
    // First: they depend on what the process has allocated before.
    RUN(a_replica_that_fails_is_made_again);
    RUN(a_replica_that_fails_too_often_ends_and_says_why);
    RUN(beginnings_are_checked);
    RUN(states_are_checked);
    RUN(engines_end_while_replicas_are_added);
    RUN(an_engine_has_so_many_replicas_in_its_time);
    RUN(threads_may_end_engines_at_any_moment);
    RUN(configs_are_checked);
    RUN(requests_are_checked);
    RUN(submissions_with_overlapping_arrays_are_refused);
    RUN(engines_are_checked);
    check_nothing_lives();
    for (const auto kind : {DS_LIVE_ROLLOUT, DS_LIVE_POLICY, DS_LIVE_CONFIG}) CHECK_EQUAL(live(kind), 0);
    return 0;
}
