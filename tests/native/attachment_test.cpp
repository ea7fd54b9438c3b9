// Libraries attached to a simulator: in which threads and processes their update is called, and how it ends. What it
// sees, and its memory, is tested from Python: tests/render/test_renderers.py, tests/cuda/test_graphs.py.
#include <atomic>

#include "processes.h"
#include "simulators.h"

namespace {

// Visits all worlds on the simulator's threads, and counts.
struct Observer {
    std::atomic<int> updates{0}, releases{0}, visits{0};
    std::atomic<int32_t> workers_seen{0};  // a bit for each
    ds_status failure = DS_STATUS_OK;      // of the next updates
    bool tells_why = true;
    int64_t num_worlds = 0;
    int32_t num_workers = 0;

    ds_status update(const ds_turn* turn) {
        CHECK_EQUAL(turn->struct_size, sizeof *turn);
        CHECK(turn->device_kind == DS_DEVICE_CPU && turn->stream == 0);
        num_workers = turn->num_workers;
        updates.fetch_add(1);
        if (failure) {
            if (tells_why) ds_set_error(failure, "renderer", "look away", "the paint is dry");
            return failure;
        }
        const ds_task visit = [](void* context, int64_t, int64_t count, int32_t worker) {
            Observer& self = *static_cast<Observer*>(context);
            CHECK(worker >= 0 && worker < self.num_workers);
            self.workers_seen.fetch_or(1 << worker);
            self.visits.fetch_add(static_cast<int>(count));
        };
        turn->run(turn->pool, num_worlds, visit, this);
        CHECK_EQUAL(visits.exchange(0), num_worlds);
        return DS_STATUS_OK;
    }

    ds_status attach(ds_simulator simulator) {
        num_worlds = info_of(simulator).num_worlds;
        auto made = sized<ds_attachment>();
        made.context = this;
        made.update = [](void* context, const ds_turn* turn) { return static_cast<Observer*>(context)->update(turn); };
        made.release = [](void* context) { static_cast<Observer*>(context)->releases.fetch_add(1); };
        return ds_simulator_attach(simulator, &made);
    }
};

// Even a single world, or few of them, are drawn on all threads.
LAW(all_threads_work_for_an_attachment) {
    Observer observer;
    const OpenSimulator simulator(30, 4);
    CHECK_EQUAL(observer.attach(simulator), DS_STATUS_OK);
    CHECK_EQUAL(observer.num_workers, 4);
    for (int step = 0; observer.workers_seen != 15; ++step) step_once(simulator, step);
    CHECK_EQUAL(observer.workers_seen, 15);
}

LAW(what_fails_at_once_is_not_attached) {
    Observer observer;
    const OpenSimulator simulator(5, 1);
    observer.failure = DS_STATUS_RENDERER;
    CHECK_EQUAL(observer.attach(simulator), DS_STATUS_RENDERER);
    int32_t attached = -1;
    CHECK_EQUAL(ds_simulator_has_attachment(simulator, &attached), DS_STATUS_OK);
    step_once(simulator, 0);
    CHECK(attached == 0 && observer.updates == 1 && observer.releases == 0);
}

// By the operation itself, which was done; after an asynchronous step by the next call, once.
LAW(a_failure_of_an_attachment_is_returned_once_with_or_without_a_reason) {
    for (const bool tells_why : {true, false}) {
        Observer observer;
        observer.tells_why = tells_why;
        const ds_status failure = tells_why ? DS_STATUS_SHADER : DS_STATUS_RENDERER;
        const OpenSimulator simulator(5, 1), twin(5, 1);
        CHECK_EQUAL(observer.attach(simulator), DS_STATUS_OK);
        const auto fails = [&](ds_status status) {
            CHECK_EQUAL(status, failure);
            CHECK(last_message_has(tells_why ? "the paint is dry" : "the library attached to the simulator failed"));
        };
        CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, "material", "", "of yesterday"), DS_STATUS_OK);
        observer.failure = failure;
        write_actions(simulator, 1);
        fails(ds_simulator_step(simulator));
        fails(ds_simulator_reset(simulator, nullptr, 0));
        ds_event event;
        write_actions(simulator, 2);
        CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_wait(event, -1), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
        observer.failure = DS_STATUS_OK;
        CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, "material", "", "of yesterday"), DS_STATUS_OK);
        fails(ds_simulator_step(simulator));
        step_once(simulator, 3);
        step_once(twin, 1);
        CHECK_EQUAL(ds_simulator_reset(twin, nullptr, 0), DS_STATUS_OK);
        for (int step = 2; step < 4; ++step) step_once(twin, step);
        CHECK_EQUAL(hash_of(simulator), hash_of(twin));
    }
}

LAW(an_attachment_follows_into_a_forked_child) {
    if (!kCanStartThreadsInChild) return;
    Observer observer;
    const OpenSimulator simulator(200, 3);
    CHECK_EQUAL(observer.attach(simulator), DS_STATUS_OK);
    const int status = run_in_child([&] {
        step_once(simulator, 1);
        CHECK_EQUAL(observer.updates, 2);
        close_simulator(simulator);
        CHECK_EQUAL(observer.releases, 1);
        return 0;
    });
    CHECK_EQUAL(status, 0);
    CHECK(observer.updates == 1 && observer.releases == 0);
    close_simulator(simulator);
    CHECK_EQUAL(observer.releases, 1);
}

LAW(threads_take_turns_and_the_release_comes_after_the_last_update) {
    for (int round = 0; round < 10; ++round) {
        Observer observer;
        const OpenSimulator simulator(130, 2);
        CHECK_EQUAL(observer.attach(simulator), DS_STATUS_OK);
        std::atomic<int> steps[2]{};
        const auto step = [&](std::atomic<int>& count) {
            while (ds_simulator_step(simulator) == DS_STATUS_OK) count.fetch_add(1);
        };
        int updates;
        {
            const JoiningThread first(step, std::ref(steps[0])), second(step, std::ref(steps[1]));
            while (steps[0] < 3 || steps[1] < 3) std::this_thread::yield();
            close_simulator(simulator);
            CHECK_EQUAL(observer.releases, 1);
            updates = observer.updates;
        }
        CHECK_EQUAL(observer.updates, updates);
        CHECK_EQUAL(updates, 1 + steps[0] + steps[1]);
    }
}

}  // namespace
