// CUDA resources: contexts, streams, events, modules and kernels.
#include <string.h>

#include "api/call.h"
#include "exec/cuda/images.h"
#include "exec/cuda/kernel_module.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/stream.h"
#include "runtime/reference.h"

namespace doorstep {
namespace {

constexpr const char* kResourceKindNames[DS_RESOURCE_KIND_COUNT] = {
    "context", "stream", "event", "memory pool", "device memory",
    "pinned memory", "module", "kernel", "graph", "graph exec",
    "exported memory", "imported memory", "semaphore"};

static_assert(kResourceKindNames[DS_RESOURCE_KIND_COUNT - 1], "every kind has a name");

ds_status check_resource_kind(int32_t kind) {
    return check_range("kind", "pass a ds_resource_kind", kind, 0, DS_RESOURCE_KIND_COUNT - 1);
}

}  // namespace

ds_status fail_wrong_kind(const char* argument, ds_resource_kind given, ds_resource_kind expected) {
    DS_ASSERT(given < DS_RESOURCE_KIND_COUNT && expected < DS_RESOURCE_KIND_COUNT && given != expected);
    char names[2][64];
    const ds_resource_kind kinds[] = {given, expected};
    for (int i = 0; i < 2; ++i) snprintf(names[i], sizeof names[i], "a %s", kResourceKindNames[kinds[i]]);
    return fail_handle_kind(argument, names[0], names[1]);
}

ds_status give_handle(Ref<Resource> made, ds_resource* handle) {
    if (!made) return last_status();
    const uint64_t id = resources.insert(std::move(made));
    if (!id) return fail_no_memory();
    *handle = id;
    return DS_STATUS_OK;
}

}  // namespace doorstep

using namespace doorstep;

// ---- All kinds ----

ds_status ds_resource_get_info(ds_resource resource, ds_resource_info* info) {
    Results<ds_resource_info> results(info, "info");
    if (results.status()) return results.status();
    const Ref<Resource> found = resources.find(resource, "resource");
    if (!found) return last_status();
    results->kind = found->kind();
    results->ownership = found->ownership();
    results->device_index = found->device_index();
    results->raw = found->raw();
    results->bytes = found->bytes();
    results->host = found->host();
    results->references = int64_t{found->reference_count()} - 1;  // without `found`
    return results.give();
}

ds_status ds_resource_release(ds_resource resource) {
    return resources.release(resource, "resource");
}

ds_status ds_resource_count(int32_t kind, int64_t* count) {
    if (!count) return fail_null("count");
    if (const ds_status status = check_resource_kind(kind)) return status;
    *count = live_counts.resources[kind].load();
    return DS_STATUS_OK;
}

// ---- Contexts ----

ds_status ds_context_create(int64_t device_index, ds_resource* context) {
    if (!context) return fail_null("context");
    if (!has_fork_handlers()) return fail_no_memory();
    return give_handle(Context::of_device(device_index), context);
}

ds_status ds_context_synchronize(ds_resource context) {
    const Ref<Context> found = find_handle<Context>(context, "context");
    return found ? found->synchronize() : last_status();
}

// ---- Streams ----

ds_status ds_stream_create(ds_resource context, ds_resource* stream) {
    if (!stream) return fail_null("stream");
    Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(Stream::create(std::move(found)), stream) : last_status();
}

ds_status ds_stream_borrow(ds_resource context, uint64_t raw, void* owner, ds_release_owner release_owner,
                           ds_resource* stream) {
    if (!stream) return fail_null("stream");
    Ref<Context> found = find_handle<Context>(context, "context");
    if (!found) return last_status();
    return give_handle(Stream::borrow(std::move(found), raw, {owner, release_owner}), stream);
}

ds_status ds_stream_synchronize(ds_resource stream) {
    const Ref<Stream> found = find_handle<Stream>(stream, "stream");
    return found ? found->synchronize() : last_status();
}

ds_status ds_stream_query(ds_resource stream) {
    const Ref<Stream> found = find_handle<Stream>(stream, "stream");
    return found ? found->query() : last_status();
}

ds_status ds_stream_is_capturing(ds_resource stream, int32_t* capturing) {
    if (!capturing) return fail_null("capturing");
    const Ref<Stream> found = find_handle<Stream>(stream, "stream");
    if (!found) return last_status();
    bool recorded;
    if (const ds_status status = found->is_capturing(&recorded)) return status;
    *capturing = recorded;
    return DS_STATUS_OK;
}

ds_status ds_stream_wait_event(ds_resource stream, ds_resource event) {
    const Ref<Stream> waiting = find_handle<Stream>(stream, "stream");
    if (!waiting) return last_status();
    const Ref<Event> awaited = find_handle<Event>(event, "event");
    return awaited ? waiting->wait_event(*awaited) : last_status();
}

ds_status ds_stream_follow(ds_resource stream, ds_resource earlier) {
    const Ref<Stream> following = find_handle<Stream>(stream, "stream");
    if (!following) return last_status();
    const Ref<Stream> followed = find_handle<Stream>(earlier, "earlier");
    return followed ? following->follow(*followed) : last_status();
}

// ---- Events ----

ds_status ds_cuda_event_create(ds_resource context, int32_t timing, ds_resource* event) {
    if (!event) return fail_null("event");
    if (const ds_status status = check_flag("timing", timing)) return status;
    Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(Event::create(std::move(found), timing == 1), event) : last_status();
}

ds_status ds_cuda_event_borrow(ds_resource context, uint64_t raw, void* owner, ds_release_owner release_owner,
                               ds_resource* event) {
    if (!event) return fail_null("event");
    if (!raw) return fail_null("raw");
    Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(Event::borrow(std::move(found), raw, {owner, release_owner}), event) : last_status();
}

ds_status ds_cuda_event_record(ds_resource event, ds_resource stream) {
    const Ref<Event> recorded = find_handle<Event>(event, "event");
    if (!recorded) return last_status();
    const Ref<Stream> found = find_handle<Stream>(stream, "stream");
    return found ? recorded->record(*found) : last_status();
}

ds_status ds_cuda_event_wait(ds_resource event, int64_t timeout_ns) {
    const Ref<Event> found = find_handle<Event>(event, "event");
    return found ? found->wait(timeout_ns) : last_status();
}

ds_status ds_cuda_event_elapsed(ds_resource start, ds_resource end, float* milliseconds) {
    if (!milliseconds) return fail_null("milliseconds");
    const Ref<Event> first = find_handle<Event>(start, "start");
    if (!first) return last_status();
    const Ref<Event> last = find_handle<Event>(end, "end");
    if (!last) return last_status();
    float elapsed;
    const ds_status status = last->elapsed(*first, &elapsed);
    if (!status) *milliseconds = elapsed;
    return status;
}

// ---- Modules and kernels ----

ds_status ds_module_load_builtin(ds_resource context, const char* name, ds_resource* module) {
    if (!name) return fail_null("name");
    if (!module) return fail_null("module");
    if (strcmp(name, "views") != 0) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "name", "the built-in module is \"views\"",
                    "there is no built-in module \"%s\"", name);
    }
    const Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(load_module(found, kViewsModule), module) : last_status();
}

ds_status ds_kernel_get(ds_resource module, const char* name, ds_resource* kernel) {
    if (!name) return fail_null("name");
    if (!kernel) return fail_null("kernel");
    Ref<Module> found = find_handle<Module>(module, "module");
    return found ? give_handle(Kernel::get(std::move(found), name), kernel) : last_status();
}

ds_status ds_kernel_launch(ds_resource kernel, ds_resource stream, const uint32_t* grid, const uint32_t* block,
                           uint32_t shared_bytes, void** arguments) {
    if (!grid) return fail_null("grid");
    if (!block) return fail_null("block");
    const Ref<Kernel> launched = find_handle<Kernel>(kernel, "kernel");
    if (!launched) return last_status();
    const Ref<Stream> on = find_handle<Stream>(stream, "stream");
    if (!on) return last_status();
    LaunchShape shape;
    memcpy(shape.grid, grid, sizeof shape.grid);
    memcpy(shape.block, block, sizeof shape.block);
    shape.shared_bytes = shared_bytes;
    return launched->launch(*on, shape, arguments);
}
