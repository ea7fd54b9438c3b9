// CUDA resource handles: lifetimes, owners, identity, contexts, threads, and a failure of each driver call.
#include <pthread.h>
#include <string.h>

#include "driver_checks.h"
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

    ForeignOwner foreign() { return {this, release}; }

    static void release(void* owner) {
        Owner& self = *static_cast<Owner*>(owner);
        ++self.released;
        self.contexts = live_counts.resources[DS_RESOURCE_CONTEXT];
    }
};

// ---- Lifetimes ----

void a_device_has_one_context_however_often_it_is_asked_for() {
    stand_in::install({.devices = 2});
    {
        const Ref<Context> first = Context::of_device(0), again = Context::of_device(0), other = Context::of_device(1);
        CHECK(first.get() == again.get());
        CHECK(first.get() != other.get());
        CHECK_EQUAL(stand_in::retained(0), 1);
        CHECK_EQUAL(first->compute_capability(), 90);
        CHECK_EQUAL(other->device_index(), 1);
    }
    check_clean();
}

void the_current_device_is_that_of_the_current_context() {
    stand_in::install({.devices = 2});
    int64_t index = -1;
    CHECK_EQUAL(find_current_device(&index), DS_STATUS_OK);
    CHECK_EQUAL(index, 0);  // there is no context
    {
        const Ref<Context> second = Context::of_device(1);
        CurrentContext current(*second);
        CHECK_EQUAL(current.status(), DS_STATUS_OK);
        CHECK_EQUAL(find_current_device(&index), DS_STATUS_OK);
        CHECK_EQUAL(index, 1);
        stand_in::fail_next("cuCtxGetDevice", CUDA_ERROR_DEINITIALIZED);
        CHECK_EQUAL(find_current_device(&index), DS_STATUS_DEVICE);
    }
    check_clean();
}

void a_stream_keeps_its_context() {
    Ref<Context> context = context_of_new_driver();
    Ref<Stream> stream = Stream::create(context);
    context = {};
    CHECK_EQUAL(live_counts.resources[DS_RESOURCE_CONTEXT], 1);
    CHECK_EQUAL(stream->synchronize(), DS_STATUS_OK);
    stream = {};
    check_clean();
}

void the_process_keeps_the_primary_context_of_a_device_from_its_first_use_on() {
    stand_in::install({.devices = 2});
    for (int use = 0; use < 3; ++use) {
        CHECK(Context::of_device(0));
        CHECK_EQUAL(stand_in::retained(0), 1);
        CHECK_EQUAL(stand_in::retained(1), 0);
        CHECK_EQUAL(live_resources(), 0);
    }
    CHECK_EQUAL(stand_in::count_calls("cuDevicePrimaryCtxRelease"), 2);
}

void memory_keeps_the_stream_it_is_freed_on() {
    Ref<Context> context = context_of_new_driver();
    Ref<MemoryPool> pool = MemoryPool::default_of(context);
    Ref<Stream> stream = Stream::create(context);
    Ref<DeviceMemory> memory = DeviceMemory::create(pool, stream, 4096);
    CHECK_EQUAL(memory->bytes(), 4096);
    context = {};
    pool = {};
    stream = {};
    CHECK_EQUAL(stand_in::alive(), 2);
    memory = {};
    check_clean();
    CHECK(stand_in::first_call("cuMemFreeAsync") < stand_in::first_call("cuStreamDestroy"));
}

void memory_can_be_freed_on_another_stream_than_it_was_made_on() {
    Ref<Context> context = context_of_new_driver();
    Ref<Stream> first = Stream::create(context), second = Stream::create(context);
    Ref<DeviceMemory> memory = DeviceMemory::create_on(first, 64);
    CHECK_EQUAL(second->follow(*first), DS_STATUS_OK);
    CHECK_EQUAL(memory->set_stream(second), DS_STATUS_OK);
    first = {};
    CHECK_EQUAL(stand_in::alive("streams"), 1);
    second = {};
    CHECK_EQUAL(stand_in::alive("streams"), 1);
    memory = {};
    context = {};
    check_clean();
}

void without_memory_pools_memory_is_freed_after_its_stream_has_ended_its_work() {
    Ref<Context> context = context_of_new_driver({.memory_pools = 0});
    CHECK(!MemoryPool::default_of(context));
    CHECK_EQUAL(last_status(), DS_STATUS_DEVICE);
    Ref<DeviceMemory> memory = DeviceMemory::create_on(Stream::create(context), 64);
    CHECK(memory);
    memory = {};
    context = {};
    check_clean();
    CHECK(stand_in::first_call("cuStreamSynchronize") >= 0);
    CHECK(stand_in::first_call("cuStreamSynchronize") < stand_in::first_call("cuMemFree"));
    CHECK_EQUAL(stand_in::first_call("cuMemFreeAsync"), -1);
}

void memory_of_a_per_thread_stream_is_freed_after_everything() {
    Ref<Context> context = context_of_new_driver();
    Ref<DeviceMemory> memory = DeviceMemory::create_on(Stream::borrow(context, 2), 64);
    memory = {};
    context = {};
    check_clean();
    CHECK(stand_in::first_call("cuCtxSynchronize") >= 0);
    CHECK(stand_in::first_call("cuCtxSynchronize") < stand_in::first_call("cuMemFreeAsync"));
}

void a_module_stays_loaded_when_its_objects_and_those_of_the_context_have_ended() {
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

void a_kernel_keeps_its_module_and_a_graph_exec_its_graph() {
    Ref<Context> context = context_of_new_driver();
    Ref<Kernel> kernel = Kernel::get(stand_in::load_module(context), stand_in::kKernelName);
    CHECK_EQUAL(live_counts.resources[DS_RESOURCE_MODULE], 1);
    const Ref<Stream> stream = Stream::create(context);
    CHECK_EQUAL(begin_capture(*stream), DS_STATUS_OK);
    Ref<GraphExec> exec = GraphExec::create(Graph::end_capture(*stream));
    CHECK_EQUAL(exec->launch(*stream), DS_STATUS_OK);
    CHECK_EQUAL(stand_in::alive("graphs"), 1);
    CHECK_EQUAL(launch(*kernel, *stream, {{1, 1, 1}, {32, 1, 1}}), DS_STATUS_OK);
    kernel = {};
    exec = {};
    CHECK_EQUAL(live_counts.resources[DS_RESOURCE_MODULE], 0);
    CHECK_EQUAL(stand_in::alive(), 1);  // the stream
    CHECK_EQUAL(stand_in::violations(), 0);
}

void memory_that_a_graph_being_recorded_may_use_is_leaked_rather_than_freed() {
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
    CHECK_EQUAL(stand_in::violations(), 0);
}

void what_ends_beside_a_capture_of_other_code_does_not_disturb_it() {
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
    pinned = {};
    exec = {};
    stream = {};
    CHECK_EQUAL(stand_in::alive(), 1);  // the stream that is recorded
    uint64_t graph;
    CHECK_EQUAL(cuStreamEndCapture(recorded->raw(), &graph), CUDA_SUCCESS);
    CHECK_EQUAL(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_EQUAL(stand_in::violations(), 0);
}

// ---- Borrowed and foreign ----

void what_is_borrowed_is_never_ended() {
    Ref<Context> context = context_of_new_driver();
    const uint64_t raw = stand_in::make_foreign_stream(0);
    Ref<Stream> stream = Stream::borrow(context, raw);
    CHECK_EQUAL(stream->ownership(), DS_OWNERSHIP_BORROWED);
    CHECK_EQUAL(stream->raw(), raw);
    CHECK_EQUAL(stream->query(), DS_STATUS_OK);
    stream = {};
    CHECK_EQUAL(stand_in::alive("streams"), 1);
    CHECK_EQUAL(stand_in::violations(), 0);
}

void a_foreign_owner_is_let_go_once_with_the_last_child_while_the_context_lives() {
    Ref<Context> context = context_of_new_driver();
    Owner owner;
    Ref<Stream> stream = Stream::borrow(context, stand_in::make_foreign_stream(0), owner.foreign());
    CHECK_EQUAL(stream->ownership(), DS_OWNERSHIP_FOREIGN);
    Ref<DeviceMemory> memory = DeviceMemory::create_on(stream, 64);
    context = {};
    stream = {};
    CHECK_EQUAL(owner.released, 0);
    memory = {};
    CHECK_EQUAL(owner.released, 1);
    CHECK_EQUAL(owner.contexts, 1);
    CHECK_EQUAL(live_counts.resources[DS_RESOURCE_CONTEXT], 0);
    CHECK_EQUAL(stand_in::alive("streams"), 1);
}

void an_owner_stays_with_the_caller_if_borrowing_fails() {
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
}

void default_streams_are_bound_to_their_context() {
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
    CHECK_EQUAL(stand_in::violations(), 0);
}

void memory_of_another_device_cannot_be_borrowed() {
    Ref<Context> context = context_of_new_driver({.devices = 2});
    const Ref<Context> other = Context::of_device(1);
    Ref<DeviceMemory> memory = DeviceMemory::create_on(Stream::create(other), 64);
    CHECK(!DeviceMemory::borrow(context, memory->raw(), 64));
    CHECK_EQUAL(last_status(), DS_STATUS_INVALID_ARGUMENT);
    Owner owner;
    Ref<DeviceMemory> borrowed = DeviceMemory::borrow(other, memory->raw(), 64, owner.foreign());
    CHECK_EQUAL(borrowed->set_stream(Stream::create(other)), DS_STATUS_INVALID_ARGUMENT);
    borrowed = {};
    CHECK_EQUAL(owner.released, 1);
    CHECK_EQUAL(stand_in::alive("device_memory"), 1);
}

// ---- Identity ----

void what_doorstep_made_is_found_again_by_its_raw_handle() {
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
    CHECK(!find_resource<Stream>(1, stream->raw()));
    CHECK(!find_resource<Event>(0, stream->raw()));
}

void a_raw_handle_that_is_used_again_belongs_to_the_new_resource() {
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

void what_is_foreign_or_borrowed_is_not_found() {
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

void the_callers_context_is_current_again_after_every_call() {
    Ref<Context> context = context_of_new_driver({.devices = 2});
    const uint64_t foreign_context = Context::of_device(1)->raw();
    for (const bool has_context : {false, true}) {
        std::vector<uint64_t> stack;
        if (has_context) stack.push_back(foreign_context);
        stand_in::context_stack() = stack;
        Ref<Stream> stream = Stream::create(context);
        Ref<DeviceMemory> memory = DeviceMemory::create_on(stream, 64);
        Ref<PinnedMemory> pinned = PinnedMemory::create(context, 64);
        CHECK_EQUAL(stream->fill(memory->raw(), 0, 64), DS_STATUS_OK);
        CHECK(stand_in::context_stack() == stack);
        stream = {};
        memory = {};
        pinned = {};
        CHECK(stand_in::context_stack() == stack);
    }
    CHECK_EQUAL(stand_in::violations(), 0);
    stand_in::context_stack().clear();
}

void a_context_that_is_current_already_is_left_alone() {
    Ref<Context> context = context_of_new_driver();
    const Ref<Stream> stream = Stream::create(context);
    stand_in::context_stack().push_back(context->raw());
    stand_in::driver().report.clear_calls();
    CHECK_EQUAL(stream->query(), DS_STATUS_OK);
    CHECK_EQUAL(stand_in::count_calls("cuCtxPushCurrent"), 0);
    stand_in::context_stack().clear();
}

template <class Make>
void check_undone_if_context_is_not_restored(const Make& make) {
    const int64_t before = stand_in::alive(), live = live_resources();
    stand_in::fail_next("cuCtxPopCurrent");
    CHECK(!make());
    CHECK_EQUAL(last_status(), DS_STATUS_DEVICE);
    CHECK_EQUAL(stand_in::alive(), before);
    CHECK_EQUAL(live_resources(), live);
    stand_in::context_stack().clear();
}

void a_creation_is_undone_if_the_callers_context_cannot_be_restored() {
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
    CHECK_EQUAL(stand_in::violations(), 0);
}

// ---- Errors ----

void a_refused_allocation_names_the_amounts() {
    Ref<Context> context = context_of_new_driver({.memory_bytes = 1000});
    const Ref<Stream> stream = Stream::create(context);
    const Ref<DeviceMemory> used = DeviceMemory::create_on(stream, 600);
    CHECK(used);
    CHECK(!DeviceMemory::create_on(stream, 123456));
    CHECK_EQUAL(last_status(), DS_STATUS_OUT_OF_MEMORY);
    CHECK_EQUAL(latest_error().driver_code, 2);
    CHECK(strstr(latest_error().message, "123456"));
    CHECK(strstr(latest_error().message, "400 free of 1000"));
}

void a_kernel_that_is_not_there_is_an_argument_error() {
    Ref<Context> context = context_of_new_driver();
    CHECK(!Kernel::get(stand_in::load_module(context), "no_such_kernel"));
    CHECK_EQUAL(last_status(), DS_STATUS_INVALID_ARGUMENT);
    CHECK(strcmp(latest_error().argument, "name") == 0);
    CHECK(strstr(latest_error().message, "no_such_kernel"));
}

void an_image_that_does_not_compile_tells_what_the_compiler_says() {
    Ref<Context> context = context_of_new_driver();
    CHECK_EQUAL(Module::load(*context, 0, "nonsense"), DS_STATUS_DEVICE);
    CHECK(!Module::is_loaded(*context, 0));
    CHECK(strstr(latest_error().message, "it is neither machine code nor PTX"));
}

void a_kernels_code_is_loaded_before_its_first_launch_by_every_driver() {
    for (const char* missing : {"", "cuFuncLoad"}) {
        Ref<Context> context = context_of_new_driver({.missing = {missing}});
        CHECK(Kernel::get(stand_in::load_module(context), stand_in::kKernelName));
        CHECK_EQUAL(stand_in::count_calls(*missing ? "cuFuncGetAttribute" : "cuFuncLoad"), 1);
    }
}

// ---- Waiting ----

void a_short_wait_polls_without_pause_and_a_long_one_sleeps() {
    int polls = 0, most = 0;
    for (int attempt = 0; attempt < 20; ++attempt) {  // the process may be interrupted
        polls = 0;
        poll(0, 40'000, [&] { return ++polls, 0; });
        most = std::max(most, polls);
    }
    CHECK(most > 100);
    polls = 0;
    const int64_t begin = monotonic_ns();
    poll(0, 60'000'000, [&] { return polls += monotonic_ns() - begin > 1'000'000, 0; });
    CHECK(polls < 100);
}

void streams_of_another_device_are_refused() {
    Ref<Context> context = context_of_new_driver({.devices = 2});
    const Ref<Stream> other = Stream::create(Context::of_device(1));
    const Ref<Event> event = Event::create(context);
    CHECK_EQUAL(event->record(*other), DS_STATUS_INVALID_ARGUMENT);
    CHECK(!DeviceMemory::create(MemoryPool::default_of(context), other, 64));
    CHECK_EQUAL(last_status(), DS_STATUS_INVALID_ARGUMENT);
    const Ref<Kernel> kernel = Kernel::get(stand_in::load_module(context), stand_in::kKernelName);
    CHECK_EQUAL(launch(*kernel, *other, {{1, 1, 1}, {32, 1, 1}}), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(other->wait_event(*event), DS_STATUS_OK);  // events may be waited for on other streams
}

void work_that_goes_on_is_pending_and_no_error() {
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

void much_shared_memory_is_allowed_once_before_the_launch() {
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

// ---- A failure of every call ----

// A capture has to end before its stream, so its owner tries again. False, for callers that return it.
bool end_failed_capture(const Stream& stream) {
    uint64_t graph = 0;
    cuStreamEndCapture(stream.raw(), &graph);
    if (graph) cuGraphDestroy(graph);
    return false;
}

// Uses every kind of resource. False, with the thread's error set, at the first failure.
bool use_everything() {
    const Ref<Context> context = Context::of_device(0);
    if (!context) return false;
    const Ref<Stream> stream = Stream::create(context);
    if (!stream) return false;
    const Ref<Stream> borrowed = Stream::borrow(context, 1);
    if (!borrowed || borrowed->synchronize()) return false;
    const Ref<Event> start = Event::create(context, true), end = Event::create(context, true);
    if (!start || !end || start->record(*stream) || end->record(*stream)) return false;
    float milliseconds;
    if (stream->wait_event(*end) || end->wait(-1) || end->wait(0) || end->elapsed(*start, &milliseconds)) return false;
    const Ref<MemoryPool> pool = MemoryPool::default_of(context);
    if (!pool) return false;
    const Ref<DeviceMemory> memory = DeviceMemory::create(pool, stream, 64);
    if (!memory || stream->fill(memory->raw(), 0, 64)) return false;
    const Ref<DeviceMemory> default_memory = DeviceMemory::create_on(borrowed, 64);
    if (!default_memory) return false;
    const Ref<DeviceMemory> plain_memory = DeviceMemory::create_without_pool(stream, 64);
    if (!plain_memory) return false;
    const Ref<PinnedMemory> pinned = PinnedMemory::create(context, 64);
    if (!pinned || stream->copy(memory->raw(), pinned->address(), 64)) return false;
    const Ref<Module> module = stand_in::load_module(context);
    if (!module) return false;
    const Ref<Kernel> kernel = Kernel::get(module, stand_in::kKernelName);
    if (!kernel || launch(*kernel, *stream, {{1, 1, 1}, {32, 1, 1}, 65536})) return false;
    const Ref<Stream> recorded = Stream::create(context);
    if (!recorded) return false;
    if (begin_capture(*recorded)) return end_failed_capture(*recorded);
    const Ref<Graph> graph = Graph::end_capture(*recorded);
    if (!graph) return end_failed_capture(*recorded);
    const Ref<GraphExec> exec = GraphExec::create(graph);
    return exec && !exec->launch(*stream) && !stream->synchronize() && !context->synchronize();
}

bool failed_while_ending(const std::string& function) {
    for (const char* ending : {"Destroy", "Free", "Release", "Current", "Captur", "Synchronize"}) {
        if (function.find(ending) != std::string::npos) return true;
    }
    return false;
}

void a_failure_of_any_driver_call_is_an_error_that_leaves_nothing_behind() {
    const stand_in::Settings settings{.eager = 1};  // callers wait for copies of pinned memory before they let it go
    stand_in::install(settings);
    CHECK(use_everything());
    check_clean();
    const std::vector<std::string> calls = stand_in::driver().report.calls();
    CHECK(stand_in::calls() - stand_in::count_calls("cuGetProcAddress") > 100);
    for (size_t call = 0; call < calls.size(); ++call) {
        if (calls[call] == "cuGetProcAddress") continue;  // see driver_test
        stand_in::install(settings);
        stand_in::driver().report.plan_fault("", static_cast<int64_t>(call) + 1, CUDA_ERROR_UNKNOWN);
        fail(DS_STATUS_OK, "", "", "nothing yet");
        const bool succeeded = use_everything();
        const std::string failed = stand_in::driver().report.failed();
        CHECK(!failed.empty());
        // Failures of destructors are ignored; all others are reported, with the driver's code.
        CHECK(!succeeded || failed_while_ending(failed));
        if (!succeeded) {
            const bool refused = failed == "cuDriverGetVersion";
            CHECK_EQUAL(last_status(), refused ? DS_STATUS_DRIVER_VERSION : DS_STATUS_DEVICE);
            CHECK_EQUAL(latest_error().driver_code, refused ? 0 : 999);
        } else {
            CHECK_EQUAL(last_status(), DS_STATUS_OK);
        }
        CHECK_EQUAL(live_resources(), 0);
        CHECK_EQUAL(stand_in::violations(), 0);
        // Only the resource that could not be destroyed is leaked.
        CHECK(stand_in::retained(0) <= 1);
        const int64_t leaked = stand_in::alive();
        if (leaked > (failed_while_ending(failed) ? 1 : 0)) fprintf(stderr, "%s\n", failed.c_str());
        CHECK(leaked <= (failed_while_ending(failed) ? 1 : 0));
    }
}

void a_driver_that_is_gone_when_the_process_ends_is_no_error() {
    Ref<Context> context = context_of_new_driver();
    Ref<Stream> stream = Stream::create(context);
    fail(DS_STATUS_CLOSED, "", "", "before");
    stand_in::fail_next("cuCtxGetCurrent", CUDA_ERROR_DEINITIALIZED);
    stream = {};
    CHECK_EQUAL(last_status(), DS_STATUS_CLOSED);
    CHECK_EQUAL(live_counts.resources[DS_RESOURCE_STREAM], 0);
}

// ---- Threads ----

constexpr int kThreads = 8;
constexpr int kRounds = 200;

template <class Work>
void run_in_threads(Work& work) {
    pthread_t threads[kThreads];
    for (pthread_t& thread : threads) {
        CHECK_EQUAL(pthread_create(&thread, nullptr,
                                   [](void* argument) -> void* {
                                       for (int round = 0; round < kRounds; ++round) (*static_cast<Work*>(argument))();
                                       return nullptr;
                                   },
                                   &work),
                    0);
    }
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

void threads_may_make_find_and_release_resources_at_once() {
    stand_in::install({.eager = 1});
    stand_in::driver().streams.reuses_handles = true;
    {
        const Ref<Context> context = Context::of_device(0);
        const Ref<Stream> shared = Stream::create(context);
        auto work = [&] {
            Ref<Stream> stream = Stream::create(context);
            Ref<DeviceMemory> memory = DeviceMemory::create_on(stream, 64);
            CHECK(stream && memory);
            CHECK(Stream::borrow(context, shared->raw()).get() == shared.get());
            const uint64_t raw = stream->raw();
            stream = {};
            CHECK(find_resource<Stream>(0, raw));
            memory->set_stream(shared);
        };
        run_in_threads(work);
        CHECK_EQUAL(live_resources(), 2);
    }
    check_clean();
}

void threads_that_ask_for_a_context_share_it() {
    stand_in::install();
    auto work = [] {
        const Ref<Context> context = Context::of_device(0), again = Context::of_device(0);
        CHECK(context && context.get() == again.get());
    };
    run_in_threads(work);
    check_clean();
}

void a_last_reference_may_be_dropped_while_others_look_for_the_resource() {
    stand_in::install();
    stand_in::driver().streams.reuses_handles = true;
    {
        const Ref<Context> context = Context::of_device(0);
        static std::atomic<uint64_t> raw;
        raw = 0;
        auto work = [&] {
            const Ref<Stream> found = find_resource<Stream>(0, raw.load());
            if (found) CHECK_EQUAL(found->query(), DS_STATUS_OK);
            const Ref<Stream> stream = Stream::create(context);
            raw = stream->raw();
        };
        run_in_threads(work);
    }
    check_clean();
}

}  // namespace

int main() {
    RUN(a_device_has_one_context_however_often_it_is_asked_for);
    RUN(the_current_device_is_that_of_the_current_context);
    RUN(a_stream_keeps_its_context);
    RUN(the_process_keeps_the_primary_context_of_a_device_from_its_first_use_on);
    RUN(memory_keeps_the_stream_it_is_freed_on);
    RUN(memory_can_be_freed_on_another_stream_than_it_was_made_on);
    RUN(without_memory_pools_memory_is_freed_after_its_stream_has_ended_its_work);
    RUN(memory_of_a_per_thread_stream_is_freed_after_everything);
    RUN(a_module_stays_loaded_when_its_objects_and_those_of_the_context_have_ended);
    RUN(a_kernel_keeps_its_module_and_a_graph_exec_its_graph);
    RUN(memory_that_a_graph_being_recorded_may_use_is_leaked_rather_than_freed);
    RUN(what_ends_beside_a_capture_of_other_code_does_not_disturb_it);
    RUN(what_is_borrowed_is_never_ended);
    RUN(a_foreign_owner_is_let_go_once_with_the_last_child_while_the_context_lives);
    RUN(an_owner_stays_with_the_caller_if_borrowing_fails);
    RUN(default_streams_are_bound_to_their_context);
    RUN(memory_of_another_device_cannot_be_borrowed);
    RUN(what_doorstep_made_is_found_again_by_its_raw_handle);
    RUN(a_raw_handle_that_is_used_again_belongs_to_the_new_resource);
    RUN(what_is_foreign_or_borrowed_is_not_found);
    RUN(the_callers_context_is_current_again_after_every_call);
    RUN(a_context_that_is_current_already_is_left_alone);
    RUN(a_creation_is_undone_if_the_callers_context_cannot_be_restored);
    RUN(a_refused_allocation_names_the_amounts);
    RUN(a_kernel_that_is_not_there_is_an_argument_error);
    RUN(an_image_that_does_not_compile_tells_what_the_compiler_says);
    RUN(a_kernels_code_is_loaded_before_its_first_launch_by_every_driver);
    RUN(a_short_wait_polls_without_pause_and_a_long_one_sleeps);
    RUN(streams_of_another_device_are_refused);
    RUN(work_that_goes_on_is_pending_and_no_error);
    RUN(much_shared_memory_is_allowed_once_before_the_launch);
    RUN(a_failure_of_any_driver_call_is_an_error_that_leaves_nothing_behind);
    RUN(a_driver_that_is_gone_when_the_process_ends_is_no_error);
    RUN(threads_may_make_find_and_release_resources_at_once);
    RUN(threads_that_ask_for_a_context_share_it);
    RUN(a_last_reference_may_be_dropped_while_others_look_for_the_resource);
}
