#include "exec/cpu/threads.h"

#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "processes.h"
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
LAW(smaller_parts_are_spread_over_all_threads) {
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
}

LAW(every_item_is_worked_on_once) {
    for (int threads : {1, 2, 8}) {
        for (int64_t count : {1, 31, 32, 33, 95, 1000, 4099}) {
            ThreadPool pool;
            CHECK(pool.initialize(threads, count) && pool.start());
            for (int round = 0; round < 20; ++round) check_coverage(pool, count);
            pool.run(0, [](int64_t, int64_t, int) { CHECK(false); });
        }
    }
}

LAW(threads_that_could_get_no_chunk_are_not_started) {
    ThreadPool pool;
    CHECK(pool.initialize(8, 2 * kTileWorlds) && pool.start());
    CHECK_EQUAL(pool.size(), 2);
    CHECK_EQUAL(live_counts.threads.load(), 1);
}

// Users with this limit may not start threads; root may, so the process changes its user.
bool limit_threads() {
    const rlimit none{0, 0};
    return (getuid() != 0 || setuid(65534) == 0) && setrlimit(RLIMIT_NPROC, &none) == 0;
}

LAW(a_pool_that_is_refused_more_threads_works_with_those_it_has) {
    const int status = run_in_child([]() -> int {
        ThreadPool pool;
        CHECK(pool.initialize(8, kTileWorlds) && pool.start() && limit_threads());
        CHECK(!pool.start_all());
        CHECK_EQUAL(pool.size(), 1);
        CHECK(pool.start());
        check_coverage(pool, 1000);
        _exit(0);  // a leak check at the end would need a thread
    });
    CHECK_EQUAL(status, 0);
}

LAW(the_default_number_of_threads_is_at_most_the_affinity_s) {
    const int status = run_in_child([] {
        cpu_set_t one_cpu;
        CPU_ZERO(&one_cpu);
        CPU_SET(sched_getcpu(), &one_cpu);
        CHECK_EQUAL(sched_setaffinity(0, sizeof one_cpu, &one_cpu), 0);
        setenv("OMP_NUM_THREADS", "7", 1);
        CHECK_EQUAL(default_thread_count(), 1);
        return 0;
    });
    CHECK_EQUAL(status, 0);
}

}  // namespace
