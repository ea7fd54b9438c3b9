#include "runtime/cuda/semaphore.h"

#include <new>

#include "runtime/cuda/polling.h"
#include "runtime/file_descriptor.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

ds_status check_knows_timelines(const Context& context) {
    int supported;
    const ds_status status = context.attribute(CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, &supported);
    if (status || supported) return status;
    return fail(DS_STATUS_DEVICE, "timeline", "use binary semaphores", "device %d cannot import timeline semaphores",
                context.device_index());
}

CUDA_EXTERNAL_SEMAPHORE_PARAMS with_value(uint64_t value) {
    CUDA_EXTERNAL_SEMAPHORE_PARAMS params{};
    params.fence_value = value;
    return params;
}

}  // namespace

Ref<Semaphore> Semaphore::import(Ref<Context> context, int descriptor, bool timeline) {
    if (timeline && check_knows_timelines(*context)) return {};
    const Ref<Semaphore> semaphore = check_allocated(new (std::nothrow) Semaphore(context, timeline));
    if (!semaphore) return {};
    FileDescriptorCopy copy(descriptor);
    if (copy.status()) return {};
    CurrentContext current(*context);
    if (current.status()) return {};
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC description{};
    description.type = timeline ? CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
                                : CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    description.handle.fd = copy.get();
    CUexternalSemaphore handle;
    if (const CUresult result = driver().cuImportExternalSemaphore(&handle, &description)) {
        fail_driver(result, "cuImportExternalSemaphore", "fd");
        return {};
    }
    copy.give_away();
    semaphore->own(handle);
    return current.restore() ? Ref<Semaphore>() : semaphore;
}

Semaphore::~Semaphore() {
    if (disown()) {
        const DestructionScope scope(*context());
        if (scope.entered() && is_at_rest()) driver().cuDestroyExternalSemaphore(handle());
    }
    while (uses_) delete std::exchange(uses_, uses_->next);
}

bool Semaphore::is_at_rest() const {
    bool at_rest = !unknown_uses_;
    for (const Use* use = uses_; use && at_rest; use = use->next) {
        const CUresult result = poll(CUDA_ERROR_NOT_READY, kReleasePatience,
                                     [&] { return driver().cuEventQuery(use->event->handle()); });
        at_rest = result == CUDA_SUCCESS || loses_context(result);
    }
    return at_rest;
}

ds_status Semaphore::signal(const Stream& stream, uint64_t value) {
    return begin(stream, "cuSignalExternalSemaphoresAsync", [&](const Driver& driver) {
        const CUexternalSemaphore semaphore = handle();
        const CUDA_EXTERNAL_SEMAPHORE_PARAMS params = with_value(value);
        return driver.cuSignalExternalSemaphoresAsync(&semaphore, &params, 1, stream.handle());
    });
}

ds_status Semaphore::wait(const Stream& stream, uint64_t value) {
    return begin(stream, "cuWaitExternalSemaphoresAsync", [&](const Driver& driver) {
        const CUexternalSemaphore semaphore = handle();
        const CUDA_EXTERNAL_SEMAPHORE_PARAMS params = with_value(value);
        return driver.cuWaitExternalSemaphoresAsync(&semaphore, &params, 1, stream.handle());
    });
}

template <class Call>
ds_status Semaphore::begin(const Stream& stream, const char* function, const Call& call) {
    if (stream.context().get() != context().get()) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "stream", "pass a stream of the semaphore's device",
                    "the stream is of device %d, the semaphore of device %d", stream.device_index(), device_index());
    }
    bool recorded;
    if (const ds_status status = stream.is_capturing(&recorded)) return status;
    MutexGuard guard(mutex_);
    Use* use = nullptr;
    if (!recorded) {
        if (const ds_status status = find_use(stream, &use)) return status;
    }
    if (const ds_status status = context()->call(function, "semaphore", call)) return status;
    const ds_status status = recorded ? DS_STATUS_OK : use->event->record(stream);
    unknown_uses_ = unknown_uses_ || recorded || status;
    return status;
}

ds_status Semaphore::find_use(const Stream& stream, Use** found) {
    for (*found = uses_; *found; *found = (*found)->next) {
        if ((*found)->stream == stream.raw()) return DS_STATUS_OK;
    }
    const Ref<Event> event = Event::create(context());
    if (!event) return last_status();
    Use* made = new (std::nothrow) Use{event, stream.raw(), uses_};
    if (!made) return fail_no_memory();
    uses_ = *found = made;
    return DS_STATUS_OK;
}

}  // namespace doorstep
