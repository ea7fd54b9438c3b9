// A forked child has one thread and a copy of everything else. To make that copy consistent, the fork waits for every
// running step and holds every lock. In the child the locks are free again and the threads are discarded; the next
// step creates new ones.
//
// Locks are always taken in this order: the list of simulators, a simulator's turn, the batches' turn, that of the
// models, a fork mutex, a handle registry.
#include <pthread.h>

#include "api/call.h"
#include "api/save.h"
#include "exec/batch.h"
#include "exec/simulator.h"
#include "runtime/fork_mutex.h"
#include "runtime/reference.h"

namespace doorstep {
namespace {

template <class Function>
void for_each_registry(const Function& function) {
    function(simulators);
    function(memories);
    function(events);
    function(resources);
    function(layers);
    function(policies);
    function(shared_levels);
    function(saved_states);
    function(engines);
    function(output_queues);
    function(configs);
    function(metrics_stores);
}

void before_fork() {
    lock_open_simulators();
    lock_batch_threads();
    lock_models();
    lock_fork_mutexes();
    for_each_registry([](auto& registry) { registry.lock(); });
}

void after_fork_in_parent() {
    for_each_registry([](auto& registry) { registry.unlock(); });
    unlock_fork_mutexes();
    unlock_models();
    unlock_batch_threads();
    unlock_open_simulators();
}

void after_fork_in_child() {
    live_counts.threads.store(0, std::memory_order_relaxed);
    for_each_registry([](auto& registry) { registry.unlock(); });
    reset_fork_mutexes();
    reset_models();
    forget_batch_threads();
    enter_forked_child_with_simulators();
}

// When the library is loaded: a fork beside the first call would find the handlers half installed.
bool handlers_installed = false;
[[gnu::constructor]] void install_handlers() {
    handlers_installed = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

}  // namespace

bool has_fork_handlers() { return handlers_installed; }

}  // namespace doorstep
