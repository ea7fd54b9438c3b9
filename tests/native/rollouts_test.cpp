// Episodes that begin with a seed and a level of their own, and engines that play requests, through the C API.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "api/call.h"
#include "api/save.h"
#include "check.h"
#include "draws.h"
#include "engines.h"
#include "math/threefry.h"
#include "processes.h"

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

// ---- Engines

void release_data(const std::vector<ds_episode_output>& outputs) {
    for (const ds_episode_output& output : outputs) {
        if (output.data) CHECK_EQUAL(ds_memory_release(output.data), DS_STATUS_OK);
    }
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
    const PlayingEngine engine({.num_worlds = 9, .num_threads = 2});
    const auto asked = some_requests(60, DS_RECORD_ACTIONS);
    const auto outputs = engine.play(asked);
    CHECK_EQUAL(outputs.size(), 60);
    for (const ds_episode_output& told : outputs) {
        const ds_episode_request& request = asked[told.tag];
        CHECK_EQUAL(told.reason, DS_EPISODE_TIME);
        CHECK_EQUAL(told.length, request.max_steps);
        CHECK_EQUAL(told.replica, 0);
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
}

void results_do_not_depend_on_the_replica() {
    std::map<uint64_t, ds_episode_output> expected;
    const auto asked = some_requests(80);
    for (int32_t scheduler = 0; scheduler <= DS_SCHEDULER_CALLER; ++scheduler) {
        for (const int64_t num_worlds : {1, 5, 33}) {
            const PlayingEngine engine({.num_worlds = num_worlds,
                                        .num_threads = num_worlds == 33 ? 3 : 1,
                                        .num_replicas = num_worlds == 5 ? 3 : 1,
                                        .scheduler = scheduler,
                                        .controller = scheduler % 2 ? DS_CONTROLLER_PULL : DS_CONTROLLER_ROUND_ROBIN});
            const auto results = by_tag(engine.play(asked));
            CHECK_EQUAL(results.size(), asked.size());
            if (expected.empty()) expected = results;
            for (const auto& [tag, told] : results) expect_equal(told, expected.at(tag));
        }
    }
}

void interrupted_episodes_go_on_where_they_were() {
    auto asked = some_requests(80, DS_RECORD_OBSERVATIONS);
    for (ds_episode_request& one : asked) {
        one.priority = static_cast<int64_t>(one.tag);
        one.max_steps = 150;
    }
    const PlayingEngine plain({.num_worlds = 7});
    const auto expected = plain.play(asked);
    const auto by_tags = by_tag(expected);
    int64_t begun = 0;
    for (int attempt = 0; begun <= static_cast<int64_t>(asked.size()) && attempt < 100; ++attempt) {
        const int64_t num_replicas = 1 + 2 * (attempt % 2);
        const PlayingEngine engine({.num_worlds = 2, .num_replicas = num_replicas, .scheduler = DS_SCHEDULER_PRIORITY,
                                    .preempts = 1});
        for (const ds_episode_request& one : asked) engine.submit({one});  // each is the most urgent one
        engine.drain();
        const auto outputs = engine.take_all();
        for (const auto& [tag, told] : by_tag(outputs)) {
            const ds_episode_output& other = by_tags.at(tag);
            expect_equal(told, other);
            CHECK_EQUAL(told.data_bytes, other.data_bytes);
            CHECK(memcmp(told.data_start, other.data_start, told.data_bytes) == 0);
        }
        begun = 0;
        for (int64_t i = 0; i < num_replicas; ++i) begun += engine.replica(i).episodes;
        CHECK_EQUAL(outputs.size(), asked.size());
        release_data(outputs);
    }
    CHECK(begun > static_cast<int64_t>(asked.size()));  // again, after interruptions
    release_data(expected);
}

void worlds_are_never_idle_while_requests_wait() {
    const PlayingEngine engine({.num_worlds = 8});
    std::vector<ds_episode_request> asked(64);
    for (ds_episode_request& one : asked) one.max_steps = 5;
    engine.play(asked);
    const ds_replica_info info = engine.replica(0);
    CHECK_EQUAL(info.num_worlds, 8);
    CHECK_EQUAL(info.episodes, 64);
    CHECK_EQUAL(info.steps, 40);
    CHECK_EQUAL(info.world_steps, 320);
    CHECK_EQUAL(info.has_ended, 0);
}

void levels_are_played() {
    ds_level level = one_room();
    ds_shared_level shared;
    CHECK_EQUAL(ds_shared_level_create(&level, 2, &shared), DS_STATUS_OK);
    const PlayingEngine engine({.num_worlds = 4, .max_levels = 1});
    auto asked = some_requests(20);
    for (ds_episode_request& one : asked) {
        one.level = one.tag % 2 ? shared : 0;
        one.max_steps = 0;
    }
    engine.submit(asked);
    CHECK_EQUAL(ds_shared_level_release(shared), DS_STATUS_OK);  // requests keep it
    level.min_episode_length = level.max_episode_length = 1;
    engine.drain();
    for (const auto& [tag, told] : by_tag(engine.take_all())) {
        if (tag % 2 == 0) CHECK_EQUAL(told.length, 200);
        else CHECK(told.length >= 7 && told.length <= 60);
    }
    uint64_t id, accepted;
    CHECK_EQUAL(ds_engine_submit(engine.handle, &asked[1], 1, 0, &id, &accepted), DS_STATUS_CLOSED);
    CHECK(last_error_names("level") && last_message_has("(request 0)"));
}

// ---- Saved states

ds_saved_state state_of(const std::vector<char>& saved) {
    ds_saved_state state;
    CHECK_EQUAL(ds_saved_state_create(saved.data(), saved.size(), &state), DS_STATUS_OK);
    return state;
}

std::vector<ds_episode_request> branches_of(ds_saved_state state, int count) {
    std::vector<ds_episode_request> asked(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
        ds_episode_request& one = asked[static_cast<size_t>(i)];
        one.tag = static_cast<uint64_t>(i);
        one.state = state;
        one.continuation = i;
        one.max_steps = 30;
        one.record = DS_RECORD_ACTIONS;
    }
    return asked;
}

void episodes_go_on_from_saved_states() {
    const ds_simulator simulator = make_simulator(3, 1);
    for (int step = 0; step < 20; ++step) step_once(simulator, step);
    const std::vector<char> saved = save_of(simulator, {1});
    const ds_saved_state state = state_of(saved);
    const PlayingEngine engine({.num_worlds = 4, .num_threads = 2});
    engine.submit(branches_of(state, 25));
    CHECK_EQUAL(ds_saved_state_release(state), DS_STATUS_OK);  // requests keep it
    engine.drain();
    std::map<uint64_t, int> ends;
    for (const ds_episode_output& told : engine.take_all()) {
        CHECK_EQUAL(told.reason, DS_EPISODE_TIME);
        CHECK_EQUAL(told.length, 30);
        CHECK_EQUAL(told.continuation, static_cast<int32_t>(told.tag));
        const int64_t world = 2;
        CHECK_EQUAL(ds_simulator_restore(simulator, saved.data(), saved.size(), &world, 1), DS_STATUS_OK);
        int32_t* const actions = data_of<int32_t>(simulator, DS_TENSOR_actions) + world * 8;
        for (int step = 0; step < 30; ++step) {
            memcpy(actions, static_cast<const char*>(told.data_start) + step * 32, 32);
            CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
        }
        CHECK_EQUAL(world_hash(simulator, world), told.state_hash);
        ++ends[told.state_hash];
        CHECK_EQUAL(ds_memory_release(told.data), DS_STATUS_OK);
    }
    CHECK_EQUAL(ends.size(), 25);
    close_simulator(simulator);
}

void worlds_begin_with_saved_states() {
    const ds_simulator from = make_simulator(2, 1);
    for (int step = 0; step < 7; ++step) step_once(from, step);
    const ds_saved_state state = state_of(save_of(from, {1}));
    ds_simulator_config config = default_config(3);
    config.auto_reset = 0;
    const ds_simulator to = make_simulator(config);
    ds_episode_start start = {};
    start.world = 2;
    start.state = state;
    const uint64_t untouched = world_hash(to, 0);
    CHECK_EQUAL(ds_simulator_begin(to, &start, 1), DS_STATUS_OK);
    CHECK_EQUAL(world_hash(to, 2), world_hash(from, 1));
    CHECK_EQUAL(world_hash(to, 0), untouched);
    for (int64_t ds_episode_start::*field : {&ds_episode_start::seed, &ds_episode_start::max_steps}) {
        ds_episode_start wrong = start;
        wrong.*field = 1;
        CHECK_EQUAL(ds_simulator_begin(to, &wrong, 1), DS_STATUS_INVALID_ARGUMENT);
    }
    CHECK_EQUAL(ds_saved_state_release(state), DS_STATUS_OK);
    CHECK_EQUAL(ds_simulator_begin(to, &start, 1), DS_STATUS_CLOSED);
    close_simulator(from);
    close_simulator(to);
}

void states_are_checked() {
    const ds_simulator simulator = make_simulator(2, 1);
    std::vector<char> saved = save_of(simulator, {0});
    const ds_saved_state state = state_of(saved);
    ds_saved_state made;
    CHECK_EQUAL(ds_saved_state_create(nullptr, 1, &made), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_saved_state_create(saved.data(), saved.size(), nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_saved_state_create(saved.data(), saved.size() - 1, &made), DS_STATUS_INVALID_STATE);
    ++saved.back();
    CHECK_EQUAL(ds_saved_state_create(saved.data(), saved.size(), &made), DS_STATUS_INVALID_STATE);
    SaveHeader header;
    memcpy(&header, saved.data(), sizeof header);
    header.padding = 1;
    header.checksum = save_checksum(header, saved.data() + sizeof header);
    memcpy(saved.data(), &header, sizeof header);
    CHECK_EQUAL(ds_saved_state_create(saved.data(), saved.size(), &made), DS_STATUS_INVALID_STATE);
    CHECK(last_message_has("padding is 1"));
    const PlayingEngine engine, of_levels({.max_levels = 1});
    uint64_t id, accepted;
    ds_episode_request one = {};
    one.state = state;
    CHECK_EQUAL(ds_engine_submit(of_levels.handle, &one, 1, 0, &id, &accepted), DS_STATUS_INVALID_STATE);
    CHECK(last_error_names("state") && last_message_has("max_levels") && last_message_has("(request 0)"));
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

void requests_choose_their_replicas() {
    const PlayingEngine engine({.num_worlds = 2, .num_replicas = 3, .controller = DS_CONTROLLER_CALLER});
    auto asked = some_requests(60);
    for (ds_episode_request& one : asked) one.replica = static_cast<int32_t>(one.tag % 4) - 1;
    int any[3] = {};
    for (const auto& [tag, told] : by_tag(engine.play(asked))) {
        if (tag % 4 > 0) CHECK_EQUAL(told.replica, tag % 4 - 1);
        else ++any[told.replica];
    }
    CHECK(any[0] == 5 && any[1] == 5 && any[2] == 5);  // in turn
    CHECK_EQUAL(ds_engine_end_replica(engine.handle, 1), DS_STATUS_OK);
    while (engine.info().num_playing == 3) usleep(100);
    for (const auto& [tag, told] : by_tag(engine.play(asked))) {
        CHECK(tag % 4 == 2 || tag % 4 == 0 ? told.replica != 1 : told.replica == static_cast<int32_t>(tag % 4) - 1);
    }
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
    CHECK_EQUAL(ds_policy_create(&layer, 1, 1, DS_PRECISION_FLOAT32, &policy), DS_STATUS_OK);
    CHECK_EQUAL(ds_layer_release(layer), DS_STATUS_OK);
    return policy;
}

// Every recorded action is the policy's choice for the recorded observation, with the request's seed.
void native_policies_act() {
    std::vector<float> weights;
    const ds_policy policy = make_policy(&weights);
    const PlayingEngine engine({.num_worlds = 5, .num_threads = 2});
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 2, DS_POLICY_NATIVE, policy, 0), DS_STATUS_OK);
    auto asked = some_requests(24, DS_RECORD_OBSERVATIONS);
    for (ds_episode_request& one : asked) {
        one.policies[0] = one.policies[1] = 2;
        one.sampling = {static_cast<float>(one.tag % 3) * 0.5f, one.tag % 5 ? 1.f : 0.7f};
    }
    const auto outputs = engine.play(asked);
    for (const ds_episode_output& told : outputs) {
        const ds_episode_request& request = asked[told.tag];
        CHECK_EQUAL(told.data_bytes, told.length * 2 * (16 + 94 * 4 + 4) + 2 * 94 * 4);
        const int32_t* actions_played = static_cast<const int32_t*>(told.data_start);  // [T, 2, 4]
        const float* observations = reinterpret_cast<const float*>(actions_played + told.length * 8);  // [T + 1, 2, 94]
        const RandomKey key = base_key(static_cast<uint32_t>(request.sampling_seed));
        for (uint32_t step = 0; step < static_cast<uint32_t>(told.length); ++step) {
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
            call.observations = observations + step * 2 * 94;
            call.observation_stride = 94;
            call.sampling = sampling;
            call.keys = keys;
            call.actions = actions;
            CHECK_EQUAL(ds_policy_act(policy, &call), DS_STATUS_OK);
            CHECK(memcmp(actions, actions_played + step * 8, sizeof actions) == 0);
        }
    }
    release_data(outputs);
    CHECK_EQUAL(ds_policy_release(policy), DS_STATUS_OK);
}

// Not in the episode that is being played.
void replaced_policies_play_no_episode_that_begins_later() {
    const PlayingEngine engine({.num_worlds = 1});
    const auto by = [&](int32_t policy) {
        std::vector<ds_episode_request> asked = {{}, {}};
        for (ds_episode_request& one : asked) {
            one.seed = 7;
            one.max_steps = 20;
            one.policies[0] = one.policies[1] = policy;
        }
        return asked;
    };
    const uint64_t random = engine.play(by(0))[0].state_hash, idle = engine.play(by(1))[0].state_hash;
    CHECK(random != idle);
    engine.submit(by(3));  // of the caller, who acts idly
    ds_rows rows = engine.take_rows();
    CHECK_EQUAL(ds_engine_replace_policy(engine.handle, 3, 0), DS_STATUS_OK);
    for (int step = 0; step < 20; ++step) {
        if (step > 0) rows = engine.take_rows();
        CHECK(rows.policy == 3 && rows.steps[0] == step);
        engine.return_rows(rows, {0, 0, 2, 0, 0, 0, 2, 0});
    }
    engine.drain();
    const auto results = engine.take_all();
    CHECK_EQUAL(results[0].state_hash, idle);
    CHECK_EQUAL(results[1].state_hash, random);
    CHECK_EQUAL(ds_engine_replace_policy(engine.handle, 3, 3), DS_STATUS_OK);
    engine.submit(by(3));
    rows = engine.take_rows();
    CHECK_EQUAL(rows.policy, 3);
    CHECK_EQUAL(ds_memory_release(rows.data), DS_STATUS_OK);
    CHECK_EQUAL(ds_engine_replace_policy(engine.handle, 3, 4), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("by"));
    CHECK_EQUAL(ds_engine_replace_policy(engine.handle, -1, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("index"));
}

// The caller chooses the actions of one policy, and fails for some steps: those episodes end before the step.
void callers_act_and_fail() {
    const PlayingEngine engine({.num_worlds = 6});
    auto asked = some_requests(30, DS_RECORD_ACTIONS);
    for (ds_episode_request& one : asked) one.policies[0] = one.tag % 3 ? 3 : 0;
    engine.submit(asked);
    std::atomic<int> calls{0};
    std::thread caller([&] {
        ds_rows rows;
        rows.struct_size = sizeof rows;
        while (ds_engine_take_rows(engine.handle, -1, &rows) == DS_STATUS_OK) {
            CHECK(rows.policy == 3 && rows.replica == 0 && rows.num_inputs == 94 && rows.num_replica_rows == 12);
            CHECK(rows.num_rows > 0);
            std::vector<int32_t> actions;
            for (int64_t i = 0; i < rows.num_rows; ++i) {
                CHECK(rows.rows[i] % 2 == 0 && (i == 0 || rows.rows[i] > rows.rows[i - 1]));
                CHECK(rows.tags[i] % 3 != 0 && rows.steps[i] < asked[rows.tags[i]].max_steps);
                actions.insert(actions.end(), {static_cast<int32_t>(rows.steps[i] % 4), 1, 1, 1});
            }
            const bool fails = ++calls == 20;
            CHECK_EQUAL(ds_engine_return_rows(engine.handle, rows.id, fails ? nullptr : actions.data(), fails ? 99 : 0),
                        DS_STATUS_OK);
            CHECK_EQUAL(ds_engine_return_rows(engine.handle, rows.id, actions.data(), 0), DS_STATUS_CLOSED);
            CHECK_EQUAL(ds_memory_release(rows.data), DS_STATUS_OK);
        }
    });
    engine.drain();
    CHECK(calls > 20);
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
    engine.end();
    caller.join();
}

// Worlds that await a caller sit out, and the others step. What comes meanwhile is asked for together.
void a_slow_caller_holds_up_no_other_episode() {
    const PlayingEngine engine({.num_worlds = 8});
    auto asked = some_requests(60, DS_RECORD_ACTIONS);
    for (ds_episode_request& one : asked) one.policies[0] = one.tag % 30 ? 0 : 3;
    engine.submit(asked);
    const std::vector<int32_t> idle = {0, 0, 2, 0, 0, 0, 2, 0};  // as the policy 1 does
    ds_rows rows = engine.take_rows();
    CHECK_EQUAL(rows.num_rows, 1);
    while (engine.info().unanswered > 2) usleep(1000);
    auto outputs = engine.take_all();
    for (const ds_episode_output& told : outputs) CHECK(told.tag % 30 && told.length == asked[told.tag].max_steps);
    CHECK_EQUAL(outputs.size(), 58);
    engine.return_rows(rows, idle);
    while (engine.info().unanswered > 0) {
        rows.struct_size = sizeof rows;
        if (ds_engine_take_rows(engine.handle, kMillisecond, &rows) == DS_STATUS_OK) engine.return_rows(rows, idle);
    }
    const auto rest = engine.take_all();
    outputs.insert(outputs.end(), rest.begin(), rest.end());
    auto alone = asked;  // one after the other
    for (ds_episode_request& one : alone) one.policies[0] = one.policies[0] == 3 ? 1 : 0;
    const PlayingEngine other;
    const auto expected = by_tag(other.play(alone));
    for (const auto& [tag, told] : by_tag(outputs)) expect_equal(told, expected.at(tag));
    release_data(outputs);
    for (const auto& [tag, told] : expected) CHECK_EQUAL(ds_memory_release(told.data), DS_STATUS_OK);
}

// Between two of its steps an episode may get another policy, or one that fails. Records tell which one acted.
void policies_are_replaced_while_they_are_played() {
    const PlayingEngine engine;
    std::vector<ds_episode_request> asked(1);
    asked[0].record = DS_RECORD_LOG_PROBS | DS_RECORD_VALUES | DS_RECORD_STATES;
    asked[0].policies[0] = 3;
    asked[0].policies[1] = 2;
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 2, DS_POLICY_IDLE, 0, 7), DS_STATUS_OK);
    engine.submit(asked);
    for (int step = 0; step < 6; ++step) {
        const ds_rows rows = engine.take_rows();
        CHECK_EQUAL(rows.steps[0], step);
        if (step == 3) CHECK_EQUAL(ds_engine_set_policy(engine.handle, 2, DS_POLICY_RANDOM, 0, -8), DS_STATUS_OK);
        if (step == 5) CHECK_EQUAL(ds_engine_set_policy(engine.handle, 2, DS_POLICY_FAILING, 7, 0), DS_STATUS_OK);
        engine.return_rows(rows, {1, 2, 3, 0});
    }
    engine.drain();  // waits for no caller: the other agent's policy fails
    const auto outputs = engine.take_all();
    CHECK(outputs.size() == 1 && outputs[0].reason == DS_EPISODE_FAILED && outputs[0].cause == 7);
    CHECK_EQUAL(outputs[0].length, 6);
    struct Record {
        int32_t actions[6][2][4];
        float log_probs[6][2];
        int32_t versions[6][2];
        float values[6][2];
    };
    CHECK(outputs[0].data_bytes == sizeof(Record) && outputs[0].state_size == 0);
    CHECK_EQUAL(outputs[0].record, asked[0].record);
    const Record& made = *static_cast<const Record*>(outputs[0].data_start);
    int32_t moved = 0;
    for (int step = 0; step < 6; ++step) {
        CHECK(made.actions[step][0][0] == 1 && made.actions[step][0][1] == 2);
        if (step < 4) CHECK_EQUAL(made.actions[step][1][0], 0);
        else moved += made.actions[step][1][0];
        CHECK(isnan(made.log_probs[step][0]) && isnan(made.values[step][0]) && isnan(made.values[step][1]));
        CHECK_NEAR(made.log_probs[step][1], step < 4 ? 0 : -log(320), 1e-6);
        CHECK(made.versions[step][0] == 0 && made.versions[step][1] == (step < 4 ? 7 : -8));
    }
    CHECK(moved > 0);
    release_data(outputs);
}

// ---- Ends

void replicas_give_back_what_they_play() {
    const auto asked = some_requests(200, DS_RECORD_STREAM);
    std::map<uint64_t, ds_episode_output> expected;
    for (const int64_t num_replicas : {1, 6}) {
        const PlayingEngine engine({.num_worlds = 5, .num_replicas = num_replicas,
                                    .controller = DS_CONTROLLER_ROUND_ROBIN});
        engine.submit(asked);
        for (int64_t i = 0; i + 1 < num_replicas; ++i) {
            usleep(300);
            CHECK_EQUAL(ds_engine_end_replica(engine.handle, i), DS_STATUS_OK);
        }
        engine.drain();
        CHECK_EQUAL(engine.info().num_replicas, num_replicas);
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

// Also while a caller chooses their actions, which are dropped then.
void running_episodes_are_cancelled_and_expire() {
    const PlayingEngine engine({.num_worlds = 4});
    auto asked = some_requests(4);
    for (ds_episode_request& one : asked) {
        one.max_steps = 0;
        one.policies[0] = 3;
    }
    asked[2].deadline_ns = ds_monotonic_ns() + 300 * kMillisecond;
    const auto ids = engine.submit(asked);
    const std::vector<int32_t> idle(16);
    engine.return_rows(engine.take_rows(), idle);
    ds_rows rows = engine.take_rows();
    CHECK_EQUAL(rows.num_rows, 4);
    int32_t found;
    CHECK_EQUAL(ds_engine_cancel(engine.handle, ids[1], &found), DS_STATUS_OK);
    CHECK_EQUAL(found, 1);
    while (engine.info().unanswered > 2) usleep(1000);
    engine.return_rows(rows, idle);
    for (int step = 2; step < 200; ++step) {
        rows = engine.take_rows();
        CHECK(rows.num_rows == 2 && rows.steps[0] == step);
        engine.return_rows(rows, idle);
    }
    engine.drain();
    const auto results = by_tag(engine.take_all());
    CHECK_EQUAL(results.at(1).reason, DS_EPISODE_CANCELLED);
    CHECK_EQUAL(results.at(2).reason, DS_EPISODE_EXPIRED);
    for (const uint64_t tag : {1, 2}) {
        CHECK_EQUAL(results.at(tag).length, 1);
        CHECK(results.at(tag).state_hash != 0);
    }
    CHECK_EQUAL(results.at(0).length, 200);
    CHECK_EQUAL(ds_engine_cancel(engine.handle, ids[1], &found), DS_STATUS_OK);
    CHECK_EQUAL(found, 0);
    const PlayingEngine other;
    CHECK_EQUAL(ds_engine_cancel(other.handle, ids[1], &found), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("request_id"));
}

void a_closed_engine_answers_everything() {
    for (const bool is_asked : {false, true}) {
        const PlayingEngine engine({.num_worlds = 3, .num_replicas = 2});
        auto asked = some_requests(500);
        if (is_asked) {
            for (ds_episode_request& one : asked) one.policies[0] = 3;
        }
        engine.submit(asked);
        ds_rows rows = {};
        if (is_asked) rows = engine.take_rows();
        engine.end();  // waits for no caller
        CHECK_EQUAL(engine.info().unanswered, 0);
        CHECK_EQUAL(engine.info().num_playing, 0);
        for (const auto& [tag, told] : by_tag(engine.take_all())) {
            CHECK(told.reason == DS_EPISODE_TIME || told.cause == DS_CAUSE_CLOSED);
        }
        ds_episode_output output;
        uint64_t taken, id;
        CHECK_EQUAL(ds_engine_take(engine.handle, 0, 1, -1, &output, &taken), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_engine_submit(engine.handle, asked.data(), 1, -1, &id, &taken), DS_STATUS_CLOSED);
        if (!is_asked) continue;
        CHECK(rows.observations[0] == rows.observations[0]);  // they are there still
        CHECK_EQUAL(ds_engine_return_rows(engine.handle, rows.id, nullptr, 1), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_memory_release(rows.data), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_take_rows(engine.handle, -1, &rows), DS_STATUS_CLOSED);
    }
}

// Requests for three replicas, which name them in turn.
std::vector<ds_episode_request> requests_for_three() {
    auto asked = some_requests(300);
    for (ds_episode_request& one : asked) one.replica = static_cast<int32_t>(one.tag % 3);
    return asked;
}

void other_replicas_play_what_an_ended_one_had() {
    const PlayingEngine engine({.num_worlds = 3, .num_replicas = 3, .controller = DS_CONTROLLER_CALLER});
    engine.submit(requests_for_three());
    for (const int64_t number : {0, 1}) CHECK_EQUAL(ds_engine_end_replica(engine.handle, number), DS_STATUS_OK);
    engine.drain();
    const auto results = by_tag(engine.take_all());
    CHECK_EQUAL(results.size(), 300);
    for (const auto& [tag, told] : results) CHECK(told.reason == DS_EPISODE_TIME);
    std::vector<ds_episode_request> late(1);
    CHECK_EQUAL(by_tag(engine.play(late)).at(0).replica, 2);
    CHECK_EQUAL(engine.info().num_playing, 1);
}

void an_engine_ends_with_its_last_replica() {
    const PlayingEngine engine({.num_worlds = 3, .num_replicas = 3, .controller = DS_CONTROLLER_CALLER});
    auto asked = requests_for_three();
    for (ds_episode_request& one : asked) one.policies[0] = 3;  // of a caller that never returns its rows
    engine.submit(asked);
    for (const int64_t number : {0, 1, 2}) CHECK_EQUAL(ds_engine_end_replica(engine.handle, number), DS_STATUS_OK);
    CHECK_EQUAL(ds_engine_join(engine.handle, -1), DS_STATUS_OK);
    CHECK_EQUAL(engine.info().unanswered, 0);
    const auto results = by_tag(engine.take_all());
    CHECK_EQUAL(results.size(), 300);
    for (const auto& [tag, told] : results) CHECK(told.reason == DS_EPISODE_FAILED && told.cause == DS_CAUSE_CLOSED);
    uint64_t id, accepted;
    const ds_episode_request one = {};
    CHECK_EQUAL(ds_engine_submit(engine.handle, &one, 1, -1, &id, &accepted), DS_STATUS_CLOSED);
}

// ---- Outputs without room

void wait_until_full(const PlayingEngine& engine) {
    while (engine.info().full_readers == 0) usleep(100);
}

// Outputs that are taken a few at a time, until all requests have a result.
std::vector<ds_episode_output> take_slowly(const PlayingEngine& engine, size_t requests) {
    std::vector<ds_episode_output> all;
    for (size_t results = 0; results < requests;) {
        ds_episode_output some[3];
        uint64_t taken;
        CHECK_EQUAL(ds_engine_take(engine.handle, 0, 3, -1, some, &taken), DS_STATUS_OK);
        for (uint64_t i = 0; i < taken; ++i) {
            results += some[i].kind == DS_OUTPUT_RESULT;
            if (some[i].data) CHECK_EQUAL(ds_memory_release(some[i].data), DS_STATUS_OK);
            all.push_back(some[i]);
        }
    }
    return all;
}

void outputs_without_room_wait() {
    const auto asked = some_requests(100, DS_RECORD_ACTIONS | DS_RECORD_STREAM);
    const auto played = PlayingEngine({.num_worlds = 7}).play(asked);
    const auto expected = by_tag(played);
    release_data(played);
    const EngineOptions cases[] = {
        {.num_worlds = 7, .num_replicas = 2, .output_capacity = 1},
        {.num_worlds = 7, .num_replicas = 2, .output_capacity = 20},
        {.num_worlds = 7, .output_bytes = 1},
        {.num_worlds = 7, .num_replicas = 2, .output_bytes = 400},
    };
    for (const EngineOptions& options : cases) {
        const PlayingEngine engine(options);
        engine.submit(asked);
        wait_until_full(engine);
        usleep(5000);  // in which all episodes would end
        CHECK(engine.info().unanswered > 0);
        CHECK(options.output_capacity == 0 || engine.info().outputs[0] <= options.output_capacity);
        std::map<uint64_t, int> streamed;
        const auto outputs = take_slowly(engine, asked.size());
        for (const ds_episode_output& told : outputs) {
            if (told.kind == DS_OUTPUT_STEP) CHECK_EQUAL(told.length, ++streamed[told.tag]);
        }
        for (const auto& [tag, told] : by_tag(outputs)) {
            CHECK_EQUAL(told.state_hash, expected.at(tag).state_hash);
            CHECK_EQUAL(told.length, streamed[tag]);
        }
        CHECK_EQUAL(engine.info().full_readers, 0);
    }
}

void requests_are_cancelled_while_outputs_wait() {
    const PlayingEngine engine({.num_worlds = 7, .output_capacity = 2});
    const auto ids = engine.submit(some_requests(100));
    wait_until_full(engine);
    for (const uint64_t id : ids) {
        int32_t found;
        CHECK_EQUAL(ds_engine_cancel(engine.handle, id, &found), DS_STATUS_OK);
    }
    int cancelled = 0;
    for (const auto& [tag, told] : by_tag(take_slowly(engine, 100))) cancelled += told.reason == DS_EPISODE_CANCELLED;
    CHECK(cancelled >= 100 - 7 - 2);
}

// What its replica had is answered, by itself or another one.
void engines_end_while_outputs_wait() {
    for (const bool is_one_ended : {false, true}) {
        const PlayingEngine engine({.num_worlds = 7, .num_replicas = 2, .output_capacity = 3});
        engine.submit(some_requests(100));
        wait_until_full(engine);
        if (is_one_ended) {
            CHECK_EQUAL(ds_engine_end_replica(engine.handle, 0), DS_STATUS_OK);
            for (const auto& [tag, told] : by_tag(take_slowly(engine, 100))) CHECK_EQUAL(told.reason, DS_EPISODE_TIME);
        } else {
            engine.end();
            CHECK_EQUAL(engine.info().unanswered, 0);
            CHECK_EQUAL(by_tag(engine.take_all()).size(), 100);
        }
    }
}

#ifndef DS_SANITIZED  // sanitizers need terabytes of address space
// Leaves this process so much more address space, bytes.
void limit_memory(uint64_t bytes) {
    unsigned long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    const uint64_t all = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + bytes;
    const rlimit limit{all, RLIM_INFINITY};
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
}

void lift_memory_limit() {
    const rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
}

// An engine that plays 4,000 long episodes, whose replica then fails: there is no memory for the rows that its callers
// are to be given.
void make_its_replica_fail(const PlayingEngine& engine) {
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 3, DS_POLICY_RANDOM, 0, 0), DS_STATUS_OK);
    std::vector<ds_episode_request> asked(4000);
    for (ds_episode_request& one : asked) one.policies[0] = one.policies[1] = 3;
    for (ds_episode_request& one : asked) one.max_steps = 1;
    engine.play(asked);  // now queues have room for as many
    for (ds_episode_request& one : asked) one.max_steps = 0;
    engine.submit(asked);
    while (engine.info().waiting > 0) usleep(100);
    limit_memory(2 << 20);
    CHECK_EQUAL(ds_engine_set_policy(engine.handle, 3, DS_POLICY_CALLER, 0, 0), DS_STATUS_OK);
}

void a_replica_that_fails_says_why() {
    const int status = run_in_child([] {
        const PlayingEngine engine({.num_worlds = 4000});
        make_its_replica_fail(engine);
        CHECK_EQUAL(ds_engine_join(engine.handle, -1), DS_STATUS_OK);
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

// Its episodes begin again.
void a_replica_that_fails_is_made_again() {
    const int status = run_in_child([] {
        const PlayingEngine engine({.num_worlds = 4000, .max_restarts = DS_MAX_RESTARTS});
        make_its_replica_fail(engine);
        while (engine.info().restarts == 0) usleep(100);
        lift_memory_limit();
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

void a_replica_that_fails_too_often_ends() {
    const int status = run_in_child([] {
        const PlayingEngine engine({.num_worlds = 4000, .max_restarts = 2});
        make_its_replica_fail(engine);
        CHECK_EQUAL(ds_engine_join(engine.handle, -1), DS_STATUS_OK);
        CHECK_EQUAL(engine.info().restarts, 2);
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
void a_replica_that_fails_says_why() {}
void a_replica_that_fails_is_made_again() {}
void a_replica_that_fails_too_often_ends() {}
#endif

ds_simulator_config like(const EngineOptions& options) {
    ds_simulator_config config = default_config(options.num_worlds);
    config.num_threads = options.num_threads;
    config.max_levels = options.max_levels;
    return config;
}

int64_t add_replica(const PlayingEngine& engine, const ds_simulator_config& config) {
    int64_t number;
    CHECK_EQUAL(ds_engine_add_replica(engine.handle, ConfigHandle(config), &number), DS_STATUS_OK);
    return number;
}

void replicas_come_and_go_while_others_play() {
    for (const int32_t controller : {DS_CONTROLLER_PULL, DS_CONTROLLER_ROUND_ROBIN, DS_CONTROLLER_CALLER}) {
        const EngineOptions options = {.num_worlds = 3, .controller = controller};
        const PlayingEngine engine(options);
        auto asked = some_requests(600);
        for (ds_episode_request& one : asked) one.replica = static_cast<int32_t>(one.tag % 4) - 1;
        const auto expected = by_tag(PlayingEngine().play(asked));
        engine.submit(asked);
        for (const int64_t num_worlds : {1, 20}) {
            const ds_simulator_config config = like({.num_worlds = num_worlds, .num_threads = 2});
            const int64_t number = add_replica(engine, config);
            CHECK_EQUAL(number, num_worlds == 1 ? 1 : 2);
            CHECK_EQUAL(engine.replica(number).num_worlds, num_worlds);
        }
        CHECK_EQUAL(ds_engine_end_replica(engine.handle, 0), DS_STATUS_OK);
        engine.drain();
        const auto results = by_tag(engine.take_all());
        CHECK_EQUAL(results.size(), asked.size());
        for (const auto& [tag, told] : results) expect_equal(told, expected.at(tag));
        for (const auto& [tag, told] : by_tag(engine.play(asked))) {
            CHECK(told.replica == 1 || told.replica == 2);
            if (controller == DS_CONTROLLER_CALLER && tag % 4 > 1) CHECK_EQUAL(told.replica, tag % 4 - 1);
        }
        CHECK(engine.info().num_replicas == 3 && engine.info().num_playing == 2);
    }
}

void replicas_that_play_by_other_rules_are_refused() {
    const PlayingEngine engine({.max_levels = 4});
    const auto refused = [&](const ds_simulator_config& config, const char* field) {
        int64_t number;
        CHECK_EQUAL(ds_engine_add_replica(engine.handle, ConfigHandle(config), &number), DS_STATUS_INVALID_ARGUMENT);
        return last_error_names(field) && engine.info().num_replicas == 1;
    };
    ds_simulator_config config = like({.max_levels = 1});
    config.num_agents = 3;
    CHECK(refused(config, "num_agents"));
    config = like({.max_levels = 1});
    config.episode_length = 100;
    CHECK(refused(config, "episode_length"));
    config = like({.max_levels = 1});
    config.action_check = DS_ACTION_CHECK_RAISE;
    CHECK(refused(config, "action_check"));
    config = like({.max_levels = 1});
    config.strict = 1;
    CHECK(refused(config, "strict"));
    config = like({.max_levels = 1});
    config.observations.num_parts = 1;
    config.observations.scales[0] = 1;
    CHECK(refused(config, "observations"));
    CHECK(refused(like({}), "max_levels"));
    CHECK_EQUAL(add_replica(engine, like({.max_levels = 1})), 1);
    engine.end();
    int64_t number;
    CHECK_EQUAL(ds_engine_add_replica(engine.handle, ConfigHandle(like({.max_levels = 1})), &number), DS_STATUS_CLOSED);
}

void engines_end_while_replicas_are_added() {
    for (int round = 0; round < 40; ++round) {
        const PlayingEngine engine({.controller = round % 2 ? DS_CONTROLLER_PULL : DS_CONTROLLER_ROUND_ROBIN});
        engine.submit(some_requests(20));
        std::thread adder([&] {
            int64_t number;
            ds_status status;
            const ConfigHandle config(like({}));
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
    for (int64_t i = 1; i < DS_MAX_REPLICAS; ++i) {
        CHECK_EQUAL(add_replica(engine, like({})), i);
        CHECK_EQUAL(ds_engine_end_replica(engine.handle, i), DS_STATUS_OK);
    }
    int64_t number;
    CHECK_EQUAL(ds_engine_add_replica(engine.handle, ConfigHandle(like({})), &number), DS_STATUS_INVALID_STATE);
    CHECK_EQUAL(engine.play(some_requests(10)).size(), 10);
}

// close(), end_replica(), set_policy() and release() while replicas play, and submissions all the time.
void threads_may_end_engines_at_any_moment() {
    Draws draw{3};
    for (int round = 0; round < 30; ++round) {
        {
            const PlayingEngine engine({.num_worlds = 20, .num_threads = 2, .num_replicas = 3,
                                        .scheduler = DS_SCHEDULER_PRIORITY,
                                        .controller = round % 2 ? DS_CONTROLLER_PULL : DS_CONTROLLER_ROUND_ROBIN});
            std::atomic<uint64_t> num_accepted{0};
            std::thread submitter([&] {
                const auto asked = some_requests(50);
                std::vector<uint64_t> ids(50);
                uint64_t accepted;
                while (ds_engine_submit(engine.handle, asked.data(), 50, kMillisecond, ids.data(), &accepted) !=
                       DS_STATUS_CLOSED) {
                    num_accepted += accepted;
                    usleep(200);
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
            CHECK_EQUAL(engine.take_all().size(), num_accepted.load());
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

// A child that is forked while an engine plays has a copy that says so, and can make engines of its own.
void forked_children_have_copies() {
    const PlayingEngine engine({.num_worlds = 50, .num_threads = 2, .num_replicas = 2,
                                .scheduler = DS_SCHEDULER_FAIR_SHARE});
    std::atomic<bool> stop{false};
    std::thread submitter([&] {
        auto asked = some_requests(20);
        asked[0].policies[0] = 3;
        while (!stop) {
            engine.submit(asked);
            ds_engine_drain(engine.handle, 1000 * kSecond);
            engine.take_all();
        }
    });
    std::thread caller([&] {
        ds_rows rows;
        rows.struct_size = sizeof rows;
        const std::vector<int32_t> idle(2 * 50 * 4);
        while (ds_engine_take_rows(engine.handle, -1, &rows) == DS_STATUS_OK) engine.return_rows(rows, idle);
    });
    for (int i = 0; i < 20; ++i) {
        usleep(1000);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            uint64_t id, accepted;
            const ds_episode_request one = {};
            CHECK_EQUAL(ds_engine_submit(engine.handle, &one, 1, 0, &id, &accepted), DS_STATUS_CLOSED);
            CHECK(last_message_has("belongs to the process that was forked"));
            CHECK_EQUAL(ds_engine_join(engine.handle, -1), DS_STATUS_CLOSED);
            CHECK_EQUAL(ds_engine_close(engine.handle), DS_STATUS_OK);
            CHECK_EQUAL(ds_engine_release(engine.handle), DS_STATUS_OK);
            if (kCanStartThreadsInChild && i % 5 == 0)
                CHECK_EQUAL(PlayingEngine().play(some_requests(5)).size(), 5);
            _exit(0);  // what threads referred to that do not exist here is never freed
        }
        int status;
        CHECK_EQUAL(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = true;
    submitter.join();
    engine.end();
    caller.join();
}

// ---- Arguments

void requests_are_checked() {
    const PlayingEngine engine;
    const ds_config config = make_rollout_config({});
    const auto refused = [&](const ds_episode_request& request, const char* argument) {
        const ds_episode_request both[2] = {{}, request};
        uint64_t ids[2], accepted = 5;
        CHECK_EQUAL(ds_episode_requests_check(config, both, 2), DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(ds_episode_requests_check(config, both, 1), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_submit(engine.handle, both, 2, 0, ids, &accepted), DS_STATUS_INVALID_ARGUMENT);
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
    one.key = __builtin_nan("");
    CHECK(refused(one, "key"));
    one = {};
    one.sampling.temperature = -1;
    CHECK(refused(one, "sampling"));
    one.sampling.temperature = __builtin_nanf("");
    CHECK(refused(one, "sampling"));
    one.sampling = {1, 1.5f};
    CHECK(refused(one, "sampling"));
    one = {};
    one.record = 128;
    CHECK(refused(one, "record"));
    one = {};
    one.policies[1] = 4;
    CHECK(refused(one, "policies"));
    one = {};
    one.level = 1;
    CHECK(refused(one, "level"));
    one = {};
    one.replica = -2;
    CHECK(refused(one, "replica"));
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
    for (const int64_t number : {-1, 1}) {
        CHECK_EQUAL(ds_engine_end_replica(engine.handle, number), DS_STATUS_INVALID_ARGUMENT);
    }
}

}  // namespace

int main() {
    RUN(episodes_begin_as_those_of_new_simulators);
    RUN(episodes_begin_with_a_level_of_their_own);
    RUN(beginnings_are_checked);
    RUN(results_are_those_of_simulators);
    RUN(results_do_not_depend_on_the_replica);
    RUN(interrupted_episodes_go_on_where_they_were);
    RUN(worlds_are_never_idle_while_requests_wait);
    RUN(levels_are_played);
    RUN(native_policies_act);
    RUN(episodes_go_on_from_saved_states);
    RUN(worlds_begin_with_saved_states);
    RUN(states_are_checked);
    RUN(requests_choose_their_replicas);
    RUN(callers_act_and_fail);
    RUN(a_slow_caller_holds_up_no_other_episode);
    RUN(policies_are_replaced_while_they_are_played);
    RUN(replaced_policies_play_no_episode_that_begins_later);
    RUN(replicas_give_back_what_they_play);
    RUN(running_episodes_are_cancelled_and_expire);
    RUN(a_closed_engine_answers_everything);
    RUN(other_replicas_play_what_an_ended_one_had);
    RUN(an_engine_ends_with_its_last_replica);
    RUN(outputs_without_room_wait);
    RUN(requests_are_cancelled_while_outputs_wait);
    RUN(engines_end_while_outputs_wait);
    RUN(a_replica_that_fails_says_why);
    RUN(a_replica_that_fails_is_made_again);
    RUN(a_replica_that_fails_too_often_ends);
    RUN(replicas_come_and_go_while_others_play);
    RUN(replicas_that_play_by_other_rules_are_refused);
    RUN(engines_end_while_replicas_are_added);
    RUN(an_engine_has_so_many_replicas_in_its_time);
    RUN(threads_may_end_engines_at_any_moment);
    RUN(forked_children_have_copies);
    RUN(requests_are_checked);
    RUN(submissions_with_overlapping_arrays_are_refused);
    RUN(engines_are_checked);
    check_nothing_lives();
    CHECK_EQUAL(live(DS_LIVE_ROLLOUT), 0);
    CHECK_EQUAL(live(DS_LIVE_POLICY), 0);
    return 0;
}
