#include "exec/cuda/work_order.h"

#include <new>

#include "runtime/cuda/graph.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

// Default streams exist as long as their context.
bool is_default_stream(const Stream& stream) {
    return stream.handle() == CU_STREAM_LEGACY || stream.handle() == CU_STREAM_PER_THREAD;
}

// The driver's result of waiting for work, or its error if it cannot wait.
bool has_ended(CUresult result) { return result == CUDA_SUCCESS || loses_context(result); }

}  // namespace

Ref<WorkOrder> WorkOrder::create(const Ref<Context>& context, uint64_t stream) {
    const Ref<WorkOrder> order = check_allocated(new (std::nothrow) WorkOrder(context));
    if (!order) return {};
    order->event_ = Event::create(context);
    if (!order->event_) return {};
    order->own_ = Stream::create(context);
    if (!order->own_) return {};
    order->stream_ = order->find_stream(stream);
    return order->stream_ ? order : Ref<WorkOrder>();
}

Ref<Stream> WorkOrder::find_stream(uint64_t stream) {
    // One value that stands for another stream in every thread
    if (stream == reinterpret_cast<uint64_t>(CU_STREAM_PER_THREAD)) shared_ = true;
    return stream == DS_STREAM_OWN ? own_ : Stream::borrow(context_, stream, {}, "stream");
}

Ref<Stream> WorkOrder::stream() {
    if (in_forked_process()) return stream_;  // a thread of the parent may hold the lock
    MutexGuard guard(mutex_);
    return stream_;
}

// A graph of other code may be launched on any stream.
ds_status WorkOrder::begin(Ref<Stream>* stream) {
    *stream = this->stream();
    bool recorded;
    if (const ds_status status = (*stream)->is_capturing(&recorded)) return status;
    if (!recorded || captures_itself()) return DS_STATUS_OK;
    MutexGuard guard(mutex_);
    shared_ = true;
    return DS_STATUS_OK;
}

// Captured work needs no order: see the header.
ds_status WorkOrder::follow(const Ref<Stream>& earlier, const Stream& later) const {
    if (!earlier || earlier->raw() == later.raw()) return DS_STATUS_OK;
    bool recorded;
    if (const ds_status status = earlier->is_capturing(&recorded)) return status;
    if (recorded) return DS_STATUS_OK;
    if (const ds_status status = event_->record(*earlier)) return status;
    return later.wait_event(*event_);
}

ds_status WorkOrder::set_stream(uint64_t stream) {
    if (in_forked_process()) return fail_driver(kCalledInForkedProcess, "");
    MutexGuard guard(mutex_);
    const Ref<Stream> next = find_stream(stream);
    if (!next) return last_status();
    if (next->raw() == stream_->raw() && !unordered_) return DS_STATUS_OK;
    bool recorded;
    if (const ds_status status = next->is_capturing(&recorded)) return status;
    if (recorded) {
        shared_ = true;
        if (!unordered_) unordered_ = stream_;
    } else {
        if (const ds_status status = follow(unordered_, *next)) return status;
        if (const ds_status status = follow(stream_, *next)) return status;
        unordered_ = {};
    }
    stream_ = next;
    return DS_STATUS_OK;
}

ds_status WorkOrder::order(uint64_t stream) {
    if (in_forked_process()) return fail_driver(kCalledInForkedProcess, "");
    MutexGuard guard(mutex_);
    const Ref<Stream> next = find_stream(stream);
    if (!next) return last_status();
    if (next->raw() == stream_->raw()) return DS_STATUS_OK;
    shared_ = true;
    bool recorded;
    if (const ds_status status = next->is_capturing(&recorded)) return status;
    if (recorded) return DS_STATUS_OK;
    if (const ds_status status = follow(unordered_, *next)) return status;
    return follow(stream_, *next);
}

ds_status WorkOrder::check_not_recorded(const char* operation) {
    bool recorded;
    if (const ds_status status = stream()->is_capturing(&recorded)) return status;
    if (!recorded) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "stream", "do this before or after the capture",
                "the stream is being captured into a CUDA graph, which cannot contain %s", operation);
}

ds_status WorkOrder::copy(uint64_t to, uint64_t from, int64_t bytes, const char* operation) {
    if (const ds_status status = check_not_recorded(operation)) return status;
    const Ref<Stream> now = stream();
    if (const ds_status status = now->copy(to, from, static_cast<uint64_t>(bytes))) return status;
    return now->synchronize();
}

void WorkOrder::leave_users_stream() {
    if (in_forked_process()) return;
    MutexGuard guard(mutex_);
    if (stream_->raw() == own_->raw() || is_default_stream(*stream_)) return;
    stream_ = own_;
    unordered_ = {};
    shared_ = true;
}

bool WorkOrder::settle(Ref<Stream>* stream) {
    if (in_forked_process()) return false;
    MutexGuard guard(mutex_);
    *stream = stream_;
    if (abandoned_) return false;
    const CurrentContext current(*context_);
    // Checked first: waiting would invalidate the capture
    abandoned_ = !current.entered() || stream_->may_be_capturing() ||
                 (shared_ && !has_ended(context_->wait_for_everything()));
    return !abandoned_;
}

bool WorkOrder::finish() {
    Ref<Stream> last;
    if (!settle(&last)) return false;
    const CurrentContext current(*context_);
    return current.entered() && has_ended(driver().cuStreamSynchronize(last->handle()));
}

bool WorkOrder::finish_for_caller() {
    if (in_forked_process()) return false;
    MutexGuard guard(mutex_);
    const CurrentContext current(*context_);
    if (abandoned_ || !current.entered() || stream_->may_be_capturing()) return false;
    return has_ended(shared_ ? context_->wait_for_everything() : driver().cuStreamSynchronize(stream_->handle()));
}

}  // namespace doorstep
