// Memory and semaphores shared with another API: file descriptors, lifetimes, and a failure of each call.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "doorstep.h"
#include "driver_checks.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/sharing.h"

namespace {

using namespace doorstep;

void check_refused(ds_status expected, const char* argument) {
    CHECK_EQUAL(last_status(), expected);
    CHECK(strcmp(latest_error().argument, argument) == 0);
}

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

// An object that another API has exported; the stand-in knows its use by its name.
int new_descriptor(const char* name) {
    const int descriptor = stand_in::make_file(name, 64).number;
    CHECK(descriptor >= 0);
    return descriptor;
}
int new_semaphore(bool timeline) { return new_descriptor(timeline ? "timeline-semaphore" : "binary-semaphore"); }

// The driver keeps the file of every object that is shared.
int64_t descriptors_of_driver() {
    return stand_in::alive("physical_memories") + stand_in::alive("external_memories") +
           stand_in::alive("external_semaphores");
}

int count_open_descriptors() {
    int count = 0;
    for (int descriptor = 0; descriptor < 1024; ++descriptor) count += is_open(descriptor);
    return count;
}

Ref<Stream> stream_of_new_driver(const stand_in::Settings& settings = {}) {
    stand_in::install(settings);
    const Ref<Context> context = Context::of_device(0);
    CHECK(context);
    return Stream::create(context);
}

// ---- Exported memory ----

void exported_memory_is_whole_granules_and_keeps_its_stream() {
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

void every_export_is_a_descriptor_of_its_own_that_no_other_program_inherits() {
    const Ref<ExportedMemory> memory = ExportedMemory::create(stream_of_new_driver(), 1);
    int first = -1, second = -1;
    CHECK_EQUAL(memory->export_descriptor(&first), DS_STATUS_OK);
    CHECK_EQUAL(memory->export_descriptor(&second), DS_STATUS_OK);
    CHECK(first != second);
    CHECK_EQUAL(fcntl(first, F_GETFD), FD_CLOEXEC);
    CHECK_EQUAL(close(first), 0);
    CHECK_EQUAL(close(second), 0);
}

void a_size_that_does_not_fit_is_out_of_memory_with_the_amounts() {
    const Ref<Stream> stream = stream_of_new_driver({.memory_bytes = 3'000'000});
    const Ref<ExportedMemory> fits = ExportedMemory::create(stream, 1);
    CHECK(fits);
    const int64_t before = stand_in::alive();
    CHECK(!ExportedMemory::create(stream, 1));
    CHECK_EQUAL(last_status(), DS_STATUS_OUT_OF_MEMORY);
    CHECK(strstr(latest_error().message, "requested 2097152 bytes, device 0 has 902848 free of 3000000"));
    CHECK(!ExportedMemory::create(stream, UINT64_MAX));
    CHECK_EQUAL(last_status(), DS_STATUS_OUT_OF_MEMORY);
    CHECK_EQUAL(stand_in::alive(), before);
    CHECK_EQUAL(stand_in::violations(), 0);
}

void a_device_that_cannot_share_is_told_so() {
    const Ref<Stream> stream = stream_of_new_driver({.sharing = 0});
    CHECK(!ExportedMemory::create(stream, 1));
    check_refused(DS_STATUS_DEVICE, "context");
    const int timeline = new_semaphore(true), binary = new_semaphore(false);
    CHECK(!Semaphore::import(stream->context(), timeline, true));
    check_refused(DS_STATUS_DEVICE, "timeline");
    CHECK(Semaphore::import(stream->context(), binary, false));
    for (const int descriptor : {timeline, binary}) CHECK_EQUAL(close(descriptor), 0);
}

void a_driver_without_the_functions_says_so_when_they_are_used() {
    for (const char* missing : {"cuMemCreate", "cuMemExportToShareableHandle", "cuImportExternalMemory",
                                "cuImportExternalSemaphore", "cuSignalExternalSemaphoresAsync"}) {
        const Ref<Stream> stream = stream_of_new_driver({.missing = {missing}});
        const int memory = new_descriptor("memory"), timeline = new_semaphore(true);
        ds_status status = DS_STATUS_OK;
        {
            const Ref<ExportedMemory> exported = ExportedMemory::create(stream, 1);
            int fd;
            if (!exported || exported->export_descriptor(&fd)) {
                status = last_status();
            } else {
                close(fd);
            }
            const Ref<ImportedMemory> imported = ImportedMemory::create(stream, memory, 64, false);
            if (!imported) status = last_status();
            const Ref<Semaphore> semaphore = Semaphore::import(stream->context(), timeline, true);
            if (!semaphore || semaphore->signal(*stream, 1)) status = last_status();
        }
        CHECK_EQUAL(status, DS_STATUS_DRIVER_FUNCTION);
        CHECK(strstr(latest_error().message, missing));
        CHECK_EQUAL(stand_in::alive(), 1);
        for (const int descriptor : {memory, timeline}) CHECK_EQUAL(close(descriptor), 0);
    }
}

// ---- Imports ----

void a_descriptor_goes_with_the_success_of_an_import_and_stays_after_a_failure() {
    stand_in::install();
    ds_resource context, stream, memory = 0, semaphore = 0;
    CHECK_EQUAL(ds_context_create(0, &context), DS_STATUS_OK);
    CHECK_EQUAL(ds_stream_create(context, &stream), DS_STATUS_OK);
    const int open_before = count_open_descriptors();
    const int first = new_descriptor("dedicated-memory"), second = new_semaphore(false);
    const auto first_file = stand_in::FileDescriptor::of(first), second_file = stand_in::FileDescriptor::of(second);
    for (const char* function : {"cuImportExternalMemory", "cuExternalMemoryGetMappedBuffer"}) {
        stand_in::fail_next(function);
        CHECK_EQUAL(ds_imported_memory_create(stream, first, 64, 1, &memory), DS_STATUS_DEVICE);
        CHECK(is_open(first));
        CHECK_EQUAL(stand_in::alive(), 1);
    }
    stand_in::fail_next("cuImportExternalSemaphore");
    CHECK_EQUAL(ds_semaphore_import(context, second, 0, &semaphore), DS_STATUS_DEVICE);
    CHECK(is_open(second));
    CHECK_EQUAL(count_open_descriptors(), open_before + 2);
    CHECK_EQUAL(ds_imported_memory_create(stream, first, 64, 1, &memory), DS_STATUS_OK);
    CHECK_EQUAL(ds_semaphore_import(context, second, 0, &semaphore), DS_STATUS_OK);
    CHECK(!first_file.is_open());
    CHECK(!second_file.is_open());
    CHECK_EQUAL(descriptors_of_driver(), 2);
    CHECK_EQUAL(count_open_descriptors(), open_before + descriptors_of_driver());
    for (const ds_resource handle : {memory, semaphore, stream, context}) {
        CHECK_EQUAL(ds_resource_release(handle), DS_STATUS_OK);
    }
    CHECK_EQUAL(count_open_descriptors(), open_before);
    check_clean();
}

void a_descriptor_that_is_not_open_is_an_argument_error() {
    const Ref<Stream> stream = stream_of_new_driver();
    CHECK(!ImportedMemory::create(stream, 1000, 64, false));
    check_refused(DS_STATUS_INVALID_ARGUMENT, "fd");
    CHECK(strstr(latest_error().message, "1000"));
    CHECK(!Semaphore::import(stream->context(), 1000, false));
    check_refused(DS_STATUS_INVALID_ARGUMENT, "fd");
    CHECK_EQUAL(stand_in::first_call("cuImportExternalMemory"), -1);
}

void what_the_driver_cannot_import_is_blamed_on_the_argument() {
    const Ref<Stream> stream = stream_of_new_driver();
    const int descriptor = new_descriptor("memory");
    stand_in::fail_next("cuImportExternalMemory", CUDA_ERROR_OPERATING_SYSTEM);
    CHECK(!ImportedMemory::create(stream, descriptor, 64, false));
    check_refused(DS_STATUS_INVALID_ARGUMENT, "fd");
    CHECK_EQUAL(latest_error().driver_code, 304);
    stand_in::fail_next("cuExternalMemoryGetMappedBuffer", CUDA_ERROR_INVALID_VALUE);
    CHECK(!ImportedMemory::create(stream, descriptor, 64, false));
    check_refused(DS_STATUS_INVALID_ARGUMENT, "bytes");
    CHECK_EQUAL(close(descriptor), 0);
}

void an_imported_buffer_goes_before_its_memory_and_after_the_streams_work() {
    Ref<Stream> stream = stream_of_new_driver();
    const int descriptor = new_descriptor("memory");
    Ref<ImportedMemory> memory = ImportedMemory::create(stream, descriptor, 64, false);
    CHECK_EQUAL(close(descriptor), 0);
    stream = {};
    CHECK_EQUAL(memory->bytes(), 64);
    CHECK_EQUAL(stand_in::alive("external_memories"), 1);
    CHECK_EQUAL(stand_in::alive("device_memory"), 1);
    CHECK_EQUAL(stand_in::alive("streams"), 1);
    memory = {};
    check_clean();
    CHECK(stand_in::first_call("cuStreamQuery") < stand_in::first_call("cuMemFree"));
    CHECK(stand_in::first_call("cuMemFree") < stand_in::first_call("cuDestroyExternalMemory"));
}

void memory_of_a_stream_that_is_being_recorded_is_leaked_rather_than_given_back() {
    Ref<Stream> stream = stream_of_new_driver();
    const int descriptor = new_descriptor("memory");
    Ref<ExportedMemory> exported = ExportedMemory::create(stream, 1);
    Ref<ImportedMemory> imported = ImportedMemory::create(stream, descriptor, 64, false);
    CHECK_EQUAL(begin_capture(*stream), DS_STATUS_OK);
    exported = {};
    imported = {};
    CHECK(Graph::end_capture(*stream));
    stream = {};
    CHECK_EQUAL(stand_in::alive("device_memory"), 2);
    CHECK_EQUAL(live_resources(), 0);
    CHECK_EQUAL(stand_in::violations(), 0);
}

// ---- Semaphores ----

Ref<Semaphore> import_semaphore(const Stream& stream, bool timeline) {
    const int descriptor = new_semaphore(timeline);
    Ref<Semaphore> semaphore = Semaphore::import(stream.context(), descriptor, timeline);
    CHECK_EQUAL(close(descriptor), 0);
    return semaphore;
}

void a_semaphore_ends_after_the_work_with_it_on_every_stream() {
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

void a_semaphore_in_a_graph_is_leaked_because_the_graph_may_be_launched_again() {
    Ref<Stream> stream = stream_of_new_driver();
    Ref<Semaphore> semaphore = import_semaphore(*stream, false);
    CHECK_EQUAL(begin_capture(*stream), DS_STATUS_OK);
    CHECK_EQUAL(semaphore->signal(*stream, 0), DS_STATUS_OK);
    CHECK(Graph::end_capture(*stream));
    CHECK_EQUAL(stand_in::count_calls("cuEventRecord"), 0);
    semaphore = {};
    stream = {};
    CHECK_EQUAL(stand_in::alive("external_semaphores"), 1);
    CHECK_EQUAL(live_resources(), 0);
    CHECK_EQUAL(stand_in::violations(), 0);
}

void a_semaphore_whose_work_left_no_event_is_leaked() {
    Ref<Stream> stream = stream_of_new_driver();
    Ref<Semaphore> semaphore = import_semaphore(*stream, false);
    stand_in::fail_next("cuEventRecord");
    CHECK_EQUAL(semaphore->signal(*stream, 0), DS_STATUS_DEVICE);
    semaphore = {};
    stream = {};
    CHECK_EQUAL(stand_in::alive("external_semaphores"), 1);
    CHECK_EQUAL(live_resources(), 0);
    CHECK_EQUAL(stand_in::violations(), 0);
}

void streams_of_another_device_are_refused() {
    const Ref<Stream> stream = stream_of_new_driver({.devices = 2});
    const Ref<Stream> other = Stream::create(Context::of_device(1));
    const Ref<Semaphore> semaphore = import_semaphore(*stream, true);
    CHECK_EQUAL(semaphore->wait(*other, 1), DS_STATUS_INVALID_ARGUMENT);
    check_refused(DS_STATUS_INVALID_ARGUMENT, "stream");
    CHECK_EQUAL(stand_in::first_call("cuWaitExternalSemaphoresAsync"), -1);
}

void a_binary_semaphore_has_no_value() {
    stand_in::install();
    ds_resource context, stream, semaphore;
    CHECK_EQUAL(ds_context_create(0, &context), DS_STATUS_OK);
    CHECK_EQUAL(ds_stream_create(context, &stream), DS_STATUS_OK);
    CHECK_EQUAL(ds_semaphore_import(context, new_semaphore(false), 0, &semaphore), DS_STATUS_OK);
    CHECK_EQUAL(ds_semaphore_signal(semaphore, stream, 1), DS_STATUS_INVALID_ARGUMENT);
    check_refused(DS_STATUS_INVALID_ARGUMENT, "value");
    CHECK_EQUAL(ds_semaphore_wait(semaphore, stream, 1), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_semaphore_signal(semaphore, stream, 0), DS_STATUS_OK);
    for (const ds_resource handle : {semaphore, stream, context}) {
        CHECK_EQUAL(ds_resource_release(handle), DS_STATUS_OK);
    }
    check_clean();
}

// ---- A failure of every call ----

// False, with the thread's error set, at the first failure.
bool share_everything(int memory, int timeline) {
    const Ref<Context> context = Context::of_device(0);
    if (!context) return false;
    const Ref<Stream> stream = Stream::create(context);
    if (!stream) return false;
    const Ref<ExportedMemory> exported = ExportedMemory::create(stream, 1);
    int exported_descriptor;
    if (!exported || exported->export_descriptor(&exported_descriptor)) return false;
    close(exported_descriptor);
    const Ref<ImportedMemory> imported = ImportedMemory::create(stream, memory, 64, true);
    if (!imported) return false;
    const ds_row_copy rows{sizeof rows, 0, exported->raw(), 16, imported->raw(), 32, 16, 2};
    if (stream->copy_rows(rows)) return false;
    const Ref<Semaphore> semaphore = Semaphore::import(context, timeline, true);
    return semaphore && !semaphore->signal(*stream, 1) && !semaphore->wait(*stream, 1);
}

// On a new driver whose n-th call fails; 0: none.
bool share_everything(int64_t failing_call) {
    stand_in::install();
    if (failing_call) stand_in::driver().report.plan_fault("", failing_call, CUDA_ERROR_UNKNOWN);
    const int memory = new_descriptor("dedicated-memory"), timeline = new_semaphore(true);
    const bool succeeded = share_everything(memory, timeline);
    for (const int descriptor : {memory, timeline}) CHECK_EQUAL(close(descriptor), 0);
    return succeeded;
}

// Failures after which a resource that could not be destroyed or awaited stays alive in the driver.
bool failed_while_ending(const std::string& function) {
    for (const char* ending : {"Destroy", "Free", "Unmap", "Query", "cuMemRelease", "CtxRelease", "Current", "Captur",
                               "Record"}) {
        if (function.find(ending) != std::string::npos) return true;
    }
    return false;
}

void check_failing(int64_t call) {
    stand_in::install();
    const int open_before = count_open_descriptors();
    fail(DS_STATUS_OK, "", "", "nothing yet");
    const bool succeeded = share_everything(call);
    const std::string failed = stand_in::driver().report.failed();
    CHECK(!failed.empty());
    CHECK(!succeeded || failed_while_ending(failed));
    if (succeeded) CHECK_EQUAL(last_status(), DS_STATUS_OK);
    CHECK_EQUAL(stand_in::violations(), 0);
    CHECK_EQUAL(count_open_descriptors(), open_before + descriptors_of_driver());
    if (!failed_while_ending(failed)) check_clean();
}

void a_failure_of_any_driver_call_is_an_error_that_leaves_nothing_behind() {
    CHECK(share_everything(0));
    check_clean();
    const std::vector<std::string> calls = stand_in::driver().report.calls();
    CHECK(stand_in::calls() - stand_in::count_calls("cuGetProcAddress") > 60);
    for (size_t call = 0; call < calls.size(); ++call) {
        if (calls[call] == "cuGetProcAddress") continue;  // see driver_test
        check_failing(static_cast<int64_t>(call) + 1);
    }
}

}  // namespace

int main() {
    RUN(exported_memory_is_whole_granules_and_keeps_its_stream);
    RUN(every_export_is_a_descriptor_of_its_own_that_no_other_program_inherits);
    RUN(a_size_that_does_not_fit_is_out_of_memory_with_the_amounts);
    RUN(a_device_that_cannot_share_is_told_so);
    RUN(a_driver_without_the_functions_says_so_when_they_are_used);
    RUN(a_descriptor_goes_with_the_success_of_an_import_and_stays_after_a_failure);
    RUN(a_descriptor_that_is_not_open_is_an_argument_error);
    RUN(what_the_driver_cannot_import_is_blamed_on_the_argument);
    RUN(an_imported_buffer_goes_before_its_memory_and_after_the_streams_work);
    RUN(memory_of_a_stream_that_is_being_recorded_is_leaked_rather_than_given_back);
    RUN(a_semaphore_ends_after_the_work_with_it_on_every_stream);
    RUN(a_semaphore_in_a_graph_is_leaked_because_the_graph_may_be_launched_again);
    RUN(a_semaphore_whose_work_left_no_event_is_leaked);
    RUN(streams_of_another_device_are_refused);
    RUN(a_binary_semaphore_has_no_value);
    RUN(a_failure_of_any_driver_call_is_an_error_that_leaves_nothing_behind);
}
