#include "exec/open_simulators.h"

#include "runtime/list.h"

namespace doorstep {
namespace {

constinit Mutex list_mutex;
constinit List<Simulator> open_simulators;  // guarded by list_mutex

}  // namespace

void list_open(Simulator* simulator) {
    MutexGuard guard(list_mutex);
    open_simulators.insert(simulator);
}

void unlist_open(Simulator* simulator) {
    MutexGuard guard(list_mutex);
    open_simulators.remove(simulator);
}

void lock_open_simulators() {
    list_mutex.lock();
    open_simulators.for_each([](Simulator& simulator) { simulator.turn.lock(); });
}

void unlock_open_simulators() {
    open_simulators.for_each([](Simulator& simulator) { simulator.turn.unlock(); });
    list_mutex.unlock();
}

void enter_forked_child_with_simulators() {
    open_simulators.for_each([](Simulator& simulator) {
        simulator.enter_forked_child();
        simulator.turn.reset();
    });
    list_mutex.reset();
}

}  // namespace doorstep
