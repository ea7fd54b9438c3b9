#include "exec/cpu/threads.h"

#include <immintrin.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "processes.h"
#include "runtime/futex.h"
#include "runtime/reference.h"
#include "sim/world_model.h"

namespace {

using namespace doorstep;

// Each item is processed once, by workers and in chunks that the pool may use.
void check_coverage(ThreadPool& pool, int64_t count) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
    pool.run(count, [&](int64_t first, int64_t length, int worker) {
        CHECK(worker >= 0 && worker < pool.size());
        CHECK_EQUAL(first % kTileWorlds, 0);
        CHECK(length % kTileWorlds == 0 || first + length == count);
        for (int64_t i = first; i < first + length; ++i) visits[static_cast<size_t>(i)].fetch_add(1);
    });
    for (const auto& visit : visits) CHECK_EQUAL(visit.load(), 1);
}

// The same in parts of one item, on more threads than there are tiles of worlds.
void smaller_parts_are_spread_over_all_threads() {
    for (int64_t count : {1, 2, 7, 64, 1000}) {
        ThreadPool pool;
        CHECK(pool.initialize(5, kTileWorlds));
        CHECK_EQUAL(pool.size(), 1);
        CHECK(pool.start_all());
        CHECK_EQUAL(pool.size(), 5);
        std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
        const auto visit = [](void* context, int64_t first, int64_t length, int worker) {
            CHECK(worker >= 0 && worker < 5);
            std::atomic<int>* items = static_cast<std::atomic<int>*>(context);
            for (int64_t i = first; i < first + length; ++i) items[i].fetch_add(1);
        };
        for (int round = 0; round < 20; ++round) pool.run(count, 1, visit, visits.data());
        for (const auto& item : visits) CHECK_EQUAL(item.load(), 20);
    }
    CHECK_EQUAL(live_counts.threads.load(), 0);
}

void every_item_is_worked_on_once() {
    for (int threads : {1, 2, 3, 8}) {
        for (int64_t count : {1, 31, 32, 33, 64, 95, 1000, 4096, 4099}) {
            ThreadPool pool;
            CHECK(pool.initialize(threads, count));
            CHECK(pool.start());
            for (int round = 0; round < 20; ++round) check_coverage(pool, count);
        }
    }
    CHECK_EQUAL(live_counts.threads.load(), 0);
}

void an_empty_job_calls_nothing() {
    ThreadPool pool;
    CHECK(pool.initialize(2, 100) && pool.start());
    pool.run(0, [](int64_t, int64_t, int) { CHECK(false); });
}

void threads_that_could_get_no_chunk_are_not_started() {
    ThreadPool pool;
    CHECK(pool.initialize(8, 2 * kTileWorlds) && pool.start());
    CHECK_EQUAL(pool.size(), 2);
    CHECK_EQUAL(live_counts.threads.load(), 1);
}

void many_pools_come_and_go() {
    for (int i = 0; i < 300; ++i) {
        ThreadPool pool;
        CHECK(pool.initialize(4, 1000) && pool.start());
        if (i % 3) check_coverage(pool, 1000);
    }
    CHECK_EQUAL(live_counts.threads.load(), 0);
}

void threads_that_slept_long_work_again() {
    ThreadPool pool;
    CHECK(pool.initialize(3, 1000) && pool.start());
    for (int i = 0; i < 5; ++i) {
        const timespec pause{0, 5'000'000};
        nanosleep(&pause, nullptr);
        check_coverage(pool, 1000);
    }
}

void tasks_run_in_the_default_float_environment_and_the_caller_s_returns() {
    constexpr unsigned kFlushToZero = 0x8000, kRoundUp = 0x4000, kDefault = 0x1F80;
    ThreadPool pool;
    CHECK(pool.initialize(2, 1000) && pool.start());
    _mm_setcsr(kDefault | kFlushToZero | kRoundUp);
    pool.run(1000, [](int64_t, int64_t, int) { CHECK_EQUAL(_mm_getcsr() & ~0x3Fu, kDefault); });
    CHECK_EQUAL(_mm_getcsr(), kDefault | kFlushToZero | kRoundUp);
    _mm_setcsr(kDefault);
}

void a_forked_child_starts_its_own_threads() {
    ThreadPool pool;
    CHECK(pool.initialize(3, 1000) && pool.start());
    check_coverage(pool, 1000);
    const int status = run_in_child([&pool] {
        live_counts.threads.store(0);
        pool.forget_threads();
        CHECK(pool.start());
        for (int round = 0; round < 10; ++round) check_coverage(pool, 1000);
        pool.stop();
        CHECK_EQUAL(live_counts.threads.load(), 0);
        return 0;
    });
    CHECK_EQUAL(status, 0);
    check_coverage(pool, 1000);
}

// Users with this limit may not start threads; root may, so the process changes its user.
bool limit_threads() {
    const rlimit none{0, 0};
    return (getuid() != 0 || setuid(65534) == 0) && setrlimit(RLIMIT_NPROC, &none) == 0;
}

void a_pool_that_is_refused_more_threads_works_with_those_it_has() {
    const int status = run_in_child([]() -> int {
        ThreadPool pool;
        CHECK(pool.initialize(8, kTileWorlds) && pool.start());
        CHECK(limit_threads());
        CHECK(!pool.start_all());
        CHECK_EQUAL(pool.size(), 1);
        CHECK(pool.start());
        check_coverage(pool, 1000);
        _exit(0);  // a leak check at the end would need a thread
    });
    CHECK_EQUAL(status, 0);
}

void a_process_with_sleeping_threads_exits() {
    const int status = run_in_child([] {
        ThreadPool* pool = new ThreadPool;
        CHECK(pool->initialize(3, 1000) && pool->start());
        check_coverage(*pool, 1000);
        return 7;
    });
    CHECK_EQUAL(status, 7);
}

void the_background_thread_runs_jobs_in_order() {
    std::atomic<uint32_t> runs{0};
    const BackgroundThread::Job job = [](void* context) {
        std::atomic<uint32_t>& count = *static_cast<std::atomic<uint32_t>*>(context);
        count.fetch_add(1);
        futex_wake(count, 1);
    };
    {
        BackgroundThread thread;
        for (uint32_t i = 0; i < 1000; ++i) {
            CHECK(thread.start());
            thread.post(job, &runs);
            wait_for_change(runs, i);
        }
    }
    CHECK_EQUAL(runs.load(), 1000);
    CHECK_EQUAL(live_counts.threads.load(), 0);
}

struct Turns {
    TurnLock lock;
    int held = 0;
    int64_t total = 0;
};

void* take_turns(void* argument) {
    Turns* turns = static_cast<Turns*>(argument);
    for (int i = 0; i < 2000; ++i) {
        turns->lock.lock();
        CHECK_EQUAL(turns->held++, 0);
        ++turns->total;
        --turns->held;
        turns->lock.unlock();
    }
    return nullptr;
}

void turns_are_taken_by_one_thread_at_a_time() {
    Turns turns;
    pthread_t threads[3];
    for (pthread_t& thread : threads) CHECK_EQUAL(pthread_create(&thread, nullptr, take_turns, &turns), 0);
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    CHECK_EQUAL(turns.total, 6000);
}

void the_default_number_of_threads_is_at_most_the_affinity_s() {
    cpu_set_t one_cpu;
    CPU_ZERO(&one_cpu);
    const int status = run_in_child([&one_cpu] {
        CPU_SET(sched_getcpu(), &one_cpu);
        CHECK_EQUAL(sched_setaffinity(0, sizeof one_cpu, &one_cpu), 0);
        setenv("OMP_NUM_THREADS", "7", 1);
        CHECK_EQUAL(default_thread_count(), 1);
        return 0;
    });
    CHECK_EQUAL(status, 0);
}

}  // namespace

int main() {
    RUN(every_item_is_worked_on_once);
    RUN(smaller_parts_are_spread_over_all_threads);
    RUN(an_empty_job_calls_nothing);
    RUN(threads_that_could_get_no_chunk_are_not_started);
    RUN(many_pools_come_and_go);
    RUN(threads_that_slept_long_work_again);
    RUN(tasks_run_in_the_default_float_environment_and_the_caller_s_returns);
    if (kCanStartThreadsInChild) RUN(a_forked_child_starts_its_own_threads);
    RUN(a_pool_that_is_refused_more_threads_works_with_those_it_has);
    if (kCanStartThreadsInChild) RUN(a_process_with_sleeping_threads_exits);
    RUN(the_background_thread_runs_jobs_in_order);
    RUN(turns_are_taken_by_one_thread_at_a_time);
    RUN(the_default_number_of_threads_is_at_most_the_affinity_s);
}
