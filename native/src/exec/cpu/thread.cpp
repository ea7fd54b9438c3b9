#include "exec/cpu/thread.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>

#include <algorithm>

#include "doorstep.h"
#include "runtime/cgroup.h"
#include "runtime/live_count.h"

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

}  // namespace

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

}  // namespace doorstep
