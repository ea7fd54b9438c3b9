// CUDA devices and resources through the C API, and the C API through its table of functions.
#include <string.h>

#include "api/call.h"
#include "doorstep_api.h"
#include "installed_driver.h"
#include "processes.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/stream.h"

namespace {

using namespace doorstep;

void check_argument_error(ds_status status, const char* argument) {
    CHECK_EQUAL(status, DS_STATUS_INVALID_ARGUMENT);
    CHECK(strcmp(latest_error().argument, argument) == 0);
}

int64_t live() {
    int64_t count;
    CHECK_EQUAL(ds_live_count(DS_LIVE_RESOURCE, &count), DS_STATUS_OK);
    return count;
}

int64_t live(ds_resource_kind kind) {
    int64_t count;
    CHECK_EQUAL(ds_resource_count(kind, &count), DS_STATUS_OK);
    return count;
}

ds_resource_info info_of(ds_resource resource) {
    auto info = sized<ds_resource_info>();
    CHECK_EQUAL(ds_resource_get_info(resource, &info), DS_STATUS_OK);
    return info;
}

ds_resource handle_of(Ref<Resource> made) {
    ds_resource handle = 0;
    CHECK_EQUAL(give_handle(std::move(made), &handle), DS_STATUS_OK);
    return handle;
}

// One handle of every kind, on a new driver.
struct Everything {
    Everything() {
        stand_in::install();
        check(ds_context_create(0, at(DS_RESOURCE_CONTEXT)));
        check(ds_stream_create(context(), at(DS_RESOURCE_STREAM)));
        check(ds_cuda_event_create(context(), 1, at(DS_RESOURCE_EVENT)));
        const Ref<Context> of_device = find_handle<Context>(context(), "context");
        const Ref<Stream> captured = find_handle<Stream>(stream(), "stream");
        const ds_resource pool = *at(DS_RESOURCE_MEMORY_POOL) = handle_of(MemoryPool::default_of(of_device));
        check(ds_device_memory_create(pool, stream(), 4096, at(DS_RESOURCE_DEVICE_MEMORY)));
        check(ds_pinned_memory_create(context(), 512, at(DS_RESOURCE_PINNED_MEMORY)));
        const ds_resource module = *at(DS_RESOURCE_MODULE) = handle_of(stand_in::load_module(of_device));
        check(ds_kernel_get(module, stand_in::kKernelName, at(DS_RESOURCE_KERNEL)));
        check(begin_capture(*captured));
        const Ref<Graph> graph = Graph::end_capture(*captured);
        *at(DS_RESOURCE_GRAPH) = handle_of(graph);
        *at(DS_RESOURCE_GRAPH_EXEC) = handle_of(GraphExec::create(graph));
        int32_t fd;
        check(ds_exported_memory_create(stream(), 4096, at(DS_RESOURCE_EXPORTED_MEMORY)));
        check(ds_exported_memory_export(*at(DS_RESOURCE_EXPORTED_MEMORY), &fd));
        check(ds_imported_memory_create(stream(), fd, 256, 0, at(DS_RESOURCE_IMPORTED_MEMORY)));
        const int timeline = stand_in::make_file("timeline-semaphore", 8).number;
        check(ds_semaphore_import(context(), timeline, 1, at(DS_RESOURCE_SEMAPHORE)));
    }
    ds_resource* at(ds_resource_kind kind) { return &handles[kind]; }
    static void check(ds_status status) { CHECK_EQUAL(status, DS_STATUS_OK); }

    ds_resource context() const { return handles[DS_RESOURCE_CONTEXT]; }
    ds_resource stream() const { return handles[DS_RESOURCE_STREAM]; }
    ds_resource operator[](ds_resource_kind kind) const { return handles[kind]; }

    void release_all() {
        for (const ds_resource handle : handles)
            if (handle) CHECK_EQUAL(ds_resource_release(handle), DS_STATUS_OK);
    }

    ds_resource handles[DS_RESOURCE_KIND_COUNT]{};
};

// ---- Handles ----

LAW(every_kind_is_described_counted_and_released) {
    Everything made;
    for (int32_t kind = 0; kind < DS_RESOURCE_KIND_COUNT; ++kind) {
        const ds_resource_info info = info_of(made.handles[kind]);
        CHECK_EQUAL(info.kind, kind);
        // The pool is the device's own
        CHECK_EQUAL(info.ownership, kind == DS_RESOURCE_MEMORY_POOL ? DS_OWNERSHIP_BORROWED : DS_OWNERSHIP_OWNED);
        CHECK_EQUAL(info.device_index, 0);
        CHECK(info.raw != 0);
        CHECK_EQUAL(live(static_cast<ds_resource_kind>(kind)), 1);
    }
    CHECK_EQUAL(info_of(made[DS_RESOURCE_DEVICE_MEMORY]).bytes, 4096);
    CHECK_EQUAL(info_of(made[DS_RESOURCE_PINNED_MEMORY]).bytes, 512);
    CHECK(info_of(made[DS_RESOURCE_PINNED_MEMORY]).host != 0);
    CHECK_EQUAL(info_of(made[DS_RESOURCE_EXPORTED_MEMORY]).bytes, stand_in::kGranularity);
    CHECK_EQUAL(info_of(made[DS_RESOURCE_IMPORTED_MEMORY]).bytes, 256);
    CHECK_EQUAL(info_of(made.stream()).host, 0);
    CHECK_EQUAL(live(), DS_RESOURCE_KIND_COUNT);
    made.release_all();
    CHECK_EQUAL(live(), 0);
    CHECK_EQUAL(stand_in::alive(), 0);
    CHECK_EQUAL(stand_in::retained(0), 1);
}

LAW(a_handle_of_the_wrong_kind_is_refused_by_the_name_of_its_argument) {
    Everything made;
    ds_resource out = 0;
    check_argument_error(ds_stream_create(made.stream(), &out), "context");
    check_argument_error(ds_stream_follow(made.stream(), made[DS_RESOURCE_EVENT]), "earlier");
    check_argument_error(ds_semaphore_wait(made[DS_RESOURCE_SEMAPHORE], made.context(), 0), "stream");
    check_argument_error(ds_kernel_get(made.stream(), "name", &out), "module");
    CHECK_EQUAL(out, 0);
    made.release_all();
}

LAW(rows_that_cannot_be_copied_are_refused_by_name) {
    Everything made;
    const uint64_t first = info_of(made[DS_RESOURCE_DEVICE_MEMORY]).raw;
    const ds_row_copy good = {sizeof good, 0, first, 16, first + 2048, 16, 8, 2};  // two of 8 bytes, 16 apart
    CHECK_EQUAL(ds_copy_rows(made.stream(), &good), DS_STATUS_OK);
    const std::pair<const char*, void (*)(ds_row_copy&)> cases[] = {
        {"destination_pitch", [](ds_row_copy& rows) { rows.destination_pitch = 7; }},
        {"source_pitch", [](ds_row_copy& rows) { rows.source_pitch = 7; }},
        {"source", [](ds_row_copy& rows) { rows.source = 0; }},
        {"destination", [](ds_row_copy& rows) { rows.destination = 0; }},
        {"copy", [](ds_row_copy& rows) { rows.struct_size = 0; }}};
    for (const auto& [argument, spoil] : cases) {
        ds_row_copy bad = good;
        spoil(bad);
        check_argument_error(ds_copy_rows(made.stream(), &bad), argument);
    }
    made.release_all();
}

// ---- The table ----

LAW(a_table_of_another_version_is_refused) {
    const ds_api* api = nullptr;
    for (const uint32_t version : {0u, DS_ABI_VERSION - 1u, DS_ABI_VERSION + 1u})
        CHECK_EQUAL(ds_get_api(version, &api), DS_STATUS_LIBRARY);
    check_argument_error(ds_get_api(DS_ABI_VERSION, nullptr), "api");
    CHECK(!api);
}

}  // namespace
