#include "exec/cpu/background_thread.h"

#include "exec/cpu/thread.h"
#include "runtime/futex.h"

namespace doorstep {

bool BackgroundThread::start() {
    if (started_) return true;
    posts_.store(0);
    started_ = start_thread(&thread_, enter, this);
    return started_;
}

void BackgroundThread::stop() {
    if (!started_) return;
    post(nullptr, nullptr);
    join_thread(thread_);
    started_ = false;
}

void BackgroundThread::post(Job job, void* context) {
    job_ = job;
    context_ = context;
    posts_.fetch_add(1, std::memory_order_release);
    futex_wake(posts_, 1);
}

void* BackgroundThread::enter(void* argument) {
    BackgroundThread* self = static_cast<BackgroundThread*>(argument);
    for (uint32_t seen = 0;; ++seen) {
        wait_for_change(self->posts_, seen);
        const Job job = self->job_;
        if (!job) return nullptr;
        job(self->context_);
    }
}

}  // namespace doorstep
