// CUDA resource handles: lifetimes, owners, identity, contexts, threads, and a failure of each driver call.
#include <string.h>

#include "installed_driver.h"
#include "functions.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/stream.h"

namespace {

using namespace doorstep;

Ref<Context> context_of_new_driver(const stand_in::Settings& settings = {}) {
    stand_in::install(settings);
    Ref<Context> context = Context::of_device(0);
    CHECK(context);
    return context;
}

ds_status launch(Kernel& kernel, const Stream& stream, const LaunchShape& shape) {
    uint64_t data = 0;
    void* arguments[] = {&data};
    return kernel.launch(stream, shape, arguments);
}

// A foreign owner, which counts its releases.
struct Owner {
    int released = 0;
    int64_t contexts = -1;  // alive at the time of the release

    ForeignOwner foreign() {
        return {this, [](void* owner) {
                    ++static_cast<Owner*>(owner)->released;
                    static_cast<Owner*>(owner)->contexts = live_counts.resources[DS_RESOURCE_CONTEXT];
                }};
    }
};

// ---- Lifetimes ----

LAW(the_process_keeps_the_primary_context_of_a_device_from_its_first_use_on) {
    stand_in::install({.devices = 2});
    for (int use = 0; use < 3; ++use) {
        CHECK(Context::of_device(0));
        CHECK_EQUAL(stand_in::retained(0), 1);
        CHECK_EQUAL(stand_in::retained(1), 0);
        CHECK_EQUAL(live_resources(), 0);
    }
    CHECK_EQUAL(stand_in::count_calls("cuDevicePrimaryCtxRelease"), 2);
}

LAW(memory_keeps_the_stream_it_is_freed_on) {
    Ref<Context> context = context_of_new_driver();
    Ref<MemoryPool> pool = MemoryPool::default_of(context);
    Ref<Stream> stream = Stream::create(context);
    Ref<DeviceMemory> memory = DeviceMemory::create(pool, stream, 4096);
    CHECK_EQUAL(memory->bytes(), 4096);
    drop(context, pool, stream);
    CHECK_EQUAL(stand_in::alive(), 2);
    memory = {};
    check_clean();
    CHECK(stand_in::first_call("cuMemFreeAsync") < stand_in::first_call("cuStreamDestroy"));
}

LAW(memory_can_be_freed_on_another_stream_than_it_was_made_on) {
    Ref<Context> context = context_of_new_driver();
    Ref<Stream> first = Stream::create(context), second = Stream::create(context);
    Ref<DeviceMemory> memory = DeviceMemory::create_on(first, 64);
    CHECK_EQUAL(second->follow(*first), DS_STATUS_OK);
    CHECK_EQUAL(memory->set_stream(second), DS_STATUS_OK);
    first = {};
    CHECK_EQUAL(stand_in::alive("streams"), 1);
    second = {};
    CHECK_EQUAL(stand_in::alive("streams"), 1);
    drop(memory, context);
    check_clean();
}

LAW(without_memory_pools_memory_is_freed_after_its_stream_has_ended_its_work) {
    Ref<Context> context = context_of_new_driver({.memory_pools = 0});
    CHECK(!MemoryPool::default_of(context));
    CHECK_EQUAL(last_status(), DS_STATUS_DEVICE);
    Ref<DeviceMemory> memory = DeviceMemory::create_on(Stream::create(context), 64);
    CHECK(memory);
    drop(memory, context);
    check_clean();
    CHECK(stand_in::first_call("cuStreamSynchronize") >= 0);
    CHECK(stand_in::first_call("cuStreamSynchronize") < stand_in::first_call("cuMemFree"));
    CHECK_EQUAL(stand_in::first_call("cuMemFreeAsync"), -1);
}

LAW(memory_of_a_per_thread_stream_is_freed_after_everything) {
    Ref<Context> context = context_of_new_driver();
    Ref<DeviceMemory> memory = DeviceMemory::create_on(Stream::borrow(context, 2), 64);
    drop(memory, context);
    check_clean();
    CHECK(stand_in::first_call("cuCtxSynchronize") >= 0);
    CHECK(stand_in::first_call("cuCtxSynchronize") < stand_in::first_call("cuMemFreeAsync"));
}

LAW(a_module_stays_loaded_when_its_objects_and_those_of_the_context_have_ended) {
    stand_in::install({.devices = 2});
    for (int i = 0; i < 3; ++i) {
        const Ref<Module> module = stand_in::load_module(Context::of_device(0));
        const Ref<Module> again = stand_in::load_module(Context::of_device(0));
        CHECK(module && module.get() == again.get());
    }
    CHECK_EQUAL(stand_in::alive("modules"), 1);
    CHECK(stand_in::load_module(Context::of_device(1)));
    CHECK_EQUAL(stand_in::alive("modules"), 2);
    check_clean();
}

LAW(memory_that_a_graph_being_recorded_may_use_is_leaked_rather_than_freed) {
    Ref<Context> context = context_of_new_driver();
    const Ref<Stream> stream = Stream::create(context);
    Ref<DeviceMemory> memory = DeviceMemory::create_on(stream, 64);
    CHECK_EQUAL(begin_capture(*stream), DS_STATUS_OK);
    CHECK(!DeviceMemory::create_on(stream, 64));
    CHECK_EQUAL(last_status(), DS_STATUS_INVALID_ARGUMENT);
    memory = {};
    CHECK(Graph::end_capture(*stream));
    CHECK_EQUAL(stand_in::alive("device_memory"), 1);
    CHECK_EQUAL(live_counts.resources[DS_RESOURCE_DEVICE_MEMORY], 0);
}

LAW(what_ends_beside_a_capture_of_other_code_does_not_disturb_it) {
    Ref<Context> context = context_of_new_driver();
    const Ref<Stream> recorded = Stream::create(context);
    Ref<Stream> stream = Stream::create(context);
    Ref<Event> event = Event::create(context);
    Ref<DeviceMemory> memory = DeviceMemory::create_on(stream, 64);
    Ref<DeviceMemory> plain_memory = DeviceMemory::create_without_pool(stream, 64);
    Ref<PinnedMemory> pinned = PinnedMemory::create(context, 64);
    CHECK_EQUAL(begin_capture(*stream), DS_STATUS_OK);
    Ref<GraphExec> exec = GraphExec::create(Graph::end_capture(*stream));
    CHECK_EQUAL(cuStreamBeginCapture_v2(recorded->raw(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    event = {};
    memory = plain_memory = {};
    drop(pinned, exec, stream);
    CHECK_EQUAL(stand_in::alive(), 1);  // the stream that is recorded
    uint64_t graph;
    CHECK_EQUAL(cuStreamEndCapture(recorded->raw(), &graph), CUDA_SUCCESS);
    CHECK_EQUAL(cuGraphDestroy(graph), CUDA_SUCCESS);
}

// ---- Borrowed and foreign ----

LAW(a_foreign_owner_is_let_go_once_with_the_last_child_while_the_context_lives) {
    Ref<Context> context = context_of_new_driver();
    Owner owner;
    Ref<Stream> stream = Stream::borrow(context, stand_in::make_foreign_stream(0), owner.foreign());
    CHECK_EQUAL(stream->ownership(), DS_OWNERSHIP_FOREIGN);
    Ref<DeviceMemory> memory = DeviceMemory::create_on(stream, 64);
    drop(context, stream);
    CHECK_EQUAL(owner.released, 0);
    memory = {};
    CHECK_EQUAL(owner.released, 1);
    CHECK_EQUAL(owner.contexts, 1);
    CHECK_EQUAL(live_counts.resources[DS_RESOURCE_CONTEXT], 0);
    CHECK_EQUAL(stand_in::alive("streams"), 1);
}

LAW(an_owner_stays_with_the_caller_if_borrowing_fails) {
    Ref<Context> context = context_of_new_driver({.devices = 2});
    const Ref<Context> other = Context::of_device(1);
    Owner owner;
    const uint64_t raw = stand_in::make_foreign_stream(1);
    CHECK(!Stream::borrow(context, raw, owner.foreign(), "stream"));
    CHECK_EQUAL(last_status(), DS_STATUS_INVALID_ARGUMENT);
    CHECK(strcmp(latest_error().argument, "stream") == 0);
    CHECK(!Stream::borrow(context, 0x1234567, owner.foreign()));
    CHECK_EQUAL(last_status(), DS_STATUS_INVALID_ARGUMENT);
    CHECK(!DeviceMemory::borrow(context, 0x1234567, 8, owner.foreign()));
    CHECK_EQUAL(last_status(), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(owner.released, 0);
    stand_in::driver().report.violations.clear();  // of asking for what never was
}

LAW(default_streams_are_bound_to_their_context) {
    Ref<Context> context = context_of_new_driver({.devices = 2});
    const Ref<Context> other = Context::of_device(1);
    const Ref<Stream> legacy = Stream::borrow(context, 0), same = Stream::borrow(context, 1);
    CHECK_EQUAL(legacy->raw(), 1);
    CHECK_EQUAL(same->raw(), 1);
    const Ref<Stream> elsewhere = Stream::borrow(other, 1);
    CHECK_EQUAL(legacy->device_index(), 0);
    CHECK_EQUAL(elsewhere->device_index(), 1);
    CHECK_EQUAL(elsewhere->synchronize(), DS_STATUS_OK);
    CHECK_EQUAL(stand_in::count_calls("cuStreamGetCtx"), 0);
}

// ---- Identity ----

LAW(what_doorstep_made_is_found_again_by_its_raw_handle) {
    Ref<Context> context = context_of_new_driver();
    const Ref<Stream> stream = Stream::create(context);
    const Ref<DeviceMemory> memory = DeviceMemory::create_on(stream, 64);
    const Ref<Event> event = Event::create(context);
    const Ref<Module> module = stand_in::load_module(context);
    const Ref<Kernel> kernel = Kernel::get(module, stand_in::kKernelName);
    CHECK(Stream::borrow(context, stream->raw()).get() == stream.get());
    CHECK(Event::borrow(context, event->raw()).get() == event.get());
    CHECK(DeviceMemory::borrow(context, memory->raw(), 8).get() == memory.get());
    CHECK(Kernel::get(module, stand_in::kKernelName).get() == kernel.get());
    CHECK(find_resource<Context>(0, context->raw()).get() == context.get());
    CHECK(find_resource<Stream>(0, stream->raw()).get() == stream.get());
    CHECK(!find_resource<Stream>(1, stream->raw()) && !find_resource<Event>(0, stream->raw()));
}

LAW(a_raw_handle_that_is_used_again_belongs_to_the_new_resource) {
    Ref<Context> context = context_of_new_driver();
    Ref<Stream> stream = Stream::create(context);
    const uint64_t raw = stream->raw();
    stream = {};
    CHECK(!find_resource<Stream>(0, raw));
    stand_in::driver().streams.reuses_handles = true;
    stream = Stream::create(context);
    CHECK_EQUAL(stream->raw(), raw);
    CHECK(find_resource<Stream>(0, raw).get() == stream.get());
}

LAW(what_is_foreign_or_borrowed_is_not_found) {
    Ref<Context> context = context_of_new_driver();
    const uint64_t raw = stand_in::make_foreign_stream(0);
    Owner owner;
    const Ref<Stream> borrowed = Stream::borrow(context, raw), foreign = Stream::borrow(context, raw, owner.foreign());
    CHECK(!find_resource<Stream>(0, raw));
    // An owner is kept even for resources that doorstep created.
    const Ref<Stream> stream = Stream::create(context);
    CHECK(Stream::borrow(context, stream->raw(), owner.foreign()).get() != stream.get());
    CHECK_EQUAL(owner.released, 1);
}

// ---- Contexts ----

void check_undone_if_context_is_not_restored(const auto& make) {
    const int64_t before = stand_in::alive(), live = live_resources();
    stand_in::fail_next("cuCtxPopCurrent");
    CHECK(!make());
    CHECK_EQUAL(last_status(), DS_STATUS_DEVICE);
    CHECK_EQUAL(stand_in::alive(), before);
    CHECK_EQUAL(live_resources(), live);
    stand_in::context_stack().clear();
}

LAW(a_creation_is_undone_if_the_callers_context_cannot_be_restored) {
    Ref<Context> context = context_of_new_driver();
    const Ref<Stream> stream = Stream::create(context);
    const Ref<MemoryPool> pool = MemoryPool::default_of(context);
    stand_in::fail_next("cuCtxPopCurrent");
    CHECK(!stand_in::load_module(context));
    stand_in::context_stack().clear();
    const Ref<Module> module = stand_in::load_module(context);
    CHECK_EQUAL(stand_in::alive("modules"), 1);  // it was loaded, and is kept
    check_undone_if_context_is_not_restored([&] { return Stream::create(context); });
    check_undone_if_context_is_not_restored([&] { return Event::create(context); });
    check_undone_if_context_is_not_restored([&] { return MemoryPool::default_of(context); });
    check_undone_if_context_is_not_restored([&] { return PinnedMemory::create(context, 64); });
    check_undone_if_context_is_not_restored([&] { return Kernel::get(module, stand_in::kKernelName); });
}

// ---- Errors ----

LAW(a_kernels_code_is_loaded_before_its_first_launch_by_every_driver) {
    for (const char* missing : {"", "cuFuncLoad"}) {
        Ref<Context> context = context_of_new_driver({.missing = {missing}});
        CHECK(Kernel::get(stand_in::load_module(context), stand_in::kKernelName));
        CHECK_EQUAL(stand_in::count_calls(*missing ? "cuFuncGetAttribute" : "cuFuncLoad"), 1);
    }
}

// ---- Waiting ----

LAW(work_that_goes_on_is_pending_and_no_error) {
    Ref<Context> context = context_of_new_driver();
    const Ref<Stream> stream = Stream::create(context);
    const Ref<Event> event = Event::create(context, true);
    stand_in::fail_next("cuStreamQuery", CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(stream->query(), DS_STATUS_PENDING);
    stand_in::fail_next("cuEventQuery", CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(event->wait(0), DS_STATUS_PENDING);
    stand_in::fail_next("cuEventQuery", CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(event->wait(INT64_MAX), DS_STATUS_OK);  // polled again
    float milliseconds;
    stand_in::fail_next("cuEventElapsedTime", CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(event->elapsed(*event, &milliseconds), DS_STATUS_PENDING);
    CHECK_EQUAL(event->elapsed(*Event::create(context, false), &milliseconds), DS_STATUS_INVALID_ARGUMENT);
    CHECK(strcmp(latest_error().argument, "start") == 0);
}

LAW(much_shared_memory_is_allowed_once_before_the_launch) {
    Ref<Context> context = context_of_new_driver();
    const Ref<Stream> stream = Stream::create(context);
    const Ref<Kernel> kernel = Kernel::get(stand_in::load_module(context), stand_in::kKernelName);
    const LaunchShape small{{1, 1, 1}, {32, 1, 1}, 48 * 1024}, large{{1, 1, 1}, {32, 1, 1}, 48 * 1024 + 1};
    CHECK_EQUAL(launch(*kernel, *stream, small), DS_STATUS_OK);
    CHECK_EQUAL(stand_in::count_calls("cuFuncSetAttribute"), 0);
    CHECK_EQUAL(launch(*kernel, *stream, large), DS_STATUS_OK);
    CHECK_EQUAL(launch(*kernel, *stream, large), DS_STATUS_OK);
    CHECK_EQUAL(stand_in::count_calls("cuFuncSetAttribute"), 1);
    CHECK(stand_in::first_call("cuFuncSetAttribute") > stand_in::first_call("cuLaunchKernel"));
}

// ---- What else fails. A failure of every call is tested from Python ----

LAW(a_driver_that_is_gone_when_the_process_ends_is_no_error) {
    Ref<Context> context = context_of_new_driver();
    Ref<Stream> stream = Stream::create(context);
    fail(DS_STATUS_CLOSED, "", "", "before");
    stand_in::fail_next("cuCtxGetCurrent", CUDA_ERROR_DEINITIALIZED);
    stream = {};
    CHECK_EQUAL(last_status(), DS_STATUS_CLOSED);
    CHECK_EQUAL(live_counts.resources[DS_RESOURCE_STREAM], 0);
}

// ---- Threads ----

LAW(threads_may_make_find_and_release_resources_at_once) {
    stand_in::install({.eager = 1});
    stand_in::driver().streams.reuses_handles = true;
    {
        const Ref<Context> context = Context::of_device(0);
        const Ref<Stream> shared = Stream::create(context);
        run_in_threads(8, [&] {
            for (int round = 0; round < 200; ++round) {
                Ref<Stream> stream = Stream::create(context);
                Ref<DeviceMemory> memory = DeviceMemory::create_on(stream, 64);
                CHECK(stream && memory && Stream::borrow(context, shared->raw()).get() == shared.get());
                const uint64_t raw = stream->raw();
                stream = {};
                CHECK(find_resource<Stream>(0, raw));
                memory->set_stream(shared);
            }
        });
        CHECK_EQUAL(live_resources(), 2);
    }
    check_clean();
}

}  // namespace
