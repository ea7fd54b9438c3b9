// A forked child has one thread and a copy of everything else. To make that copy consistent, the fork waits for every
// running step and holds every lock. In the child the locks are free again and the threads are discarded; the next
// step creates new ones.
//
// Locks are always taken in this order: the list of simulators, a simulator's turn, the batches' turn, a fork mutex, a
// handle registry.
#include <pthread.h>

#include <atomic>

#include "api/call.h"
#include "api/configs.h"
#include "api/rollouts.h"
#include "exec/batch.h"
#include "exec/open_simulators.h"
#include "runtime/fork_mutex.h"
#include "runtime/reference.h"

namespace doorstep {
namespace {

constinit Mutex install_mutex;  // the fork handlers do not take it: installing needs a lock that a fork holds
constinit std::atomic<bool> handlers_installed{false};

template <class Function>
void for_each_registry(const Function& function) {
    function(simulators);
    function(memories);
    function(events);
    function(resources);
    function(layers);
    function(policies);
    function(shared_levels);
    function(engines);
    function(configs);
    function(metrics_stores);
    function(series_handles);
}

void before_fork() {
    lock_open_simulators();
    lock_batch_threads();
    lock_fork_mutexes();
    for_each_registry([](auto& registry) { registry.lock(); });
}

void after_fork_in_parent() {
    for_each_registry([](auto& registry) { registry.unlock(); });
    unlock_fork_mutexes();
    unlock_batch_threads();
    unlock_open_simulators();
}

void after_fork_in_child() {
    live_counts.threads.store(0, std::memory_order_relaxed);
    for_each_registry([](auto& registry) { registry.unlock(); });
    reset_fork_mutexes();
    forget_batch_threads();
    enter_forked_child_with_simulators();
    install_mutex.reset();
}

}  // namespace

bool install_fork_handlers() {
    if (handlers_installed.load(std::memory_order_acquire)) return true;
    MutexGuard guard(install_mutex);
    if (!handlers_installed.load(std::memory_order_relaxed) &&
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0) {
        handlers_installed.store(true, std::memory_order_release);
    }
    return handlers_installed.load(std::memory_order_relaxed);
}

bool watch_forks(Simulator* simulator) {
    if (!install_fork_handlers()) return false;
    list_open(simulator);
    return true;
}

void unwatch_forks(Simulator* simulator) { unlist_open(simulator); }

}  // namespace doorstep
