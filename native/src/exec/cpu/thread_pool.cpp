#include "exec/cpu/thread_pool.h"

#include <limits.h>

#include <algorithm>
#include <new>

#include "exec/cpu/float_environment.h"
#include "exec/cpu/thread.h"
#include "runtime/futex.h"

namespace doorstep {
namespace {

constexpr int64_t kChunksPerShare = 6;

int64_t parts_of(int64_t items, int64_t size) { return (items + size - 1) / size; }

}  // namespace

bool ThreadPool::initialize(int64_t num_threads, int64_t max_items) {
    capacity_ = static_cast<int>(num_threads);
    size_ = static_cast<int>(std::max<int64_t>(1, std::min(num_threads, parts_of(max_items, kTileWorlds))));
    workers_ = new (std::nothrow) Worker[static_cast<size_t>(capacity_)];
    if (!workers_) return false;
    for (int i = 0; i < capacity_; ++i) {
        workers_[i].pool = this;
        workers_[i].index = i;
    }
    return true;
}

bool ThreadPool::start() {
    for (; started_ < size_; ++started_) {
        Worker& worker = workers_[started_];
        if (!start_thread(&worker.thread, enter, &worker)) return false;
    }
    return true;
}

bool ThreadPool::start_all() {
    const int before = size_;
    size_ = capacity_;
    if (start()) return true;
    size_ = std::max(before, started_);
    return false;
}

void ThreadPool::stop() {
    stopping_.store(true);
    calls_.fetch_add(1);
    futex_wake(calls_, INT_MAX);
    for (; started_ > 1; --started_) join_thread(workers_[started_ - 1].thread);
    delete[] workers_;
    workers_ = nullptr;
}

void ThreadPool::forget_threads() {
    started_ = 1;
    job_.store(0);
}

void ThreadPool::run(int64_t count, int64_t grain, Task task, void* context) {
    if (count <= 0) return;
    const int64_t grains = parts_of(count, grain);
    task_ = task;
    context_ = context;
    chunk_ = size_ == 1 ? count : std::max<int64_t>(1, grains / size_ / kChunksPerShare) * grain;
    for (int i = 0; i < size_; ++i) {
        workers_[i].next.store(grains * i / size_ * grain, std::memory_order_relaxed);
        workers_[i].end = std::min(grains * (i + 1) / size_ * grain, count);
    }
    if (started_ == 1 || grains == 1) return work(0);
    job_.store(kOpen, std::memory_order_release);
    calls_.fetch_add(1);
    futex_wake(calls_, INT_MAX);
    work(0);
    close_job();
}

void* ThreadPool::enter(void* argument) {
    Worker* worker = static_cast<Worker*>(argument);
    worker->pool->help(worker->index);
    return nullptr;
}

void ThreadPool::help(int worker) {
    uint32_t seen = 0;
    for (;;) {
        wait_for_change(calls_, seen);
        seen = calls_.load(std::memory_order_acquire);
        if (stopping_.load()) return;
        if (!join_job()) continue;
        work(worker);
        leave_job();
    }
}

void ThreadPool::work(int worker) {
    const DefaultFloatEnvironment environment;
    for (int i = 0; i < size_; ++i) {
        Worker& share = workers_[(worker + i) % size_];
        for (;;) {
            const int64_t first = share.next.fetch_add(chunk_, std::memory_order_relaxed);
            if (first >= share.end) break;
            task_(context_, first, std::min(chunk_, share.end - first), worker);
        }
    }
}

bool ThreadPool::join_job() {
    uint32_t job = job_.load(std::memory_order_relaxed);
    while (job & kOpen) {
        if (job_.compare_exchange_weak(job, job + 1, std::memory_order_acquire)) return true;
    }
    return false;
}

void ThreadPool::leave_job() {
    if (job_.fetch_sub(1, std::memory_order_acq_rel) == 1) futex_wake(job_, 1);
}

void ThreadPool::close_job() {
    uint32_t inside = job_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
    for (; inside; inside = job_.load(std::memory_order_acquire)) wait_for_change(job_, inside);
}

}  // namespace doorstep
