#include "runtime/fork_mutex.h"

#include "runtime/list.h"

namespace doorstep {
namespace {

constinit Mutex list_mutex;
constinit List<ForkMutex> all;  // guarded by list_mutex
constinit std::atomic<uint32_t> forks{0};

}  // namespace

ForkMutex::ForkMutex() {
    MutexGuard guard(list_mutex);
    all.insert(this);
}

ForkMutex::~ForkMutex() {
    MutexGuard guard(list_mutex);
    all.remove(this);
}

void lock_fork_mutexes() {
    list_mutex.lock();
    all.for_each([](ForkMutex& mutex) { mutex.lock(); });
}

void unlock_fork_mutexes() {
    all.for_each([](ForkMutex& mutex) { mutex.unlock(); });
    list_mutex.unlock();
}

void reset_fork_mutexes() {
    all.for_each([](ForkMutex& mutex) { mutex.reset(); });
    list_mutex.reset();
    forks.fetch_add(1, std::memory_order_relaxed);
}

uint32_t num_forks() { return forks.load(std::memory_order_relaxed); }

}  // namespace doorstep
