// Simulators through the C API: closed handles, configurations, threads, forks and exits.
#include <math.h>
#include <unistd.h>

#include <atomic>

#include "processes.h"
#include "simulators.h"

namespace {

// Of all kinds of worlds, whose tables are made when the first simulator of a kind is.
void make_one_of_each_kind() {
    for (int64_t agents = 1; agents <= DS_MAX_AGENTS; ++agents) {
        for (int64_t levels = 0; levels < 2; ++levels) {
            ds_simulator_config config = default_config(1);
            config.num_threads = 1, config.num_agents = agents, config.max_levels = levels;
            const OpenSimulator made(config);
        }
    }
}

// Forks again and again while another thread makes the first simulators of a process. The last status that is not 0.
int fork_beside_first_simulators() {
    std::atomic<bool> is_done{false};
    JoiningThread thread([&] {
        make_one_of_each_kind();
        is_done = true;
    });
    std::vector<pid_t> children;
    while (!is_done && children.size() < 60) {
        children.push_back(fork());
        CHECK(children.back() >= 0);
        if (children.back() == 0) {
            alarm(5);
            make_one_of_each_kind();
            _exit(0);
        }
    }
    thread.join();
    int worst = 0;
    for (const pid_t child : children)
        if (const int status = wait_for_process(child)) worst = status;
    return worst;
}

// Before there are any simulators here.
LAW(a_fork_waits_for_the_tables_of_the_first_simulators) {
    if (!kCanStartThreadsInChild) return;
    for (int i = 0; i < 3; ++i) CHECK_EQUAL(run_in_child(fork_beside_first_simulators), 0);
}

// A step of another thread that does not end before the test allows it.
struct HeldStep {
    const OpenSimulator simulator{20, 1};
    std::atomic<bool> holds{false}, is_held{false};
    JoiningThread thread;

    HeldStep() {
        auto attachment = sized<ds_attachment>();
        attachment.context = this;
        attachment.update = [](void* context, const ds_turn*) {
            HeldStep& self = *static_cast<HeldStep*>(context);
            self.is_held = self.holds.load();
            while (self.holds) std::this_thread::yield();
            return DS_STATUS_OK;
        };
        CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_OK);
        holds = true;
        thread = JoiningThread([this] { CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK); });
        while (!is_held) std::this_thread::yield();
    }
    void end() {
        holds = false;
        thread.join();
    }
};

LAW(copies_of_memory_come_after_the_step_of_another_thread) {
    HeldStep step;
    JoiningThread reader([&] {
        ds_memory memory;
        auto index = sized<ds_tensor_info>();
        CHECK_EQUAL(ds_simulator_view_state(step.simulator, DS_STATE_episode_index, &index), DS_STATUS_OK);
        CHECK_EQUAL(ds_simulator_get_memory(step.simulator, &memory), DS_STATUS_OK);
        step.is_held = false;
        uint32_t copy[20];
        CHECK_EQUAL(ds_memory_read(memory, &index, copy, sizeof copy), DS_STATUS_OK);
        CHECK(!step.holds);
        CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    });
    while (step.is_held) std::this_thread::yield();  // the reader is about to read
    step.end();
}

LAW(a_fork_waits_for_a_running_step_and_frees_the_locks_in_the_child) {
    if (!kCanStartThreadsInChild) return;
    const OpenSimulator simulator(2000, 2);
    const auto step_until_closed = [&] {
        ds_status status = DS_STATUS_OK;
        while (!status) status = ds_simulator_step(simulator);
        CHECK_EQUAL(status, DS_STATUS_CLOSED);
    };
    JoiningThread threads[] = {JoiningThread(step_until_closed), JoiningThread(step_until_closed)};
    for (int i = 0; i < 5; ++i) {
        const int status = run_in_child([&] {
            CHECK_EQUAL(live(DS_LIVE_THREAD), 0);
            for (int step = 0; step < 3; ++step) CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
            close_simulator(simulator);
            CHECK_EQUAL(live(DS_LIVE_THREAD), 0);
            _exit(3);  // without the leak check: references of the parent's threads remain
            return 0;
        });
        CHECK_EQUAL(status, 3);
    }
    close_simulator(simulator);
}

LAW(a_fork_waits_for_an_asynchronous_step) {
    if (!kCanStartThreadsInChild) return;
    const OpenSimulator simulator(3000, 2);
    ds_event event;
    CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
    const auto use = [&] {
        CHECK_EQUAL(ds_event_wait(event, 0), DS_STATUS_OK);
        CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
        close_simulator(simulator);
        return 0;
    };
    CHECK_EQUAL(run_in_child(use), 0);
    CHECK_EQUAL(ds_event_wait(event, -1), DS_STATUS_OK);
    use();
}

LAW(a_process_exits_with_an_open_simulator_and_a_running_step) {
    if (!kCanStartThreadsInChild) return;
    const int status = run_in_child([] {
        const OpenSimulator simulator(3000, 3);
        ds_event event;
        CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
        return 5;
    });
    CHECK_EQUAL(status, 5);
}

LAW(configurations_out_of_range_are_refused_by_name) {
    using Config = ds_simulator_config;
#define WITH(argument, field, value) {argument, [](Config& config) { config.field = value; }}
    const std::pair<const char*, void (*)(Config&)> rows[] = {
        WITH("num_worlds", num_worlds, 0), WITH("num_worlds", num_worlds, int64_t{1} << 40), WITH("seed", seed, -1),
        WITH("seed", seed, int64_t{1} << 32), WITH("world_offset", world_offset, (int64_t{1} << 32) - 9),
        WITH("num_agents", num_agents, 9), WITH("episode_length", episode_length, 0),
        WITH("num_threads", num_threads, -1), WITH("auto_reset", auto_reset, 2),
        WITH("action_check", action_check, 3), WITH("strict", strict, -1),
        WITH("observations.num_parts", observations.num_parts, 9),
        WITH("observations.parts", observations.parts[6], 8), WITH("observations.parts", observations.parts[6], 2),
        WITH("observations.scales", observations.scales[3], 0.f),
        WITH("observations.scales", observations.scales[3], NAN), WITH("device_kind", device_kind, 9),
        WITH("device_index", device_index, 1), WITH("stream", stream, 1), WITH("stream", stream, 0),
        WITH("config", struct_size, 8)};
#undef WITH
    for (const auto& [argument, spoil] : rows) {
        ds_simulator_config config = default_config(10);
        spoil(config);
        ds_simulator simulator = 77;
        CHECK_EQUAL(ds_simulator_create(&config, &simulator), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(argument));
        CHECK_EQUAL(simulator, 77);
    }
}

}  // namespace
