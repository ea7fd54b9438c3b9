// Memory and semaphores shared with another API: in what order they end, and what is rather leaked. All else is tested
// from Python.
#include <unistd.h>

#include "installed_driver.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/sharing.h"

namespace {

using namespace doorstep;

// An object that another API has exported; the stand-in knows its use by its name.
int new_descriptor(const char* name) {
    const int descriptor = stand_in::make_file(name, 64).number;
    CHECK(descriptor >= 0);
    return descriptor;
}
int new_semaphore(bool timeline) { return new_descriptor(timeline ? "timeline-semaphore" : "binary-semaphore"); }

Ref<Stream> stream_of_new_driver(const stand_in::Settings& settings = {}) {
    stand_in::install(settings);
    const Ref<Context> context = Context::of_device(0);
    CHECK(context);
    return Stream::create(context);
}

// ---- Exported memory ----

LAW(exported_memory_is_whole_granules_and_keeps_its_stream) {
    Ref<Stream> stream = stream_of_new_driver();
    Ref<ExportedMemory> memory = ExportedMemory::create(stream, stand_in::kGranularity + 1);
    CHECK_EQUAL(memory->bytes(), 2 * stand_in::kGranularity);
    CHECK_EQUAL(memory->raw(), memory->address());
    CHECK(find_resource<ExportedMemory>(0, memory->raw()).get() == memory.get());
    stream = {};
    CHECK_EQUAL(stand_in::alive("streams"), 1);
    memory = {};
    check_clean();
    CHECK(stand_in::first_call("cuStreamQuery") < stand_in::first_call("cuMemUnmap"));
    CHECK(stand_in::first_call("cuMemUnmap") < stand_in::first_call("cuMemAddressFree"));
    CHECK(stand_in::first_call("cuMemUnmap") < stand_in::first_call("cuMemRelease"));
    CHECK(stand_in::first_call("cuMemRelease") < stand_in::first_call("cuStreamDestroy"));
}

// ---- Imports ----

LAW(memory_of_a_stream_that_is_being_recorded_is_leaked_rather_than_given_back) {
    Ref<Stream> stream = stream_of_new_driver();
    const int descriptor = new_descriptor("memory");
    Ref<ExportedMemory> exported = ExportedMemory::create(stream, 1);
    Ref<ImportedMemory> imported = ImportedMemory::create(stream, descriptor, 64, false);
    CHECK_EQUAL(begin_capture(*stream), DS_STATUS_OK);
    drop(exported, imported);
    CHECK(Graph::end_capture(*stream));
    stream = {};
    CHECK_EQUAL(stand_in::alive("device_memory"), 2);
}

// ---- Semaphores ----

Ref<Semaphore> import_semaphore(const Stream& stream, bool timeline) {
    const int descriptor = new_semaphore(timeline);
    Ref<Semaphore> semaphore = Semaphore::import(stream.context(), descriptor, timeline);
    CHECK_EQUAL(close(descriptor), 0);
    return semaphore;
}

LAW(a_semaphore_ends_after_the_work_with_it_on_every_stream) {
    Ref<Stream> first = stream_of_new_driver({.eager = 1}), second = Stream::create(first->context());
    Ref<Semaphore> semaphore = import_semaphore(*first, true);
    for (uint64_t value = 1; value < 5; ++value) {
        CHECK_EQUAL(semaphore->signal(*first, value), DS_STATUS_OK);
        CHECK_EQUAL(semaphore->wait(*second, value), DS_STATUS_OK);
    }
    CHECK_EQUAL(stand_in::alive("events"), 2);
    first = second = {};
    CHECK_EQUAL(stand_in::alive("streams"), 0);
    stand_in::driver().report.clear_calls();
    stand_in::fail_next("cuEventQuery", CUDA_ERROR_NOT_READY);
    semaphore = {};
    check_clean();
    CHECK_EQUAL(stand_in::count_calls("cuEventQuery"), 3);  // polled again
    CHECK(stand_in::first_call("cuEventQuery") < stand_in::first_call("cuDestroyExternalSemaphore"));
}

LAW(a_semaphore_in_a_graph_is_leaked_because_the_graph_may_be_launched_again) {
    Ref<Stream> stream = stream_of_new_driver();
    Ref<Semaphore> semaphore = import_semaphore(*stream, false);
    CHECK_EQUAL(begin_capture(*stream), DS_STATUS_OK);
    CHECK_EQUAL(semaphore->signal(*stream, 0), DS_STATUS_OK);
    CHECK(Graph::end_capture(*stream));
    CHECK_EQUAL(stand_in::count_calls("cuEventRecord"), 0);
    drop(semaphore, stream);
    CHECK_EQUAL(stand_in::alive("external_semaphores"), 1);
}

LAW(a_semaphore_whose_work_left_no_event_is_leaked) {
    Ref<Stream> stream = stream_of_new_driver();
    Ref<Semaphore> semaphore = import_semaphore(*stream, false);
    stand_in::fail_next("cuEventRecord");
    CHECK_EQUAL(semaphore->signal(*stream, 0), DS_STATUS_DEVICE);
    drop(semaphore, stream);
    CHECK_EQUAL(stand_in::alive("external_semaphores"), 1);
}

}  // namespace
