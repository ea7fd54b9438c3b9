#include "exec/cpu/threads.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <new>

#include "doorstep/rooms.h"
#include "math/float_environment.h"
#include "runtime/futex.h"
#include "runtime/machine.h"
#include "runtime/reference.h"

namespace doorstep {
namespace {

constexpr size_t kStackBytes = 1 << 20;  // address space; untouched pages use no memory

int64_t affinity_count() {
    for (int capacity = CPU_SETSIZE; capacity <= 1 << 20; capacity *= 4) {
        cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(capacity));
        if (!set) return 1;
        const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
        const bool known = sched_getaffinity(0, bytes, set) == 0;
        const int count = known ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (known) return count;
    }
    return 1;
}

constexpr int64_t kChunksPerShare = 6;

int64_t parts_of(int64_t items, int64_t size) { return (items + size - 1) / size; }

}  // namespace

// ---- Threads

int64_t default_thread_count() {
    const int64_t quota = read_cgroup_limits().cpus;
    const int64_t count = quota > 0 ? std::min(affinity_count(), quota) : affinity_count();
    return std::clamp<int64_t>(count, 1, DS_MAX_THREADS);
}

bool start_thread(pthread_t* thread, void* (*entry)(void*), void* argument) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, kStackBytes);
    sigset_t all, previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    const int error = pthread_create(thread, &attributes, entry, argument);
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    pthread_attr_destroy(&attributes);
    if (error) return false;
    pthread_setname_np(*thread, "doorstep");
    live_counts.threads.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void join_thread(pthread_t thread) {
    pthread_join(thread, nullptr);
    live_counts.threads.fetch_sub(1, std::memory_order_relaxed);
}

void detach_thread(pthread_t thread) {
    pthread_detach(thread);
    live_counts.threads.fetch_sub(1, std::memory_order_relaxed);
}

// The stack of a process's first thread grows when it is touched, and a process that cannot have the memory ends. So it
// grows at the thread's first step, and not where memory has ended since.
static __attribute__((noinline)) void grow_stack(size_t bytes) {
    volatile char* const touched = static_cast<volatile char*>(__builtin_alloca(bytes));
    asm volatile("" : : "r"(touched) : "memory");  // else the compiler keeps only the bytes that are written
    for (size_t i = 0; i < bytes; i += 4096) touched[i] = 0;
}

// Stacks that are not the thread's own are taken to be large.
bool has_stack_for_step() {
    constexpr uintptr_t kNeeded = 256 << 10;
    static thread_local uintptr_t lowest = 0;
    const bool is_first = !lowest;
    if (is_first) {
        pthread_attr_t attributes;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0) return true;
        void* start;
        size_t size;
        pthread_attr_getstack(&attributes, &start, &size);
        pthread_attr_destroy(&attributes);
        lowest = reinterpret_cast<uintptr_t>(start);
    }
    const bool has_room = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - lowest >= kNeeded;
    if (is_first && has_room) grow_stack(kNeeded - 4096);
    return has_room;
}

void run_on_thread(void* (*entry)(void*), void* argument) {
    pthread_t thread;
    if (!start_thread(&thread, entry, argument)) {
        fputs("doorstep: this thread's stack is too small for a step, and the operating system refuses another\n", stderr);
        abort();
    }
    join_thread(thread);
}

// ---- The background thread

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
    DS_ASSERT(started_);
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

// ---- The pool

bool ThreadPool::initialize(int64_t num_threads, int64_t max_items) {
    DS_ASSERT(!workers_ && num_threads >= 1 && num_threads <= DS_MAX_THREADS);
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
    DS_ASSERT(workers_ && grain > 0);
    DS_ASSERT(job_.load() == 0);  // one job at a time, and no helper of the last one is left
    const int64_t grains = parts_of(count, grain);
    task_ = task;
    context_ = context;
    chunk_ = size_ == 1 ? count : std::max<int64_t>(1, grains / size_ / kChunksPerShare) * grain;
    for (int i = 0; i < size_; ++i) {
        workers_[i].next.store(grains * i / size_ * grain, std::memory_order_relaxed);
        workers_[i].end = std::min(grains * (i + 1) / size_ * grain, count);
    }
    const auto work_here = [this] { work(0); };
    if (started_ == 1 || grains == 1) return run_with_stack(work_here);
    job_.store(kOpen, std::memory_order_release);
    calls_.fetch_add(1);
    futex_wake(calls_, INT_MAX);
    run_with_stack(work_here);
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
    DS_ASSERT((job_.load() & ~kOpen) != 0);
    if (job_.fetch_sub(1, std::memory_order_acq_rel) == 1) futex_wake(job_, 1);
}

void ThreadPool::close_job() {
    DS_ASSERT(job_.load() & kOpen);
    uint32_t inside = job_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
    for (; inside; inside = job_.load(std::memory_order_acquire)) wait_for_change(job_, inside);
}

}  // namespace doorstep
