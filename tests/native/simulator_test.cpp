// Lifetimes of simulators, their threads and their events, through the C API.
#include <immintrin.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "processes.h"
#include "simulators.h"

namespace {

void closing_returns_everything() {
    for (int i = 0; i < 30; ++i) {
        const ds_simulator simulator = make_simulator(200, 3);
        step_once(simulator, i);
        close_simulator(simulator);
    }
    check_nothing_lives();
}

void a_closed_simulator_is_refused_everywhere() {
    const ds_simulator simulator = make_simulator(10, 1);
    close_simulator(simulator);
    ds_event event;
    uint64_t number;
    ds_memory memory;
    ds_simulator_info info;
    info.struct_size = sizeof info;
    for (const ds_simulator stale : {simulator, ds_simulator{0}, ~ds_simulator{0}}) {
        CHECK_EQUAL(ds_simulator_step(stale), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_simulator_step_async(stale, &event), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_simulator_get_end(stale, &event), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_simulator_reset(stale, nullptr, 0), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_simulator_refresh(stale), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_simulator_hash(stale, nullptr, 0, &number), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_simulator_save_size(stale, 1, &number), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_simulator_get_memory(stale, &memory), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_simulator_get_info(stale, &info), DS_STATUS_CLOSED);
        CHECK_EQUAL(ds_simulator_close(stale), DS_STATUS_CLOSED);
        CHECK(last_error_names("simulator"));
    }
}

void memory_outlives_its_simulator() {
    const ds_simulator simulator = make_simulator(10, 1);
    ds_memory memory;
    CHECK_EQUAL(ds_simulator_get_memory(simulator, &memory), DS_STATUS_OK);
    const ds_tensor_info info = tensor_of(simulator, DS_TENSOR_actions);
    close_simulator(simulator);
    CHECK_EQUAL(live(DS_LIVE_MEMORY), 1);
    CHECK_EQUAL(static_cast<int32_t*>(info.data)[2], 2);
    CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_CLOSED);
    check_nothing_lives();
}

void results_do_not_depend_on_the_number_of_threads() {
    uint64_t expected = 0;
    for (int threads : {1, 2, 3, 7}) {
        const ds_simulator simulator = make_simulator(500, threads);
        for (int step = 0; step < 60; ++step) step_once(simulator, step);
        const uint64_t hash = hash_of(simulator);
        if (threads == 1) expected = hash;
        CHECK(hash == expected);
        close_simulator(simulator);
    }
}

void an_asynchronous_step_gives_what_a_step_gives() {
    const ds_simulator plain = make_simulator(300, 1), background = make_simulator(300, 2);
    for (int step = 0; step < 40; ++step) {
        step_once(plain, step);
        write_actions(background, step);
        ds_event event;
        CHECK_EQUAL(ds_simulator_step_async(background, &event), DS_STATUS_OK);
        ds_status status = ds_event_wait(event, 0);
        while (status == DS_STATUS_PENDING) status = ds_event_wait(event, 50'000);
        CHECK_EQUAL(status, DS_STATUS_OK);
        CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_wait(event, 0), DS_STATUS_CLOSED);
    }
    CHECK(hash_of(plain) == hash_of(background));
    close_simulator(plain);
    close_simulator(background);
    check_nothing_lives();
}

void the_end_of_what_was_begun_is_an_event_of_its_own() {
    const ds_simulator simulator = make_simulator(3000, 1);
    ds_event step, end;
    CHECK_EQUAL(ds_simulator_get_end(simulator, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_get_end(simulator, &end), DS_STATUS_OK);  // before any step
    CHECK_EQUAL(ds_simulator_step_async(simulator, &step), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_wait(end, 0), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_close(end), DS_STATUS_OK);
    CHECK_EQUAL(ds_simulator_get_end(simulator, &end), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_wait(end, -1), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_wait(step, 0), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_close(end), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_close(step), DS_STATUS_OK);
    close_simulator(simulator);
    check_nothing_lives();
}

void calls_after_an_asynchronous_step_wait_for_it() {
    const ds_simulator plain = make_simulator(3000, 1), background = make_simulator(3000, 1);
    ds_event events[10];
    for (ds_event& event : events) {
        CHECK_EQUAL(ds_simulator_step_async(background, &event), DS_STATUS_OK);
        CHECK_EQUAL(ds_simulator_step(plain), DS_STATUS_OK);
    }
    CHECK(hash_of(plain) == hash_of(background));
    close_simulator(plain);
    ds_event last;
    CHECK_EQUAL(ds_simulator_step_async(background, &last), DS_STATUS_OK);
    close_simulator(background);
    CHECK_EQUAL(ds_event_wait(last, 0), DS_STATUS_OK);
    CHECK_EQUAL(live(DS_LIVE_EVENT), 11);
    for (const ds_event event : events) CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_close(last), DS_STATUS_OK);
    check_nothing_lives();
}

struct SharedSimulator {
    ds_simulator simulator;
    std::atomic<int> steps{0};
};

void* step_until_closed(void* argument) {
    SharedSimulator* shared = static_cast<SharedSimulator*>(argument);
    ds_status status;
    while ((status = ds_simulator_step(shared->simulator)) == DS_STATUS_OK) shared->steps.fetch_add(1);
    CHECK_EQUAL(status, DS_STATUS_CLOSED);
    return nullptr;
}

// A step of another thread that does not end before the test allows it.
struct HeldStep {
    ds_simulator simulator = make_simulator(20, 1);
    std::atomic<bool> holds{false}, is_held{false};
    pthread_t thread;

    HeldStep() {
        ds_attachment attachment = {};
        attachment.struct_size = sizeof attachment;
        attachment.context = this;
        attachment.update = [](void* context, const ds_turn*) {
            HeldStep& self = *static_cast<HeldStep*>(context);
            self.is_held = self.holds.load();
            while (self.holds) sched_yield();
            return DS_STATUS_OK;
        };
        CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_OK);
        holds = true;
        const auto step = [](void* context) -> void* {
            CHECK_EQUAL(ds_simulator_step(static_cast<HeldStep*>(context)->simulator), DS_STATUS_OK);
            return nullptr;
        };
        CHECK_EQUAL(pthread_create(&thread, nullptr, step, this), 0);
        while (!is_held) sched_yield();
    }
    void end() {
        holds = false;
        pthread_join(thread, nullptr);
    }
};

void waits_end_after_the_step_of_another_thread() {
    HeldStep step;
    ds_event end;
    CHECK_EQUAL(ds_simulator_get_end(step.simulator, &end), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_wait(end, 0), DS_STATUS_PENDING);
    CHECK_EQUAL(ds_event_wait(end, 1'000'000), DS_STATUS_PENDING);
    step.end();
    CHECK_EQUAL(ds_event_wait(end, 0), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_close(end), DS_STATUS_OK);
    close_simulator(step.simulator);
    check_nothing_lives();
}

void copies_of_memory_come_after_the_step_of_another_thread() {
    HeldStep step;
    std::atomic<bool> was_read{false};
    struct Reader {
        HeldStep& step;
        std::atomic<bool>& was_read;
    } reader{step, was_read};
    const auto read = [](void* context) -> void* {
        Reader& self = *static_cast<Reader*>(context);
        ds_memory memory;
        ds_tensor_info rewards = {};
        rewards.struct_size = sizeof rewards;
        CHECK_EQUAL(ds_simulator_view_state(self.step.simulator, DS_STATE_episode_index, &rewards), DS_STATUS_OK);
        CHECK_EQUAL(ds_simulator_get_memory(self.step.simulator, &memory), DS_STATUS_OK);
        uint32_t copy[20];
        CHECK_EQUAL(ds_memory_read(memory, &rewards, copy, sizeof copy), DS_STATUS_OK);
        CHECK(!self.step.holds);
        self.was_read = true;
        CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
        return nullptr;
    };
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, nullptr, read, &reader), 0);
    for (int i = 0; i < 20; ++i) {
        const timespec pause{0, 1'000'000};
        nanosleep(&pause, nullptr);
        CHECK(!was_read);
    }
    step.end();
    pthread_join(thread, nullptr);
    CHECK(was_read);
    close_simulator(step.simulator);
    check_nothing_lives();
}

// Of all kinds of worlds, whose tables are made when the first simulator of a kind is.
void make_one_of_each_kind() {
    for (int64_t agents = 1; agents <= DS_MAX_AGENTS; ++agents) {
        for (int64_t levels = 0; levels < 2; ++levels) {
            ds_simulator_config config = default_config(1);
            config.num_threads = 1;
            config.num_agents = agents;
            config.max_levels = levels;
            close_simulator(make_simulator(config));
        }
    }
}

// Forks again and again while another thread makes the first simulators of a process. The last status that is not 0.
int fork_beside_first_simulators() {
    std::atomic<bool> is_done{false};
    const auto make = [](void* done) -> void* {
        make_one_of_each_kind();
        *static_cast<std::atomic<bool>*>(done) = true;
        return nullptr;
    };
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, nullptr, make, &is_done), 0);
    std::vector<pid_t> children;
    while (!is_done && children.size() < 100) {
        children.push_back(fork());
        CHECK(children.back() >= 0);
        if (children.back() == 0) {
            alarm(5);
            make_one_of_each_kind();
            _exit(0);
        }
    }
    pthread_join(thread, nullptr);
    int worst = 0;
    for (const pid_t child : children) {
        const int status = wait_for_process(child);
        if (status) worst = status;
    }
    return worst;
}

void a_fork_waits_for_the_tables_of_the_first_simulators() {
    for (int i = 0; i < 5; ++i) CHECK_EQUAL(run_in_child(fork_beside_first_simulators), 0);
}

void threads_that_share_a_simulator_take_turns_until_it_is_closed() {
    SharedSimulator shared{make_simulator(100, 2), {0}};
    pthread_t threads[3];
    for (pthread_t& thread : threads) CHECK_EQUAL(pthread_create(&thread, nullptr, step_until_closed, &shared), 0);
    while (shared.steps.load() < 100) sched_yield();
    ds_simulator_info info;
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_simulator_get_info(shared.simulator, &info), DS_STATUS_OK);
    CHECK(info.step_count >= 100);
    close_simulator(shared.simulator);
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

void a_forked_child_continues_with_the_same_results() {
    const ds_simulator simulator = make_simulator(500, 3);
    for (int step = 0; step < 5; ++step) step_once(simulator, step);
    int pipe_ends[2];
    CHECK_EQUAL(pipe(pipe_ends), 0);
    const int status = run_in_child([&] {
        CHECK_EQUAL(live(DS_LIVE_THREAD), 0);
        for (int step = 5; step < 10; ++step) step_once(simulator, step);
        ds_event event;
        CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_wait(event, -1), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
        const uint64_t hash = hash_of(simulator);
        CHECK_EQUAL(write(pipe_ends[1], &hash, sizeof hash), sizeof hash);
        close_simulator(simulator);
        CHECK_EQUAL(live(DS_LIVE_THREAD), 0);
        return 0;
    });
    CHECK_EQUAL(status, 0);
    for (int step = 5; step < 10; ++step) step_once(simulator, step);
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
    uint64_t child_hash;
    CHECK_EQUAL(read(pipe_ends[0], &child_hash, sizeof child_hash), sizeof child_hash);
    CHECK(child_hash == hash_of(simulator));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    close_simulator(simulator);
}

void a_fork_waits_for_a_running_step_and_frees_the_locks_in_the_child() {
    SharedSimulator shared{make_simulator(2000, 2), {0}};
    pthread_t threads[2];
    for (pthread_t& thread : threads) CHECK_EQUAL(pthread_create(&thread, nullptr, step_until_closed, &shared), 0);
    for (int i = 0; i < 5; ++i) {
        const int status = run_in_child([&] {
            for (int step = 0; step < 3; ++step) CHECK_EQUAL(ds_simulator_step(shared.simulator), DS_STATUS_OK);
            close_simulator(shared.simulator);
            _exit(3);  // without the leak check: references of the parent's threads remain
            return 0;
        });
        CHECK_EQUAL(status, 3);
    }
    close_simulator(shared.simulator);
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

void a_fork_waits_for_an_asynchronous_step() {
    const ds_simulator simulator = make_simulator(3000, 2);
    ds_event event;
    CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
    const int status = run_in_child([&] {
        CHECK_EQUAL(ds_event_wait(event, 0), DS_STATUS_OK);
        CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
        close_simulator(simulator);
        return 0;
    });
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
    close_simulator(simulator);
}

void a_process_exits_with_an_open_simulator_and_a_running_step() {
    const int status = run_in_child([] {
        const ds_simulator simulator = make_simulator(3000, 3);
        ds_event event;
        CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
        return 5;
    });
    CHECK_EQUAL(status, 5);
}

void bad_actions_stop_the_step_if_actions_are_checked() {
    ds_simulator_config config = default_config(40);
    config.action_check = DS_ACTION_CHECK_RAISE;
    const ds_simulator simulator = make_simulator(config);
    const uint64_t before = hash_of(simulator);
    int32_t* actions = static_cast<int32_t*>(tensor_of(simulator, DS_TENSOR_actions).data);
    actions[(7 * 2 + 1) * 4] = -3;
    ds_event event;
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("actions"));
    CHECK(last_message_has("actions[7, 1, 0] is -3; it must be 0 to 3"));
    CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_INVALID_ARGUMENT);
    CHECK(hash_of(simulator) == before);
    actions[(7 * 2 + 1) * 4] = 3;
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
    close_simulator(simulator);
}

void a_strict_simulator_reports_trouble_once_at_the_next_call() {
    ds_simulator_config config = default_config(50);
    config.strict = 1;
    const ds_simulator simulator = make_simulator(config);
    ds_tensor_info info;
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_simulator_get_state(simulator, DS_STATE_body_positions, &info), DS_STATUS_OK);
    float* x = reinterpret_cast<float*>(static_cast<char*>(info.data) + 33 * info.strides[0] + 4 * info.strides[1]);
    *x = __builtin_nanf("");
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
    uint64_t hash;
    CHECK_EQUAL(ds_simulator_hash(simulator, nullptr, 0, &hash), DS_STATUS_SIMULATION);
    CHECK(last_message_has("a value that is not finite: world 33, body 4, step 0 of that world"));
    CHECK_EQUAL(ds_simulator_hash(simulator, nullptr, 0, &hash), DS_STATUS_OK);
    ds_health health;
    health.struct_size = sizeof health;
    CHECK_EQUAL(ds_simulator_get_health(simulator, &health), DS_STATUS_OK);
    CHECK_EQUAL(health.culprit_world, 33);
    CHECK_EQUAL(health.culprit_body, 4);
    CHECK(health.nonfinite_values > 0);
    CHECK_EQUAL(health.struct_size, sizeof health);
    close_simulator(simulator);
}

void worlds_do_not_depend_on_the_caller_s_float_environment() {
    constexpr unsigned kDefault = 0x1F80, kFlushToZero = 0x8040, kRoundUp = 0x4000;
    uint64_t hashes[2];
    for (int round = 0; round < 2; ++round) {
        const int status = run_in_child([&] {
            if (round) _mm_setcsr(kDefault | kFlushToZero | kRoundUp);
            const ds_simulator simulator = make_simulator(100, 1);
            for (int step = 0; step < 30; ++step) step_once(simulator, step);
            if (round) CHECK_EQUAL(_mm_getcsr() & ~0x3Fu, kDefault | kFlushToZero | kRoundUp);
            _mm_setcsr(kDefault);
            const uint64_t hash = hash_of(simulator);
            close_simulator(simulator);
            return static_cast<int>(hash % 199);
        });
        hashes[round] = static_cast<uint64_t>(status);
    }
    CHECK(hashes[0] < 199 && hashes[0] == hashes[1]);
}

void configurations_out_of_range_are_refused_by_name() {
    struct {
        const char* argument;
        void (*spoil)(ds_simulator_config&);
    } const rows[] = {
        {"num_worlds", [](ds_simulator_config& config) { config.num_worlds = 0; }},
        {"num_worlds", [](ds_simulator_config& config) { config.num_worlds = -1; }},
        {"num_worlds", [](ds_simulator_config& config) { config.num_worlds = int64_t{1} << 40; }},
        {"seed", [](ds_simulator_config& config) { config.seed = -1; }},
        {"seed", [](ds_simulator_config& config) { config.seed = int64_t{1} << 32; }},
        {"world_offset", [](ds_simulator_config& config) { config.world_offset = -1; }},
        {"world_offset", [](ds_simulator_config& config) { config.world_offset = (int64_t{1} << 32) - 9; }},
        {"num_agents", [](ds_simulator_config& config) { config.num_agents = 9; }},
        {"episode_length", [](ds_simulator_config& config) { config.episode_length = 0; }},
        {"num_threads", [](ds_simulator_config& config) { config.num_threads = -1; }},
        {"auto_reset", [](ds_simulator_config& config) { config.auto_reset = 2; }},
        {"action_check", [](ds_simulator_config& config) { config.action_check = 3; }},
        {"strict", [](ds_simulator_config& config) { config.strict = -1; }},
        {"observations.num_parts", [](ds_simulator_config& config) { config.observations.num_parts = 9; }},
        {"observations.num_parts", [](ds_simulator_config& config) { config.observations.num_parts = -1; }},
        {"observations.parts", [](ds_simulator_config& config) { config.observations.parts[6] = 8; }},
        {"observations.parts", [](ds_simulator_config& config) { config.observations.parts[6] = 2; }},
        {"observations.scales", [](ds_simulator_config& config) { config.observations.scales[3] = 0.f; }},
        {"observations.scales", [](ds_simulator_config& config) { config.observations.scales[3] = NAN; }},
        {"observations.scales", [](ds_simulator_config& config) { config.observations.scales[3] = 2e6f; }},
        {"observations.parts",
         [](ds_simulator_config& config) {
             config.num_agents = 1;
             config.observations.num_parts = 1;
             config.observations.parts[0] = DS_OBSERVATION_PART_partner_observations;
         }},
        {"device_kind", [](ds_simulator_config& config) { config.device_kind = 9; }},
        {"device_index", [](ds_simulator_config& config) { config.device_index = 1; }},
        {"stream", [](ds_simulator_config& config) { config.stream = 1; }},
        {"config", [](ds_simulator_config& config) { config.struct_size = 8; }},
    };
    for (const auto& row : rows) {
        ds_simulator_config config = default_config(10);
        row.spoil(config);
        ds_simulator simulator = 77;
        CHECK_EQUAL(ds_simulator_create(&config, &simulator), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(row.argument));
        CHECK_EQUAL(simulator, 77);
    }
    CHECK_EQUAL(live(DS_LIVE_SIMULATOR), 0);
}

void world_lists_must_be_distinct_and_in_range() {
    const ds_simulator simulator = make_simulator(10, 1);
    const uint64_t before = hash_of(simulator);
    uint64_t hash;
    const std::vector<int64_t> bad_lists[] = {{10}, {-1}, {3, 4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0}};
    for (const std::vector<int64_t>& list : bad_lists) {
        CHECK_EQUAL(ds_simulator_reset(simulator, list.data(), list.size()), DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(ds_simulator_hash(simulator, list.data(), list.size(), &hash), DS_STATUS_INVALID_ARGUMENT);
    }
    CHECK(hash_of(simulator) == before);
    uint64_t hashes[10];
    CHECK_EQUAL(ds_simulator_world_hashes(simulator, hashes, 10), DS_STATUS_OK);
    const int64_t list[] = {8, 2, 5};
    CHECK_EQUAL(ds_simulator_hash(simulator, list, 3, &hash), DS_STATUS_OK);
    CHECK(hash == hashes[8] + hashes[2] + hashes[5]);
    CHECK_EQUAL(ds_simulator_reset(simulator, list, 3), DS_STATUS_OK);
    uint64_t after[10];
    CHECK_EQUAL(ds_simulator_world_hashes(simulator, after, 10), DS_STATUS_OK);
    for (int world = 0; world < 10; ++world) {
        const bool chosen = world == 8 || world == 2 || world == 5;
        CHECK_EQUAL(after[world] != hashes[world], chosen);
    }
    close_simulator(simulator);
}

}  // namespace

int main() {
    if (kCanStartThreadsInChild) RUN(a_fork_waits_for_the_tables_of_the_first_simulators);  // before there are any here
    RUN(worlds_do_not_depend_on_the_caller_s_float_environment);  // first: tables are computed once per process
    RUN(closing_returns_everything);
    RUN(a_closed_simulator_is_refused_everywhere);
    RUN(memory_outlives_its_simulator);
    RUN(results_do_not_depend_on_the_number_of_threads);
    RUN(an_asynchronous_step_gives_what_a_step_gives);
    RUN(the_end_of_what_was_begun_is_an_event_of_its_own);
    RUN(calls_after_an_asynchronous_step_wait_for_it);
    RUN(waits_end_after_the_step_of_another_thread);
    RUN(copies_of_memory_come_after_the_step_of_another_thread);
    RUN(threads_that_share_a_simulator_take_turns_until_it_is_closed);
    if (kCanStartThreadsInChild) RUN(a_forked_child_continues_with_the_same_results);
    if (kCanStartThreadsInChild) RUN(a_fork_waits_for_a_running_step_and_frees_the_locks_in_the_child);
    if (kCanStartThreadsInChild) RUN(a_fork_waits_for_an_asynchronous_step);
    if (kCanStartThreadsInChild) RUN(a_process_exits_with_an_open_simulator_and_a_running_step);
    RUN(a_strict_simulator_reports_trouble_once_at_the_next_call);
    RUN(bad_actions_stop_the_step_if_actions_are_checked);
    RUN(configurations_out_of_range_are_refused_by_name);
    RUN(world_lists_must_be_distinct_and_in_range);
}
