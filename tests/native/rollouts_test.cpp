// Episodes that begin with a seed and a level of their own, and replicas that play requests, through the C API.
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>
#include <vector>

#include "api/call.h"
#include "check.h"
#include "draws.h"
#include "engines.h"
#include "math/threefry.h"

using namespace doorstep;

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1000 * kMillisecond;

uint64_t world_hash(ds_simulator simulator, int64_t world) {
    uint64_t hash;
    CHECK_EQUAL(ds_simulator_hash(simulator, &world, 1, &hash), DS_STATUS_OK);
    return hash;
}

template <class Value>
Value* data_of(ds_simulator simulator, ds_tensor_id tensor) {
    return static_cast<Value*>(tensor_of(simulator, tensor).data);
}

ds_level one_room() {
    ds_level level;
    level.struct_size = sizeof level;
    CHECK_EQUAL(ds_level_default(&level), DS_STATUS_OK);
    level.min_episode_length = 7;
    level.max_episode_length = 60;
    return level;
}

// ---- Begin

// A simulator with one world, whose only level is `level`, from its creation on.
ds_simulator make_lone_world(ds_simulator_config config, const ds_episode_start& start) {
    config.num_worlds = 1;
    config.num_threads = 1;
    config.seed = start.seed;
    if (start.max_steps > 0) config.episode_length = start.max_steps;
    const ds_simulator made = make_simulator(config);
    if (!start.level) return made;
    CHECK_EQUAL(ds_simulator_set_levels(made, start.level, 1, nullptr), DS_STATUS_OK);
    const Ref<Simulator> found = simulators.find(made, "simulator");
    found->model().create(found->simulation(), 0, 1, static_cast<uint32_t>(start.seed), 0);
    return made;
}

// The given episodes, begun among others, and the same as first episodes of simulators, step by step.
void expect_first_episodes(int64_t num_agents, int64_t max_levels, const ds_level* level) {
    constexpr int64_t kWorlds = 37;
    ds_simulator_config config = default_config(kWorlds);
    config.num_agents = num_agents;
    config.max_levels = max_levels;
    config.auto_reset = 0;
    config.seed = 5;
    config.num_threads = 2;
    const ds_simulator batch = make_simulator(config);
    for (int step = 0; step < 13; ++step) step_once(batch, step);
    std::vector<ds_episode_start> starts;
    for (const int64_t world : {3, 20, 36, 0}) {
        ds_episode_start start = {};
        start.world = world;
        start.seed = 1000 * world + 4294967295 * (world == 20);
        if (start.seed > DS_MAX_SEED) start.seed = DS_MAX_SEED;
        start.max_steps = world == 0 ? 0 : level ? 5 + world : 20 + world;
        start.level = level;
        starts.push_back(start);
    }
    const uint64_t untouched = world_hash(batch, 21);
    CHECK_EQUAL(ds_simulator_begin(batch, starts.data(), starts.size()), DS_STATUS_OK);
    CHECK_EQUAL(world_hash(batch, 21), untouched);

    std::vector<ds_simulator> lone;
    for (const ds_episode_start& start : starts) lone.push_back(make_lone_world(config, start));
    const int64_t row_bytes = num_agents * 16;
    for (int step = 0; step < 70; ++step) {
        write_actions(batch, step);
        for (size_t i = 0; i < starts.size(); ++i) {
            const int64_t world = starts[i].world;
            // A limit of the level is the smaller one of both
            if (!level) CHECK_EQUAL(world_hash(batch, world), world_hash(lone[i], 0));
            memcpy(data_of<char>(lone[i], DS_TENSOR_actions), data_of<char>(batch, DS_TENSOR_actions) + world * row_bytes,
                   static_cast<size_t>(row_bytes));
            CHECK_EQUAL(ds_simulator_step(lone[i]), DS_STATUS_OK);
        }
        CHECK_EQUAL(ds_simulator_step(batch), DS_STATUS_OK);
        for (size_t i = 0; i < starts.size(); ++i) {
            const int64_t row = starts[i].world * num_agents;
            CHECK_EQUAL(data_of<uint8_t>(batch, DS_TENSOR_terminations)[row],
                        data_of<uint8_t>(lone[i], DS_TENSOR_terminations)[0]);
            if (level && starts[i].max_steps) continue;
            CHECK_EQUAL(data_of<uint8_t>(batch, DS_TENSOR_truncations)[row],
                        data_of<uint8_t>(lone[i], DS_TENSOR_truncations)[0]);
            CHECK_EQUAL(world_hash(batch, starts[i].world), world_hash(lone[i], 0));
        }
    }
    for (const ds_simulator simulator : lone) close_simulator(simulator);
    close_simulator(batch);
}

void episodes_begin_as_those_of_new_simulators() {
    for (const int64_t num_agents : {1, 2, 8}) expect_first_episodes(num_agents, 0, nullptr);
    expect_first_episodes(2, 1, nullptr);
}

void episodes_begin_with_a_level_of_their_own() {
    const ds_level level = one_room();
    expect_first_episodes(2, 3, &level);
}

void beginnings_are_checked() {
    ds_simulator_config config = default_config(4);
    const ds_simulator simulator = make_simulator(config);
    const ds_level level = one_room();
    ds_episode_start start = {};
    CHECK_EQUAL(ds_simulator_begin(simulator, nullptr, 1), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_begin(simulator, &start, 0), DS_STATUS_INVALID_ARGUMENT);
    start.level = &level;
    CHECK_EQUAL(ds_simulator_begin(simulator, &start, 1), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("level"));
    start.level = nullptr;
    start.world = 4;
    CHECK_EQUAL(ds_simulator_begin(simulator, &start, 1), DS_STATUS_INVALID_ARGUMENT);
    start.world = 0;
    start.seed = DS_MAX_SEED + 1;
    CHECK_EQUAL(ds_simulator_begin(simulator, &start, 1), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("seed"));
    start.seed = 0;
    start.max_steps = -1;
    CHECK_EQUAL(ds_simulator_begin(simulator, &start, 1), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("max_steps"));
    const ds_episode_start twice[2] = {};
    CHECK_EQUAL(ds_simulator_begin(simulator, twice, 2), DS_STATUS_INVALID_ARGUMENT);
    close_simulator(simulator);
}

// ---- Replicas

void release_data(const std::vector<ds_episode_output>& outputs) {
    for (const ds_episode_output& output : outputs) {
        if (output.data) CHECK_EQUAL(ds_memory_release(output.data), DS_STATUS_OK);
    }
}

int32_t run(ds_replica replica, int64_t timeout_ns, ds_replica_work* work) {
    work->struct_size = sizeof *work;
    CHECK_EQUAL(ds_replica_run(replica, timeout_ns, work), DS_STATUS_OK);
    return work->need;
}

void play_all(const Engine& engine, ds_replica replica) {
    ds_replica_work work;
    while (engine.num_unanswered() > 0) CHECK_EQUAL(run(replica, kMillisecond, &work), DS_REPLICA_NEEDS_NOTHING);
}

std::vector<ds_episode_request> some_requests(int count, int32_t record = 0) {
    std::vector<ds_episode_request> asked(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
        ds_episode_request& one = asked[static_cast<size_t>(i)];
        one.tag = static_cast<uint64_t>(i);
        one.seed = 100 + i;
        one.sampling_seed = 7 * i;
        one.max_steps = 1 + i * 7 % 50;
        one.priority = i % 3;
        one.record = record;
        one.policies[1] = i % 4 == 0;  // the second agent is idle in some
    }
    return asked;
}

// Of the results, by tag.
std::map<uint64_t, ds_episode_output> by_tag(const std::vector<ds_episode_output>& outputs) {
    std::map<uint64_t, ds_episode_output> results;
    for (const ds_episode_output& output : outputs) {
        if (output.kind == DS_OUTPUT_RESULT) CHECK(results.insert({output.tag, output}).second);
    }
    return results;
}

void expect_equal(const ds_episode_output& a, const ds_episode_output& b) {
    CHECK_EQUAL(a.state_hash, b.state_hash);
    CHECK_EQUAL(a.length, b.length);
    CHECK_EQUAL(a.reason, b.reason);
    CHECK(memcmp(a.returns, b.returns, sizeof a.returns) == 0 && memcmp(a.max_y, b.max_y, sizeof a.max_y) == 0);
}

void results_are_those_of_simulators() {
    const Engine engine;
    const ds_replica replica = engine.make_replica(9, 2);
    const auto asked = some_requests(60, DS_RECORD_ACTIONS);
    engine.submit(asked);
    play_all(engine, replica);
    const auto outputs = engine.take_all();
    CHECK_EQUAL(outputs.size(), 60);
    for (const ds_episode_output& told : outputs) {
        const ds_episode_request& request = asked[told.tag];
        CHECK_EQUAL(told.reason, DS_EPISODE_TIME);
        CHECK_EQUAL(told.length, request.max_steps);
        CHECK_EQUAL(told.replica, 7);
        CHECK_EQUAL(told.data_bytes, told.length * 2 * 16);
        CHECK(told.submitted_ns <= told.started_ns && told.started_ns < told.ended_ns);
        ds_simulator_config config = default_config(1);
        config.num_threads = 1;
        config.auto_reset = 0;
        config.seed = request.seed;
        config.episode_length = request.max_steps;
        const ds_simulator simulator = make_simulator(config);
        float returns[2] = {};
        for (int step = 0; step < told.length; ++step) {
            const char* actions = static_cast<const char*>(told.data_start) + step * 32;
            if (request.policies[1] == 1) CHECK_EQUAL(reinterpret_cast<const int32_t*>(actions)[4], 0);
            memcpy(data_of<char>(simulator, DS_TENSOR_actions), actions, 32);
            CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
            for (int agent = 0; agent < 2; ++agent) returns[agent] += data_of<float>(simulator, DS_TENSOR_rewards)[agent];
        }
        CHECK_EQUAL(world_hash(simulator, 0), told.state_hash);
        CHECK_EQUAL(data_of<uint8_t>(simulator, DS_TENSOR_truncations)[0], 1);
        for (int agent = 0; agent < 2; ++agent) CHECK_NEAR(told.returns[agent], returns[agent], 1e-5);
        close_simulator(simulator);
    }
    release_data(outputs);
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
}

void results_do_not_depend_on_the_replica() {
    std::map<uint64_t, ds_episode_output> expected;
    const auto asked = some_requests(80);
    for (int32_t scheduler = 0; scheduler <= DS_SCHEDULER_FAIR_SHARE; ++scheduler) {
        for (const int64_t num_worlds : {1, 5, 33}) {
            const Engine engine(scheduler);
            const ds_replica replica = engine.make_replica(num_worlds, num_worlds == 33 ? 3 : 1);
            engine.submit(asked);
            play_all(engine, replica);
            const auto results = by_tag(engine.take_all());
            CHECK_EQUAL(results.size(), asked.size());
            if (expected.empty()) expected = results;
            for (const auto& [tag, told] : results) expect_equal(told, expected.at(tag));
            CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
        }
    }
}

void worlds_are_never_idle_while_requests_wait() {
    const Engine engine;
    const ds_replica replica = engine.make_replica(8);
    std::vector<ds_episode_request> asked(64);
    for (ds_episode_request& one : asked) one.max_steps = 5;
    engine.submit(asked);
    play_all(engine, replica);
    ds_replica_info info;
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_replica_get_info(replica, &info), DS_STATUS_OK);
    CHECK_EQUAL(info.number, 7);
    CHECK_EQUAL(info.num_worlds, 8);
    CHECK_EQUAL(info.episodes, 64);
    CHECK_EQUAL(info.steps, 40);
    CHECK_EQUAL(info.world_steps, 320);
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
}

void levels_are_played() {
    ds_level level = one_room();
    ds_shared_level shared;
    CHECK_EQUAL(ds_shared_level_create(&level, 2, &shared), DS_STATUS_OK);
    const Engine engine(DS_SCHEDULER_FIXED_CHUNK, 1);
    const ds_replica replica = engine.make_replica(4, 1, 1);
    auto asked = some_requests(20);
    for (ds_episode_request& one : asked) {
        one.level = one.tag % 2 ? shared : 0;
        one.max_steps = 0;
    }
    engine.submit(asked);
    CHECK_EQUAL(ds_shared_level_release(shared), DS_STATUS_OK);  // requests keep it
    level.min_episode_length = level.max_episode_length = 1;
    play_all(engine, replica);
    for (const auto& [tag, told] : by_tag(engine.take_all())) {
        if (tag % 2 == 0) CHECK_EQUAL(told.length, 200);
        else CHECK(told.length >= 7 && told.length <= 60);
    }
    uint64_t id, accepted;
    CHECK_EQUAL(ds_request_queue_submit(engine.requests, &asked[1], 1, 0, &id, &accepted), DS_STATUS_CLOSED);
    CHECK(last_error_names("level") && last_message_has("(request 0)"));
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
    CHECK_EQUAL(live(DS_LIVE_ROLLOUT), 2);  // the engine's queues
}

// ---- Policies

// Logits that follow from the observations.
ds_policy make_policy(std::vector<float>* weights) {
    Draws draw{11};
    weights->resize(19 * 94 + 19);
    for (float& weight : *weights) weight = draw.between(-1, 1);
    ds_layer_config config = {};
    config.struct_size = sizeof config;
    config.kind = DS_LAYER_LINEAR;
    config.num_inputs = 94;
    config.num_outputs = DS_NUM_LOGITS;
    config.weight_type = DS_WEIGHT_FLOAT32;
    config.weights = weights->data();
    config.biases = weights->data() + 19 * 94;
    ds_layer layer;
    ds_policy policy;
    CHECK_EQUAL(ds_layer_create(&config, &layer), DS_STATUS_OK);
    CHECK_EQUAL(ds_policy_create(&layer, 1, 1, &policy), DS_STATUS_OK);
    CHECK_EQUAL(ds_layer_release(layer), DS_STATUS_OK);
    return policy;
}

// Every recorded action is the policy's choice for the recorded observation, with the request's seed.
void native_policies_act() {
    std::vector<float> weights;
    const ds_policy policy = make_policy(&weights);
    const Engine engine;
    const ds_replica replica = engine.make_replica(5, 2);
    CHECK_EQUAL(ds_replica_set_policy(replica, 2, DS_POLICY_NATIVE, policy), DS_STATUS_OK);
    auto asked = some_requests(24, DS_RECORD_OBSERVATIONS);
    for (ds_episode_request& one : asked) {
        one.policies[0] = one.policies[1] = 2;
        one.sampling = {static_cast<float>(one.tag % 3) * 0.5f, one.tag % 5 ? 1.f : 0.7f};
    }
    engine.submit(asked);
    play_all(engine, replica);
    const auto outputs = engine.take_all();
    for (const ds_episode_output& told : outputs) {
        const ds_episode_request& request = asked[told.tag];
        const int64_t row_bytes = 2 * (16 + 94 * 4 + 4);
        CHECK_EQUAL(told.data_bytes, told.length * row_bytes + 2 * 94 * 4);
        const RandomKey key = base_key(static_cast<uint32_t>(request.sampling_seed));
        for (uint32_t step = 0; step < static_cast<uint32_t>(told.length); ++step) {
            const char* row = static_cast<const char*>(told.data_start) + step * row_bytes;
            ds_sampling sampling[2];
            ds_sampling_key keys[2];
            for (uint32_t agent = 0; agent < 2; ++agent) {
                sampling[agent] = request.sampling;
                keys[agent] = {{key.a, key.b}, step, agent};
            }
            int32_t actions[8];
            ds_policy_call call = {};
            call.struct_size = sizeof call;
            call.num_rows = 2;
            call.observations = reinterpret_cast<const float*>(row + 32);
            call.observation_stride = 94;
            call.sampling = sampling;
            call.keys = keys;
            call.actions = actions;
            CHECK_EQUAL(ds_policy_act(policy, &call), DS_STATUS_OK);
            CHECK(memcmp(actions, row, sizeof actions) == 0);
        }
    }
    release_data(outputs);
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
    CHECK_EQUAL(ds_policy_release(policy), DS_STATUS_OK);
}

// The caller chooses the actions of one policy, and fails for some steps: those episodes end before the step.
void callers_act_and_fail() {
    const Engine engine;
    const ds_replica replica = engine.make_replica(6);
    auto asked = some_requests(30, DS_RECORD_ACTIONS);
    for (ds_episode_request& one : asked) one.policies[0] = one.tag % 3 ? 3 : 0;
    engine.submit(asked);
    ds_replica_work work;
    int calls = 0;
    while (engine.num_unanswered() > 0) {
        if (run(replica, kMillisecond, &work) != DS_REPLICA_NEEDS_ACTIONS) continue;
        CHECK_EQUAL(work.policy, 3);
        CHECK_EQUAL(work.num_inputs, 94);
        CHECK(work.num_rows > 0);
        for (uint64_t i = 0; i < work.num_rows; ++i) {
            CHECK(work.rows[i] % 2 == 0 && (i == 0 || work.rows[i] > work.rows[i - 1]));
            CHECK(work.tags[i] % 3 != 0 && work.steps[i] < asked[work.tags[i]].max_steps);
            int32_t* action = work.actions + work.rows[i] * 4;
            action[0] = static_cast<int32_t>(work.steps[i] % 4);
            action[1] = action[2] = action[3] = 1;
        }
        if (++calls == 20) CHECK_EQUAL(ds_replica_fail(replica, 99), DS_STATUS_OK);
    }
    CHECK_EQUAL(ds_replica_fail(replica, 99), DS_STATUS_INVALID_ARGUMENT);
    int failed = 0;
    const auto outputs = engine.take_all();
    for (const ds_episode_output& told : outputs) {
        const int32_t* actions = static_cast<const int32_t*>(told.data_start);
        CHECK_EQUAL(told.data_bytes, told.length * 32);
        for (int step = 0; step < told.length && told.tag % 3; ++step) CHECK_EQUAL(actions[8 * step], step % 4);
        if (told.reason == DS_EPISODE_FAILED) {
            ++failed;
            CHECK(told.tag % 3 && told.length < asked[told.tag].max_steps);
            CHECK_EQUAL(told.cause, 99);
        } else {
            CHECK_EQUAL(told.cause, 0);
            CHECK_EQUAL(told.length, asked[told.tag].max_steps);
        }
    }
    CHECK(failed > 0 && failed <= 6);
    release_data(outputs);
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
}

// ---- Ends

void replicas_give_back_what_they_play() {
    const auto asked = some_requests(40, DS_RECORD_STREAM);
    std::map<uint64_t, ds_episode_output> expected;
    for (const int num_replicas : {1, 6}) {
        const Engine engine;
        engine.submit(asked);
        for (int i = 0; i < num_replicas; ++i) {
            const ds_replica replica = engine.make_replica(3 + i);
            ds_replica_work work;
            if (i + 1 == num_replicas) play_all(engine, replica);
            else CHECK_EQUAL(run(replica, kMillisecond / 2, &work), DS_REPLICA_NEEDS_NOTHING);
            CHECK_EQUAL(ds_replica_close(replica), DS_STATUS_OK);
            CHECK_EQUAL(run(replica, kMillisecond, &work), DS_REPLICA_NEEDS_END);
            CHECK_EQUAL(run(replica, kMillisecond, &work), DS_REPLICA_NEEDS_END);
            CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
        }
        const auto outputs = engine.take_all();
        std::map<uint64_t, int32_t> streamed;
        for (const ds_episode_output& output : outputs) {  // every step once, in order, whoever played it
            if (output.kind == DS_OUTPUT_STEP) CHECK_EQUAL(output.length, ++streamed[output.tag]);
            else CHECK_EQUAL(output.length, streamed[output.tag]);
        }
        const auto results = by_tag(outputs);
        CHECK_EQUAL(results.size(), asked.size());
        if (expected.empty()) expected = results;
        for (const auto& [tag, told] : results) expect_equal(told, expected.at(tag));
        release_data(outputs);
    }
}

void running_episodes_are_cancelled_and_expire() {
    const Engine engine;
    const ds_replica replica = engine.make_replica(4);
    auto asked = some_requests(4);
    for (ds_episode_request& one : asked) one.max_steps = 0;
    asked[2].deadline_ns = ds_monotonic_ns() + 30 * kMillisecond;
    const auto ids = engine.submit(asked);
    ds_replica_work work;
    CHECK_EQUAL(run(replica, 0, &work), DS_REPLICA_NEEDS_NOTHING);  // one step
    int32_t found;
    CHECK_EQUAL(ds_request_queue_cancel(engine.requests, ids[1], &found), DS_STATUS_OK);
    CHECK_EQUAL(found, 1);
    CHECK_EQUAL(run(replica, 0, &work), DS_REPLICA_NEEDS_NOTHING);
    usleep(40'000);
    play_all(engine, replica);
    const auto results = by_tag(engine.take_all());
    CHECK_EQUAL(results.at(1).reason, DS_EPISODE_CANCELLED);
    CHECK_EQUAL(results.at(1).length, 1);
    CHECK(results.at(1).state_hash != 0);
    CHECK_EQUAL(results.at(2).reason, DS_EPISODE_EXPIRED);
    CHECK(results.at(2).length < 200);
    CHECK_EQUAL(results.at(0).length, 200);
    CHECK_EQUAL(ds_request_queue_cancel(engine.requests, ids[1], &found), DS_STATUS_OK);
    CHECK_EQUAL(found, 0);
    const Engine other;
    CHECK_EQUAL(ds_request_queue_cancel(other.requests, ids[1], &found), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("request_id"));
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
}

void a_closed_queue_ends_its_replicas() {
    const Engine engine;
    const ds_replica replica = engine.make_replica(4);
    engine.submit(some_requests(10));
    std::thread player([&] {
        ds_replica_work work;
        while (run(replica, kSecond, &work) != DS_REPLICA_NEEDS_END) continue;
    });
    CHECK_EQUAL(ds_request_queue_close(engine.requests), DS_STATUS_OK);
    player.join();
    CHECK_EQUAL(engine.num_unanswered(), 0);
    CHECK_EQUAL(by_tag(engine.take_all()).size(), 10);
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
}

// close(), release() and set_policy() while other threads run replicas, and submissions all the time.
void threads_may_end_replicas_at_any_moment() {
    Draws draw{3};
    for (int round = 0; round < 30; ++round) {
        const Engine engine(DS_SCHEDULER_PRIORITY);
        const ds_replica replicas[2] = {engine.make_replica(3), engine.make_replica(20, 2)};
        std::vector<std::thread> players;
        for (const ds_replica replica : replicas) {
            players.emplace_back([replica] {
                ds_replica_work work;
                work.struct_size = sizeof work;
                for (;;) {
                    const ds_status status = ds_replica_run(replica, kMillisecond, &work);
                    CHECK(status == DS_STATUS_OK || status == DS_STATUS_CLOSED);
                    if (status || work.need == DS_REPLICA_NEEDS_END) return;
                }
            });
        }
        engine.submit(some_requests(50));
        usleep(static_cast<useconds_t>(draw.integer(0, 3000)));
        CHECK_EQUAL(ds_replica_set_policy(replicas[0], 3, DS_POLICY_IDLE, 0), DS_STATUS_OK);
        CHECK_EQUAL(draw.integer(0, 2) ? ds_replica_release(replicas[0]) : ds_replica_close(replicas[0]), DS_STATUS_OK);
        CHECK_EQUAL(ds_request_queue_drain(engine.requests, 20 * kSecond), DS_STATUS_OK);
        CHECK_EQUAL(by_tag(engine.take_all()).size(), 50);
        CHECK_EQUAL(ds_replica_close(replicas[1]), DS_STATUS_OK);
        for (std::thread& player : players) player.join();
        ds_replica_release(replicas[0]);
        CHECK_EQUAL(ds_replica_release(replicas[1]), DS_STATUS_OK);
    }
    CHECK_EQUAL(live(DS_LIVE_ROLLOUT), 0);
    CHECK_EQUAL(live(DS_LIVE_THREAD), 0);
}

// A child that is forked while replicas play can use and release all handles.
void forked_children_release_what_they_have() {
    const Engine engine(DS_SCHEDULER_FAIR_SHARE);
    const ds_replica replica = engine.make_replica(50, 2);
    std::atomic<bool> stop{false};
    std::thread player([&] {
        ds_replica_work work;
        while (!stop) CHECK_EQUAL(run(replica, kMillisecond, &work), DS_REPLICA_NEEDS_NOTHING);
    });
    std::thread submitter([&] {
        const auto asked = some_requests(20);
        while (!stop) {
            engine.submit(asked);
            ds_request_queue_drain(engine.requests, kSecond);
            engine.take_all();
        }
    });
    for (int i = 0; i < 20; ++i) {
        usleep(1000);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            uint64_t id, accepted;
            const ds_episode_request one = {};
            CHECK_EQUAL(ds_request_queue_submit(engine.requests, &one, 1, 0, &id, &accepted), DS_STATUS_OK);
            if (i % 2) play_all(engine, replica);  // it plays on, too
            CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
            CHECK_EQUAL(ds_request_queue_answer(engine.requests, engine.outputs, DS_EPISODE_FAILED, 1), DS_STATUS_OK);
            CHECK_EQUAL(ds_request_queue_drain(engine.requests, 0), DS_STATUS_OK);
            CHECK_EQUAL(ds_request_queue_release(engine.requests), DS_STATUS_OK);
            CHECK_EQUAL(ds_output_queue_release(engine.outputs), DS_STATUS_OK);
            _exit(0);  // what calls of threads referred to that do not exist here is never freed

        }
        int status;
        CHECK_EQUAL(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = true;
    submitter.join();
    player.join();
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
}

// ---- Arguments

void requests_are_checked() {
    const Engine engine;
    const auto refused = [&](const ds_episode_request& request, const char* argument) {
        const ds_episode_request both[2] = {{}, request};
        uint64_t ids[2], accepted = 5;
        CHECK_EQUAL(ds_request_queue_submit(engine.requests, both, 2, 0, ids, &accepted), DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(accepted, 0);
        return last_error_names(argument) && last_message_has("(request 1)");
    };
    ds_episode_request one = {};
    one.seed = -1;
    CHECK(refused(one, "seed"));
    one = {};
    one.sampling_seed = DS_MAX_SEED + 1;
    CHECK(refused(one, "sampling_seed"));
    one = {};
    one.max_steps = -1;
    CHECK(refused(one, "max_steps"));
    one = {};
    one.deadline_ns = -1;
    CHECK(refused(one, "deadline_ns"));
    one = {};
    one.sampling.temperature = -1;
    CHECK(refused(one, "sampling"));
    one.sampling.temperature = __builtin_nanf("");
    CHECK(refused(one, "sampling"));
    one.sampling = {1, 1.5f};
    CHECK(refused(one, "sampling"));
    one = {};
    one.record = 16;
    CHECK(refused(one, "record"));
    one = {};
    one.policies[1] = 4;
    CHECK(refused(one, "policies"));
    one = {};
    one.level = 1;
    CHECK(refused(one, "level"));
    CHECK_EQUAL(engine.num_unanswered(), 0);
}

void queues_and_replicas_are_checked() {
    const Engine engine;
    ds_request_queue branch;
    for (const int64_t capacity : {int64_t{0}, int64_t{DS_MAX_QUEUE_CAPACITY} + 1}) {
        CHECK_EQUAL(ds_request_queue_branch(engine.requests, capacity, &branch), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names("capacity"));
    }
    CHECK_EQUAL(ds_request_queue_branch(1, 4, &branch), DS_STATUS_CLOSED);
    ds_simulator_config rules = default_config(1);
    rules.num_agents = 3;
    const ConfigHandle others(rules);
    ds_replica replica;
    CHECK_EQUAL(ds_replica_create(others, engine.requests, engine.outputs, 0, &replica), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("simulator"));
    CHECK_EQUAL(ds_replica_create(others, 1, engine.outputs, 0, &replica), DS_STATUS_CLOSED);
    CHECK_EQUAL(ds_replica_create(1, engine.requests, engine.outputs, 0, &replica), DS_STATUS_CLOSED);
    const ConfigHandle scheduler(defaults_of<ds_scheduler_config>());
    CHECK_EQUAL(ds_replica_create(scheduler, engine.requests, engine.outputs, 0, &replica), DS_STATUS_INVALID_ARGUMENT);
    uint64_t moved;
    CHECK_EQUAL(ds_request_queue_move(engine.requests, &engine.requests, 1, 0, 1, 0, &moved),
                DS_STATUS_INVALID_ARGUMENT);
    replica = engine.make_replica(1);
    CHECK_EQUAL(ds_replica_set_policy(replica, 4, DS_POLICY_IDLE, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_replica_set_policy(replica, 0, DS_POLICY_NATIVE, 0), DS_STATUS_CLOSED);
    CHECK_EQUAL(ds_replica_fail(replica, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_OK);
    CHECK_EQUAL(ds_replica_release(replica), DS_STATUS_CLOSED);
    ds_replica_work work;
    work.struct_size = sizeof work;
    CHECK_EQUAL(ds_replica_run(replica, 0, &work), DS_STATUS_CLOSED);
}

}  // namespace

int main() {
    RUN(episodes_begin_as_those_of_new_simulators);
    RUN(episodes_begin_with_a_level_of_their_own);
    RUN(beginnings_are_checked);
    RUN(results_are_those_of_simulators);
    RUN(results_do_not_depend_on_the_replica);
    RUN(worlds_are_never_idle_while_requests_wait);
    RUN(levels_are_played);
    RUN(native_policies_act);
    RUN(callers_act_and_fail);
    RUN(replicas_give_back_what_they_play);
    RUN(running_episodes_are_cancelled_and_expire);
    RUN(a_closed_queue_ends_its_replicas);
    RUN(threads_may_end_replicas_at_any_moment);
    RUN(forked_children_release_what_they_have);
    RUN(requests_are_checked);
    RUN(queues_and_replicas_are_checked);
    check_nothing_lives();
    CHECK_EQUAL(live(DS_LIVE_ROLLOUT), 0);
    CHECK_EQUAL(live(DS_LIVE_POLICY), 0);
    return 0;
}
