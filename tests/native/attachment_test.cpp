// Libraries attached to a simulator: when their update is called, with what arguments, and how it ends.
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <vector>

#include "api/call.h"
#include "processes.h"
#include "simulators.h"

namespace {

// Sums a field of all worlds on the simulator's threads, and counts its calls.
struct Observer {
    ds_tensor_info field{};  // body_positions
    std::atomic<int> updates{0}, releases{0};
    std::atomic<int32_t> workers_seen{0};  // a bit for each
    ds_status failure = DS_STATUS_OK;      // of the next updates
    bool fails_silently = false;
    ds_turn turn{};
    std::vector<double> sums;  // per world

    void observe(int64_t first, int64_t count, int32_t worker) {
        CHECK(worker >= 0 && worker < turn.num_workers);
        workers_seen.fetch_or(1 << worker);
        for (int64_t world = first; world < first + count; ++world) {
            const char* start = static_cast<const char*>(field.data) + world * field.strides[0];
            double& sum = sums[static_cast<size_t>(world)];
            sum = 0;
            for (int64_t body = 0; body < field.shape[1]; ++body) {
                sum += static_cast<double>(*reinterpret_cast<const float*>(start + body * field.strides[1]));
            }
        }
    }

    ds_status update(const ds_turn* given) {
        CHECK_EQUAL(given->struct_size, sizeof *given);
        turn = *given;
        updates.fetch_add(1);
        if (fails_silently) return DS_STATUS_RENDERER;
        if (failure) {
            CHECK_EQUAL(ds_set_error(failure, "renderer", "look away", "the paint is dry"), DS_STATUS_OK);
            return failure;
        }
        const ds_task task = [](void* context, int64_t first, int64_t count, int32_t worker) {
            static_cast<Observer*>(context)->observe(first, count, worker);
        };
        given->run(given->pool, field.shape[0], task, this);
        return DS_STATUS_OK;
    }

    ds_attachment attachment() {
        ds_attachment made = {};
        made.struct_size = sizeof made;
        made.context = this;
        made.update = [](void* context, const ds_turn* given) { return static_cast<Observer*>(context)->update(given); };
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
};

void prepare(Observer& observer, ds_simulator simulator) {
    observer.field.struct_size = sizeof observer.field;
    CHECK_EQUAL(ds_simulator_view_state(simulator, DS_STATE_body_positions, &observer.field), DS_STATUS_OK);
    CHECK_EQUAL(observer.field.access, DS_ACCESS_READ);
    observer.sums.resize(static_cast<size_t>(observer.field.shape[0]));
}

void attach(Observer& observer, ds_simulator simulator) {
    prepare(observer, simulator);
    const ds_attachment attachment = observer.attachment();
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_OK);
}

void it_sees_the_worlds_after_everything_that_changes_them() {
    Observer observer;
    const ds_simulator simulator = make_simulator(200, 3);
    attach(observer, simulator);
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
    ds_tensor_info info;
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_simulator_get_state(simulator, DS_STATE_body_positions, &info), DS_STATUS_OK);
    *static_cast<float*>(info.data) += 1;
    changed(ds_simulator_refresh(simulator));
    close_simulator(simulator);
    CHECK_EQUAL(observer.updates, expected);
    CHECK_EQUAL(observer.releases, 1);
    check_nothing_lives();
}

void it_changes_nothing_in_the_worlds() {
    Observer observer;
    const ds_simulator with = make_simulator(150, 2), without = make_simulator(150, 2);
    attach(observer, with);
    for (int step = 0; step < 20; ++step) {
        step_once(with, step);
        step_once(without, step);
    }
    CHECK_EQUAL(hash_of(with), hash_of(without));
    close_simulator(with);
    close_simulator(without);
}

// Even a single world, or few of them, are drawn on all threads.
void all_threads_work_for_it() {
    Observer observer;
    const ds_simulator simulator = make_simulator(30, 4);
    attach(observer, simulator);
    CHECK_EQUAL(observer.turn.num_workers, 4);
    for (int step = 0; step < 2000 && observer.workers_seen != 15; ++step) step_once(simulator, step);
    CHECK_EQUAL(observer.workers_seen, 15);
    close_simulator(simulator);
    check_nothing_lives();
}

int32_t has_attachment(ds_simulator simulator) {
    int32_t attached = -1;
    CHECK_EQUAL(ds_simulator_has_attachment(simulator, &attached), DS_STATUS_OK);
    return attached;
}

void there_is_room_for_one() {
    Observer first, second;
    const ds_simulator simulator = make_simulator(5, 1);
    CHECK_EQUAL(has_attachment(simulator), 0);
    attach(first, simulator);
    CHECK_EQUAL(has_attachment(simulator), 1);
    CHECK_EQUAL(ds_simulator_has_attachment(simulator, nullptr), DS_STATUS_INVALID_ARGUMENT);
    prepare(second, simulator);
    ds_attachment attachment = second.attachment();
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_message_has("something is attached to this simulator already"));
    CHECK_EQUAL(second.updates, 0);
    attachment.update = nullptr;
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("update"));
    attachment.struct_size -= 1;
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_attach(simulator, nullptr), DS_STATUS_INVALID_ARGUMENT);
    close_simulator(simulator);
    attachment = second.attachment();
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_CLOSED);
    CHECK_EQUAL(first.releases, 1);
    CHECK_EQUAL(second.releases, 0);
}

void one_that_fails_at_once_is_not_attached() {
    Observer observer;
    observer.failure = DS_STATUS_RENDERER;
    const ds_simulator simulator = make_simulator(5, 1);
    prepare(observer, simulator);
    const ds_attachment attachment = observer.attachment();
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_RENDERER);
    CHECK(last_message_has("the paint is dry"));
    CHECK_EQUAL(has_attachment(simulator), 0);
    step_once(simulator, 0);
    CHECK_EQUAL(observer.updates, 1);
    observer.failure = DS_STATUS_OK;
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_OK);
    close_simulator(simulator);
    CHECK_EQUAL(observer.releases, 1);
}

void a_failure_is_returned_by_the_operation_which_was_done() {
    Observer observer;
    const ds_simulator simulator = make_simulator(5, 1), twin = make_simulator(5, 1);
    attach(observer, simulator);
    observer.failure = DS_STATUS_RENDERER;
    write_actions(simulator, 1);
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_RENDERER);
    CHECK(last_error_names("renderer"));
    CHECK_EQUAL(ds_simulator_reset(simulator, nullptr, 0), DS_STATUS_RENDERER);
    observer.failure = DS_STATUS_OK;
    step_once(simulator, 2);
    step_once(twin, 1);
    CHECK_EQUAL(ds_simulator_reset(twin, nullptr, 0), DS_STATUS_OK);
    step_once(twin, 2);
    CHECK_EQUAL(hash_of(simulator), hash_of(twin));
    close_simulator(simulator);
    close_simulator(twin);
}

void a_failure_after_an_asynchronous_step_is_reported_once_by_the_next_call() {
    Observer observer;
    const ds_simulator simulator = make_simulator(5, 1), twin = make_simulator(5, 1);
    attach(observer, simulator);
    observer.failure = DS_STATUS_SHADER;
    write_actions(simulator, 1);
    ds_event event;
    CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_wait(event, -1), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
    observer.failure = DS_STATUS_OK;
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_SHADER);
    CHECK(last_error_names("renderer"));
    CHECK(last_message_has("the paint is dry"));
    step_once(twin, 1);
    CHECK_EQUAL(hash_of(simulator), hash_of(twin));
    close_simulator(simulator);
    close_simulator(twin);
    check_nothing_lives();
}

void a_failure_without_a_reason_is_reported_all_the_same() {
    Observer observer;
    const ds_simulator simulator = make_simulator(5, 1);
    const ds_attachment attachment = observer.attachment();
    prepare(observer, simulator);
    observer.fails_silently = true;
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, "material", "", "of yesterday"), DS_STATUS_OK);
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_RENDERER);
    CHECK(last_message_has("the library attached to the simulator failed"));
    observer.fails_silently = false;
    CHECK_EQUAL(ds_simulator_attach(simulator, &attachment), DS_STATUS_OK);
    observer.fails_silently = true;
    ds_event event;
    CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_wait(event, -1), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
    observer.fails_silently = false;
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, "material", "", "of yesterday"), DS_STATUS_OK);
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_RENDERER);
    CHECK(last_message_has("the library attached to the simulator failed"));
    step_once(simulator, 0);
    close_simulator(simulator);
}

void it_follows_into_a_forked_child() {
    Observer observer;
    const ds_simulator simulator = make_simulator(200, 3);
    attach(observer, simulator);
    const int status = run_in_child([&] {
        step_once(simulator, 1);
        CHECK_EQUAL(observer.updates, 2);
        CHECK(observer.is_current());
        ds_event event;
        CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_wait(event, -1), DS_STATUS_OK);
        CHECK_EQUAL(observer.updates, 3);
        CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
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

struct Stepper {
    ds_simulator simulator;
    std::atomic<int> steps{0};
    pthread_t thread{};

    void start() {
        CHECK_EQUAL(pthread_create(&thread, nullptr, run, this), 0);
    }
    static void* run(void* context) {
        Stepper* self = static_cast<Stepper*>(context);
        while (ds_simulator_step(self->simulator) == DS_STATUS_OK) self->steps.fetch_add(1);
        return nullptr;
    }
};

void threads_take_turns_and_the_release_comes_after_the_last_update() {
    for (int round = 0; round < 10; ++round) {
        Observer observer;
        const ds_simulator simulator = make_simulator(130, 2);
        attach(observer, simulator);
        Stepper steppers[2] = {{simulator}, {simulator}};
        for (Stepper& stepper : steppers) stepper.start();
        while (steppers[0].steps < 3 || steppers[1].steps < 3) sched_yield();
        close_simulator(simulator);
        CHECK_EQUAL(observer.releases, 1);
        const int updates = observer.updates;
        for (Stepper& stepper : steppers) pthread_join(stepper.thread, nullptr);
        CHECK_EQUAL(observer.updates, updates);
        CHECK_EQUAL(updates, 1 + steppers[0].steps + steppers[1].steps);
    }
    check_nothing_lives();
}

void memory_for_it_is_zeroed_counted_and_outlives_the_simulator() {
    const ds_simulator simulator = make_simulator(5, 1);
    ds_simulator_info before, after;
    before.struct_size = after.struct_size = sizeof before;
    CHECK_EQUAL(ds_simulator_get_info(simulator, &before), DS_STATUS_OK);
    ds_memory memory, shared;
    void* data;
    CHECK_EQUAL(ds_simulator_allocate(simulator, 100'000, &memory, &data), DS_STATUS_OK);
    CHECK_EQUAL(ds_simulator_get_info(simulator, &after), DS_STATUS_OK);
    CHECK(after.allocated_bytes >= before.allocated_bytes + 100'000);
    CHECK_EQUAL(ds_simulator_allocate(simulator, 100'000, &shared, &data), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_release(shared), DS_STATUS_OK);
    const int64_t with_one = after.allocated_bytes;
    CHECK_EQUAL(ds_simulator_get_info(simulator, &after), DS_STATUS_OK);
    CHECK_EQUAL(after.allocated_bytes, with_one);
    CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    CHECK_EQUAL(ds_simulator_get_info(simulator, &after), DS_STATUS_OK);
    CHECK_EQUAL(after.allocated_bytes, before.allocated_bytes);
    CHECK_EQUAL(ds_simulator_allocate(simulator, 100'000, &memory, &data), DS_STATUS_OK);
    CHECK_EQUAL(reinterpret_cast<uintptr_t>(data) % 256, 0);
    char* bytes = static_cast<char*>(data);
    for (int i = 0; i < 100'000; ++i) CHECK_EQUAL(bytes[i], 0);
    close_simulator(simulator);
    CHECK_EQUAL(ds_memory_share(memory, &shared), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_share(memory, &memory), DS_STATUS_CLOSED);
    bytes[99'999] = 1;
    CHECK_EQUAL(live(DS_LIVE_MEMORY), 1);
    CHECK_EQUAL(ds_memory_release(shared), DS_STATUS_OK);
    check_nothing_lives();
}

void memory_that_cannot_be_had_is_refused() {
    const ds_simulator simulator = make_simulator(5, 1);
    ds_memory memory = 0;
    void* data = nullptr;
    CHECK_EQUAL(ds_simulator_allocate(simulator, 0, &memory, &data), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("bytes"));
    CHECK_EQUAL(ds_simulator_allocate(simulator, UINT64_MAX, &memory, &data), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_allocate(simulator, uint64_t{1} << 50, &memory, &data), DS_STATUS_OUT_OF_MEMORY);
    CHECK(last_error_names("bytes"));
    CHECK_EQUAL(ds_simulator_allocate(simulator, 1, nullptr, &data), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_allocate(simulator, 1, &memory, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK(memory == 0 && data == nullptr);
    close_simulator(simulator);
    CHECK_EQUAL(ds_simulator_allocate(simulator, 1, &memory, &data), DS_STATUS_CLOSED);
}

void viewing_the_state_does_not_make_steps_look_for_edits() {
    const ds_simulator simulator = make_simulator(5, 1);
    const auto looks = [&] { return doorstep::simulators.find(simulator, "simulator")->simulation().rules.look_for_edits; };
    ds_tensor_info viewed = {}, edited = {};
    viewed.struct_size = edited.struct_size = sizeof viewed;
    CHECK_EQUAL(ds_simulator_view_state(simulator, DS_STATE_body_positions, &viewed), DS_STATUS_OK);
    CHECK_EQUAL(looks(), 0);
    CHECK_EQUAL(ds_simulator_get_state(simulator, DS_STATE_body_positions, &edited), DS_STATUS_OK);
    CHECK_EQUAL(looks(), 1);
    CHECK_EQUAL(viewed.access, DS_ACCESS_READ);
    CHECK_EQUAL(edited.access, DS_ACCESS_READ_WRITE);
    viewed.access = edited.access;
    CHECK_EQUAL(memcmp(&viewed, &edited, sizeof viewed), 0);
    CHECK_EQUAL(ds_simulator_view_state(simulator, DS_STATE_COUNT, &viewed), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("field"));
    close_simulator(simulator);
    CHECK_EQUAL(ds_simulator_view_state(simulator, 0, &viewed), DS_STATUS_CLOSED);
}

void errors_of_other_libraries_are_read_like_doorstep_s_own() {
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, "material", "correct it", "roof.hlsl:3:7: error: 100% wrong"),
                DS_STATUS_OK);
    ds_error error;
    error.struct_size = sizeof error;
    CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
    CHECK_EQUAL(error.status, DS_STATUS_SHADER);
    CHECK_EQUAL(strcmp(error.message, "roof.hlsl:3:7: error: 100% wrong"), 0);
    CHECK_EQUAL(strcmp(error.argument, "material"), 0);
    CHECK_EQUAL(strcmp(error.hint, "correct it"), 0);
    CHECK_EQUAL(error.driver_code, 0);
    // The strings may be those of the last error
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, "argument", "hint", "message"), DS_STATUS_OK);
    ds_error last = {};
    last.struct_size = sizeof last;
    CHECK_EQUAL(ds_last_error(&last), DS_STATUS_OK);
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, last.hint, last.message, last.argument), DS_STATUS_OK);
    CHECK_EQUAL(ds_last_error(&last), DS_STATUS_OK);
    CHECK(strcmp(last.argument, "hint") == 0 && strcmp(last.hint, "message") == 0);
    CHECK(strcmp(last.message, "argument") == 0);
    CHECK_EQUAL(ds_set_error(DS_STATUS_OK, "", "", ""), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("status"));
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER + 1, "", "", ""), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_set_error(DS_STATUS_SHADER, nullptr, "", ""), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("argument"));
}

}  // namespace

int main() {
    RUN(it_sees_the_worlds_after_everything_that_changes_them);
    RUN(it_changes_nothing_in_the_worlds);
    RUN(all_threads_work_for_it);
    RUN(there_is_room_for_one);
    RUN(one_that_fails_at_once_is_not_attached);
    RUN(a_failure_is_returned_by_the_operation_which_was_done);
    RUN(a_failure_after_an_asynchronous_step_is_reported_once_by_the_next_call);
    RUN(a_failure_without_a_reason_is_reported_all_the_same);
    if (kCanStartThreadsInChild) RUN(it_follows_into_a_forked_child);
    RUN(threads_take_turns_and_the_release_comes_after_the_last_update);
    RUN(memory_for_it_is_zeroed_counted_and_outlives_the_simulator);
    RUN(memory_that_cannot_be_had_is_refused);
    RUN(viewing_the_state_does_not_make_steps_look_for_edits);
    RUN(errors_of_other_libraries_are_read_like_doorstep_s_own);
}
