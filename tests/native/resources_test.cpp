// CUDA resource handles: identity, contexts, threads, and what Python cannot see of lifetimes and owners.
#include <string.h>

#include "installed_driver.h"
#include "functions.h"
#include "runtime/cuda/device_memory.h"
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
    ForeignOwner foreign() {
        return {this, [](void* owner) { ++static_cast<Owner*>(owner)->released; }};
    }
};

// ---- Lifetimes ----

LAW(memory_keeps_the_stream_it_is_freed_on) {
    Ref<Context> context = context_of_new_driver();
    Ref<MemoryPool> pool = MemoryPool::default_of(context);
    Ref<Stream> stream = Stream::create(context);
    Ref<DeviceMemory> memory = DeviceMemory::create(pool, stream, 4096);
    drop(context, pool, stream);
    CHECK_EQUAL(stand_in::alive(), 2);
    memory = {};
    check_clean();
    CHECK(stand_in::first_call("cuMemFreeAsync") < stand_in::first_call("cuStreamDestroy"));
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

// ---- Borrowed and foreign ----

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
