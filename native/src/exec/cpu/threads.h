// Native threads: how many this process may use, one that runs the jobs of asynchronous steps, and the pool that steps
// worlds.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include <atomic>

#include "math/base.h"
#include "sim/world_model.h"

namespace doorstep {

// CPUs in the affinity mask, or the quota of the control group (rounded up) if that is smaller; 1 .. DS_MAX_THREADS.
int64_t default_thread_count();

// Starts a thread that blocks all signals, so that the process's signals reach the threads that expect them. False if
// the operating system refuses.
bool start_thread(pthread_t* thread, void* (*entry)(void*), void* argument);
void join_thread(pthread_t thread);
// Instead of joining it: it ends by itself, at some time.
void detach_thread(pthread_t thread);

// Whether the calling thread's stack has room for a step of worlds: up to 180 KB, which may lie beyond the page that
// guards a small one.
bool has_stack_for_step();
// On a new thread, to its end. Ends the process if the operating system refuses the thread.
void run_on_thread(void* (*entry)(void*), void* argument);
// Calls work() on the calling thread if it has room for a step, else on a new one.
template <class Work>
void run_with_stack(const Work& work) {
    if (has_stack_for_step()) return work();
    const auto enter = [](void* argument) -> void* { return (*static_cast<const Work*>(argument))(), nullptr; };
    run_on_thread(enter, const_cast<Work*>(&work));
}

// One thread that runs jobs for asynchronous steps. It is created when first needed.
class BackgroundThread {
public:
    using Job = void (*)(void* context);

    BackgroundThread() = default;
    ~BackgroundThread() { stop(); }
    BackgroundThread(const BackgroundThread&) = delete;
    BackgroundThread& operator=(const BackgroundThread&) = delete;

    // Makes sure that the thread exists. False if the operating system refuses it.
    bool start();
    // Waits for a posted job, then ends and joins the thread.
    void stop();
    // In a forked child, where the thread does not exist. No job may be running.
    void forget_thread() { started_ = false; }

    // Runs job(context) on the thread. The previous job must have ended.
    void post(Job job, void* context);

private:
    static void* enter(void* self);

    pthread_t thread_{};
    bool started_ = false;
    Job job_ = nullptr;  // null: the thread shall end
    void* context_ = nullptr;
    std::atomic<uint32_t> posts_{0};
};

// Runs a function over ranges of worlds, on the calling thread and on helper threads that sleep between jobs.
//
// Each worker owns an equal share of the worlds, so that a world stays in the caches of the core that stepped it last.
// A worker takes chunks from its own share and, when that is empty, from the others'. A job is open while chunks may
// remain. A helper joins an open job, works, and leaves; the caller closes the job when it finds no more chunks, and
// waits only for helpers that joined: a helper that wakes up late finds the job closed and sleeps again. Fields of a
// job are written only while it is closed and no helper is inside, so they need no lock.
//
// Chunks give the same result on every worker.
class ThreadPool {
public:
    // Processes [first, first + count). worker: 0 for the caller, 1 .. size() - 1 for helpers.
    using Task = void (*)(void* context, int64_t first, int64_t count, int worker);

    ThreadPool() = default;
    ~ThreadPool() { stop(); }
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    // For at most num_threads threads, including the caller's. Threads that could never get a tile of max_items worlds
    // are not started. False if memory ran out.
    bool initialize(int64_t num_threads, int64_t max_items);

    // Starts the missing threads: all of them at first, and again in a forked child. False if the operating system
    // refuses one.
    bool start();
    // For work in smaller parts: starts all num_threads threads, for this and later jobs. False if the operating system
    // refuses one; then the pool works with those it has.
    bool start_all();
    // Ends and joins all threads.
    void stop();
    // In a forked child, where the threads do not exist. No job may be running.
    void forget_threads();

    // Calls task on chunks that exactly cover [0, count), each a multiple of `grain` items except the last; returns
    // when all are done. One job at a time.
    void run(int64_t count, int64_t grain, Task task, void* context);
    // The same in tiles of worlds, for a callable f(first, count, worker).
    template <class Function>
    void run(int64_t count, const Function& function) {
        run(
            count, kTileWorlds,
            [](void* context, int64_t first, int64_t chunk, int worker) {
                (*static_cast<const Function*>(context))(first, chunk, worker);
            },
            const_cast<Function*>(&function));
    }

    int size() const { return size_; }
    int capacity() const { return capacity_; }  // upper limit of size()
    int64_t allocated_bytes() const { return capacity_ * static_cast<int64_t>(sizeof(Worker)); }

private:
    struct alignas(64) Worker {
        std::atomic<int64_t> next{0};  // first item of the share that no worker has taken
        int64_t end = 0;               // end of the share
        ThreadPool* pool = nullptr;
        pthread_t thread{};
        int index = 0;
    };

    static void* enter(void* worker);
    void help(int worker);
    void work(int worker);
    bool join_job();
    void leave_job();
    void close_job();

    static constexpr uint32_t kOpen = 1u << 31;

    Worker* workers_ = nullptr;
    int capacity_ = 0;
    int size_ = 0;
    int started_ = 1;  // workers that have a thread, including the caller

    Task task_ = nullptr;
    void* context_ = nullptr;
    int64_t chunk_ = 0;

    alignas(64) std::atomic<uint32_t> calls_{0};  // changes with every job and with stop(); helpers sleep on it
    alignas(64) std::atomic<uint32_t> job_{0};    // kOpen while open, plus the number of helpers inside
    std::atomic<bool> stopping_{false};
};

}  // namespace doorstep
