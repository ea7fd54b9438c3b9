// What Python cannot observe of engines that play requests: arguments of the C API, deliveries, failures, threads.
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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

std::vector<ds_episode_request> some_requests(int count) {
    std::vector<ds_episode_request> asked(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
        asked[static_cast<size_t>(i)].seed = 100 + i;
        asked[static_cast<size_t>(i)].max_steps = 1 + i * 7 % 50;
        asked[static_cast<size_t>(i)].priority = i % 3;
    }
    return asked;
}

// Requests of one step for a policy.
std::vector<ds_episode_request> short_requests(size_t count, int32_t policy = 0) {
    std::vector<ds_episode_request> asked(count);
    for (ds_episode_request& one : asked) one.max_steps = 1, one.policies[0] = one.policies[1] = policy;
    return asked;
}

// ---- Outputs

// What a caller did not receive is taken again, before all others, and no other caller gets it meanwhile.
void what_was_not_received_is_taken_again() {
    const PlayingEngine engine({.num_worlds = 2});
    const Outputs results(engine.handle);
    ds_episode_request asked = {};
    asked.max_steps = 4, asked.record = DS_RECORD_STREAM, asked.n = 3, asked.tag = 7;
    const uint64_t id = engine.submit({asked}, results.handle)[0];
    std::vector<ds_episode_output> received;
    for (uint64_t count = 0; received.size() < 15; ++count) {
        const auto some = results.take(4);
        CHECK(!some.empty());
        const uint64_t few = std::min(count % 5, some.size());
        received.insert(received.end(), some.begin(), some.begin() + static_cast<long>(few));
        for (uint64_t i = 0; i < some.size(); ++i) CHECK_EQUAL(ds_memory_release(some[i].data), DS_STATUS_OK);
        results.settle(few);
    }
    int32_t steps[3] = {};
    for (const ds_episode_output& told : received) {
        CHECK(told.id == id && told.tag == 7);
        CHECK_EQUAL(told.length, told.kind == DS_OUTPUT_STEP ? ++steps[told.continuation] : 4);
    }
    CHECK(results.take(4).empty());
    engine.submit(short_requests(3), results.handle);
    const auto first = results.take(2);
    const ds_delivery kept = results.delivery;
    results.delivery = {};  // another caller's
    const auto others = results.take(3);
    for (const ds_episode_output& told : others)
        for (const ds_episode_output& one : first) CHECK(told.id != one.id);
    CHECK_EQUAL(results.settle(others.size()), 3 - others.size() - first.size());  // these have been taken, too
    results.delivery = kept;
    CHECK_EQUAL(results.settle(0), 3 - others.size());
    CHECK_EQUAL(results.take(1)[0].id, first[0].id);
    CHECK_EQUAL(results.settle(1), 2 - others.size());
}

// Or for fewer: where no others come, or have room, or come in time.
void readers_wait_for_as_many_as_they_want() {
    const PlayingEngine engine({.output_capacity = 3});
    engine.submit(short_requests(7));
    const uint64_t some = engine.queue->take(7, 5).size();
    CHECK(some >= 5);
    CHECK_EQUAL(engine.queue->settle(some), 7 - some);
    CHECK_EQUAL(engine.take_all().size(), 7 - some);
    const Outputs limited(engine.handle, true);
    engine.submit(short_requests(9), limited.handle);
    CHECK(limited.take(9, 9).size() >= 3);
    ds_delivery delivery = {};
    ds_episode_output told[2];
    uint64_t taken;
    CHECK_EQUAL(ds_outputs_take(engine.outputs, 2, 1, 0, &delivery, told, &taken), DS_STATUS_INVALID_ARGUMENT);
    engine.submit({short_requests(1)[0], short_requests(1, 3)[0]});  // the rows of policy 3 are never taken
    CHECK_EQUAL(ds_outputs_take(engine.outputs, 2, 2, 10 * kMillisecond, &delivery, told, &taken), DS_STATUS_OK);
    CHECK_EQUAL(taken, 1);
    delivery.received = taken;
    CHECK_EQUAL(ds_outputs_take(engine.outputs, 2, 2, kMillisecond, &delivery, told, &taken), DS_STATUS_PENDING);
}

// Also where one of them takes what another waits for.
void every_reader_learns_that_nothing_comes() {
    const PlayingEngine engine({.num_worlds = 3});
    for (int round = 0; round < 20; ++round) {
        std::atomic<uint64_t> received{0};
        engine.submit(short_requests(100));
        const auto read = [&] {
            ds_delivery delivery = {};
            ds_episode_output told[70];
            uint64_t taken;
            do {
                CHECK_EQUAL(ds_outputs_take(engine.outputs, 60, 70, -1, &delivery, told, &taken), DS_STATUS_OK);
                received += delivery.received = taken;
            } while (taken > 0);
        };
        std::thread other(read);
        read();
        other.join();
        CHECK_EQUAL(received.load(), 100);
    }
}

void tags_are_those_of_requests_with_an_outstanding_result() {
    const PlayingEngine engine;
    auto asked = short_requests(5);
    for (uint64_t i = 0; i < 5; ++i) asked[i].tag = 10 + i, asked[i].n = 2;
    const auto tags = [&] {
        uint64_t some[20], count;  // one or more times each
        CHECK_EQUAL(ds_engine_get_tags(engine.handle, 20, some, &count), DS_STATUS_OK);
        return std::set<uint64_t>(some, some + count);
    };
    engine.submit(asked);
    for (int i = 0; i < 2; ++i) {
        CHECK(tags() == (std::set<uint64_t>{10, 11, 12, 13, 14}));
        CHECK_EQUAL(engine.queue->take(1)[0].tag, 10);
        CHECK_EQUAL(engine.queue->settle(1), 9 - i);
    }
    CHECK(tags() == (std::set<uint64_t>{11, 12, 13, 14}));
}

// A call that only its own thread could end is refused: while outputs leave no room, or in a thread that has rows.
void waits_that_would_not_end_are_refused() {
    const PlayingEngine engine({.num_worlds = 2, .queue_capacity = 4, .output_capacity = 3});
    const Outputs limited(engine.handle, true);
    uint64_t accepted;
    CHECK_EQUAL(engine.submit_some(short_requests(100), -1, &accepted, limited.handle), DS_STATUS_INVALID_STATE);
    CHECK(accepted >= 3 + 4 && accepted <= 4 + 4);
    uint64_t left = accepted;
    CHECK_EQUAL(engine.submit_some(short_requests(1), 0, &accepted, limited.handle), DS_STATUS_PENDING);
    std::thread([&] {  // who reads makes room
        limited.take(1);
        left = limited.settle(1);
    }).join();
    CHECK(engine.submit_some(short_requests(9), kMillisecond, &accepted, limited.handle) != DS_STATUS_INVALID_STATE);
    CHECK_EQUAL(limited.take_all().size(), left + accepted);

    engine.submit(short_requests(1, 3));
    const ds_rows rows = engine.take_rows();
    ds_delivery delivery = {};
    ds_episode_output told;
    uint64_t taken;
    CHECK_EQUAL(ds_outputs_take(engine.outputs, 1, 1, -1, &delivery, &told, &taken), DS_STATUS_INVALID_STATE);
    CHECK_EQUAL(ds_outputs_take(engine.outputs, 1, 1, 0, &delivery, &told, &taken), DS_STATUS_PENDING);
    const int32_t actions[8] = {};
    CHECK_EQUAL(ds_engine_return_rows(engine.handle, rows.id, actions, 0), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_release(rows.data), DS_STATUS_OK);
    CHECK_EQUAL(engine.take_all().size(), 1);
}

void outputs_that_nobody_takes_are_dropped() {
    const PlayingEngine engine({.num_worlds = 4});
    const int64_t before = live(DS_LIVE_MEMORY);
    ds_episode_request asked = {};
    asked.max_steps = 3, asked.record = DS_RECORD_STREAM | DS_RECORD_OBSERVATIONS, asked.n = 10;
    for (int i = 0; i < 20; ++i) {
        const Outputs dropped(engine.handle);
        engine.submit({asked}, dropped.handle);
        while (i % 2 && engine.info().unanswered > 0) usleep(100);
    }
    while (engine.info().unanswered > 0) usleep(100);
    CHECK_EQUAL(engine.play(short_requests(10)).size(), 10);
    CHECK_EQUAL(live(DS_LIVE_MEMORY), before);
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

// In a process of its own, an engine plays 4,000 long episodes, and its replica fails: there is no memory for the rows
// that its callers are to be given. Looks once it has been made again as often as told.
void with_a_failed_replica(int64_t max_restarts, int64_t restarts, void (*look)(const PlayingEngine&)) {
    const int status = run_in_child([=] {
        const PlayingEngine engine({.num_worlds = 4000, .max_restarts = max_restarts});
        CHECK_EQUAL(mallopt(M_MMAP_THRESHOLD, 1 << 17), 1);  // what is large comes from no memory that was freed
        set_policy(engine.handle, 3, DS_POLICY_RANDOM);
        auto asked = short_requests(4000, 3);
        engine.play(asked);  // now queues have room for as many
        for (ds_episode_request& one : asked) one.max_steps = 0;
        engine.submit(asked);
        while (engine.info().waiting > 0) usleep(100);
        limit_memory(2 << 20);
        set_policy(engine.handle, 3, DS_POLICY_CALLER);
        while (engine.info().restarts < restarts) usleep(100);
        look(engine);
        return 0;
    });
    CHECK_EQUAL(status, 0);
}

// Its episodes begin again.
void a_replica_that_fails_is_made_again() {
    with_a_failed_replica(DS_MAX_RESTARTS, 1, [](const PlayingEngine& engine) {
        set_memory_limit(RLIM_INFINITY);
        set_policy(engine.handle, 3, DS_POLICY_IDLE);
        const auto results = engine.take_all();
        CHECK_EQUAL(results.size(), 4000);
        for (const ds_episode_output& told : results) CHECK(told.reason == DS_EPISODE_TIME && told.length == 200);
        ds_replica_info info = sized<ds_replica_info>();
        CHECK_EQUAL(ds_engine_get_replica(engine.handle, 0, &info), DS_STATUS_OUT_OF_MEMORY);
        CHECK(!info.has_ended && info.restarts > 0 && info.restarts == engine.info().restarts);
        CHECK_EQUAL(engine.info().num_playing, 1);
    });
}

void a_replica_that_fails_too_often_ends_and_says_why() {
    with_a_failed_replica(2, 2, [](const PlayingEngine& engine) {
        CHECK_EQUAL(ds_engine_join(engine.handle, -1), DS_STATUS_OK);
        CHECK_EQUAL(engine.info().restarts, 2);
        CHECK_EQUAL(engine.info().unanswered, 0);
        ds_replica_info info = sized<ds_replica_info>();
        CHECK_EQUAL(ds_engine_get_replica(engine.handle, 0, &info), DS_STATUS_OUT_OF_MEMORY);
        CHECK(last_message_has("rows that await actions") || last_message_has("bytes are needed"));
        set_memory_limit(RLIM_INFINITY);
        const auto results = engine.take_all();
        CHECK_EQUAL(results.size(), 4000);
        for (const ds_episode_output& told : results)
            CHECK(told.reason == DS_EPISODE_FAILED && told.cause == DS_CAUSE_REPLICA);
    });
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

// close(), end_replica(), set_policy() and release() while replicas play, and submissions all the time, of which some
// are cancelled or expire.
void threads_may_end_engines_at_any_moment() {
    Draws draw{3};
    for (int round = 0; round < 30; ++round) {
        {
            const PlayingEngine engine({.num_worlds = 20, .num_threads = 2, .num_replicas = 3,
                                        .scheduler = DS_SCHEDULER_PRIORITY,
                                        .controller = round % 2 ? DS_CONTROLLER_PULL : DS_CONTROLLER_ROUND_ROBIN});
            uint64_t num_accepted = 0;
            std::thread submitter([&] {
                auto asked = some_requests(50);
                std::vector<uint64_t> ids;
                uint64_t accepted;
                int32_t found;
                ds_status status;
                do {
                    status = engine.submit_some(asked, kMillisecond, &accepted, 0, &ids);
                    num_accepted += accepted;
                    if (accepted > 0) CHECK_EQUAL(ds_engine_cancel(engine.handle, ids[0], &found), DS_STATUS_OK);
                    usleep(200);
                    asked[9].deadline_ns = monotonic_ns() + kMillisecond;
                } while (status != DS_STATUS_CLOSED);
            });
            usleep(static_cast<useconds_t>(draw.integer(0, 3000)));
            CHECK_EQUAL(ds_engine_end_replica(engine.handle, 1), DS_STATUS_OK);
            set_policy(engine.handle, 3, DS_POLICY_IDLE);
            usleep(static_cast<useconds_t>(draw.integer(0, 3000)));
            CHECK_EQUAL(ds_engine_close(engine.handle), DS_STATUS_OK);
            submitter.join();
            std::set<uint64_t> answered;
            for (const ds_episode_output& told : engine.take_all()) CHECK(answered.insert(told.id).second);
            CHECK_EQUAL(answered.size(), num_accepted);
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

void beginnings_are_checked() {
    const ds_simulator simulator = make_simulator(default_config(4));
    ds_level level = sized<ds_level>();
    CHECK_EQUAL(ds_level_default(&level), DS_STATUS_OK);
    const ds_episode_start good = {};
    ds_episode_start rows[4] = {good, good, good, good};
    const char* const names[] = {"level", "worlds", "seed", "max_steps"};
    rows[0].level = &level, rows[1].world = 4, rows[2].seed = DS_MAX_SEED + 1, rows[3].max_steps = -1;
    for (int i = 0; i < 4; ++i) {
        CHECK_EQUAL(ds_simulator_begin(simulator, &rows[i], 1), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(names[i]));
    }
    const ds_episode_start twice[2] = {};
    CHECK_EQUAL(ds_simulator_begin(simulator, twice, 2), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_begin(simulator, nullptr, 1), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_begin(simulator, twice, 0), DS_STATUS_INVALID_ARGUMENT);
    close_simulator(simulator);
}

void states_are_checked() {
    const ds_simulator simulator = make_simulator(2, 1);
    std::vector<char> saved = save_of(simulator, {0});
    ds_saved_state made;
    const auto create = [&](size_t bytes) { return ds_saved_state_create(saved.data(), bytes, &made); };
    CHECK_EQUAL(create(saved.size()), DS_STATUS_OK);
    CHECK_EQUAL(ds_saved_state_release(made), DS_STATUS_OK);
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
    close_simulator(simulator);
}

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
    const std::pair<const char*, void (*)(ds_episode_request&)> rows[] = {
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
        {"n", [](ds_episode_request& one) { one.n = -1; }},
        {"n", [](ds_episode_request& one) { one.n = DS_MAX_QUEUE_CAPACITY + 1; }}};
    for (const auto& [argument, spoil] : rows) {
        std::vector<ds_episode_request> both(2);
        spoil(both[1]);
        uint64_t accepted = 5;
        CHECK_EQUAL(ds_episode_requests_check(config, both.data(), 2), DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(ds_episode_requests_check(config, both.data(), 1), DS_STATUS_OK);
        CHECK_EQUAL(engine.submit_some(both, 0, &accepted), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(argument) && last_message_has("(request 1)"));
        CHECK_EQUAL(accepted, 0);
    }
    CHECK_EQUAL(engine.info().unanswered, 0);
    CHECK_EQUAL(ds_config_release(config), DS_STATUS_OK);
}

void submissions_with_overlapping_arrays_are_refused() {
    const PlayingEngine engine;
    ds_episode_request asked[2] = {};
    uint64_t words[3] = {5, 6, 7};
    uint64_t* const within = reinterpret_cast<uint64_t*>(&asked[1]);
    const auto submit = [&](uint64_t* ids, uint64_t* accepted) {
        return ds_engine_submit(engine.handle, engine.outputs, asked, 2, 0, ids, accepted);
    };
    const struct {
        uint64_t *ids, *accepted;
        const char *argument, *says;
    } rows[] = {{words, words, "accepted", "overlaps ids"}, {words, words + 1, "accepted", "overlaps ids"},
                {words, within, "accepted", "overlaps requests"}, {within, words, "ids", "overlaps requests"}};
    for (const auto& row : rows) {
        CHECK_EQUAL(submit(row.ids, row.accepted), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(row.argument) && last_message_has(row.says));
    }
    CHECK(words[0] == 5 && words[1] == 6 && words[2] == 7);
    CHECK_EQUAL(submit(words, &words[2]), DS_STATUS_OK);
    CHECK_EQUAL(words[2], 2);
}

void engines_are_checked() {
    ds_engine made;
    const ConfigHandle scheduler(defaults_of<ds_scheduler_config>());
    CHECK_EQUAL(ds_engine_create(scheduler, nullptr, 0, &made), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_create(1, nullptr, 0, &made), DS_STATUS_CLOSED);
    const PlayingEngine engine, other;
    uint64_t accepted;
    CHECK_EQUAL(engine.submit_some({{}}, 0, &accepted, other.outputs), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("outputs"));
    CHECK_EQUAL(engine.submit_some({{}}, 0, &accepted, 1), DS_STATUS_CLOSED);
    const auto set = [&](int64_t index, int32_t kind, ds_policy policy, int64_t cause) {
        return ds_engine_set_policy(engine.handle, index, kind, policy, cause, 0, 0);
    };
    CHECK_EQUAL(set(4, DS_POLICY_IDLE, 0, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(set(0, DS_POLICY_FAILING + 1, 0, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(set(0, DS_POLICY_NATIVE, 0, 0), DS_STATUS_CLOSED);
    CHECK_EQUAL(set(0, DS_POLICY_IDLE, 5, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(set(0, DS_POLICY_IDLE, 0, 5), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(set(0, DS_POLICY_FAILING, 0, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_replace_policy(engine.handle, 3, 4), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("by"));
    CHECK_EQUAL(ds_engine_replace_policy(engine.handle, -1, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("index"));
    ds_rows rows = {};
    CHECK_EQUAL(ds_engine_take_rows(engine.handle, 0, &rows), DS_STATUS_INVALID_ARGUMENT);
    rows.struct_size = sizeof rows;
    CHECK_EQUAL(ds_engine_take_rows(engine.handle, 0, &rows), DS_STATUS_PENDING);
    const int32_t actions[8] = {};
    CHECK_EQUAL(ds_engine_return_rows(engine.handle, 1, actions, 0), DS_STATUS_CLOSED);
    CHECK_EQUAL(ds_engine_return_rows(engine.handle, 1, nullptr, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_return_rows(engine.handle, 1, nullptr, -1), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_join(engine.handle, 0), DS_STATUS_PENDING);
    for (const int64_t number : {-1, 1})
        CHECK_EQUAL(ds_engine_end_replica(engine.handle, number), DS_STATUS_INVALID_ARGUMENT);
    // Rows that a caller has taken outlive the engine, which waits for no caller
    engine.submit(short_requests(1, 3));
    rows = engine.take_rows();
    engine.end();
    CHECK(rows.num_rows == 2 && rows.observations[0] == rows.observations[0]);
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
    RUN(what_was_not_received_is_taken_again);
    RUN(readers_wait_for_as_many_as_they_want);
    RUN(every_reader_learns_that_nothing_comes);
    RUN(tags_are_those_of_requests_with_an_outstanding_result);
    RUN(waits_that_would_not_end_are_refused);
    RUN(outputs_that_nobody_takes_are_dropped);
    RUN(engines_end_while_replicas_are_added);
    RUN(an_engine_has_so_many_replicas_in_its_time);
    RUN(threads_may_end_engines_at_any_moment);
    RUN(beginnings_are_checked);
    RUN(states_are_checked);
    RUN(configs_are_checked);
    RUN(requests_are_checked);
    RUN(submissions_with_overlapping_arrays_are_refused);
    RUN(engines_are_checked);
    check_nothing_lives();
    for (const auto kind : {DS_LIVE_ROLLOUT, DS_LIVE_POLICY, DS_LIVE_CONFIG}) CHECK_EQUAL(live(kind), 0);
    return 0;
}
