// Libraries attached to a simulator: when their update is called, with what arguments, and how it ends.
#include <atomic>

#include "processes.h"
#include "simulators.h"

namespace {

// Sums a field of all worlds on the simulator's threads, and counts its calls.
struct Observer {
    ds_tensor_info field = sized<ds_tensor_info>();  // body_positions
    std::atomic<int> updates{0}, releases{0};
    std::atomic<int32_t> workers_seen{0};  // a bit for each
    ds_status failure = DS_STATUS_OK;      // of the next updates
    bool tells_why = true;
    ds_turn turn{};
    std::vector<double> sums;  // per world

    void observe(int64_t first, int64_t count, int32_t worker) {
        CHECK(worker >= 0 && worker < turn.num_workers);
        workers_seen.fetch_or(1 << worker);
        for (int64_t world = first; world < first + count; ++world) {
            const char* start = static_cast<const char*>(field.data) + world * field.strides[0];
            double& sum = sums[static_cast<size_t>(world)];
            sum = 0;
            for (int64_t body = 0; body < field.shape[1]; ++body)
                sum += static_cast<double>(*reinterpret_cast<const float*>(start + body * field.strides[1]));
        }
    }

    ds_status update(const ds_turn* given) {
        CHECK_EQUAL(given->struct_size, sizeof *given);
        turn = *given;
        updates.fetch_add(1);
        if (failure) {
            if (tells_why) ds_set_error(failure, "renderer", "look away", "the paint is dry");
            return failure;
        }
        const ds_task task = [](void* context, int64_t first, int64_t count, int32_t worker) {
            static_cast<Observer*>(context)->observe(first, count, worker);
        };
        given->run(given->pool, field.shape[0], task, this);
        return DS_STATUS_OK;
    }

    ds_attachment attachment() {
        auto made = sized<ds_attachment>();
        made.context = this;
        made.update = [](void* context, const ds_turn* turn) { return static_cast<Observer*>(context)->update(turn); };
        made.release = [](void* context) { static_cast<Observer*>(context)->releases.fetch_add(1); };
        return made;
    }

    // The sums that update() should have computed, from the current state.
    bool is_current() {
        const std::vector<double> found = sums;
        const ds_turn before = turn;
        turn.num_workers = 1;
        observe(0, field.shape[0], 0);
        turn = before;
        return found == sums;
    }

    ds_status attach(ds_simulator simulator) {
        CHECK_EQUAL(ds_simulator_view_state(simulator, DS_STATE_body_positions, &field), DS_STATUS_OK);
        CHECK_EQUAL(field.access, DS_ACCESS_READ);
        sums.resize(static_cast<size_t>(field.shape[0]));
        const ds_attachment made = attachment();
        return ds_simulator_attach(simulator, &made);
    }
};

LAW(an_attachment_sees_the_worlds_after_everything_that_changes_them) {
    Observer observer;
    const OpenSimulator simulator(200, 3), twin(200, 2);
    CHECK_EQUAL(observer.attach(simulator), DS_STATUS_OK);
    CHECK_EQUAL(observer.updates, 1);
    CHECK(observer.is_current());
    CHECK_EQUAL(observer.turn.device_kind, DS_DEVICE_CPU);
    CHECK_EQUAL(observer.turn.num_workers, 3);
    CHECK_EQUAL(observer.turn.stream, 0);
    int expected = 1;
    const auto changed = [&](ds_status status) {
        CHECK_EQUAL(status, DS_STATUS_OK);
        CHECK_EQUAL(observer.updates, ++expected);
        CHECK(observer.is_current());
    };
    write_actions(simulator, 3);
    changed(ds_simulator_step(simulator));
    step_once(twin, 3);
    CHECK_EQUAL(hash_of(simulator), hash_of(twin));
    const std::vector<char> saved = save_of(simulator);
    ds_event event;
    write_actions(simulator, 4);
    CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
    changed(ds_event_wait(event, -1));
    CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
    const int64_t some[] = {7, 3};
    changed(ds_simulator_reset(simulator, some, 2));
    const std::vector<uint8_t> mask(200, 1);
    changed(ds_simulator_reset_mask(simulator, mask.data(), 200));
    changed(ds_simulator_restore(simulator, saved.data(), saved.size(), nullptr, 0));
    auto info = sized<ds_tensor_info>();
    CHECK_EQUAL(ds_simulator_get_state(simulator, DS_STATE_body_positions, &info), DS_STATUS_OK);
    *static_cast<float*>(info.data) += 1;
    changed(ds_simulator_refresh(simulator));
    close_simulator(simulator);
    close_simulator(twin);
    CHECK_EQUAL(observer.updates, expected);
    CHECK_EQUAL(observer.releases, 1);
}

// Even a single world, or few of them, are drawn on all threads.
LAW(all_threads_work_for_an_attachment) {
    Observer observer;
    const OpenSimulator simulator(30, 4);
    CHECK_EQUAL(observer.attach(simulator), DS_STATUS_OK);
    CHECK_EQUAL(observer.turn.num_workers, 4);
    for (int step = 0; step < 2000 && observer.workers_seen != 15; ++step) step_once(simulator, step);
    CHECK_EQUAL(observer.workers_seen, 15);
}

int32_t has_attachment(ds_simulator simulator) {
    int32_t attached = -1;
    CHECK_EQUAL(ds_simulator_has_attachment(simulator, &attached), DS_STATUS_OK);
    return attached;
}

LAW(there_is_room_for_one_attachment_that_does_not_fail_at_once) {
    Observer first, second;
    const OpenSimulator simulator(5, 1);
    first.failure = DS_STATUS_RENDERER;
    CHECK_EQUAL(first.attach(simulator), DS_STATUS_RENDERER);
    CHECK(last_message_has("the paint is dry"));
    CHECK_EQUAL(has_attachment(simulator), 0);
    step_once(simulator, 0);
    CHECK_EQUAL(first.updates, 1);
    first.failure = DS_STATUS_OK;
    CHECK_EQUAL(first.attach(simulator), DS_STATUS_OK);
    CHECK_EQUAL(has_attachment(simulator), 1);
    CHECK_EQUAL(second.attach(simulator), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_message_has("something is attached to this simulator already"));
    CHECK_EQUAL(second.updates, 0);
    ds_attachment attachment = second.attachment();
    attachment.update = nullptr;
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("update"));
    close_simulator(simulator);
    attachment = second.attachment();
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_CLOSED);
    CHECK_EQUAL(first.releases, 1);
    CHECK_EQUAL(second.releases, 0);
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
        CHECK(observer.is_current());
        close_simulator(simulator);
        CHECK_EQUAL(observer.releases, 1);
        return 0;
    });
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(observer.updates, 1);
    CHECK_EQUAL(observer.releases, 0);
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

LAW(memory_for_an_attachment_is_zeroed_counted_and_outlives_the_simulator) {
    const OpenSimulator simulator(5, 1);
    const auto allocated = [&] { return info_of(simulator).allocated_bytes; };
    const int64_t before = allocated();
    ds_memory memory = 0, shared;
    void* data = nullptr;
    CHECK_EQUAL(ds_simulator_allocate(simulator, 0, &memory, &data), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_allocate(simulator, UINT64_MAX, &memory, &data), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_allocate(simulator, uint64_t{1} << 50, &memory, &data), DS_STATUS_OUT_OF_MEMORY);
    CHECK(last_error_names("bytes"));
    CHECK_EQUAL(ds_simulator_allocate(simulator, 1, nullptr, &data), DS_STATUS_INVALID_ARGUMENT);
    CHECK(memory == 0 && data == nullptr);
    CHECK_EQUAL(ds_simulator_allocate(simulator, 100'000, &memory, &data), DS_STATUS_OK);
    CHECK(allocated() >= before + 100'000);
    CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    CHECK_EQUAL(allocated(), before);
    CHECK_EQUAL(ds_simulator_allocate(simulator, 100'000, &memory, &data), DS_STATUS_OK);
    CHECK_EQUAL(reinterpret_cast<uintptr_t>(data) % 256, 0);
    char* bytes = static_cast<char*>(data);
    for (int i = 0; i < 100'000; ++i) CHECK_EQUAL(bytes[i], 0);
    close_simulator(simulator);
    CHECK_EQUAL(ds_simulator_allocate(simulator, 1, &shared, &data), DS_STATUS_CLOSED);
    CHECK_EQUAL(ds_memory_share(memory, &shared), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_share(memory, &memory), DS_STATUS_CLOSED);
    bytes[99'999] = 1;
    CHECK_EQUAL(live(DS_LIVE_MEMORY), 1);
    CHECK_EQUAL(ds_memory_release(shared), DS_STATUS_OK);
}

LAW(errors_of_other_libraries_are_read_like_doorstep_s_own) {
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, "material", "correct it", "roof.hlsl:3:7: error: 100% wrong"),
                DS_STATUS_OK);
    ds_error error = last_error();
    CHECK_EQUAL(error.status, DS_STATUS_SHADER);
    CHECK_EQUAL(strcmp(error.message, "roof.hlsl:3:7: error: 100% wrong"), 0);
    CHECK(strcmp(error.argument, "material") == 0 && strcmp(error.hint, "correct it") == 0);
    // The strings may be those of the last error
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, error.hint, error.message, error.argument), DS_STATUS_OK);
    error = last_error();
    CHECK(strcmp(error.argument, "correct it") == 0 && strcmp(error.message, "material") == 0);
    CHECK_EQUAL(ds_set_error(DS_STATUS_OK, "", "", ""), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("status"));
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER + 1, "", "", ""), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, nullptr, "", ""), DS_STATUS_INVALID_ARGUMENT);
}

}  // namespace
